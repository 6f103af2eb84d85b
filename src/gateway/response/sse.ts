/**
 * Relays a provider's event stream: whole frames, in order, without delay, byte for byte. The frame that ends the
 * answer waits until the outcome is committed (fleet/outbox/README.md rule 4), so that a client that saw the end can
 * find its event.
 *
 * 1. Each pull by the client reads the provider until there is something to pass on. So a slow client slows the
 *    provider, and nothing accumulates here.
 * 2. Frames are read for usage, time to first token and text length. A usage frame that only the gateway requested is
 *    dropped.
 * 3. When policies inspect the answer, each frame goes through the exchange's inspection
 *    (`gateway/policy/inspected-stream.ts`), which changes it, holds text, or stops the stream. Otherwise no frame
 *    changes.
 * 4. A provider error before anything was passed on is a failed call. At the terminal frame the outcome is written,
 *    then the frame. At a later error frame of the provider likewise, followed by the dialect's end or the provider's
 *    own.
 * 5. At an end without a terminal frame, a deadline or too many bytes, the outcome is written, then the dialect's error
 *    frames. If the answer is complete and the connection cannot have broken, the outcome and then the missing terminal
 *    frame are written. A policy's block or escalation ends the stream like an error, and upstream is cancelled.
 * 6. When the client disconnects, upstream is cancelled and the outcome written in the same tick.
 *
 * What follows the terminal frame is read and dropped for a moment, so that the connection can be reused.
 *
 * Longer than most, because all ends of a stream share one state and must not run twice.
 */

import { Failure } from '../../failure.ts'
import type { FrameFacts } from '../../languages/dialect.ts'
import { isGiven } from '../../languages/reading/json-value.ts'
import { RequestEcho } from '../../languages/reading/texts/request-echo.ts'
import { UnreadableAnswer } from '../../languages/translation/translate-response.ts'
import type { SseFrame } from '../../lib/http/sse.ts'
import { traceFrame } from '../accounting/answer-attributes.ts'
import { finishExchange, logUnrecordedOutcome } from '../accounting/exchange-record.ts'
import { answeredOutcome, verdictOf } from '../accounting/outcome.ts'
import { cancelForDisconnect } from '../client-disconnect.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type Outcome, type ReasonCode, required } from '../exchange.ts'
import type { Inspected } from '../policy/inspected-stream.ts'
import { headersToCaller } from '../request/headers.ts'
import { languageOf } from '../request/translate.ts'
import { FirstError, refusalOf } from '../upstream/first-error.ts'
import { maskKey, maskKeyInText, maskWholeKey } from '../upstream/mask-provider-key.ts'
import { discardAnswer, failureOfCall } from '../upstream/provider-failure.ts'
import { FrameSource, lingerMilliseconds } from './frame-source.ts'
import { noteText, noteUsage } from './note-frame.ts'

/**
 * Makes the streaming answer as soon as there is a frame to pass on; until then a failure is an answer of its own. From
 * here on the relay ends the exchange.
 */
export async function relayStream(exchange: Exchange, gateway: Gateway, upstream: Response): Promise<void> {
  const { model, choices } = required(exchange.facts)
  const usageAdded = exchange.edits.has('stream_options')
  const asked = exchange.beginInspection === null ? {} : { asked: new RequestEcho(exchange.parsed) }
  exchange.reader = exchange.dialect.reader({ model, exchangeId: exchange.id, usageAdded, choices, ...asked })
  exchange.inspection = exchange.beginInspection?.(exchange.reader) ?? null
  const relay = new Relay(exchange, gateway, upstream)
  const reason = await relay.begin()
  if (reason !== null) {
    if (exchange.cut !== null) throw exchange.cut.failure
    const failure = discardAnswer(exchange, gateway, reason)
    throw relay.refusal === null ? failure : new FirstError(relay.refusal)
  }
  const headers = headersToCaller(exchange, upstream, gateway.clock.now())
  headers['cache-control'] = 'no-cache'
  exchange.streaming = true
  exchange.answer = new Response(new ReadableStream(relay), { headers })
}

/** The part of a stream's controller that is used. */
interface Outlet {
  enqueue(bytes: Uint8Array): void
  close(): void
}

/** The result of one frame. */
interface Step extends Inspected {
  readonly facts: FrameFacts | null
}

const dropped: Step = { bytes: null, stop: null, facts: null }

/** The facts of an end that the provider left out. */
const whole: FrameFacts = { terminal: true, textLength: 0, usage: null, error: null, ours: false }

/** The frame that ends the provider's answer, or its error. */
const isEnd = (facts: FrameFacts | null): facts is FrameFacts =>
  facts !== null && (facts.terminal || facts.error !== null)

