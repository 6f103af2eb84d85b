/**
 * Bounds the memory that request bodies and buffered answers may take at once in one gateway process. Without a bound a
 * burst of large bodies gets the process killed, with every request in flight.
 *
 * 1. The budget has three shares: a quarter for small bodies, half for large ones, a quarter for buffered answers. Large
 *    bodies cannot starve small ones, nor the reverse. In each share requests are admitted in order of arrival.
 * 2. A body is not read before it is admitted: the server stops reading a socket whose body nobody asks for, so the
 *    caller is slowed down by TCP.
 * 3. A body counts `copies` times its length: its bytes, its text and its parsed values. The factor was measured.
 *    Once it was sent, only the parsed values are left.
 * 4. A body that does not fit waits. One that waits too long, or finds a full queue, is refused with 503 and Retry-After.
 * 5. Each body is admitted as a small one, so that one that sends nothing holds little. When it grows larger it is
 *    admitted again, as large as its declared length, or else as the limit for bodies: it never holds a part of the large share while it waits for more of it, so bodies cannot block
 *    each other for ever.
 * 6. An answer has been paid for and is never refused. Answers that do not fit are read one at a time, in order: the
 *    oldest is always read on.
 */
import { totalmem } from 'node:os'
import type { Settings } from '../../config.ts'
import { Failure } from '../../failure.ts'

/** Bodies up to this length use the share for small bodies. */
export const smallBodyBytes = 64 * 1024
const copies = 3
const mostWaiting = 1000

export interface MemoryBudgetOptions {
  bytes: number
  waitMilliseconds: number
}

type MemorySettings = Pick<Settings, 'memory_bytes' | 'memory_wait_seconds' | 'gateway_workers'>

/** The share of one worker. Without a setting all of them may take half of what the container, or the machine, has. */
export function memoryFor({ memory_bytes, memory_wait_seconds, gateway_workers }: MemorySettings): MemoryBudgetOptions {
  const bytes = memory_bytes ?? Math.min(process.constrainedMemory() || totalmem(), totalmem()) / 2
  return { bytes: bytes / gateway_workers, waitMilliseconds: 1000 * memory_wait_seconds }
}

export interface MemoryReadings {
  readonly smallBytes: number
  readonly largeBytes: number
  readonly answerBytes: number
  /** How many bodies and answers wait for memory. */
  readonly waiting: number
}

export class MemoryBudget implements MemoryReadings {
  readonly #small: BodyShare
  readonly #large: BodyShare
  readonly #answers: AnswerShare

  constructor({ bytes, waitMilliseconds }: MemoryBudgetOptions) {
    // Amounts are whole bytes: sums of fractions would not come back to 0.
    this.#small = new BodyShare(Math.floor(bytes / 4), waitMilliseconds)
    this.#large = new BodyShare(Math.floor(bytes / 2), waitMilliseconds)
    this.#answers = new AnswerShare(Math.floor(bytes / 4))
  }

  get smallBytes(): number {
    return this.#small.used
  }

  get largeBytes(): number {
    return this.#large.used
  }

  get answerBytes(): number {
    return this.#answers.used
  }

  get waiting(): number {
    return this.#small.waiting + this.#large.waiting + this.#answers.waiting
  }

