/**
 * Relays a provider's event stream: whole frames, in order, as soon as they are there, the bytes that came. The frame
 * that ends the answer waits until the outcome is committed (protocols section 3), so that whoever saw the end of an
 * answer can find its event.
 *
 * 1. Each pull of the caller's side reads the provider until there is something to pass on; a slow caller therefore
 *    slows the provider, and nothing piles up here.
 * 2. Frames are read for usage, the first token's time and the length of the text, never changed.
 * 3. The terminal frame: outcome, then the frame. A provider's own error frame: the same, then the dialect's end.
 * 4. An end without a terminal frame, a deadline, too many bytes: outcome, then the dialect's error frames.
 * 5. The caller leaves: upstream is cancelled and the outcome written in the same tick.
 *
 * What follows the terminal frame is read and dropped, for a moment, so that the connection can be used again.
 */
import type { FrameFacts } from '../dialects/dialect.ts'
import { Failure } from '../failure.ts'
import { type SseFrame, SseSplitter } from '../lib/sse.ts'
import type { ByteReader } from './bounded.ts'
import { callerLeft } from './caller.ts'
import { type Exchange, type Gateway, given, type ReasonCode } from './exchange.ts'
import { headersToCaller } from './headers.ts'
import { logUnrecorded, settle } from './record.ts'
import { unusable } from './unusable.ts'

/** A frame may hold an image; an "event stream" that never ends a frame must not fill the memory. */
const maxFrameBytes = 16 * 1024 * 1024
const lingerMilliseconds = 1000

/**
 * Makes the streaming answer as soon as the provider has sent its first whole frame; until then a failure is still an
 * answer of its own. From here on the relay ends the exchange.
 */
export async function relayStream(exchange: Exchange, gateway: Gateway, upstream: Response): Promise<void> {
  const { model } = given(exchange.facts)
  const usageAdded = exchange.edits.has('stream_options')
  exchange.reader = exchange.dialect.reader({ model, exchangeId: exchange.id, usageAdded })
  exchange.inspection = exchange.beginInspection?.(exchange.reader) ?? null
  const relay = new Relay(exchange, gateway, (upstream.body ?? new Blob([]).stream()).getReader())
  if (!(await relay.begin())) {
    if (exchange.cut !== null) throw exchange.cut.failure
    throw unusable(exchange, gateway, 'provider.interrupted')
  }
  const headers = headersToCaller(exchange, upstream, gateway.clock.now())
  headers['cache-control'] = 'no-cache'
  exchange.streaming = true
  exchange.answer = new Response(new ReadableStream(relay), { headers })
}

/** What is used of a stream's controller. */
interface Outlet {
  enqueue(bytes: Uint8Array): void
  close(): void
}

class Relay implements Bun.UnderlyingSource<Uint8Array> {
  readonly #exchange: Exchange
  readonly #gateway: Gateway
  readonly #reader: ByteReader
  readonly #splitter = new SseSplitter(maxFrameBytes)
  #outlet: Outlet | null = null
  #first: SseFrame[] | null = null
  #received = 0
  /** Nothing more is passed on: the end is on its way, or the caller is gone. */
  #ended = false

  constructor(exchange: Exchange, gateway: Gateway, reader: ByteReader) {
    this.#exchange = exchange
    this.#gateway = gateway
    this.#reader = reader
  }

