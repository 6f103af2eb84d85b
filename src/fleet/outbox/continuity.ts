/**
 * What keeps a worker's chain one over hellos, restarts and crashes of the host (fleet/outbox/README.md): how far
 * worker and ledger are known to be the same, whether they have parted, and what becomes of the events of an instance
 * that ended.
 */
import { rmSync } from 'node:fs'
import type { Clock } from '../../lib/clock.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log/log.ts'
import type { WorkerFiles } from '../agent/agent-files.ts'
import type { AnnouncedHead, ChainHead } from '../protocol/wire.ts'
import { carryOver } from './carried-over.ts'
import { forkedAfter } from './chain-agreement.ts'
import type { Outbox } from './outbox.ts'

/** A restart computes the digests from the kept place on, of as many seconds of events at most. */
const keepEveryMs = 5000

export interface ContinuityOptions {
  files: WorkerFiles
  journal: Outbox
  /** Where the outbox of an instance is, and how it is opened. */
  outboxOf(instanceId: string): { directory: string; open(): Outbox }
  clock: Clock
  newId: NewId
  log: Log
}

export class ChainContinuity {
  readonly #options: ContinuityOptions
  #agreed: ChainHead | null
  #keptAt = Number.NEGATIVE_INFINITY

  constructor(options: ContinuityOptions) {
    this.#options = options
    this.#agreed = options.files.agreed()
  }

  /** The last of its events that the ledger was known to have, also over a restart. */
  get agreedEvent(): number {
    return this.#agreed?.seq ?? 0
  }

  /** The ledger has the chain up to here as it is here. */
  agree({ seq, digest }: ChainHead): void {
    const { files, clock, log } = this.#options
    this.#agreed = { seq, digest }
    if (clock.monotonic() - this.#keptAt < keepEveryMs) return
    this.#keptAt = clock.monotonic()
    try {
      files.keepAgreed({ seq, digest })
    } catch (error) {
      // An older place serves as well, while the outbox keeps what is behind it.
      log.warn({ error: String(error) }, 'How far the ledger has this chain could not be kept')
    }
  }

  /**
   * Null where the announced head is of this chain; otherwise the number up to which both are the same. `trusted` is the
   * number of the last event that the worker can vouch for.
   */
  forkedAfter(announced: AnnouncedHead, trusted: number): number | null {
    const { journal } = this.#options
    const own = { agreed: this.#agreed, last: journal.lastEvent, trusted, reader: () => journal.reader() }
    return forkedAfter(own, announced)
  }

  /** Ends this instance with what it has behind event `after`; with null its outbox stays as it is. */
  retire(reason: string, after: number | null): void {
    const { files, log } = this.#options
    try {
      files.retire(reason, after)
    } catch (error) {
      // The next start finds the same, and tries again.
      log.error({ error: String(error) }, 'This instance could not be ended')
    }
  }

  /** Takes over what instances that ended in this directory had not shipped for certain. */
  async carryOver(): Promise<void> {
    const { files, journal, outboxOf, clock, newId, log } = this.#options
    for (const ended of files.ended()) {
      const { directory, open } = outboxOf(ended.instance_id)
      try {
        const former = open()
        const carried = await carryOver({ former, next: journal }, ended, { now: clock.now(), newId })
        await former.end()
        await journal.durable()
        files.carriedOver(ended.instance_id)
        rmSync(directory, { recursive: true, force: true })
        log.warn({ ...ended, carried }, 'The events of an instance that ended were carried over')
      } catch (error) {
        // Nothing is lost: it stays where it is, and the next start tries again.
        log.error({ ...ended, error: String(error) }, 'Events of a former instance could not be carried over')
      }
    }
  }
}
