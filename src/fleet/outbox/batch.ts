/** The appends of one tick: written together, they are committed or fail together. */
import type { Failure } from '../../failure.ts'
import type { Segment } from './segment.ts'

/** An open exchange: where its record is, and how many bytes are set aside for its end. */
export interface OpenExchange {
  readonly id: string
  readonly segment: Segment
  readonly setAside: number
}

export interface Batch {
  committed: Promise<void>
  resolve(): void
  reject(error: Failure): void
  /** Exchanges that it opens and closes. If it cannot be written they are restored, the closed ones first. */
  readonly opened: OpenExchange[]
  readonly closed: { exchange: OpenExchange; body: string }[]
  /** The start and the end of each body of the event log. */
  readonly bodies: number[]
}

/** Newly committed records of the event log. The bytes are valid during the call only. */
export interface CommittedEvents {
  /** The number of the first of them. */
  first: number
  bytes: Buffer
  /** The start and the end of each body. */
  bodies: readonly number[]
}

export function newBatch(): Batch {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  // The caller holds the promise. An unobserved rejection must not end the process.
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
