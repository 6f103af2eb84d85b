/**
 * Ingests batches, a few at a time because a remote primary answers each after a while. Only a few seconds of work may
 * wait: a batch beyond that is refused with a retry, and its events stay in the outbox. Yields between batches so that
 * other work gets its turn.
 */
import { Failure } from '../../failure.ts'

const retryAfterSeconds = 1

export class IngestQueue {
  readonly #most: number
  /** Batches are ingested in this many parallel rows. */
  readonly #rows: Promise<unknown>[]
  #next = 0
  #waiting = 0

  constructor({ atOnce, most }: { atOnce: number; most: number }) {
    this.#most = most
    this.#rows = Array.from({ length: atOnce }, () => Promise.resolve())
  }

  /**
   * Runs the work after the earlier work of its row. Throws `dependency_unavailable` with Retry-After if too much
   * waits.
   */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#waiting >= this.#most) {
      throw new Failure('dependency_unavailable', {
        message: 'Too many events wait to be recorded: send them again later',
        retryAfter: retryAfterSeconds,
      })
    }
    this.#waiting += 1
    const row = this.#next
    this.#next = (row + 1) % this.#rows.length
    const result = (this.#rows[row] ?? Promise.resolve()).then(work)
    // The next batch runs whether this one succeeds or fails. Its caller gets the error.
    this.#rows[row] = result.then(nextTurn, nextTurn)
    try {
      return await result
    } finally {
      this.#waiting -= 1
    }
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
