/**
 * A provider's event stream as whole frames, read when they are asked for. Bounds what one frame and what all of them
 * may take, and notes on the exchange when the provider's silence began.
 */

import { Failure } from '../../failure.ts'
import { parseObject } from '../../languages/reading/json-value.ts'
import { UnreadableAnswer } from '../../languages/translation/translate-response.ts'
import { completed, type SseFrame, SseSplitter } from '../../lib/http/sse.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Gateway } from '../context.ts'
import type { Exchange, ReasonCode } from '../exchange.ts'
import type { ByteReader } from '../request/read-with-limit.ts'

/** A frame may hold an image; an "event stream" that never ends a frame must not fill the memory. */
const maxFrameBytes = 16 * 1024 * 1024
export const lingerMilliseconds = 1000

/** So many small frames of one read are looked at before others have their turn: some milliseconds' worth of policies. */
const framesATurn = 256

export class FrameSource {
  readonly #exchange: Exchange
  readonly #gateway: Gateway
  readonly #reader: ByteReader
  readonly #headers: Headers
  readonly #splitter = new SseSplitter(maxFrameBytes)
  #received = 0
  /** What was read and not given yet. */
  #read: readonly SseFrame[] = []
  #rest: SseFrame | null = null

  constructor(exchange: Exchange, gateway: Gateway, { body, headers }: Response) {
    this.#exchange = exchange
    this.#gateway = gateway
    this.#reader = (body ?? new Blob([]).stream()).getReader()
    this.#headers = headers
  }

  /**
   * Whether the end of what came is the end of what was sent. A body that says its length, or comes in chunks, is known to
   * be cut short, which is an error of its read; one that lasts as long as its connection is not.
   */
  get endsForSure(): boolean {
    const coding = this.#headers.get('transfer-encoding')
    return coding === null ? this.#headers.has('content-length') : /(?:^|[\s,])chunked\s*$/i.test(coding)
  }

  /** The frames that the next bytes complete, possibly none; or why there are no more. Throws what a policy decided. */
  async frames(): Promise<readonly SseFrame[] | 'ended' | ReasonCode> {
    if (this.#read.length > 0) {
      await yieldToEventLoop()
      return this.#exchange.cut === null ? this.#some(this.#read) : 'provider.interrupted'
    }
    this.#exchange.waitingSince = this.#gateway.clock.monotonic()
    try {
      const { done, value } = await this.#reader.read()
      return done ? this.#ended() : this.#cut(value)
    } catch (thrown) {
      // What a policy decided before the answer was translated; a cut rejects with its failure too.
      if (thrown instanceof Failure && this.#exchange.cut === null) throw thrown
      // Why it broke is on the exchange where it was cut; otherwise the connection did, and the outcome says so.
      return thrown instanceof UnreadableAnswer ? 'provider.invalid_answer' : 'provider.interrupted'
    } finally {
      this.#exchange.waitingSince = null
    }
  }

  #some(frames: readonly SseFrame[]): readonly SseFrame[] {
    this.#read = frames.slice(framesATurn)
    return frames.length > framesATurn ? frames.slice(0, framesATurn) : frames
  }

  #cut(chunk: Uint8Array): readonly SseFrame[] | ReasonCode {
    this.#received += chunk.length
    if (this.#received > this.#gateway.settings.answer_limit_bytes) return 'provider.answer_too_large'
    try {
      return this.#some(this.#splitter.push(chunk))
    } catch {
      // Longer than any frame may be: not an event stream.
      return 'provider.invalid_answer'
    }
  }

  /** A last frame that lacks its blank line is one like the others where all of it was sent; without data it says nothing. */
  #ended(): SseFrame[] | 'ended' {
    const rest = this.#splitter.end()
    this.#rest = this.endsForSure && rest?.data === null ? null : rest
    const isWhole = this.endsForSure && parseObject(rest?.data ?? '') !== null
    if (rest === null || !isWhole) return 'ended'
    this.#rest = null
    return [completed(rest)]
  }

  /** What is left at the end, as a frame without its blank line; null where nothing is. */
  get rest(): SseFrame | null {
    return this.#rest
  }

  /** Reads what follows a complete answer and drops it, for a moment, so that the connection can be used again. */
  async linger(): Promise<void> {
    const timer = setTimeout(() => this.#exchange.abort.abort(), lingerMilliseconds)
    try {
      while (!(await this.#reader.read()).done);
    } catch {
      // The answer is complete and recorded; that its connection broke afterwards concerns nobody.
    }
    clearTimeout(timer)
  }
}
