/**
 * The `reasoning_details` of one streamed choice: thoughts in pieces, `{type, text, index}`, joined by their `index`, or
 * by their type where they have none. The piece that brings a thought's signature is its last, so that what is held of its
 * text leaves before it or in it.
 */
import type { JsonObject } from '../reading/json-value.ts'
import { isMarked, isSigned, PassedText, unsignDetail } from '../reading/texts/signed-reasoning.ts'
import { type FoundText, stepOf } from '../reading/texts/texts.ts'

/** What clients join pieces by, or take from the last of them. */
const labels = ['type', 'id', 'format', 'index'] as const

/** One thought. */
export class Detail {
  /** Its part of its channels' names. */
  readonly place: string
  /** No other piece continues it. */
  readonly alone: boolean
  readonly #texts = new Map<string, PassedText>()
  #last: JsonObject = {}
  /** The last piece that brought a text. */
  #piece: JsonObject = {}

  constructor(place: string, alone: boolean) {
    this.place = place
    this.alone = alone
  }

  /** Goes on with a piece, whose texts come next. */
  goOn(piece: JsonObject): void {
    this.#last = piece
  }

  /** Takes note of a text that came, its place that in the piece. Gives what is to be told what is sent of it. */
  came({ place, text, kind }: FoundText): ((sent: string) => void) | undefined {
    if (text === '' || kind === 'name') return undefined
    const passed = this.#texts.get(place) ?? new PassedText()
    this.#texts.set(place, passed)
    passed.came(text)
    this.#piece = this.#last
    return (sent) => passed.passed(sent)
  }

  /** Takes note of text that was held back and leaves in a piece of ours. */
  passed(place: string, text: string): void {
    this.#texts.get(place)?.passed(text)
  }

  /** Takes the signature out of a piece where it no longer vouches for the text. Says whether there was one. */
  unsign(piece: JsonObject): boolean {
    return [...this.#texts.values()].some(({ isWhole }) => !isWhole) && unsignDetail(piece)
  }

  /** What a piece of ours says beside its text. */
  labels(): JsonObject {
    const said: JsonObject = {}
    for (const label of labels) if (this.#piece[label] !== undefined) said[label] = this.#piece[label]
    return said
  }
}

/** A piece of a thought that brings its signature. */
export interface Signed {
  readonly detail: Detail
  readonly piece: JsonObject
}

/** Takes out the signatures of thoughts that were altered. Says whether there were any. */
export const withoutBroken = (signed: readonly Signed[]): boolean =>
  signed.filter(({ detail, piece }) => detail.unsign(piece)).length > 0

export class ReasoningDetails {
  /** By what joins their pieces, those that were begun last. */
  readonly #details = new Map<string, Detail>()
  #begun = 0

  /** Gives the thought that a piece is of, and whether the piece ends it. */
  take(piece: JsonObject, position: number): { detail: Detail; ends: boolean } {
    const step = stepOf(piece, position, { joinParts: true })
    const known = this.#details.get(step)
    const detail = known ?? this.#begin(step)
    detail.goOn(piece)
    const ends = isSigned(piece)
    // Details of ours are whole; pieces of others with the same index or type are one text to clients, however signed.
    if (ends && isMarked(piece)) this.#details.delete(step)
    else this.#details.set(step, detail)
    return { detail, ends }
  }

  #begin(step: string): Detail {
    const place = `reasoning_details${step}`
    const alone = step.startsWith('#')
    return new Detail(alone || this.#begun++ === 0 ? place : `${place}#${this.#begun}`, alone)
  }
}
