/**
 * What a worker keeps in its data directory besides the outbox: its instance id, its keys, sealed under the runtime
 * token (fleet/README.md, Trust), and when it was last fresh. Each file is replaced as a whole by a rename.
 */
import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { Failure } from '../../failure.ts'
import type { NewId } from '../../lib/ids.ts'
import { deriveKey, seal, unseal } from '../../lib/seal.ts'
import type { EndedInstance } from '../outbox/carried-over.ts'
import { type BootstrapReply, bootstrapReplySchema, type ChainHead } from '../protocol/wire.ts'

const instanceSchema = z.object({ instance_id: z.uuid(), gateway_id: z.uuid().nullable() })
const endedSchema = z.object({
  instance_id: z.uuid(),
  gateway_id: z.uuid().nullable(),
  after: z.number().int(),
  reason: z.string(),
})
const agreedSchema = z.object({ seq: z.number().int(), digest: z.string() })
const keptSchema = bootstrapReplySchema.omit({ session: true, now: true })
/** The part of a bootstrap reply that is kept for a restart without a control plane. */
export type KeptBootstrap = z.infer<typeof keptSchema>

/** Not replaced automatically: unreported events and shares of limits of the instance would silently be lost. */
const whenDamaged =
  'restore it, or remove it to start as another instance, which leaves what this one has not reported in its outbox'

export class WorkerFiles {
  readonly #directory: string
  readonly #key: Uint8Array
  #instance: z.infer<typeof instanceSchema>

  /** Reads the instance's identity, or makes one at the first start. */
  constructor(directory: string, runtimeToken: string, newId: NewId) {
    this.#directory = directory
    this.#key = deriveKey(runtimeToken, 'gatehouse.worker.keys.v1')
    const former = this.#readInstance()
    this.#instance = former ?? { instance_id: newId(), gateway_id: null }
    if (former === null) this.#replaceInstance(this.#instance)
  }

  /** Null if there is none, or if a former process was killed right after it had marked the instance as ended. */
  #readInstance(): z.infer<typeof instanceSchema> | null {
    if (!existsSync(this.#path('instance.json'))) return null
    const instance = this.#parseInstance()
    if (!this.ended().some(({ instance_id }) => instance_id === instance.instance_id)) return instance
    this.#removeOwn()
    return null
  }

  #parseInstance(): z.infer<typeof instanceSchema> {
    const path = this.#path('instance.json')
    try {
      return instanceSchema.parse(JSON.parse(readFileSync(path, 'utf8')))
    } catch (cause) {
      throw new Failure('data_damaged', { message: `${path} is damaged: ${whenDamaged}`, cause })
    }
  }

  get instanceId(): string {
    return this.#instance.instance_id
  }

  /** False if this instance belonged to another gateway: its chain cannot continue under this one. */
  belongsTo(gatewayId: string): boolean {
    if (this.#instance.gateway_id === null) {
      this.#instance = { ...this.#instance, gateway_id: gatewayId }
      this.#replaceInstance(this.#instance)
    }
    return this.#instance.gateway_id === gatewayId
  }

  /**
   * Ends this instance. The next start makes another one with an outbox and a chain of its own, and carries over the
   * events after number `after`; none if that is null.
   */
  retire(reason: string, after: number | null): void {
    const { instance_id, gateway_id } = this.#instance
    if (after !== null) this.#replaceEnded([...this.ended(), { instance_id, gateway_id, after, reason }])
    this.#removeOwn()
  }

  /**
   * Removes the files of one instance. Its name goes last, so that a start after a kill in between knows whose files
   * remain.
   */
  #removeOwn(): void {
    for (const name of ['keys', 'fresh', 'crashed', 'agreed', 'instance.json'])
      rmSync(this.#path(name), { force: true })
  }

