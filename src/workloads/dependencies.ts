/** What the routes of workload identities need from the rest of the control plane. */
import type { Recorder } from '../events/recorder.ts'
import type { Clock } from '../lib/clock.ts'
import type { NewId } from '../lib/ids.ts'
import type { Database } from '../store/open.ts'
import type { Fleet } from '../store/propagation.ts'

export interface WorkloadDependencies {
  state: Database
  ledger: Database
  recorder: Recorder
  fleet: Fleet
  clock: Clock
  newId: NewId
  fetch(url: string, init: RequestInit): Promise<Response>
  /** Whether issuers away from this host may be reached without TLS. */
  plainHttp: 'loopback' | 'anywhere'
}