  /** Waits for the provider's first whole frame; false where none came. */
  async begin(): Promise<boolean> {
    while (this.#first === null) {
      const frames = await this.#frames()
      if (typeof frames === 'string' || this.#exchange.cut !== null) return false
      if (frames.length > 0) this.#first = frames
    }
    // While the caller does not read, no read of the provider is there to be rejected by the abort.
    this.#exchange.onCut = () => {
      if (this.#exchange.waitingSince === null) void this.#fail('gateway.interrupted')
    }
    return true
  }

  start(outlet: Outlet): void {
    this.#outlet = outlet
  }

  async pull(): Promise<void> {
    let passed = false
    while (!passed && !this.#ended) {
      const frames = this.#first ?? (await this.#frames())
      this.#first = null
      if (this.#ended) return
      if (frames === 'ended') return this.#finishWithout()
      if (typeof frames === 'string') return this.#fail(frames)
      passed = await this.#pass(frames)
    }
  }

  cancel(): void {
    this.#end()
    callerLeft(this.#exchange, this.#gateway)
  }

  async #read(): Promise<Uint8Array | 'ended' | 'broken'> {
    this.#exchange.waitingSince = this.#gateway.clock.monotonic()
    try {
      const { done, value } = await this.#reader.read()
      return done ? 'ended' : value
    } catch {
      // Why it broke is on the exchange where it was cut; otherwise the connection did, and the outcome says so.
      return 'broken'
    } finally {
      this.#exchange.waitingSince = null
    }
  }

  /** The frames that the next bytes complete, possibly none; or why there are no more. */
  async #frames(): Promise<SseFrame[] | 'ended' | ReasonCode> {
    const chunk = await this.#read()
    if (chunk === 'broken') return 'provider.interrupted'
    if (chunk === 'ended') return 'ended'
    this.#received += chunk.length
    if (this.#received > this.#gateway.settings.answer_limit_bytes) return 'provider.answer_too_large'
    try {
      return this.#splitter.push(chunk)
    } catch {
      // Longer than any frame may be: not an event stream.
      return 'provider.invalid_answer'
    }
  }

  /** Passes frames on; true where at least one was. Neighbours that came in one chunk leave in one. */
  async #pass(frames: readonly SseFrame[]): Promise<boolean> {
    let run: Uint8Array | null = null
    for (const frame of frames) {
      const facts = this.#notice(frame)
      if (facts !== null && (facts.terminal || facts.error !== null)) {
        if (run !== null) this.#enqueue(run)
        await this.#finish(frame.bytes, facts)
        return true
      }
      if (run !== null && isNext(run, frame.bytes)) {
        run = new Uint8Array(run.buffer, run.byteOffset, run.length + frame.bytes.length)
      } else {
        if (run !== null) this.#enqueue(run)
        run = frame.bytes
      }
    }
    if (run !== null) this.#enqueue(run)
    return run !== null
  }

  #notice({ event, data }: SseFrame): FrameFacts | null {
    if (data === null) return null
    const exchange = this.#exchange
    const facts = given(exchange.reader).frame({ event, data })
    if (facts.usage !== null) exchange.usage = facts.usage
    exchange.relayedText += facts.textLength
    if (facts.textLength > 0 && exchange.firstTokenMs === null) {
      exchange.firstTokenMs = Math.round(this.#gateway.clock.monotonic() - exchange.startedMonotonic)
    }
    return facts
  }

  /** The provider's last frame: the outcome first. */
  async #finish(last: Uint8Array, { error }: FrameFacts): Promise<void> {
    const outcome =
      error === null
        ? ({ verdict: 'allow', reason: 'ok', status: 200 } as const)
        : ({ verdict: 'error', reason: 'provider.error', status: 200 } as const)
    await this.#close(settle(this.#exchange, this.#gateway, outcome), () => {
      this.#enqueue(last)
      if (error !== null) this.#enqueue(given(this.#exchange.reader).endFrames())
    })
    void this.#linger()
  }

  /** The provider's side has ended; what is left may be a last frame that lacks only its blank line. */
  async #finishWithout(): Promise<void> {
    const rest = this.#splitter.end()
    const facts = rest === null ? null : this.#notice(rest)
    if (rest !== null && facts?.terminal) return this.#finish(rest.bytes, facts)
    return this.#fail('provider.interrupted')
  }

  /** Ends a stream that went wrong after it began. Where the exchange was cut, that is the reason. */
  async #fail(reason: ReasonCode): Promise<void> {
    if (this.#ended) return
    const exchange = this.#exchange
    const { cut } = exchange
    const failure = cut?.failure ?? new Failure('upstream_provider_error')
    const settled = settle(exchange, this.#gateway, { verdict: 'error', reason: cut?.reason ?? reason, status: 200 })
    exchange.abort.abort()
    await this.#close(settled, () => this.#enqueue(given(exchange.reader).errorFrames(failure, exchange.requestId)))
  }

  /** Waits for the outcome, passes the end on and closes. Where it was not recorded the answer stays without an end. */
  async #close(settled: Promise<void>, passEnd: () => void): Promise<void> {
    try {
      await settled
      passEnd()
    } catch (thrown) {
      logUnrecorded(this.#exchange, this.#gateway, thrown)
    }
    if (!this.#ended) this.#outlet?.close()
    this.#end()
  }

  #enqueue(bytes: Uint8Array): void {
    if (!this.#ended) this.#outlet?.enqueue(bytes)
  }

  #end(): void {
    this.#ended = true
    this.#exchange.onCut = null
    this.#gateway.running.remove(this.#exchange)
  }

  async #linger(): Promise<void> {
    const timer = setTimeout(() => this.#exchange.abort.abort(), lingerMilliseconds)
    try {
      while (!(await this.#reader.read()).done);
    } catch {
      // The answer is complete and recorded; that its connection broke afterwards concerns nobody.
    }
    clearTimeout(timer)
  }
}

const isNext = (run: Uint8Array, bytes: Uint8Array): boolean =>
  run.buffer === bytes.buffer && run.byteOffset + run.length === bytes.byteOffset
