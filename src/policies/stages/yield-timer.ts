/**
 * One thread serves all callers: long work is done a piece at a time, other work runs between the pieces, and it
 * stops at the next pause once no caller waits for it.
 */
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'

export interface YieldingTask {
  /** Milliseconds that only grow. */
  now(): number
  readonly tools: {
    /** Throws once no caller waits for the outcome any more. */
    throwIfCut(): void
  }
}

const sliceMilliseconds = 5

export class YieldTimer {
  readonly #taker: YieldingTask
  #since: number

  constructor(taker: YieldingTask) {
    this.#taker = taker
    this.#since = taker.now()
  }

  get isDue(): boolean {
    return this.#taker.now() - this.#since >= sliceMilliseconds
  }

  /** Lets other work run. */
  async yield(): Promise<void> {
    await yieldToEventLoop()
    this.#taker.tools.throwIfCut()
    this.#since = this.#taker.now()
  }
}
