/**
 * Replaces the provider's ids in answers and frames by the sealed ones: the id of a response, of the one before it and
 * of its conversation. All other bytes stay. Ids of items stay too: a provider gives an item only together with its
 * response or conversation.
 */
import { isGiven, isObject, type JsonObject } from '../../languages/reading/json-value.ts'
import { type SseFrame, withData } from '../../lib/http/sse.ts'
import { editMembers, type JsonMembers, jsonMembers } from '../../lib/json/json-members.ts'
import type { Gateway } from '../context.ts'
import type { Exchange } from '../exchange.ts'
import { mayHoldIds, nameOf } from './object-names.ts'
import { isProviderId } from './sealed-id.ts'
import type { StoredCall, StoredKind } from './stored-state.ts'

/**
 * An answer that names another object than the one that was asked for, none where it must name one, or none that can be
 * followed.
 */
export class WrongId extends Error {
  constructor() {
    super('The provider answered with another id than the one that was asked for')
  }
}

/** A whole answer with sealed ids, the parsed `body` changed in place; null if nothing changes. Throws `WrongId`. */
export function sealAnswer(exchange: Exchange, gateway: Gateway, text: string, body: unknown): string | null {
  if (!mayHoldIds(exchange) || !isObject(body)) return null
  const edits = editsOf(exchange, gateway, body)
  if (edits.size === 0) return null
  for (const [name, json] of edits) body[name] = JSON.parse(json)
  return editMembers(text, jsonMembers(text, Number.POSITIVE_INFINITY), edits)
}

const memberWithIds = /"(?:response|response_id|error)"/
/** Such a member may be here. Inside of a text its quotes would be escaped; a name may have escapes itself. */
const mayBeIn = (data: string): boolean => memberWithIds.test(data) || data.includes('\\u')

/** A frame with sealed ids: those that repeat the response, name it or are an error have them. Throws `WrongId`. */
export function sealFrame(exchange: Exchange, gateway: Gateway, frame: SseFrame): SseFrame {
  const { data } = frame
  const isError = frame.event === 'error'
  if (data === null || !mayHoldIds(exchange) || !(isError || mayBeIn(data))) return frame
  const event = jsonMembers(data, Number.POSITIVE_INFINITY)
  const { type, error, response_id: named } = readMembers(data, event, ['type', 'error', 'response_id'])
  const edits = new Map<string, string>()
  const response = memberText(data, event, 'response')
  if (response?.trimStart().startsWith('{')) {
    const members = jsonMembers(response, Number.POSITIVE_INFINITY)
    const inside = editsOf(exchange, gateway, readMembers(response, members, heldByResponse))
    if (inside.size > 0) edits.set('response', editMembers(response, members, inside))
  }
  if (typeof named === 'string') edits.set('response_id', JSON.stringify(nameOf(exchange, gateway, 'resp', named)))
  const edited = edits.size === 0 ? data : editMembers(data, event, edits)
  const sealed = isError || type === 'error' || isGiven(error) ? sealErrorText(exchange, edited) : edited
  return sealed === data ? frame : { ...frame, data: sealed, bytes: withData(frame, sealed) }
}

const heldByResponse = ['id', 'status', 'previous_response_id', 'conversation', 'error'] as const

/** Where an id may begin and end in a text: not inside of a word. An escape of JSON ends a word. */
const begin = String.raw`(?:(?<![\w-])|(?<=\\(?:[bfnrt]|u[\da-fA-F]{4})))`
const end = String.raw`(?![\w-])`

/** The text of an error of the provider, in which it may repeat an id. */
export function sealErrorText({ stored }: Exchange, text: string): string {
  let sealed = text
  for (const [id, name] of stored?.names ?? []) {
    if (sealed.includes(id)) sealed = sealed.replace(new RegExp(begin + RegExp.escape(id) + end, 'g'), name)
  }
  return sealed
}

/** Whether a response with this status is not at its end. */
export const isRunning = (status: unknown): boolean => status === 'queued' || status === 'in_progress'

/** The value of the last member of this name, which parsers keep; null if there is none. */
function memberText(text: string, { names, spans }: JsonMembers, name: string): string | null {
  const span = spans[names.lastIndexOf(name)]
  return span === undefined ? null : text.slice(...span)
}

function readMembers(text: string, members: JsonMembers, names: readonly string[]): JsonObject {
  const read: JsonObject = {}
  for (const name of names) {
    const json = memberText(text, members, name)
    if (json !== null) read[name] = parsedOrNull(json)
  }
  return read
}

/** A frame that is not valid JSON is judged by the dialect. */
function parsedOrNull(json: string): unknown {
  try {
    return JSON.parse(json)
  } catch {
    return null
  }
}

/** The members to replace in a response or a conversation, as JSON texts. */
function editsOf(exchange: Exchange, gateway: Gateway, body: Readonly<JsonObject>): Map<string, string> {
  const edits = new Map<string, string>()
  const call = exchange.stored?.call ?? null
  // Whatever else answers is a response.
  const kind = call === null ? 'resp' : call.gives
  if (call !== null) checkAnswered(call, body)
  if (call?.editsOf !== undefined) return call.editsOf(body)
  if (kind === null) return edits
  const replace = (name: string, as: StoredKind, id: string, json = (sealed: string): unknown => sealed): void => {
    const sealed = nameOf(exchange, gateway, as, id)
    if (sealed !== id) edits.set(name, JSON.stringify(json(sealed)))
  }
  const { id, previous_response_id: previous, conversation, error } = body
  if (typeof id === 'string') {
    replace('id', kind, id)
    if (exchange.stored?.isBackground === true) {
      // It could not be followed.
      if (!isProviderId(id)) throw new WrongId()
      exchange.call.background = { id, hasEnded: !isRunning(body.status) }
    }
  }
  if (kind === 'conv') return edits
  if (typeof previous === 'string') replace('previous_response_id', 'resp', previous)
  if (typeof conversation === 'string') replace('conversation', 'conv', conversation)
  else if (isObject(conversation) && typeof conversation.id === 'string') {
    replace('conversation', 'conv', conversation.id, (sealed) => ({ ...conversation, id: sealed }))
  }
  if (isGiven(error)) {
    const text = JSON.stringify(error)
    const sealed = sealErrorText(exchange, text)
    if (sealed !== text) edits.set('error', sealed)
  }
  return edits
}

function checkAnswered({ gives, answersWith }: StoredCall, { id }: Readonly<JsonObject>): void {
  if (answersWith !== null && id !== answersWith) throw new WrongId()
  // A new conversation has an id.
  if (gives !== null && typeof id !== 'string') throw new WrongId()
}