class Relay implements Bun.UnderlyingSource<Uint8Array> {
  readonly #exchange: Exchange
  readonly #gateway: Gateway
  readonly #source: FrameSource
  /**
   * The usage of a translated answer is noted in `gateway/upstream/call.ts` or `gateway/policy/upstream-inspection.ts`.
   */
  readonly #isTranslated: boolean
  #outlet: Outlet | null = null
  /** Frames that were read and not inspected yet. */
  #waiting: readonly SseFrame[] = []
  /** The result of the first frame to pass on, if it was found before the answer began. */
  #first: Step | null = null
  /** The refusal in the provider's first frame, if there is one. */
  refusal: Response | null = null
  /** Frames with data have been passed on. */
  #begun = false
  /** The provider has sent an error frame, which was recorded and passed on; its own end may follow. */
  #failed = false
  /** The end is being recorded. */
  #ending = false
  /** Nothing more is passed on: the end is being sent, or the client disconnected. */
  #ended = false

  constructor(exchange: Exchange, gateway: Gateway, upstream: Response) {
    this.#exchange = exchange
    this.#gateway = gateway
    this.#source = new FrameSource(exchange, gateway, upstream)
    this.#isTranslated = exchange.model !== null && languageOf(exchange, exchange.model) !== null
  }

  /**
   * Waits for the first frame to pass on; returns the reason when there is none. Throws a policy decision before it.
   */
  async begin(): Promise<ReasonCode | null> {
    while (this.#first === null) {
      const came = await this.#source.frames()
      const frames = came === 'ended' ? this.#rest() : came
      if (typeof frames === 'string') return frames
      this.#waiting = frames
      try {
        await this.#lookAtFirst()
        if (came === 'ended' && frames.length === 0) this.#first = this.#unlessStopped(await this.#ownEnd())
      } catch (thrown) {
        if (thrown instanceof Failure) throw thrown
        return this.#unreadable(thrown)
      }
      if (this.#exchange.cut !== null) return 'gateway.interrupted'
      // An error before anything else is no answer, and another path may have one.
      const facts = this.#firstFacts()
      if (facts !== null && facts.error !== null) return 'provider.error'
      if (came === 'ended' && !facts?.terminal) return 'provider.interrupted'
    }
    // While the client does not read, no pending read of the provider could be rejected by the abort.
    this.#exchange.onCut = () => {
      if (this.#exchange.silentSince === null) void this.#fail('gateway.interrupted')
    }
    return null
  }

  #firstFacts(): FrameFacts | null {
    return this.#first?.facts ?? null
  }

