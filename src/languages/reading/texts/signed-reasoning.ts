/**
 * A thought's signature, which its provider checks against the text. If the text was altered, the signature is
 * removed, because a thought that does not match its signature is refused in the next turn. If the gateway has marked
 * the signature (`src/languages/translation/signature.ts`), the mark stays, because it names the thought's language.
 * Providers of messages also refuse thinking without a signature, so there a mark replaces it, and the thought is
 * left out on its way back.
 */
import { type JsonObject, textOf } from '../json-value.ts'

/** The prefix of signatures that the gateway gives to callers of another language than the provider's. */
export const markBegins = 'gatehouse.'

const mark = /^gatehouse\.[a-z]+\.[\w-]*\./

/** The rest of a signature whose text was altered. */
const unsigned = (signature: string): string => mark.exec(signature)?.[0] ?? ''

/** Replaces the signature of a messages provider's altered thinking: its mark, with an empty signature. */
const altered = `${markBegins}messages..`

/** Whether the thought is a messages provider's and no longer matches its signature. */
export const isAltered = (signature: string): boolean => signature === altered

/** The value that replaces a thinking block's signature once its text was altered: none if it had none. */
export const alteredSignature = (signature: string): string => (signature === '' ? '' : unsigned(signature) || altered)

/** Whether the gateway has marked the signature of an entry of `reasoning_details`. */
export const isMarked = ({ signature }: JsonObject): boolean => mark.test(textOf(signature) ?? '')

/** The members of an entry of `reasoning_details` that sign its text. */
const vouching = ({ type }: JsonObject): readonly string[] =>
  type === 'reasoning.encrypted' ? ['signature'] : ['signature', 'data']

/** Whether an entry of `reasoning_details` brings the signature of its text. */
export const isSigned = (detail: JsonObject): boolean => vouching(detail).some((member) => textOf(detail[member]))

/** Removes the signature from an entry of `reasoning_details`. Returns whether there was one. */
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
 * Removes the signature from a reasoning item, if it is a marked one. What this language's own providers encrypt is
 * the thought itself and signs no summary; they refuse the item without it.
 */
export function unsignItem(item: JsonObject): void {
  const rest = unsigned(textOf(item.encrypted_content) ?? '')
  if (rest !== '') item.encrypted_content = rest
}

/** The text that came and the text that was passed on, to distinguish late text from altered text. */
export class PassedText {
  /** Text that came and was not passed on yet. */
  #owed = ''
  #altered = false

  came(text: string): void {
    this.#owed += text
  }

  /** Records text that was passed on: the text that came, perhaps late, or another. */
  passed(text: string): void {
    if (this.#owed.startsWith(text)) this.#owed = this.#owed.slice(text.length)
    else this.#altered = true
  }

  /** All text that came was passed on unchanged. */
  get isWhole(): boolean {
    return !this.#altered && this.#owed === ''
  }
}
