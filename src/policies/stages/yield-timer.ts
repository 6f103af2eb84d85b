/**
 * One thread serves all callers: what takes long is done a piece at a time, everybody else has a turn between, and it
 * stops at the next turn once nobody waits for it any more.
 */
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'

export interface YieldingTask {
  /** Milliseconds that only grow. */
  now(): number
  readonly tools: {
    /** Throws once nobody waits for the outcome any more. */
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

  /** Lets the others have their turn. */
  async yield(): Promise<void> {
    await yieldToEventLoop()
    this.#taker.tools.throwIfCut()
    this.#since = this.#taker.now()
  }
}
