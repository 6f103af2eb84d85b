/** What is appended to an outbox in one tick: written together, it is committed or fails together. */
import type { Failure } from '../../failure.ts'
import type { Segment } from './segment.ts'

/** An exchange that is open: where its record is, and how many events may end it. */
export interface OpenExchange {
  readonly id: string
  readonly segment: Segment
  readonly closingEvents: number
}

export interface Batch {
  committed: Promise<void>
  resolve(): void
  reject(error: Failure): void
  /** Exchanges that it opens and closes: where it cannot be written they are set back, first those it closed. */
  readonly opened: OpenExchange[]
  readonly closed: { exchange: OpenExchange; bodies: readonly string[] }[]
  /** Where the bodies of its events are: the start and the end of each. */
  readonly bodies: number[]
}

/** Events that were just committed; the bytes are good during the call only. */
export interface CommittedEvents {
  /** The number of the first of them. */
  first: number
  bytes: Buffer
  /** The start and the end of each body. */
  bodies: readonly number[]
}

export function newBatch(): Batch {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  // Who appended holds the promise; one that nobody waits for must not end the process.
  promise.catch(() => undefined)
  return { committed: promise, resolve, reject, opened: [], closed: [], bodies: [] }
}

/** Resolves when all batches are committed; appends of one tick nearly always share one. */
export function allCommitted(batches: readonly Batch[]): Promise<void> {
  const [first] = batches
  if (first === undefined) return Promise.resolve()
  if (batches.every((batch) => batch === first)) return first.committed
  return Promise.all(batches.map(({ committed }) => committed)).then(() => undefined)
}
