/**
 * What a worker keeps in its data directory beside the outbox: which instance it is, the keys it was given, sealed under
 * the runtime token (fleet/README.md, Trust), and when it was last fresh. Each file is replaced as a whole by rename.
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
/** What stays of a bootstrap for a restart without control plane. */
export type KeptBootstrap = z.infer<typeof keptSchema>

/** Not by itself: what the instance has not reported would be left behind in silence, and so would its shares of limits. */
const whenDamaged =
  'restore it, or remove it to start as another instance, which leaves what this one has not reported in its outbox'

export class WorkerFiles {
  readonly #directory: string
  readonly #key: Uint8Array
  #instance: z.infer<typeof instanceSchema>

  /** Reads the instance's identity, making it at the first start. */
  constructor(directory: string, runtimeToken: string, newId: NewId) {
    this.#directory = directory
    this.#key = deriveKey(runtimeToken, 'gatehouse.worker.keys.v1')
    const former = this.#readInstance()
    this.#instance = former ?? { instance_id: newId(), gateway_id: null }
    if (former === null) this.#replaceInstance(this.#instance)
  }

  /** Null where there is none, also where a former process had written down that it ends and was killed right then. */
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

  /** False where this instance has belonged to another gateway: its chain cannot go on under this one. */
  belongsTo(gatewayId: string): boolean {
    if (this.#instance.gateway_id === null) {
      this.#instance = { ...this.#instance, gateway_id: gatewayId }
      this.#replaceInstance(this.#instance)
    }
    return this.#instance.gateway_id === gatewayId
  }

  /**
   * Ends this instance: the next start makes another, with an outbox and a chain of its own, into which it carries over
   * what this one had behind event `after`; nothing where that is null.
   */
  retire(reason: string, after: number | null): void {
    const { instance_id, gateway_id } = this.#instance
    if (after !== null) this.#replaceEnded([...this.ended(), { instance_id, gateway_id, after, reason }])
    this.#removeOwn()
  }

  /** Removes what is one instance's; its name goes last, so that a start after a kill in between knows whose the rest is. */
  #removeOwn(): void {
    for (const name of ['keys', 'fresh', 'crashed', 'agreed', 'instance.json'])
      rmSync(this.#path(name), { force: true })
  }

  /** Instances that ended here and whose events were not carried over yet. */
  ended(): EndedInstance[] {
    if (!existsSync(this.#path('ended.json'))) return []
    return z.array(endedSchema).parse(JSON.parse(readFileSync(this.#path('ended.json'), 'utf8')))
  }

  carriedOver(instanceId: string): void {
    this.#replaceEnded(this.ended().filter(({ instance_id }) => instance_id !== instanceId))
  }

  /** Where this worker's chain and the ledger's were last known to be the same. */
  keepAgreed({ seq, digest }: ChainHead): void {
    this.#replace('agreed', JSON.stringify({ seq, digest }))
  }

  agreed(): ChainHead | null {
    if (!existsSync(this.#path('agreed'))) return null
    try {
      return agreedSchema.parse(JSON.parse(readFileSync(this.#path('agreed'), 'utf8')))
    } catch {
      // The host went down while it was written: without it the numbers alone are compared.
      return null
    }
  }

  keep({ session: _session, now: _now, ...kept }: BootstrapReply): void {
    this.#replace('keys', seal(this.#key, JSON.stringify(kept), this.instanceId))
  }

  /** What was kept; null where there is nothing or another runtime token sealed it. */
  kept(): KeptBootstrap | null {
    if (!existsSync(this.#path('keys'))) return null
    try {
      return keptSchema.parse(JSON.parse(unseal(this.#key, readFileSync(this.#path('keys'), 'utf8'), this.instanceId)))
    } catch {
      // A replaced runtime token, or a file of an older form: bootstrap gives it anew.
      return null
    }
  }

  /** As many events of the chain as a crash of the host has left, until the control plane was told of it; else null. */
  get crashedAfter(): number | null {
    if (!existsSync(this.#path('crashed'))) return null
    const events = Number(readFileSync(this.#path('crashed'), 'utf8'))
    return Number.isSafeInteger(events) && events >= 0 ? events : 0
  }

  /** The host went down, or the outbox was damaged: what running exchanges held may have been spent. */
  crashed(events: number): void {
    if (this.crashedAfter === null) this.#replace('crashed', String(events))
  }

  crashReported(): void {
    rmSync(this.#path('crashed'), { force: true })
  }

  /** Another process took this instance over; in milliseconds since the epoch, until the next start. */
  fenced(at: number): void {
    this.#replace('fenced', String(at))
  }

  started(): void {
    rmSync(this.#path('fenced'), { force: true })
  }

  /** When it was taken over, where that is how the last run ended; else null. */
  get fencedAt(): number | null {
    return this.#numbersIn('fenced')[0] ?? null
  }

  /** When it was last fresh, milliseconds since the epoch, and for how long it serves by that. */
  keepFresh(at: number, staleAfterMs: number): void {
    this.#replace('fresh', `${at} ${staleAfterMs}`)
  }

  /** The same, so that no crash of the host brings back what was there before. */
  keepFreshOrThrow(at: number, staleAfterMs: number): void {
    this.keepFresh(at, staleAfterMs)
    this.#sync('fresh')
    this.#sync('.')
  }

  /** Forgets it for good, over a crash of the host too. Throws where that cannot be made sure. */
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

  /** For how long that counts, milliseconds; null where the file is of an older form. */
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

  /** How far the host's clock was behind the control plane's, in milliseconds. */
  keepClockOffset(milliseconds: number): void {
    this.#replace('clock', String(Math.round(milliseconds)))
  }

  /** 0 where nothing was kept. */
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
