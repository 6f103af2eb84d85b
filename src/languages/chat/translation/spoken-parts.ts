/**
 * The content of an answer's message, or of a stream's delta: one text, or a list of parts. Mistral's reasoning models
 * write `[{type: "thinking", thinking: [{type: "text", text}]}, {type: "text", text}]`, others `reasoning` or `refusal`
 * parts, and some write a list of strings, or one part without a list.
 */

import { isObject, type JsonObject, textOf } from '../../reading/json-value.ts'
import { unusable } from '../../translation/translation-errors.ts'

export interface SpokenPart {
  kind: 'text' | 'thought' | 'refusal'
  text: string
}

const thoughtTypes: ReadonlySet<unknown> = new Set(['thinking', 'reasoning', 'reasoning_text', 'summary_text'])
const media = /^(output_|input_)?(image|audio|video|file|document)(_url)?$/

/** The parts with words, in their order. Throws if the answer holds media: it has no place in another language. */
export function spokenParts(content: unknown): SpokenPart[] {
  if (Array.isArray(content)) return content.flatMap(spokenParts)
  if (isObject(content)) return partOf(content)
  const text = textOf(content)
  return text === null || text === '' ? [] : [{ kind: 'text', text }]
}

function partOf(part: JsonObject): SpokenPart[] {
  const { type } = part
  const kind = thoughtTypes.has(type) ? 'thought' : type === 'refusal' ? 'refusal' : 'text'
  const words = kind === 'thought' ? (part.thinking ?? part.reasoning ?? part.summary ?? part.text) : part[kind]
  const text = wordsIn(words ?? part.text)
  if (text !== null && text !== '') return [{ kind, text }]
  if (typeof type === 'string' && media.test(type)) {
    throw unusable('The provider answered with media, which is not translated')
  }
  return []
}

/** The words of a member that holds a text, or a list of texts; null if it holds neither. */
export function wordsIn(value: unknown): string | null {
  if (!Array.isArray(value)) return isObject(value) ? wordsIn(value.text) : textOf(value)
  const words = value.flatMap((each) => wordsIn(each) ?? [])
  return words.length === 0 ? null : words.join('')
}

/** The text of all parts of one kind. */
export const textOfKind = (parts: readonly SpokenPart[], wanted: SpokenPart['kind']): string =>
  parts.flatMap(({ kind, text }) => (kind === wanted ? text : [])).join('')
