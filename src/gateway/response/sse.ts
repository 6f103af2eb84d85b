/**
 * Relays a provider's event stream: whole frames, in order, without delay, byte for byte. The frame that ends the
 * answer waits until the outcome is committed (fleet/outbox/README.md rule 4), so that a client that saw the end can
 * find its event.
 *
 * 1. The provider is read until there is something to pass on, and again when the client has taken it. So a slow client
 *    slows the provider, and nothing accumulates here.
 * 2. Each frame is read and, when policies inspect the answer, inspected (`frame-steps.ts`). Otherwise no frame
 *    changes, and one that repeats the frame before but for its text is known by its bytes.
 * 3. A provider error before anything was passed on is a failed call. At the terminal frame the outcome is written,
 *    then the frame. At a later error frame of the provider likewise, followed by the dialect's end or the provider's
 *    own (`stream-ends.ts`).
 * 4. At an end without a terminal frame, a deadline or too many bytes, the outcome is written, then the dialect's error
 *    frames. If the answer is complete and the connection cannot have broken, the outcome and then the missing terminal
 *    frame are written. A policy's block or escalation ends the stream like an error, and upstream is cancelled.
 * 5. When the client disconnects, upstream is cancelled and the outcome written in the same tick.
 *
 * What follows the terminal frame is read and dropped for a moment, so that the connection can be reused.
 */

import { Failure } from '../../failure.ts'
import type { FrameFacts } from '../../languages/dialect.ts'
import { isGiven } from '../../languages/reading/json-value.ts'
import { RequestEcho } from '../../languages/reading/texts/request-echo.ts'
import type { SseFrame } from '../../lib/http/sse.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type ReasonCode, required } from '../exchange.ts'
import { headersToCaller } from '../request/headers.ts'
import { isUnnamed, isUnseen } from '../stored/stored-state.ts'
import { FirstError, refusalOf } from '../upstream/first-error.ts'
import { discardAnswer } from '../upstream/provider-failure.ts'
import { type Arrival, FrameSource } from './frame-source.ts'
import { FrameSteps, hasBytes, isEnd, type Step } from './frame-steps.ts'
import { type Outlet, StreamEnds } from './stream-ends.ts'

/**
 * Makes the streaming answer as soon as there is a frame to pass on; until then a failure is an answer of its own. From
 * here on the relay ends the exchange.
 */
export async function relayStream(exchange: Exchange, gateway: Gateway, upstream: Response): Promise<void> {
  const { model, choices } = required(exchange.facts)
  const usageAdded = exchange.edits.has('stream_options')
  const asked = exchange.beginInspection === null ? {} : { asked: new RequestEcho(exchange.parsed) }
  const textOnly = exchange.client !== null
  exchange.call.reader = exchange.dialect.reader({
    ...{ model, exchangeId: exchange.id, usageAdded, choices, textOnly },
    ...asked,
  })
  exchange.call.inspection = exchange.beginInspection?.(exchange.call.reader) ?? null
  const relay = new Relay(exchange, gateway, upstream)
  const reason = await relay.begin()
  if (reason !== null) {
    if (exchange.cut !== null) throw exchange.cut.failure
    const failure = discardAnswer(exchange, gateway, reason)
    throw relay.refusal === null || isUnseen(exchange) ? failure : new FirstError(relay.refusal)
  }
  const headers = headersToCaller(exchange, upstream, gateway.clock.now())
  headers['cache-control'] = 'no-cache'
  exchange.streaming = true
  relay.watchInBackground()
  const stream = exchange.connection === null ? new ReadableStream(relay) : new ReadableStream(toConnection(relay))
  exchange.answer = new Response(stream, { headers })
}

/**
 * The stream of an answer to an HTTP connection, which the relay writes to itself. Bun calls `pull` once, and `write`
 * gives a promise while the client is slow. Other readers get a stream that they pull.
 */
const toConnection = (relay: Relay): Bun.DirectUnderlyingSource<Uint8Array> => ({
  type: 'direct',
  pull: (connection) => relay.writeTo(connection),
  cancel: () => relay.cancel(),
})

class Relay implements Bun.UnderlyingSource<Uint8Array> {
  readonly #exchange: Exchange
  readonly #source: FrameSource
  readonly #steps: FrameSteps
  readonly #ends: StreamEnds
  /** Frames that were read; those before `#next` have been inspected. */
  #frames: readonly SseFrame[] = none
  #next = 0
  /** The result of the first frame to pass on, if it was found before the answer began. */
  #first: Step | null = null
  /** What comes before the id of a response in the background. */
  readonly #held: Uint8Array[] = []
  /** The refusal in the provider's first frame, if there is one. */
  refusal: Response | null = null

