/**
 * Bounds the memory of request bodies and buffered answers in one gateway process. Without a bound a burst of large
 * bodies gets the process killed, with every request in flight.
 *
 * 1. The budget has four shares: a quarter for small bodies, three eighths for large ones, a quarter for buffered
 *    answers, an eighth for the conversations of WebSockets (`gateway/websocket/conversation-memory.ts`). Large bodies
 *    cannot starve small ones, nor the reverse. Each share of bodies admits in order of arrival.
 * 2. A body is read after it is admitted. The server does not read a socket whose body is not requested, so TCP slows
 *    the caller down.
 * 3. A body counts `copies` times its length: its bytes, its text and its parsed values. The factor was measured. After
 *    the body was sent, only the parsed values count.
 * 4. A body that does not fit waits. One that waits too long, or finds a full queue, is refused with 503 and
 *    Retry-After.
 * 5. Each body is first admitted as a small one, so a body that sends nothing holds little. When it grows it is
 *    admitted again with its declared length, or with the body limit if none is declared. It holds no part of the large
 *    share while it waits for more, so bodies cannot deadlock.
 * 6. An answer has been paid for and is never refused. Answers that do not fit are read one at a time, oldest first.
 */
import { totalmem } from 'node:os'
import type { Settings } from '../../config.ts'
import { Failure } from '../../failure.ts'
import { ConversationMemory } from '../websocket/conversation-memory.ts'

/** Bodies up to this length use the share for small bodies. */
export const smallBodyBytes = 64 * 1024
const copies = 3
const mostWaiting = 1000

export interface MemoryBudgetOptions {
  bytes: number
  waitMilliseconds: number
}

type MemorySettings = Pick<Settings, 'memory_bytes' | 'memory_wait_seconds' | 'gateway_workers'>

/** The budget of one worker. By default all workers together use half the memory of the container or machine. */
export function createMemoryBudget({
  memory_bytes,
  memory_wait_seconds,
  gateway_workers,
}: MemorySettings): MemoryBudgetOptions {
  const bytes = memory_bytes ?? Math.min(process.constrainedMemory() || totalmem(), totalmem()) / 2
  return { bytes: bytes / gateway_workers, waitMilliseconds: 1000 * memory_wait_seconds }
}

export interface MemoryReadings {
  readonly smallBytes: number
  readonly largeBytes: number
  readonly answerBytes: number
  readonly conversationBytes: number
  /** The number of bodies and answers that wait for memory. */
  readonly waiting: number
}

export class MemoryBudget implements MemoryReadings {
  readonly #small: BodyShare
  readonly #large: BodyShare
  readonly #answers: AnswerShare
  readonly conversations: ConversationMemory

  constructor({ bytes, waitMilliseconds }: MemoryBudgetOptions) {
    // Amounts are whole bytes, because sums of fractions would not return to 0.
    this.#small = new BodyShare(Math.floor(bytes / 4), waitMilliseconds)
    this.#large = new BodyShare(Math.floor((bytes * 3) / 8), waitMilliseconds)
    this.#answers = new AnswerShare(Math.floor(bytes / 4))
    this.conversations = new ConversationMemory(Math.floor(bytes / 8))
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

  get conversationBytes(): number {
    return this.conversations.used
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

  /** What a body of this length counts: at most the whole share, so that every body can be admitted alone. */
  cost(length: number): number {
    return Math.min(copies * length, this.#limit)
  }

  /** Returns false when the body has to wait, because it does not fit or others wait already. */
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

/** The memory that one body holds. `release` may be called at any time and more than once. */
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
   * Admits a body of this length. Returns nothing when it is admitted at once. Called again with a larger length while
   * the body is read. Rejects with `gateway_busy`.
   */
  admit(length: number): Promise<void> | void {
    const share = length <= smallBodyBytes ? this.#small : this.#large
    const bytes = share.cost(length)
    if (share.take(bytes)) return this.#hold(share, bytes)
    return this.#wait(share, bytes)
  }

  /** The whole body has arrived, with this length. */
  shrink(length: number): void {
    if (this.#share !== null) this.#shrinkTo(this.#share, this.#share.cost(length))
  }

  /** The body was sent, so only its parsed values still count. */
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
    // Released between its admission and this callback.
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

/** The memory that one buffered answer holds. */
export class AnswerMemory {
  readonly #share: AnswerShare
  #bytes = 0

  constructor(share: AnswerShare) {
    this.#share = share
  }

  /** Counts more bytes of the answer; waits when there is no memory for them. */
  grow(length: number): Promise<void> | void {
    const bytes = copies * length
    const waiting = this.#share.take(this, bytes)
    if (waiting !== undefined) return waiting
    this.#bytes += bytes
  }

  /** Called by the share to grant the requested bytes. */
  grant(bytes: number): void {
    this.#bytes += bytes
  }

  release(): void {
    this.#share.give(this, this.#bytes)
    this.#bytes = 0
  }
}