  forBody(): BodyMemory {
    return new BodyMemory(this.#small, this.#large)
  }

  forAnswer(): AnswerMemory {
    return new AnswerMemory(this.#answers)
  }
}

interface Waiter {
  bytes: number
  admit(): void
}

class BodyShare {
  used = 0
  readonly #limit: number
  readonly #waitMilliseconds: number
  readonly #queue = new Set<Waiter>()

  constructor(limit: number, waitMilliseconds: number) {
    this.#limit = limit
    this.#waitMilliseconds = waitMilliseconds
  }

  get waiting(): number {
    return this.#queue.size
  }

  /** What a body of this length counts: at most the whole share, so that each body can be admitted alone. */
  cost(length: number): number {
    return Math.min(copies * length, this.#limit)
  }

  /** Gives false where the body has to wait: it does not fit, or others came before it. */
  take(bytes: number): boolean {
    if (this.#queue.size > 0 || this.used + bytes > this.#limit) return false
    this.used += bytes
    return true
  }

  /** Waits until the bytes are taken. Rejects with `gateway_busy`; `leave` ends the wait without an answer. */
  wait(bytes: number): { admitted: Promise<void>; leave(): void } {
    if (this.#queue.size >= mostWaiting) return { admitted: Promise.reject(this.#busy()), leave: () => undefined }
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const leave = () => {
      clearTimeout(timer)
      this.#queue.delete(waiter)
      this.#admitWaiting()
    }
    const waiter: Waiter = {
      bytes,
      admit() {
        clearTimeout(timer)
        resolve()
      },
    }
    const timer = setTimeout(() => {
      leave()
      reject(this.#busy())
    }, this.#waitMilliseconds)
    this.#queue.add(waiter)
    return { admitted: promise, leave }
  }

  give(bytes: number): void {
    this.used -= bytes
    if (this.#queue.size > 0) this.#admitWaiting()
  }

  #admitWaiting(): void {
    for (const waiter of this.#queue) {
      if (this.used + waiter.bytes > this.#limit) return
      this.#queue.delete(waiter)
      this.used += waiter.bytes
      waiter.admit()
    }
  }

  #busy(): Failure {
    return new Failure('gateway_busy', { retryAfter: Math.max(1, Math.ceil(this.#waitMilliseconds / 1000)) })
  }
}

/** What one body holds of the budget. `release` may be called at any time, and more than once. */
export class BodyMemory {
  readonly #small: BodyShare
  readonly #large: BodyShare
  #share: BodyShare | null = null
  #bytes = 0
  #leave: (() => void) | null = null

  constructor(small: BodyShare, large: BodyShare) {
    this.#small = small
    this.#large = large
  }

  /**
   * Admits a body of this length, at once where nothing is returned; called again with a larger length while the body
   * is read. Rejects with `gateway_busy`.
   */
  admit(length: number): Promise<void> | void {
    const share = length <= smallBodyBytes ? this.#small : this.#large
    const bytes = share.cost(length)
    if (share.take(bytes)) return this.#hold(share, bytes)
    return this.#wait(share, bytes)
  }

  /** The body came, and is this long. */
  shrink(length: number): void {
    if (this.#share !== null) this.#shrinkTo(this.#share, this.#share.cost(length))
  }

  /** The body was sent: its parsed values are all that is left. */
  sent(): void {
    if (this.#share !== null) this.#shrinkTo(this.#share, Math.ceil(this.#bytes / copies))
  }

  release(): void {
    this.#leave?.()
    this.#leave = null
    this.#share?.give(this.#bytes)
    this.#share = null
    this.#bytes = 0
  }

  async #wait(share: BodyShare, bytes: number): Promise<void> {
    const { admitted, leave } = share.wait(bytes)
    this.#leave = leave
    await admitted
    // Released between its admission and this turn.
    if (this.#leave === null) share.give(bytes)
    else this.#hold(share, bytes)
  }

  #hold(share: BodyShare, bytes: number): void {
    this.#leave = null
    this.#share?.give(this.#bytes)
    this.#share = share
    this.#bytes = bytes
  }

  #shrinkTo(share: BodyShare, bytes: number): void {
    if (bytes >= this.#bytes) return
    share.give(this.#bytes - bytes)
    this.#bytes = bytes
  }
}

class AnswerShare {
  used = 0
  readonly #limit: number
  /** In the order in which they began. */
  readonly #reading = new Set<AnswerMemory>()
  readonly #queue = new Map<AnswerMemory, { bytes: number; admit(): void }>()

  constructor(limit: number) {
    this.#limit = limit
  }

  get waiting(): number {
    return this.#queue.size
  }

  take(answer: AnswerMemory, bytes: number): Promise<void> | void {
    this.#reading.add(answer)
    if (this.#fits(answer, bytes)) {
      this.used += bytes
      return
    }
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#queue.set(answer, { bytes, admit: resolve })
    return promise
  }

  give(answer: AnswerMemory, bytes: number): void {
    this.used -= bytes
    this.#reading.delete(answer)
    const left = this.#queue.get(answer)
    this.#queue.delete(answer)
    left?.admit()
    if (this.#queue.size === 0) return
    for (const [waiting, { bytes: wanted, admit }] of this.#queue) {
      if (!this.#fits(waiting, wanted)) continue
      this.#queue.delete(waiting)
      waiting.grant(wanted)
      this.used += wanted
      admit()
    }
  }

  #fits(answer: AnswerMemory, bytes: number): boolean {
    if (this.used + bytes <= this.#limit) return true
    const [oldest] = this.#reading
    return oldest === answer
  }
}

/** What one buffered answer holds of the budget. */
export class AnswerMemory {
  readonly #share: AnswerShare
  #bytes = 0

  constructor(share: AnswerShare) {
    this.#share = share
  }

  /** Counts so many more bytes of the answer; waits where there is no memory for them. */
  grow(length: number): Promise<void> | void {
    const bytes = copies * length
    const waiting = this.#share.take(this, bytes)
    if (waiting !== undefined) return waiting
    this.#bytes += bytes
  }

  /** Called by the share, for bytes that were waited for. */
  grant(bytes: number): void {
    this.#bytes += bytes
  }

  release(): void {
    this.#share.give(this, this.#bytes)
    this.#bytes = 0
  }
}