  /** The rest, at the provider's end, of an answer that was held until then. */
  #rest(): readonly SseFrame[] {
    const rest = this.#exchange.inspection === null ? null : this.#source.rest
    return rest === null ? [] : [rest]
  }

  /** Inspects frames until one can be passed on. A stop before that is an answer of its own. */
  async #lookAtFirst(): Promise<void> {
    const frames = this.#waiting
    for (const [index, frame] of frames.entries()) {
      const next = this.#step(frame)
      const step = next instanceof Promise ? await next : next
      if (!hasBytes(this.#unlessStopped(step).bytes) && !isEnd(step.facts)) continue
      this.#first = step
      this.#waiting = frames.slice(index + 1)
      const { relayedCharacters, usage } = this.#exchange
      if (isGiven(step.facts?.error) && relayedCharacters === 0 && usage === null) this.refusal = refusalOf(frame.data)
      return
    }
    this.#waiting = []
  }

  /** Throws what stopped the answer before anything of it was passed on. */
  #unlessStopped<Taken extends Step | null>(step: Taken): Taken {
    if (step === null || step.stop === null || hasBytes(step.bytes)) return step
    this.#exchange.abort.abort()
    throw step.stop
  }

  start(outlet: Outlet): void {
    this.#outlet = outlet
  }

  async pull(): Promise<void> {
    let passed = false
    while (!passed && !this.#ended) {
      try {
        if (this.#waiting.length === 0 && this.#first === null) {
          const frames = await this.#source.frames()
          if (this.#ended) return
          if (frames === 'ended') return await this.#finishWithout()
          if (typeof frames === 'string') return await this.#fail(frames)
          this.#waiting = frames
        }
        passed = await this.#pass()
      } catch (thrown) {
        return thrown instanceof Failure ? this.#stop(null, thrown) : this.#fail(this.#unreadable(thrown))
      }
    }
  }

  cancel(): void {
    this.#end()
    cancelForDisconnect(this.#exchange, this.#gateway)
  }

  /** Passes on waiting frames; true when something was sent. Frames of one chunk leave in one chunk. */
  async #pass(): Promise<boolean> {
    const frames = this.#waiting
    this.#waiting = []
    let run: Uint8Array | null = null
    let passed = false
    for (let index = this.#first === null ? 0 : -1; index < frames.length; index++) {
      let step: Step
      try {
        const next = this.#next(frames[index])
        step = next instanceof Promise ? await next : next
      } catch (thrown) {
        if (run !== null) this.#enqueue(run)
        throw thrown
      }
      if (step.stop !== null || isEnd(step.facts)) {
        if (run !== null) this.#enqueue(run)
        if (step.stop !== null) await this.#stop(step.bytes, step.stop)
        else if (step.facts !== null) await this.#finish(step.bytes, step.facts)
        if (this.#ended || this.#ending) return true
        run = null
        passed = true
      } else if (step.bytes !== null) {
        if (step.facts !== null) this.#begun = true
        if (run !== null && isNext(run, step.bytes)) {
          run = new Uint8Array(run.buffer, run.byteOffset, run.length + step.bytes.length)
        } else {
          if (run !== null) this.#enqueue(run)
          run = step.bytes
        }
        passed = true
      }
    }
    if (run !== null) this.#enqueue(run)
    return passed
  }

  /** The next step: the one found before the answer began, or the result of a frame. */
  #next(frame: SseFrame | undefined): Step | Promise<Step> {
    const first = this.#first
    this.#first = null
    if (first !== null) return first
    return frame === undefined ? dropped : this.#step(frame)
  }

  #step(came: SseFrame): Step | Promise<Step> {
    const frame = came.event === 'error' ? this.#withoutKey(came) : came
    const facts = this.#notice(frame)
    if (facts?.ours) return dropped
    const failed = facts !== null && facts.error !== null
    const own = failed ? required(this.#exchange.reader).ownError?.(frame, this.#exchange.requestId) : null
    return this.#inspect(own ?? frame, facts)
  }

  /** An event that is an error by its name, whatever its data. */
  #withoutKey(frame: SseFrame): SseFrame {
    const { bytes, data } = frame
    const masked = maskKey(this.#exchange, bytes)
    if (masked === bytes || data === null) return frame
    return { ...frame, bytes: masked, data: maskKeyInText(this.#exchange, data) }
  }

  #inspect(frame: SseFrame, facts: FrameFacts | null): Step | Promise<Step> {
    const { inspection } = this.#exchange
    if (inspection === null) return { bytes: frame.bytes, stop: null, facts }
    const inspected = inspection.take(frame, facts)
    return inspected instanceof Promise ? inspected.then((late) => ({ ...late, facts })) : { ...inspected, facts }
  }

  #notice({ event, data }: SseFrame): FrameFacts | null {
    if (data === null) return null
    const exchange = this.#exchange
    const facts = required(exchange.reader).frame({ event, data })
    traceFrame(exchange, data)
    if (facts.foreign) throw new UnreadableAnswer('A frame is not in the requested language')
    if (exchange.inspectedUpstream) return facts
    noteText(exchange, this.#gateway, facts)
    if (!this.#isTranslated) noteUsage(exchange, facts)
    return facts
  }

  /** Ends at the provider's last frame or error: the outcome first. */
  async #finish(frame: Uint8Array | null, { error, terminal }: FrameFacts): Promise<void> {
    const exchange = this.#exchange
    const last = frame === null || error === null ? frame : maskKey(exchange, frame)
    this.#ending = terminal
    const outcome: Outcome =
      error === null ? answeredOutcome(exchange, 200) : { verdict: 'error', reason: 'provider.error', status: 200 }
    const settled = finishExchange(exchange, this.#gateway, outcome)
    if (!terminal) return this.#passError(settled, last)
    await this.#close(settled, () => {
      if (last !== null) this.#enqueue(last)
      if (error !== null) this.#enqueue(required(exchange.reader).endFrames())
    })
    void this.#source.linger()
  }

  /** After an error frame the provider may still end its stream itself, for a moment. */
  async #passError(settled: Promise<void>, last: Uint8Array | null): Promise<void> {
    try {
      await settled
    } catch {
      // Whoever recorded it gets the same promise in `#close`, which logs it and passes nothing on.
      return this.#close(settled, () => {})
    }
    if (last !== null) this.#enqueue(last)
    if (this.#failed) return
    this.#failed = true
    setTimeout(() => this.#exchange.abort.abort(), lingerMilliseconds)
  }

  /** The provider's side has ended; the rest may be a last frame without its blank line. */
  async #finishWithout(): Promise<void> {
    const rest = this.#source.rest
    const own = rest === null ? await this.#ownEnd() : null
    if (own !== null) return own.stop === null ? this.#finish(own.bytes, whole) : this.#stop(own.bytes, own.stop)
    const { relayedCharacters } = this.#exchange
    const facts = rest === null ? null : this.#notice(rest)
    if (rest !== null && facts?.terminal) {
      const { bytes, stop } = await this.#inspect(rest, facts)
      return stop === null ? this.#finish(bytes, facts) : this.#stop(bytes, stop)
    }
    // The frame is not passed on.
    this.#exchange.relayedCharacters = relayedCharacters
    return this.#fail('provider.interrupted')
  }

  /** The end of a complete answer that its provider left out; null when the answer is broken. */
  async #ownEnd(): Promise<Step | null> {
    const { inspection, reader, facts, cut, outcomeCommitted } = this.#exchange
    const mayEndSo = this.#source.endsForSure && !this.#isTranslated
    const isWhole = mayEndSo && required(reader).isWhole?.(required(facts).choices) === true
    if (!isWhole || cut !== null || outcomeCommitted !== null) return null
    const { bytes, stop } = inspection === null ? dropped : await inspection.end()
    if (stop !== null) return { bytes, stop, facts: whole }
    const end = required(reader).endFrames()
    return { bytes: bytes === null ? end : Buffer.concat([bytes, end]), stop: null, facts: whole }
  }

  /** Ends the stream for a policy. */
  async #stop(bytes: Uint8Array | null, failure: Failure): Promise<void> {
    const exchange = this.#exchange
    const reader = required(exchange.reader)
    const verdict = verdictOf(failure)
    const { verdictan } = failure
    this.#ending = true
    const reason = verdictan?.reason_code ?? failure.code
    const settled = finishExchange(exchange, this.#gateway, { verdict, reason, status: 200 })
    exchange.abort.abort()
    if (hasBytes(bytes)) this.#begun = true
    await this.#close(settled, () => {
      if (bytes !== null) this.#enqueue(bytes)
      const isEscalation = verdict === 'escalate' && verdictan !== null
      this.#enqueue(
        isEscalation
          ? reader.escalationFrames(verdictan, this.#begun)
          : reader.errorFrames(failure, exchange.requestId),
      )
    })
  }

  /** Ends a stream that failed after it began. The reason of a cut takes precedence. */
  async #fail(reason: ReasonCode): Promise<void> {
    if (this.#ended || this.#ending) return
    this.#ending = true
    const exchange = this.#exchange
    const { cut } = exchange
    const reader = required(exchange.reader)
    if (exchange.outcomeCommitted !== null && this.#failed) {
      return this.#close(exchange.outcomeCommitted, () => this.#enqueue(reader.endFrames()))
    }
    const { bytes: held, stop } = cut === null ? await this.#held(reason) : dropped
    if (stop !== null) return this.#stop(held, stop)
    const broken = cut ?? failureOfCall(exchange, reason)
    const settled = finishExchange(exchange, this.#gateway, { verdict: 'error', reason: broken.reason, status: 200 })
    exchange.abort.abort()
    await this.#close(settled, () => {
      if (held !== null) this.#enqueue(held)
      this.#enqueue(reader.errorFrames(broken.failure, exchange.requestId))
    })
  }

  /** The text that the inspection still holds when the provider's side ended early. */
  async #held(reason: ReasonCode): Promise<Inspected> {
    const { inspection } = this.#exchange
    if (inspection === null || reason === 'provider.invalid_answer') return dropped
    try {
      return await inspection.end()
    } catch (thrown) {
      this.#unreadable(thrown)
      return dropped
    }
  }

  /** A frame that the dialect or the inspection cannot read is not passed on. */
  #unreadable(thrown: unknown): ReasonCode {
    const { id, requestId } = this.#exchange
    this.#gateway.log.error({ request_id: requestId, exchange_id: id, error: String(thrown) }, 'A frame was not read')
    return 'provider.invalid_answer'
  }

  /** Waits for the outcome, passes the end on and closes. If it was not recorded the answer has no end. */
  async #close(settled: Promise<void>, passEnd: () => void): Promise<void> {
    try {
      await settled
      passEnd()
    } catch (thrown) {
      logUnrecordedOutcome(this.#exchange, this.#gateway, thrown)
    }
    if (!this.#ended) this.#outlet?.close()
    this.#end()
  }

  #enqueue(bytes: Uint8Array): void {
    if (!this.#ended && bytes.length > 0) this.#outlet?.enqueue(maskWholeKey(this.#exchange, bytes))
  }

  #end(): void {
    this.#ended = true
    this.#exchange.onCut = null
    this.#gateway.running.remove(this.#exchange)
  }
}

const hasBytes = (bytes: Uint8Array | null): bytes is Uint8Array => bytes !== null && bytes.length > 0

const isNext = (run: Uint8Array, bytes: Uint8Array): boolean =>
  run.buffer === bytes.buffer && run.byteOffset + run.length === bytes.byteOffset
