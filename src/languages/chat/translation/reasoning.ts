/**
 * Thoughts in chat, which the language itself does not have. Their text stands where its clients read it,
 * `reasoning_content`. What must come back with a later turn stands beside it in `reasoning_details`, an array of
 * `{type: "reasoning.text", text, signature}` and, for thinking that only its provider can read,
 * `{type: "reasoning.encrypted", data}`; those of providers of other languages are marked (`languages/translation/signature.ts`). A client that
 * sends its messages back as it got them brings them back.
 */

import type { CallSignature, FieldPath, NeutralThought } from '../../neutral.ts'
import { isGiven, isObject, type JsonObject, objectsOf, textOf } from '../../reading/json-value.ts'
import { markSignature, type Opaque, readMarkedSignature, writtenOpaque } from '../../translation/signature.ts'
import { malformed } from '../../translation/translation-errors.ts'
import { membersSpeaking } from '../members.ts'

const thoughtNames = membersSpeaking('reasoning')

/** The member in which the gateway writes thoughts. */
export const [thoughtMember = ''] = thoughtNames

/** The thought that a delta says in plain words, in the first member that holds a text. */
export function plainThought(delta: JsonObject): string | null {
  for (const name of thoughtNames) {
    const text = textOf(delta[name])
    if (text !== null) return text
  }
  return null
}

/** A message without the thoughts that the gateway wrote into it. */
export function withoutThoughts(message: JsonObject): JsonObject {
  const { [thoughtMember]: plain, reasoning_details: details, ...rest } = message
  return rest
}

/** How the opaque part of a thought is taken: a provider's own, or one that a caller brought back. */
type ReadOpaque = (text: string | null, own: 'chat', redacted: boolean) => Opaque

/** The thoughts of a message, a request's or an answer's. */
export function readThoughts(message: JsonObject, at: FieldPath, read: ReadOpaque): NeutralThought[] {
  const { reasoning_details: details } = message
  if (isGiven(details) && !Array.isArray(details)) throw malformed(`${at}.reasoning_details`, 'an array')
  const thoughts = joined(objectsOf(details)).flatMap(({ detail, position }) =>
    thoughtOf(detail, `${at}.reasoning_details.${position}`, read),
  )
  if (thoughts.length > 0) return thoughts
  const content = thoughtNames.find((name) => isGiven(message[name])) ?? thoughtMember
  const text = textOf(message[content])
  if (text === null || text === '') return []
  return [{ kind: 'thought', text, ...read(null, 'chat', false), at: `${at}.${content}` }]
}

interface PlacedDetail {
  detail: JsonObject
  position: number
}

/**
 * Clients that gather a stream may keep the pieces of one thought: those that follow each other with the same `index` and
 * type are one, signed by the last that has a signature.
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

/** The members that say these thoughts: `reasoning_details` too where one of them must come back as it is. */
export function thoughtMembers(thoughts: readonly NeutralThought[]): JsonObject {
  const text = thoughts.flatMap((thought) => thought.text || []).join(betweenThoughts)
  const mustComeBack = thoughts.some((thought) => writtenOpaque(thought, 'chat') !== null)
  return {
    ...(text !== '' && { [thoughtMember]: text }),
    ...(mustComeBack && { reasoning_details: thoughts.map((thought) => detailOf(thought.text, thought)) }),
  }
}

/** What stands between thoughts where they are one text. */
export const betweenThoughts = '\n\n'

export function detailOf(text: string, opaque: Opaque): JsonObject {
  const written = writtenOpaque(opaque, 'chat')
  if (opaque.redacted !== null) return { type: 'reasoning.encrypted', data: written }
  return { type: 'reasoning.text', text, ...(written !== null && { signature: written }) }
}

/** The signature of a call for a caller, marked, where Google's providers of this language put theirs. */
export const callSignatureMember = ({ text, language }: CallSignature): JsonObject => {
  const marked = markSignature({ language, callId: null, redacted: false, signature: text })
  return { extra_content: { google: { thought_signature: marked } } }
}

/** What a provider or a caller put there, as it stands. */
export function callSignatureIn({ extra_content: extra }: JsonObject): string | null {
  return isObject(extra) && isObject(extra.google) ? textOf(extra.google.thought_signature) : null
}

/** What a caller brought back there: without a mark it is Gemini's own, which both of its languages take. */
export function broughtCallSignature(call: JsonObject): { signature?: CallSignature } {
  const text = callSignatureIn(call)
  if (text === null) return {}
  const marked = readMarkedSignature(text)
  return {
    signature: marked === null ? { text, language: 'gemini' } : { text: marked.signature, language: marked.language },
  }
}