  constructor(exchange: Exchange, gateway: Gateway, upstream: Response) {
    this.#exchange = exchange
    this.#steps = new FrameSteps(exchange, gateway)
    this.#source = new FrameSource(exchange, gateway, upstream, this.#steps.isRepeat)
    this.#ends = new StreamEnds(exchange, gateway, this.#source, this.#steps)
  }

  /**
   * Waits for the first frame to pass on; returns the reason when there is none. Throws a policy decision before it.
   */
  async begin(): Promise<ReasonCode | null> {
    while (this.#first === null) {
      const came = await this.#arrival()
      const frames = came === 'ended' ? this.#rest() : came
      if (frames instanceof Failure) throw frames
      if (typeof frames === 'string') return frames
      if (frames instanceof Uint8Array) {
        this.#beginWith({ bytes: frames, stop: null, facts: null })
        continue
      }
      this.#frames = frames
      this.#next = 0
      try {
        await this.#lookAtFirst()
        if (came === 'ended' && frames.length === 0) {
          this.#first = this.#unlessStopped(await this.#steps.ownEnd(this.#source.endsForSure))
        }
      } catch (thrown) {
        if (thrown instanceof Failure) throw thrown
        return this.#steps.unreadable(thrown)
      }
      if (this.#exchange.cut !== null) return 'gateway.interrupted'
      // An error before anything else is no answer, and another path may have one.
      const facts = this.#firstFacts()
      if (facts !== null && facts.error !== null) return 'provider.error'
      if (came === 'ended' && !facts?.terminal) return 'provider.interrupted'
    }
    // While the client does not read, no pending read of the provider could be rejected by the abort.
    this.#exchange.onCut = () => {
      if (this.#exchange.call.silentSince === null) void this.#ends.fail('gateway.interrupted')
    }
    return null
  }

  #firstFacts(): FrameFacts | null {
    return this.#first?.facts ?? null
  }

