/** What is appended to an outbox in one tick: written together, it is committed or fails together. */
import type { Failure } from '../failure.ts'
import { recordOverhead } from './outbox-record.ts'

export interface Batch {
  committed: Promise<void>
  resolve(): void
  reject(error: Failure): void
  /** What to do to the memory where the batch cannot be written, newest last. */
  undo: (() => void)[]
}

export function newBatch(): Batch {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  // Who appended holds the promise; one that nobody waits for must not end the process.
  promise.catch(() => undefined)
  return { committed: promise, resolve, reject, undo: [] }
}

/** Resolves when all batches are committed; appends of one tick nearly always share one. */
export function together(batches: readonly Batch[]): Promise<void> {
  const [first] = batches
  if (first === undefined) return Promise.resolve()
  if (batches.every((batch) => batch === first)) return first.committed
  return Promise.all(batches.map(({ committed }) => committed)).then(() => undefined)
}

/** Number, exchange id and names around an event's body. */
const aroundEvent = 128

/** Bytes that a record of this JSON takes. */
export const recordSize = (json: string): number => recordOverhead + Buffer.byteLength(json)

/** Bytes that an event's record takes at most, by its body. */
export const eventSize = (body: string): number => recordSize(body) + aroundEvent