  /** Ended instances of this directory whose events were not carried over yet. */
  ended(): EndedInstance[] {
    if (!existsSync(this.#path('ended.json'))) return []
    return z.array(endedSchema).parse(JSON.parse(readFileSync(this.#path('ended.json'), 'utf8')))
  }

  carriedOver(instanceId: string): void {
    this.#replaceEnded(this.ended().filter(({ instance_id }) => instance_id !== instanceId))
  }

  /** Stores up to where this worker's chain and the ledger's are known to be the same. */
  keepAgreed({ seq, digest }: ChainHead): void {
    this.#replace('agreed', JSON.stringify({ seq, digest }))
  }

  agreed(): ChainHead | null {
    if (!existsSync(this.#path('agreed'))) return null
    try {
      return agreedSchema.parse(JSON.parse(readFileSync(this.#path('agreed'), 'utf8')))
    } catch {
      // The host went down during the write. Without the file only the numbers are compared.
      return null
    }
  }

  keep({ session: _session, now: _now, ...kept }: BootstrapReply): void {
    this.#replace('keys', seal(this.#key, JSON.stringify(kept), this.instanceId))
  }

  /** The kept bootstrap; null if there is none or it was sealed with another runtime token. */
  kept(): KeptBootstrap | null {
    if (!existsSync(this.#path('keys'))) return null
    try {
      return keptSchema.parse(JSON.parse(unseal(this.#key, readFileSync(this.#path('keys'), 'utf8'), this.instanceId)))
    } catch {
      // Another runtime token, or a file of an older version: bootstrap gives it again.
      return null
    }
  }

  /** How many events of the chain a host crash left, until the control plane was told; else null. */
  get crashedAfter(): number | null {
    if (!existsSync(this.#path('crashed'))) return null
    const events = Number(readFileSync(this.#path('crashed'), 'utf8'))
    return Number.isSafeInteger(events) && events >= 0 ? events : 0
  }

  /** The host went down or the outbox was damaged: what running exchanges held may have been spent. */
  crashed(events: number): void {
    if (this.crashedAfter === null) this.#replace('crashed', String(events))
  }

  crashReported(): void {
    rmSync(this.#path('crashed'), { force: true })
  }

  /** Another process took this instance over; milliseconds since the epoch, kept until the next start. */
  fenced(at: number): void {
    this.#replace('fenced', String(at))
  }

  started(): void {
    rmSync(this.#path('fenced'), { force: true })
  }

  /** When it was taken over, if the last run ended that way; else null. */
  get fencedAt(): number | null {
    return this.#numbersIn('fenced')[0] ?? null
  }

  /** Stores when the worker was last fresh, in milliseconds since the epoch, and its staleness limit. */
  keepFresh(at: number, staleAfterMs: number): void {
    this.#replace('fresh', `${at} ${staleAfterMs}`)
  }

  /** The same, durably, so that a host crash does not bring the former value back. Throws if that fails. */
  keepFreshOrThrow(at: number, staleAfterMs: number): void {
    this.keepFresh(at, staleAfterMs)
    this.#sync('fresh')
    this.#sync('.')
  }

  /** Deletes it durably. Throws if that cannot be guaranteed. */
  forgetFresh(): void {
    rmSync(this.#path('fresh'), { force: true })
    this.#sync('.')
  }

  #sync(name: string): void {
    const file = openSync(this.#path(name), 'r')
    try {
      fsyncSync(file)
    } finally {
      closeSync(file)
    }
  }

  freshAt(): number | null {
    return this.#numbersIn('fresh')[0] ?? null
  }

  /** The stored staleness limit in milliseconds; null if the file is of an older version. */
  freshFor(): number | null {
    return this.#numbersIn('fresh')[1] ?? null
  }

  #numbersIn(name: string): number[] {
    if (!existsSync(this.#path(name))) return []
    const parts = readFileSync(this.#path(name), 'utf8').split(' ').map(Number)
    return parts.every((part) => Number.isSafeInteger(part) && part > 0) ? parts : []
  }

  #replaceEnded(ended: readonly EndedInstance[]): void {
    if (ended.length > 0) this.#replace('ended.json', JSON.stringify(ended))
    else rmSync(this.#path('ended.json'), { force: true })
  }

  /** Stores how far the host's clock is behind the control plane's, in milliseconds. */
  keepClockOffset(milliseconds: number): void {
    this.#replace('clock', String(Math.round(milliseconds)))
  }

  /** 0 if none is stored. */
  clockOffset(): number {
    if (!existsSync(this.#path('clock'))) return 0
    const milliseconds = Number(readFileSync(this.#path('clock'), 'utf8'))
    return Number.isSafeInteger(milliseconds) ? milliseconds : 0
  }

  #replaceInstance(instance: z.infer<typeof instanceSchema>): void {
    this.#replace('instance.json', JSON.stringify(instance))
  }

  #replace(name: string, content: string): void {
    writeFileSync(this.#path(`${name}.new`), content, { mode: 0o600 })
    renameSync(this.#path(`${name}.new`), this.#path(name))
  }

  #path(name: string): string {
    return join(this.#directory, name)
  }
}