  /** The rest, at the provider's end, of an answer that was held until then. */
  #rest(): readonly SseFrame[] {
    const rest = this.#exchange.call.inspection === null ? null : this.#source.rest
    return rest === null ? none : [rest]
  }

  /**
   * Begins the answer with a step. A response in the background must be known by its id first, so that it can be
   * followed when the caller leaves.
   */
  #beginWith(step: Step): void {
    const { bytes, stop, facts } = step
    if (isUnnamed(this.#exchange) && stop === null && !isEnd(facts)) {
      if (bytes !== null) this.#held.push(bytes)
    } else if (this.#held.length === 0) this.#first = step
    else {
      this.#first = { bytes: Buffer.concat(bytes === null ? this.#held : [...this.#held, bytes]), stop, facts }
      this.#held.length = 0
    }
  }

  /** Follows a response in the background when its caller leaves, or has left before its stream began. */
  watchInBackground(): void {
    const { stored, request } = this.#exchange
    if (stored?.isBackground !== true) return
    if (request.signal.aborted) this.cancel()
    else request.signal.addEventListener('abort', () => this.cancel(), { once: true })
  }

  /** Inspects frames until one can be passed on. A stop before that is an answer of its own. */
  async #lookAtFirst(): Promise<void> {
    for (let frame = this.#nextFrame(); frame !== undefined; frame = this.#nextFrame()) {
      const next = this.#steps.of(frame)
      const step = next instanceof Promise ? await next : next
      if (!hasBytes(this.#unlessStopped(step).bytes) && !isEnd(step.facts)) continue
      this.#beginWith(step)
      if (this.#first === null) continue
      const { relayedCharacters, call } = this.#exchange
      if (isGiven(step.facts?.error) && relayedCharacters === 0 && call.usage === null)
        this.refusal = refusalOf(frame.data)
      return
    }
  }

  #nextFrame(): SseFrame | undefined {
    return this.#frames[this.#next++]
  }

  /** Throws what stopped the answer before anything of it was passed on. */
  #unlessStopped<Taken extends Step | null>(step: Taken): Taken {
    if (step === null || step.stop === null || hasBytes(step.bytes)) return step
    this.#exchange.call.abort.abort()
    throw step.stop
  }

  start(outlet: Outlet): void {
    this.#ends.open(outlet)
  }

  /**
   * Relays to a connection until the end. One function awaits all reads, because a promise for each frame would cost as
   * much as the rest of it.
   */
  async writeTo(connection: ReadableStreamDirectController): Promise<void> {
    let slow: Promise<number> | null = null
    this.#ends.open({
      enqueue(bytes) {
        const written = connection.write(bytes)
        if (written instanceof Promise) slow = written
      },
      close: () => connection.close(),
    })
    let passing = this.#pass(false)
    for (;;) {
      if (passing instanceof Promise) await passing
      // A cut may have begun the end meanwhile.
      if (this.#ends.hasBegun) return await this.#ends.closed
      if (slow === null) connection.flush()
      else await slow
      slow = null
      let came: Arrival
      try {
        came = this.#source.arrived(await this.#source.begin())
      } catch (thrown) {
        came = this.#source.broken(thrown)
      }
      passing = this.#take(came)
    }
  }

  async pull(): Promise<void> {
    let passed = await this.#pass(false)
    while (!passed) passed = await this.#take(await this.#arrival())
  }

  async #arrival(): Promise<Arrival> {
    try {
      return this.#source.arrived(await this.#source.begin())
    } catch (thrown) {
      return this.#source.broken(thrown)
    }
  }

  cancel(): void {
    this.#ends.leave()
  }

  /** Passes on what arrived; true when something was sent or the stream has ended. */
  #take(came: Arrival): boolean | Promise<boolean> {
    if (this.#ends.ended) return true
    if (came instanceof Uint8Array) return this.#repeat(came)
    if (came instanceof Failure) return this.#endsWith(this.#ends.stop(null, came))
    if (came === 'ended') return this.#endsWith(this.#ends.withoutEnd())
    if (typeof came === 'string') return this.#endsWith(this.#ends.fail(came))
    this.#frames = came
    this.#next = 0
    return this.#pass(false)
  }

  #repeat(bytes: Uint8Array): true {
    this.#ends.begun = true
    this.#ends.pass(bytes)
    return true
  }

  async #endsWith(ending: Promise<void>): Promise<true> {
    try {
      await ending
    } catch (thrown) {
      await this.#broken(thrown)
    }
    return true
  }

  /** Passes on waiting frames. Frames of one chunk leave in one chunk. `passed`: something was sent before. */
  #pass(passed: boolean): boolean | Promise<boolean> {
    let run: Uint8Array | null = null
    let more: Uint8Array[] | null = null
    let late: Step | Promise<Step> | null = null
    let thrown: unknown = null
    try {
      for (let step = this.#nextStep(); step !== null; step = this.#nextStep()) {
        if (step instanceof Promise || step.stop !== null || isEnd(step.facts)) {
          late = step
          break
        }
        if (!hasBytes(step.bytes)) continue
        if (step.facts !== null) this.#ends.begun = true
        if (run === null) run = step.bytes
        else if (more === null) more = [run, step.bytes]
        else more.push(step.bytes)
      }
    } catch (error) {
      thrown = error
    }
    if (run !== null) this.#ends.pass(more === null ? run : Buffer.concat(more))
    if (thrown !== null) return this.#endsWith(this.#broken(thrown))
    if (late !== null) return this.#passLate(late, passed || run !== null)
    this.#frames = none
    return passed || run !== null
  }

  /** The next step: the one found before the answer began, or the result of a frame; null when no frame waits. */
  #nextStep(): Step | Promise<Step> | null {
    const first = this.#first
    this.#first = null
    if (first !== null) return first
    const frame = this.#nextFrame()
    return frame === undefined ? null : this.#steps.of(frame)
  }

  /** Passes on a step that is awaited or ends the stream, then the frames behind it. */
  async #passLate(pending: Step | Promise<Step>, passed: boolean): Promise<boolean> {
    let sent = passed
    try {
      const step = await pending
      if (step.stop !== null || isEnd(step.facts)) {
        await this.#ends.at(step)
        if (this.#ends.hasBegun) return true
        sent = true
      } else if (hasBytes(step.bytes)) {
        if (step.facts !== null) this.#ends.begun = true
        this.#ends.pass(step.bytes)
        sent = true
      }
    } catch (thrown) {
      await this.#broken(thrown)
      return true
    }
    return await this.#pass(sent)
  }

  #broken(thrown: unknown): Promise<void> {
    return thrown instanceof Failure ? this.#ends.stop(null, thrown) : this.#ends.fail(this.#steps.unreadable(thrown))
  }
}

const none: readonly SseFrame[] = []
