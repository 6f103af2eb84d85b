/**
 * Prepares a conversation in which a provider of another language took part for a provider of the caller's own
 * language. Bytes pass there, but thoughts of the other provider, which the gateway wrote into earlier answers with
 * its mark (`signature.ts`), would be refused: only the provider that signed a thought accepts it. So these blocks
 * are left out, as the translation leaves them out for every other provider; a body without the mark is not touched.
 * The caller keeps the blocks: they come back to their own provider with its next turn.
 *
 * Thoughts of a messages provider that a policy altered are also left out, for good: their new text has no signature
 * (`src/languages/reading/texts/signed-reasoning.ts`).
 *
 * A message that held nothing else is left out whole, since providers refuse an empty one. Blocks without a mark stay
 * unchanged, also beside marked ones.
 */

import { callSignatureIn, withoutThoughts } from '../chat/translation/reasoning.ts'
import { type Family, isTranslated, memberWith, type TranslatedFamily } from '../families.ts'
import { skipsCheck } from '../gemini/translation/write-contents.ts'
import { isGiven, isObject, type JsonObject, objectsOf } from '../reading/json-value.ts'
import { markBegins } from '../reading/texts/signed-reasoning.ts'
import { readMarkedSignature } from './signature.ts'

/** A member of the body and its replacement. */
export interface MemberWithoutMarks {
  member: string
  value: unknown
}

/** Whether these bytes may hold a mark: one search of the bytes. True for any body that contains the word. */
export const mayHoldMarks = (body: Uint8Array): boolean => Buffer.prototype.includes.call(body, marksBegin)

/** Bytes to search for, so that a search neither encodes a text nor creates a view. */
const marksBegin = Buffer.from(markBegins)

/** Null if nothing is marked. */
export function withoutForeignReasoning(family: Family, body: Readonly<JsonObject>): MemberWithoutMarks | null {
  const member = memberWith(family, 'conversation')
  if (member === undefined || !isTranslated(family)) return null
  const given = body[member]
  if (!Array.isArray(given)) return null
  const without = withoutMarksOf[family]
  let changed = false
  const value = given.flatMap((one: unknown) => {
    const kept = isObject(one) ? without(one) : one
    changed ||= kept !== one
    return kept === null ? [] : [kept]
  })
  return changed ? { member, value } : null
}

const isMarked = (text: unknown): boolean => typeof text === 'string' && readMarkedSignature(text) !== null

/** Each returns the message or item itself, the rest of it, or null if nothing is left. */
const withoutMarksOf: Readonly<Record<TranslatedFamily, (one: JsonObject) => JsonObject | null>> = {
  messages: (message) => {
    const { content } = message
    if (!Array.isArray(content)) return message
    const kept = content.filter(
      (block: unknown) => !isObject(block) || !(isMarked(block.signature) || isMarked(block.data)),
    )
    if (kept.length === content.length) return message
    return kept.length === 0 ? null : { ...message, content: kept }
  },
  responses: (item) => {
    if (item.type === 'reasoning') return isMarked(item.encrypted_content) ? null : item
    return item.type === 'function_call' ? withoutMarkedSignature(item) : item
  },
  chat: (message) => {
    const calls = Array.isArray(message.tool_calls) ? message.tool_calls : []
    const unsigned = calls.map((call: unknown) => (isObject(call) ? withoutMarkedSignature(call) : call))
    const isSigned = unsigned.some((call, index) => call !== calls[index])
    const kept = isSigned ? { ...message, tool_calls: unsigned } : message
    const details = objectsOf(message.reasoning_details)
    if (!details.some(({ signature, data }) => isMarked(signature) || isMarked(data))) return kept
    const spoken = withoutThoughts(kept)
    return calls.length > 0 || saysSomething(spoken.content) || saysSomething(spoken.refusal) ? spoken : null
  },
  gemini: (content) => {
    const { parts } = content
    if (!Array.isArray(parts)) return content
    const kept = parts.flatMap((part: unknown) => {
      if (!isObject(part) || !isMarked(part.thoughtSignature)) return [part]
      const { thoughtSignature: _marked, ...plain } = part
      // Models of the third generation refuse a call without a signature.
      if (isObject(part.functionCall)) return [{ ...plain, thoughtSignature: skipsCheck }]
      return part.thought === true ? [] : [plain]
    })
    if (kept.every((part, index) => part === parts[index]) && kept.length === parts.length) return content
    return kept.length === 0 ? null : { ...content, parts: kept }
  },
}

const withoutMarkedSignature = (call: JsonObject): JsonObject => {
  if (!isMarked(callSignatureIn(call))) return call
  const { extra_content: signed, ...plain } = call
  return plain
}

const saysSomething = (content: unknown): boolean => isGiven(content) && content !== '' && !Bun.deepEquals(content, [])
