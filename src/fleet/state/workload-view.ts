/** The workload identities of the state as a gateway decides by them. Only a changed one is compiled again. */
import type { Database } from 'bun:sqlite'
import { compileIdentity, type WorkloadRow, workloadColumns } from '../../workloads/stored-identity.ts'
import type { WorkloadIdentity } from '../../workloads/workload-identity.ts'
import { CompiledRows } from './compiled-rows.ts'

export class WorkloadView {
  readonly #rows = new CompiledRows<WorkloadRow, WorkloadIdentity | null>(
    'workload_identities',
    workloadColumns,
    compileIdentity,
  )
  #identities: ReadonlyMap<string, WorkloadIdentity> = new Map()

  get identities(): ReadonlyMap<string, WorkloadIdentity> {
    return this.#identities
  }

  /** Call inside a read transaction. `anew`: the file or its history is another one. */
  read(database: Database, anew: boolean): void {
    if (!this.#rows.read(database, anew)) return
    const enabled = this.#rows.values().filter((identity) => identity !== null)
    this.#identities = new Map(enabled.map((identity) => [identity.id, identity]))
  }
}
