/**
 * What vouches for the text of a thought: its signature, which its provider checks against the text. Where the text was
 * altered the signature goes, because thinking that is not what was signed is refused in the next turn. Of one that the
 * gateway has marked (`src/languages/translation/signature.ts`) the mark stays: it says whose thought that is. Providers of messages
 * refuse thinking without a signature too, so there a mark takes its place, and the thought is left out on its way back.
 */
import { type JsonObject, textOf } from '../json-value.ts'

/** What the signatures begin with that the gateway hands to callers of another language than their provider's. */
export const markBegins = 'gatehouse.'

const mark = /^gatehouse\.[a-z]+\.[\w-]*\./

/** What is left of a signature whose text was altered. */
const unsigned = (signature: string): string => mark.exec(signature)?.[0] ?? ''

/** In place of the signature of a messages provider, where its thinking was altered: its mark, with nothing behind it. */
const altered = `${markBegins}messages..`

/** Whether the thought is one of a messages provider that is no longer what was signed. */
export const isAltered = (signature: string): boolean => signature === altered

/** What a thinking block has in place of its signature once its text was altered: none where it had none. */
export const alteredSignature = (signature: string): string => (signature === '' ? '' : unsigned(signature) || altered)

/** Whether the gateway has marked the signature of an entry of `reasoning_details`. */
export const isMarked = ({ signature }: JsonObject): boolean => mark.test(textOf(signature) ?? '')

/** The members of an entry of `reasoning_details` that vouch for its text. */
const vouching = ({ type }: JsonObject): readonly string[] =>
  type === 'reasoning.encrypted' ? ['signature'] : ['signature', 'data']

/** Whether an entry of `reasoning_details` brings the signature of its text. */
export const isSigned = (detail: JsonObject): boolean => vouching(detail).some((member) => textOf(detail[member]))

/** Takes the signature out of an entry of `reasoning_details`. Says whether there was one. */
export function unsignDetail(detail: JsonObject): boolean {
  let had = false
  for (const member of vouching(detail)) {
    const signature = textOf(detail[member])
    if (signature === null || signature === unsigned(signature)) continue
    had = true
    if (unsigned(signature) === '') delete detail[member]
    else detail[member] = unsigned(signature)
  }
  return had
}

/**
 * Takes the signature out of a reasoning item, where it is one that was marked. What this language's own providers encrypt
 * is the thought itself and vouches for no summary; they refuse the item without it.
 */
export function unsignItem(item: JsonObject): void {
  const rest = unsigned(textOf(item.encrypted_content) ?? '')
  if (rest !== '') item.encrypted_content = rest
}

/** What came of a text and what was passed on of it, to tell text that is late from text that was altered. */
export class PassedText {
  /** What came and was not passed on yet. */
  #owed = ''
  #altered = false

  came(text: string): void {
    this.#owed += text
  }

  /** Notes what was passed on: what came, perhaps late, or something else. */
  passed(text: string): void {
    if (this.#owed.startsWith(text)) this.#owed = this.#owed.slice(text.length)
    else this.#altered = true
  }

  /** All that came was passed on, as it came. */
  get isWhole(): boolean {
    return !this.#altered && this.#owed === ''
  }
}
