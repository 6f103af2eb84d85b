/**
 * Holds the sound of an answer until its transcript was inspected. No provider says which sound belongs to which word,
 * so all sound of a part waits until the transcript of the part is whole and no policy found anything in it. A finding
 * cannot be cut out of sound: from then on the response goes on without any. Sound without a transcript never leaves.
 *
 * What it costs: speech begins when the provider has written the whole part, which it does faster than it is spoken
 * (handbook/realtime.md).
 */
import { Failure } from '../../failure.ts'
import type { FrameFacts, StreamReader } from '../../languages/dialect.ts'
import { isObject, type JsonObject, objectsOf, parseObject, textOf } from '../../languages/reading/json-value.ts'
import { type SseFrame, withData } from '../../lib/http/sse.ts'
import { brokenReason } from '../../policies/stages/run-stage.ts'
import { type Exchange, required } from '../exchange.ts'
import type { Inspected, StreamInspection } from '../policy/inspected-stream.ts'

interface HeldFrame {
  readonly frame: SseFrame & { readonly data: string }
  readonly facts: FrameFacts | null
}

const nothing: Inspected = { bytes: null, stop: null }

/** Lets the inspection of a streamed answer hold its sound, if a policy may stop or change the answer. */
export function holdSound(exchange: Exchange, limit: number): void {
  const begin = exchange.beginInspection
  const chain = required(exchange.chain)
  const guards = [...chain.at('post_request'), ...chain.at('pre_response')].some(({ enforced }) => enforced)
  if (begin === null || !guards) return
  exchange.beginInspection = (reader) => {
    const inspection = begin(reader)
    return inspection === null ? null : new SoundHold(exchange, inspection, reader, limit)
  }
}

class SoundHold implements StreamInspection {
  readonly #exchange: Exchange
  readonly #inspection: StreamInspection
  readonly #reader: StreamReader
  readonly #limit: number
  /** By output item and part. */
  readonly #held = new Map<string, HeldFrame[]>()
  #heldBytes = 0

  constructor(exchange: Exchange, inspection: StreamInspection, reader: StreamReader, limit: number) {
    this.#exchange = exchange
    this.#inspection = inspection
    this.#reader = reader
    this.#limit = limit
  }

  take(frame: SseFrame, facts: FrameFacts | null): Inspected | Promise<Inspected> {
    const { data } = frame
    const event = data === null ? null : parseObject(data)
    if (data === null || event === null) return this.#inspection.take(frame, facts)
    const type = textOf(event.type) ?? ''
    if (/^response\.(?:output_)?audio\.(?:delta|done)$/.test(type)) return this.#hold({ ...frame, data }, event, facts)
    const silent = withoutSound(event) ? this.#reread(frame, event) : frame
    const passed = this.#inspection.take(silent, facts)
    if (passed instanceof Promise || passed.stop !== null || !transcriptEnds.test(type)) return passed
    return this.#release(placeOf(event), passed)
  }

  end(): Inspected | Promise<Inspected> {
    return this.#inspection.end()
  }

  #hold(frame: HeldFrame['frame'], event: JsonObject, facts: FrameFacts | null): Inspected {
    const place = placeOf(event)
    const held = this.#held.get(place) ?? []
    held.push({ frame, facts })
    this.#held.set(place, held)
    this.#heldBytes += frame.bytes.length
    if (this.#heldBytes <= this.#limit) return nothing
    const message = `The answer has more sound than the ${this.#limit} bytes of stream_hold_bytes hold until its transcript is inspected`
    const verdictan = { verdict: 'DENY', reason_code: brokenReason }
    return { bytes: null, stop: new Failure('policy_denied', { message, verdictan }) }
  }

  /** Passes the sound of a part behind the end of its transcript. */
  #release(place: string, passed: Inspected): Inspected {
    const held = this.#held.get(place) ?? []
    this.#held.delete(place)
    for (const { frame } of held) this.#heldBytes -= frame.bytes.length
    if (held.length > 0 && this.#isFound()) {
      if (!this.#exchange.notes.includes(withheld)) this.#exchange.notes.push(withheld)
      return passed
    }
    const bytes = passed.bytes === null ? [] : [passed.bytes]
    for (const { frame, facts } of held) {
      // The reader opens the frame that it read last.
      this.#reader.frame(frame)
      const next = this.#inspection.take(frame, facts)
      if (next instanceof Promise) break
      if (next.bytes !== null) bytes.push(next.bytes)
      if (next.stop !== null) return { bytes: joined(bytes), stop: next.stop }
    }
    return { bytes: joined(bytes), stop: null }
  }

  /** Whether an enforced policy has found something in the answer so far. */
  #isFound(): boolean {
    return this.#exchange.policyResults.some(
      ({ stage, mode, verdict }) => stage !== 'pre_request' && mode === 'enforce' && verdict !== 'allow',
    )
  }

  #reread(frame: SseFrame, event: JsonObject): SseFrame {
    const data = JSON.stringify(event)
    this.#reader.frame({ event: frame.event, data })
    return { ...frame, data, bytes: withData(frame, data) }
  }
}

const withheld = 'realtime.audio_withheld'
const transcriptEnds = /^response\.(?:output_)?audio_transcript\.done$/

const joined = (parts: readonly Uint8Array[]): Uint8Array | null => (parts.length === 0 ? null : Buffer.concat(parts))

const placeOf = ({ output_index: item, content_index: part }: JsonObject): string => `${Number(item)}/${Number(part)}`

/** Removes sound that stands in items and parts; returns whether there was any. */
function withoutSound(event: JsonObject): boolean {
  const items = [event.item, ...(isObject(event.response) ? objectsOf(event.response.output) : [])].filter(isObject)
  let found = false
  for (const part of [event.part, ...items.flatMap(({ content }) => objectsOf(content))]) {
    if (!isObject(part) || typeof part.audio !== 'string') continue
    delete part.audio
    found = true
  }
  return found
}
