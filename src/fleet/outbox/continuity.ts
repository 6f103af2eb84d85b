/**
 * Keeps a worker's chain continuous over handshakes, restarts and host crashes (fleet/outbox/README.md): up to where
 * worker and ledger are known to agree, whether they have diverged, and what becomes of the events of an ended
 * instance.
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

/** A restart computes digests from the stored point on, over at most this many seconds of events. */
const keepEveryMs = 5000

export interface ContinuityOptions {
  files: WorkerFiles
  journal: Outbox
  /** The directory of an instance's outbox, and how to open it. */
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

  /** The last of its events that the ledger is known to have, kept over restarts. */
  get agreedEvent(): number {
    return this.#agreed?.seq ?? 0
  }

  /** The ledger's chain agrees with this worker's up to here. */
  agree({ seq, digest }: ChainHead): void {
    const { files, clock, log } = this.#options
    this.#agreed = { seq, digest }
    if (clock.monotonic() - this.#keptAt < keepEveryMs) return
    this.#keptAt = clock.monotonic()
    try {
      files.keepAgreed({ seq, digest })
    } catch (error) {
      // An older point works too, while the outbox keeps the events behind it.
      log.warn({ error: String(error) }, 'The acknowledged end of the chain could not be stored')
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

  /** Ends this instance, with its events behind number `after`. If that is null its outbox stays as it is. */
  retire(reason: string, after: number | null): void {
    const { files, log } = this.#options
    try {
      files.retire(reason, after)
    } catch (error) {
      // The next start finds the same state and tries again.
      log.error({ error: String(error) }, 'This instance could not be ended')
    }
  }

  /** Takes over the events of ended instances in this directory that may not have been shipped. */
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
        // Nothing is lost: the events stay, and the next start tries again.
        log.error({ ...ended, error: String(error) }, 'Events of an earlier instance could not be carried over')
      }
    }
  }
}
