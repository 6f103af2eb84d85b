/**
 * Thoughts in chat, which the language itself does not have. Their text is in `reasoning_content`, where clients read
 * it. Data that must come back with a later turn is in `reasoning_details` beside it: an array of `{type:
 * "reasoning.text", text, signature}` and, for thinking that only its provider can read, `{type:
 * "reasoning.encrypted", data}`. Those from providers of other languages are marked
 * (`languages/translation/signature.ts`). A client that sends messages back unchanged returns them.
 */

import type { CallSignature, FieldPath, NeutralThought } from '../../neutral.ts'
import { isGiven, isObject, type JsonObject, objectsOf, textOf } from '../../reading/json-value.ts'
import { markSignature, type Opaque, readMarkedSignature, writtenOpaque } from '../../translation/signature.ts'
import { malformed } from '../../translation/translation-errors.ts'
import { membersSpeaking } from '../members.ts'
import { wordsIn } from './spoken-parts.ts'

const thoughtNames = membersSpeaking('reasoning')

/** The member in which the gateway writes thoughts. */
export const [thoughtMember = ''] = thoughtNames

/** The thought that a delta gives as plain text, in the first member that holds a text. */
export function plainThought(delta: JsonObject): string | null {
  for (const name of thoughtNames) {
    const text = wordsIn(delta[name])
    if (text !== null) return text
  }
  return null
}

/** A message without the thoughts that the gateway wrote into it. */
export function withoutThoughts(message: JsonObject): JsonObject {
  const { [thoughtMember]: plain, reasoning_details: details, ...rest } = message
  return rest
}

/** How to read the opaque part of a thought: from a provider, or brought back by a caller. */
type ReadOpaque = (text: string | null, own: 'chat', redacted: boolean) => Opaque

/** The thoughts of a message, in a request or an answer. */
export function readThoughts(message: JsonObject, at: FieldPath, read: ReadOpaque): NeutralThought[] {
  const { reasoning_details: details } = message
  if (isGiven(details) && !Array.isArray(details)) throw malformed(`${at}.reasoning_details`, 'an array')
  const thoughts = joined(objectsOf(details)).flatMap(({ detail, position }) =>
    thoughtOf(detail, `${at}.reasoning_details.${position}`, read),
  )
  if (thoughts.length > 0) return thoughts
  const content = thoughtNames.find((name) => isGiven(message[name])) ?? thoughtMember
  const text = wordsIn(message[content])
  if (text === null || text === '') return []
  return [{ kind: 'thought', text, ...read(null, 'chat', false), at: `${at}.${content}` }]
}

interface PlacedDetail {
  detail: JsonObject
  position: number
}

/**
 * Clients that collect a stream may keep the pieces of one thought separate. Consecutive pieces with the same `index`
 * and type are one thought; the last signature among them is its signature.
 */
function joined(details: readonly JsonObject[]): PlacedDetail[] {
  const whole: PlacedDetail[] = []
  for (const [position, detail] of details.entries()) {
    const before = whole.at(-1)
    if (before !== undefined && isContinued(before.detail, detail)) before.detail = withPiece(before.detail, detail)
    else whole.push({ detail, position })
  }
  return whole
}

const isContinued = (before: JsonObject, detail: JsonObject): boolean =>
  Number.isSafeInteger(detail.index) && detail.index === before.index && !isHidden(detail) && !isHidden(before)

const isHidden = ({ type }: JsonObject): boolean => type === 'reasoning.encrypted'

const textOfDetail = ({ text, summary }: JsonObject): string | null => textOf(text) ?? textOf(summary)

function withPiece(detail: JsonObject, piece: JsonObject): JsonObject {
  const text = (textOfDetail(detail) ?? '') + (textOfDetail(piece) ?? '')
  return { ...detail, text, signature: textOf(piece.signature) || detail.signature }
}

function thoughtOf(detail: JsonObject, at: FieldPath, read: ReadOpaque): NeutralThought[] {
  const data = textOf(detail.data)
  if (isHidden(detail)) {
    return data === null ? [] : [{ kind: 'thought', text: '', ...read(data, 'chat', true), at }]
  }
  const [text, signature] = [textOfDetail(detail), textOf(detail.signature)]
  if (text === null && signature === null) return []
  return [{ kind: 'thought', text: text ?? '', ...read(signature, 'chat', false), at }]
}

/** The members that hold these thoughts: `reasoning_details` too if one of them must come back unchanged. */
export function thoughtMembers(thoughts: readonly NeutralThought[]): JsonObject {
  const text = thoughts.flatMap((thought) => thought.text || []).join(betweenThoughts)
  const mustComeBack = thoughts.some((thought) => writtenOpaque(thought, 'chat') !== null)
  return {
    ...(text !== '' && { [thoughtMember]: text }),
    ...(mustComeBack && { reasoning_details: thoughts.map((thought) => detailOf(thought.text, thought)) }),
  }
}

/** The separator between thoughts that are joined into one text. */
export const betweenThoughts = '\n\n'

export function detailOf(text: string, opaque: Opaque): JsonObject {
  const written = writtenOpaque(opaque, 'chat')
  if (opaque.redacted !== null) return { type: 'reasoning.encrypted', data: written }
  return { type: 'reasoning.text', text, ...(written !== null && { signature: written }) }
}

/** The signature of a call for a caller, marked, in the place where Google's providers of this language put theirs. */
export const callSignatureMember = ({ text, language }: CallSignature): JsonObject => {
  const marked = markSignature({ language, callId: null, redacted: false, signature: text })
  return { extra_content: { google: { thought_signature: marked } } }
}

/** The signature that a provider or a caller put there, unchanged. */
export function callSignatureIn({ extra_content: extra }: JsonObject): string | null {
  return isObject(extra) && isObject(extra.google) ? textOf(extra.google.thought_signature) : null
}

/** The signature that a caller brought back: without a mark it is Gemini's own, which both of its languages take. */
export function broughtCallSignature(call: JsonObject): { signature?: CallSignature } {
  const text = callSignatureIn(call)
  if (text === null) return {}
  const marked = readMarkedSignature(text)
  return {
    signature: marked === null ? { text, language: 'gemini' } : { text: marked.signature, language: marked.language },
  }
}
