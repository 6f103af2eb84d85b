/**
 * Takes batches in, a few at a time because a remote primary answers each after a while, and lets no more of them wait
 * than are a few seconds of work: whoever comes then is told to come again, and keeps its events meanwhile, which is
 * what its outbox is for. Between two batches whatever else waits has its turn.
 */
import { Failure } from '../../failure.ts'

const retryAfterSeconds = 1

export class IngestQueue {
  readonly #most: number
  /** Batches follow each other in so many rows. */
  readonly #rows: Promise<unknown>[]
  #next = 0
  #waiting = 0

  constructor({ atOnce, most }: { atOnce: number; most: number }) {
    this.#most = most
    this.#rows = Array.from({ length: atOnce }, () => Promise.resolve())
  }

  /** Runs the work when that before it in its row is done. Throws `dependency_unavailable` with Retry-After where too much waits. */
  async run<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#waiting >= this.#most) {
      throw new Failure('dependency_unavailable', {
        message: 'More events wait to be recorded than can be kept: send them again',
        retryAfter: retryAfterSeconds,
      })
    }
    this.#waiting += 1
    const row = this.#next
    this.#next = (row + 1) % this.#rows.length
    const result = (this.#rows[row] ?? Promise.resolve()).then(work)
    // The next one waits for this one and does not care how it ended; its own caller is told.
    this.#rows[row] = result.then(nextTurn, nextTurn)
    try {
      return await result
    } finally {
      this.#waiting -= 1
    }
  }
}

const nextTurn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve))
