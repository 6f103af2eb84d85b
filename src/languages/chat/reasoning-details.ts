/**
 * The `reasoning_details` of one streamed choice: thoughts in pieces, `{type, text, index}`, joined by their `index`,
 * or by their type if they have none. The piece with a thought's signature is its last, so text that is held back
 * must leave before it or in it.
 */
import type { JsonObject } from '../reading/json-value.ts'
import { isMarked, isSigned, PassedText, unsignDetail } from '../reading/texts/signed-reasoning.ts'
import { type FoundText, stepOf } from '../reading/texts/texts.ts'

/** The members by which clients join pieces, or that they take from the last one. */
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

  /** Continues the thought with a piece, whose texts come next. */
  goOn(piece: JsonObject): void {
    this.#last = piece
  }

  /**
   * Records a text that came; the place is its place in the piece. Returns the function to call with the text that is
   * sent instead.
   */
  came({ place, text, kind }: FoundText): ((sent: string) => void) | undefined {
    if (text === '' || kind === 'name') return undefined
    const passed = this.#texts.get(place) ?? new PassedText()
    this.#texts.set(place, passed)
    passed.came(text)
    this.#piece = this.#last
    return (sent) => passed.passed(sent)
  }

  /** Records text that was held back and leaves in a piece that the gateway writes. */
  passed(place: string, text: string): void {
    this.#texts.get(place)?.passed(text)
  }

  /** Removes the signature from a piece whose text it no longer matches. Returns whether there was one. */
  unsign(piece: JsonObject): boolean {
    return [...this.#texts.values()].some(({ isWhole }) => !isWhole) && unsignDetail(piece)
  }

  /** The members of a piece that the gateway writes, beside its text. */
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

/** Removes the signatures of thoughts that were altered. Returns whether there were any. */
export const withoutBroken = (signed: readonly Signed[]): boolean =>
  signed.filter(({ detail, piece }) => detail.unsign(piece)).length > 0

export class ReasoningDetails {
  /** The latest thoughts, by the key that joins their pieces. */
  readonly #details = new Map<string, Detail>()
  #begun = 0

  /** Returns the thought that a piece belongs to, and whether the piece ends it. */
  take(piece: JsonObject, position: number): { detail: Detail; ends: boolean } {
    const step = stepOf(piece, position, { joinParts: true })
    const known = this.#details.get(step)
    const detail = known ?? this.#begin(step)
    detail.goOn(piece)
    const ends = isSigned(piece)
    // Details that the gateway writes are whole. Clients join other providers' pieces with the same index or type into
    // one text, whatever their signatures.
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
