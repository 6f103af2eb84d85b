/**
 * What happens to each frame of a provider's stream before it is passed on: it is read for usage, time to first token
 * and text length, and goes through the exchange's inspection, which may change it, hold it or stop the stream. A frame
 * that only the gateway requested is dropped.
 */

import type { Failure } from '../../failure.ts'
import type { FrameFacts, StreamReader } from '../../languages/dialect.ts'
import { UnreadableAnswer } from '../../languages/translation/translate-response.ts'
import type { SseFrame } from '../../lib/http/sse.ts'
import { traceFrame } from '../accounting/answer-attributes.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type ReasonCode, required } from '../exchange.ts'
import type { Inspected } from '../policy/inspected-stream.ts'
import { languageOf } from '../request/translate.ts'
import { sealFrame } from '../stored/answer-ids.ts'
import { maskKey, maskKeyInText } from '../upstream/mask-provider-key.ts'
import { noteText, noteUsage } from './note-frame.ts'

/** The result of one frame. */
export interface Step extends Inspected {
  readonly facts: FrameFacts | null
}

const dropped: Step = { bytes: null, stop: null, facts: null }

/** The facts of an end that the provider left out. */
const whole: FrameFacts = { terminal: true, textLength: 0, usage: null, error: null, ours: false }

/** The frame that ends the provider's answer, or its error. */
export const isEnd = (facts: FrameFacts | null): facts is FrameFacts =>
  facts !== null && (facts.terminal || facts.error !== null)

export const hasBytes = (bytes: Uint8Array | null): bytes is Uint8Array => bytes !== null && bytes.length > 0

export class FrameSteps {
  readonly #exchange: Exchange
  readonly #gateway: Gateway
  readonly #reader: StreamReader
  /**
   * The usage of a translated answer is noted in `gateway/upstream/call.ts` or `gateway/policy/upstream-inspection.ts`.
   */
  readonly #isTranslated: boolean

  constructor(exchange: Exchange, gateway: Gateway) {
    this.#exchange = exchange
    this.#gateway = gateway
    this.#reader = required(exchange.call.reader)
    this.#isTranslated = exchange.model !== null && languageOf(exchange, exchange.model) !== null
  }

  /** Throws when the frame is in another language. */
  of(came: SseFrame): Step | Promise<Step> {
    const named = sealFrame(this.#exchange, this.#gateway, came)
    const frame = named.event === 'error' ? this.#withoutKey(named) : named
    const facts = this.#notice(frame)
    if (facts === null || facts.error === null) return facts?.ours ? dropped : this.#inspect(frame, facts)
    return this.#inspect(this.#reader.ownError?.(frame, this.#exchange.requestId) ?? frame, facts)
  }

  /**
   * Whether bytes are whole frames that are known from the one before, and pass as they are. Most bytes of a stream
   * that nobody inspects are.
   */
  readonly isRepeat = (bytes: Uint8Array): boolean => {
    const { call, trace } = this.#exchange
    if (call.inspection !== null || trace?.spanId) return false
    const facts = this.#reader.repeat?.(bytes) ?? null
    if (facts === null) return false
    this.#note(facts)
    return true
  }

  /** The rest at the provider's end, if it ends the answer; null when it does not, and it is not passed on then. */
  ofRest(came: SseFrame): Step | Promise<Step> | null {
    const { relayedCharacters } = this.#exchange
    const rest = sealFrame(this.#exchange, this.#gateway, came)
    const facts = this.#notice(rest)
    if (facts?.terminal) return this.#inspect(rest, facts)
    this.#exchange.relayedCharacters = relayedCharacters
    return null
  }

  /** The end of a complete answer that its provider left out; null when the answer is broken. */
  async ownEnd(endsForSure: boolean): Promise<Step | null> {
    const { call, facts, cut, outcomeCommitted } = this.#exchange
    const { inspection } = call
    const mayEndSo = endsForSure && !this.#isTranslated
    const isWhole = mayEndSo && this.#reader.isWhole?.(required(facts).choices) === true
    if (!isWhole || cut !== null || outcomeCommitted !== null) return null
    const { bytes, stop } = inspection === null ? dropped : await inspection.end()
    if (stop !== null) return { bytes, stop, facts: whole }
    const end = this.#reader.endFrames()
    return { bytes: bytes === null ? end : Buffer.concat([bytes, end]), stop: null, facts: whole }
  }

  /** The text that the inspection still holds when the provider's side ended early. */
  async held(reason: ReasonCode): Promise<Inspected> {
    const { call, cut } = this.#exchange
    const { inspection } = call
    if (inspection === null || cut !== null || reason === 'provider.invalid_answer') return dropped
    try {
      return await inspection.end()
    } catch (thrown) {
      this.unreadable(thrown)
      return dropped
    }
  }

  /** A frame that the dialect or the inspection cannot read is not passed on. */
  unreadable(thrown: unknown): ReasonCode {
    const { id, requestId } = this.#exchange
    this.#gateway.log.error({ request_id: requestId, exchange_id: id, error: String(thrown) }, 'A frame was not read')
    return 'provider.invalid_answer'
  }

  /** An event that is an error by its name, whatever its data. */
  #withoutKey(frame: SseFrame): SseFrame {
    const { bytes, data } = frame
    const masked = maskKey(this.#exchange, bytes)
    if (masked === bytes || data === null) return frame
    return { ...frame, bytes: masked, data: maskKeyInText(this.#exchange, data) }
  }

  #inspect(frame: SseFrame, facts: FrameFacts | null): Step | Promise<Step> {
    const { inspection } = this.#exchange.call
    if (inspection === null) return { bytes: frame.bytes, stop: null, facts }
    const inspected = inspection.take(frame, facts)
    return inspected instanceof Promise ? inspected.then((late) => stepOf(late, facts)) : stepOf(inspected, facts)
  }

  #notice({ event, data, cut }: SseFrame): FrameFacts | null {
    if (data === null) return null
    const exchange = this.#exchange
    const facts = this.#reader.frame({ event, data })
    traceFrame(exchange, data)
    // A frame that was cut off is never passed on: its stream broke off.
    if (facts.foreign && cut !== true) throw new UnreadableAnswer('A frame is not in the requested language')
    this.#note(facts)
    return facts
  }

  #note(facts: FrameFacts): void {
    const exchange = this.#exchange
    if (exchange.call.inspectedUpstream) return
    noteText(exchange, this.#gateway, facts)
    if (!this.#isTranslated) noteUsage(exchange, facts)
  }
}

const stepOf = (
  { bytes, stop }: { bytes: Uint8Array | null; stop: Failure | null },
  facts: FrameFacts | null,
): Step => ({
  bytes,
  stop,
  facts,
})
