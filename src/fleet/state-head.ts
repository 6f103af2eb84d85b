/**
 * The head of the state as this control plane last read it from the primary. A beat may call a lane fresh only if that
 * was within the last second (protocols section 4, rule 3); a change of our own counts as read when it is announced.
 */
import { Failure } from '../failure.ts'
import type { Clock } from '../lib/clock.ts'
import type { Database } from '../store/open.ts'
import type { Head } from './wire.ts'

const freshMs = 1000

export class StateHead {
  readonly #state: Database
  readonly #clock: Clock
  #head: Head | null = null
  #readAt = Number.NEGATIVE_INFINITY
  #reading: Promise<Head> | null = null

  constructor(state: Database, clock: Clock) {
    this.#state = state
    this.#clock = clock
  }

  /** A change of our own was committed. */
  announced(head: Head): void {
    if (this.#head === null || this.#head.history !== head.history || this.#head.version < head.version) {
      this.#head = head
    }
  }

  /** The head, and whether it was read within the last second; throws `dependency_unavailable` where none is known. */
  async recent(): Promise<{ head: Head; fresh: boolean }> {
    if (this.#head !== null && this.#clock.monotonic() - this.#readAt < freshMs)
      return { head: this.#head, fresh: true }
    try {
      return { head: await this.read(), fresh: true }
    } catch (error) {
      // The primary is out of reach: lanes are told what was known, and that it is not fresh.
      if (this.#head === null) throw error
      return { head: this.#head, fresh: false }
    }
  }

  /** Reads it from the primary; calls that come while one is on its way get a read that began after them. */
  async read(): Promise<Head> {
    if (this.#reading !== null) await this.#reading.catch(() => undefined)
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = null
    })
    return this.#reading
  }

  async #readNow(): Promise<Head> {
    const began = this.#clock.monotonic()
    const sql = 'select version, nonce, history from state_head where id = 1'
    const [row] = await this.#state.read<Head>(sql).catch((error: unknown) => {
      throw new Failure('dependency_unavailable', { cause: error })
    })
    if (row === undefined) throw new Failure('dependency_unavailable', { message: 'The state has no head' })
    this.#readAt = began
    this.announced(row)
    return this.#head ?? row
  }
}
