/**
 * Thoughts in chat, which the language itself does not have. Their text stands where its clients read it,
 * `reasoning_content`. What must come back with a later turn stands beside it in `reasoning_details`, an array of
 * `{type: "reasoning.text", text, signature, format}` and, for thinking that only its provider can read,
 * `{type: "reasoning.encrypted", data, format}`; `format` is the language of the provider that signed it (`messages`).
 * A client that sends its messages back as it got them brings them back.
 */
import { isGiven, type JsonObject, objectsOf, textOf } from '../dialects/json-value.ts'
import { malformed } from './members.ts'
import type { FieldPath, LanguageName, NeutralThought } from './neutral.ts'

const languages: readonly LanguageName[] = ['chat', 'responses', 'messages', 'gemini', 'converse']

/** The thoughts of a message, a request's or an answer's. */
export function readThoughts(message: JsonObject, at: FieldPath): NeutralThought[] {
  const { reasoning_details: details } = message
  if (isGiven(details) && !Array.isArray(details)) throw malformed(`${at}.reasoning_details`, 'an array')
  const read = objectsOf(details).map((detail, index) => thoughtOf(detail, `${at}.reasoning_details.${index}`))
  const signed = read.filter((thought) => thought !== null)
  if (signed.length > 0) return signed
  const content = isGiven(message.reasoning_content) ? 'reasoning_content' : 'reasoning'
  const text = textOf(message[content])
  if (text === null || text === '') return []
  return [{ kind: 'thought', text, signature: null, redacted: null, language: null, at: `${at}.${content}` }]
}

function thoughtOf(detail: JsonObject, at: FieldPath): NeutralThought | null {
  const language = languages.find((name) => name === detail.format) ?? null
  if (detail.type === 'reasoning.encrypted') {
    const redacted = textOf(detail.data)
    return redacted === null ? null : { kind: 'thought', text: '', signature: null, redacted, language, at }
  }
  const text = textOf(detail.text) ?? textOf(detail.summary)
  const signature = textOf(detail.signature)
  if (text === null && signature === null) return null
  return { kind: 'thought', text: text ?? '', signature, redacted: null, language, at }
}

/** `reasoning_content` of these thoughts, and `reasoning_details` where one of them must come back. */
export function thoughtMembers(thoughts: readonly NeutralThought[]): JsonObject {
  const text = thoughts.flatMap((thought) => thought.text || []).join(betweenThoughts)
  const opaque = thoughts.some(({ signature, redacted }) => signature !== null || redacted !== null)
  return {
    ...(text !== '' && { reasoning_content: text }),
    ...(opaque && { reasoning_details: thoughts.map(detailOf) }),
  }
}

/** What stands between thoughts where they are one text. */
export const betweenThoughts = '\n\n'

export function detailOf({ text, signature, redacted, language }: Omit<NeutralThought, 'at' | 'kind'>): JsonObject {
  const format = language === null ? {} : { format: language }
  if (redacted !== null) return { type: 'reasoning.encrypted', data: redacted, ...format }
  return { type: 'reasoning.text', text, ...(signature !== null && { signature }), ...format }
}
