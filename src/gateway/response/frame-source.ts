/**
 * Reads a provider's event stream as whole frames on request. Bounds the size of one frame and of all together, and
 * notes on the exchange since when the provider has been silent.
 */

import { Failure } from '../../failure.ts'
import { parseObject } from '../../languages/reading/json-value.ts'
import { UnreadableAnswer } from '../../languages/translation/translate-response.ts'
import { completed, type SseFrame, SseSplitter } from '../../lib/http/sse.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Gateway } from '../context.ts'
import type { Exchange, ReasonCode } from '../exchange.ts'
import type { ByteReader } from '../request/read-with-limit.ts'

/** A frame may hold an image, but an endless frame must not fill the memory. */
const maxFrameBytes = 16 * 1024 * 1024
export const lingerMilliseconds = 1000

/**
 * The number of small frames of one read that are inspected before yielding to the event loop: a few milliseconds of
 * work.
 */
const framesATurn = 256

/**
 * The frames that the next bytes complete, possibly none; or the bytes of frames that are passed on as they are; or
 * the reason why there are no more: a policy decision is a failure.
 */
export type Arrival = readonly SseFrame[] | Uint8Array | 'ended' | ReasonCode | Failure

type Read = Awaited<ReturnType<ByteReader['read']>>

export class FrameSource {
  readonly #exchange: Exchange
  readonly #gateway: Gateway
  readonly #reader: ByteReader
  readonly #headers: Headers
  /** Asked for bytes that begin with a frame: whether they are whole frames that are passed on as they are. */
  readonly #isRepeat: (bytes: Uint8Array) => boolean
  readonly #splitter = new SseSplitter(maxFrameBytes)
  #received = 0
  /** Frames that were read and not returned yet. */
  #read: readonly SseFrame[] = []
  #rest: SseFrame | null = null

  constructor(
    exchange: Exchange,
    gateway: Gateway,
    { body, headers }: Response,
    isRepeat: (bytes: Uint8Array) => boolean,
  ) {
    this.#isRepeat = isRepeat
    this.#exchange = exchange
    this.#gateway = gateway
    this.#reader = (body ?? new Blob([]).stream()).getReader()
    this.#headers = headers
  }

  /**
   * Whether the end of the received bytes is certainly the end of the sent ones. A body with a length or chunks is
   * known to be cut short, which fails its read; a body that lasts as long as its connection is not.
   */
  get endsForSure(): boolean {
    const coding = this.#headers.get('transfer-encoding')
    return coding === null ? this.#headers.has('content-length') : /(?:^|[\s,])chunked\s*$/i.test(coding)
  }

  /** Begins to read on; resolves at once, in the next turn, while frames of an earlier read are left. */
  begin(): Promise<Read | undefined> {
    if (this.#read.length > 0) return yieldToEventLoop().then(noRead)
    this.#exchange.call.silentSince = this.#gateway.clock.monotonic()
    return this.#reader.read()
  }

  /** What a read that was begun has brought. */
  arrived(read: Read | undefined): Arrival {
    this.#exchange.call.silentSince = null
    if (read !== undefined) return read.done ? this.#ended() : this.#cut(read.value)
    return this.#exchange.cut === null ? this.#some(this.#read) : 'provider.interrupted'
  }

  /** What it means that a read has failed. */
  broken(thrown: unknown): Arrival {
    this.#exchange.call.silentSince = null
    // A policy decision before translation. A cut rejects with its failure too.
    if (thrown instanceof Failure && this.#exchange.cut === null) return thrown
    // A cut has its reason on the exchange; otherwise the connection broke.
    return thrown instanceof UnreadableAnswer ? 'provider.invalid_answer' : 'provider.interrupted'
  }

  #some(frames: readonly SseFrame[]): readonly SseFrame[] {
    if (frames.length <= framesATurn) {
      this.#read = none
      return frames
    }
    this.#read = frames.slice(framesATurn)
    return frames.slice(0, framesATurn)
  }

  #cut(chunk: Uint8Array): Arrival {
    this.#received += chunk.length
    if (this.#received > this.#gateway.settings.answer_limit_bytes) return 'provider.answer_too_large'
    if (this.#splitter.isBetweenFrames && this.#isRepeat(chunk)) return chunk
    try {
      return this.#some(this.#splitter.push(chunk))
    } catch {
      // Longer than any frame may be: not an event stream.
      return 'provider.invalid_answer'
    }
  }

  /** A last frame without its blank line counts when all of it was sent; without data it is ignored. */
  #ended(): SseFrame[] | 'ended' {
    const rest = this.#splitter.end()
    this.#rest = this.endsForSure && rest?.data === null ? null : rest
    const isWhole = this.endsForSure && parseObject(rest?.data ?? '') !== null
    if (rest === null || !isWhole) return 'ended'
    this.#rest = null
    return [completed(rest)]
  }

  /** The rest at the end as a frame without its blank line; null when there is none. */
  get rest(): SseFrame | null {
    return this.#rest
  }

  /** Reads no more: the provider's connection is closed. */
  cancel(): void {
    // It may be broken already.
    this.#reader.cancel().catch(() => undefined)
  }

  /** Reads and drops what follows a complete answer for a moment, so that the connection can be reused. */
  async linger(): Promise<void> {
    const timer = setTimeout(() => this.#exchange.call.abort.abort(), lingerMilliseconds)
    try {
      while (!(await this.#reader.read()).done);
    } catch {
      // The answer is complete and recorded, so a later break of its connection does not matter.
    }
    clearTimeout(timer)
  }
}

const none: readonly SseFrame[] = []
const noRead = () => undefined
