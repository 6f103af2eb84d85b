/**
 * A frame opened for inspection: its parsed data, the texts found in it, and the way back to bytes. Without changes
 * these are the bytes that came, unless a client could read them differently than the gateway; otherwise only the
 * `data` line is rewritten. Removing log probabilities and numbers that are not valid JSON counts as a change.
 */

import { type SseFrame, withData } from '../../../lib/http/sse.ts'
import { isRepetitive } from '../../../lib/json/json-members.ts'
import { withNumbersOf } from '../../../lib/json/keep-numbers.ts'
import type { FrameText, StreamPiece } from '../../dialect.ts'
import type { JsonObject } from '../json-value.ts'
import { dropLogprobs } from '../texts/logprobs.ts'
import type { TextKind } from '../texts/text-slot.ts'
import type { FoundText } from '../texts/texts.ts'
import { withoutNonFinite } from './non-finite.ts'

export class OpenFrame implements FrameText {
  readonly pieces: StreamPiece[] = []
  readonly ends: string[] = []
  contradicts = false
  actsAtOnce = false
  readonly #frame: SseFrame
  /** The text that was parsed into the data. */
  readonly #json: string
  readonly #data: JsonObject
  readonly #beforeBytes: (() => boolean) | null
  readonly #onBytes: (() => void)[] = []
  #changed: boolean

  /** `beforeBytes` makes the last changes to the data; returns whether it made any. */
  constructor(frame: SseFrame, data: JsonObject, beforeBytes: (() => boolean) | null = null) {
    this.#frame = frame
    this.#data = data
    this.#beforeBytes = beforeBytes
    this.#json = withoutNonFinite(frame.data ?? '')
    this.#changed = dropLogprobs(data) || this.#json !== (frame.data ?? '')
  }

  /** The data was changed by something other than `replace`. */
  changed(): void {
    this.#changed = true
  }

  /** Adds a text as a piece. `onPass` is called once, with the text sent in its place. */
  add(found: FoundText, channel: string, whole: boolean, onPass?: (text: string) => void): void {
    if (found.text === '') return
    let sent = found.text
    if (onPass !== undefined) this.#onBytes.push(() => onPass(sent))
    this.pieces.push({
      channel,
      kind: found.kind,
      text: found.text,
      whole,
      replace: (text) => {
        if (text === sent) return
        sent = text
        found.put(text)
        this.#changed = true
      },
    })
  }

  /** It ends no channel, and is passed on unchanged unless a piece is replaced. */
  isPlain(): boolean {
    if (this.#changed || this.contradicts || this.ends.length > 0) return false
    return !this.#isReadOtherwise()
  }

  bytes(): Uint8Array {
    for (const pass of this.#onBytes) pass()
    if (this.#beforeBytes?.()) this.#changed = true
    if (!this.#changed && !this.#isReadOtherwise()) return this.#frame.bytes
    return withData(this.#frame, withNumbersOf(this.#json, this.#data))
  }

  /** Parsers differ on a member that is given twice, and some read each line of data by itself. */
  #isReadOtherwise(): boolean {
    return this.#json.includes('\n') || isRepetitive(this.#json, this.#data)
  }
}

/** A frame without texts that ends channels. */
export const endingFrame = (frame: SseFrame, ends: readonly string[]): FrameText => ({
  pieces: [],
  ends,
  bytes: () => frame.bytes,
})

const encoder = new TextEncoder()

/** A frame that the gateway writes. */
export const frameBytes = (data: unknown, event?: string): Uint8Array =>
  encoder.encode(`${event === undefined ? '' : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`)

/** The kinds of generated texts, by the name of the field or event that carries them. */
export function kindOfStem(stem: string): TextKind {
  if (stem.endsWith('refusal')) return 'refusal'
  if (stem.endsWith('arguments')) return 'tool_arguments'
  return stem.includes('reasoning') ? 'reasoning' : 'content'
}
