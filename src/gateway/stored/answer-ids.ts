/**
 * Replaces the provider's ids in answers and frames by the sealed ones: the id of a response, of the one before it and
 * of its conversation. All other bytes stay. Ids of items stay too: a provider gives an item only together with its
 * response or conversation.
 */
import { isObject, type JsonObject } from '../../languages/reading/json-value.ts'
import { type SseFrame, withData } from '../../lib/http/sse.ts'
import { editMembers, type JsonMembers, jsonMembers } from '../../lib/json/json-members.ts'
import type { Gateway } from '../context.ts'
import type { Exchange } from '../exchange.ts'
import { nameFor, sealsIds } from './object-names.ts'
import { isProviderId } from './sealed-id.ts'
import type { StoredCall, StoredKind } from './stored-state.ts'

/** An answer that names another object than the one that was asked for, none where it must name one, or none that can be followed. */
export class WrongId extends Error {
  constructor() {
    super('The provider answered with another id than the one that was asked for')
  }
}

/** A whole answer with sealed ids, the parsed `body` changed in place; null if nothing changes. Throws `WrongId`. */
export function sealAnswer(exchange: Exchange, gateway: Gateway, text: string, body: unknown): string | null {
  if (!sealsIds(exchange) || !isObject(body)) return null
  const edits = editsOf(exchange, gateway, body)
  if (edits.size === 0) return null
  for (const [name, json] of edits) body[name] = JSON.parse(json)
  return editMembers(text, jsonMembers(text, Number.POSITIVE_INFINITY), edits)
}

/** A member with this name begins here. Inside of a text its quotes would be escaped. */
const holdsResponse = /"response"\s*:/

/** A frame with sealed ids: those that repeat the response have them. Throws `WrongId`. */
export function sealFrame(exchange: Exchange, gateway: Gateway, frame: SseFrame): SseFrame {
  const { data } = frame
  if (data === null || !sealsIds(exchange) || !holdsResponse.test(data)) return frame
  const event = jsonMembers(data, Number.POSITIVE_INFINITY)
  const response = memberText(data, event, 'response')
  if (response === null || !response.trimStart().startsWith('{')) return frame
  const members = jsonMembers(response, Number.POSITIVE_INFINITY)
  const read: JsonObject = {}
  for (const name of ['id', 'status', 'previous_response_id', 'conversation']) {
    const json = memberText(response, members, name)
    if (json !== null) read[name] = parsedOrNull(json)
  }
  const edits = editsOf(exchange, gateway, read)
  if (edits.size === 0) return frame
  const sealed = editMembers(data, event, new Map([['response', editMembers(response, members, edits)]]))
  return { ...frame, data: sealed, bytes: withData(frame, sealed) }
}

/** The text of an error of the provider, in which it may repeat an id. */
export function sealErrorText({ stored }: Exchange, text: string): string {
  let sealed = text
  for (const [id, name] of stored?.names ?? []) sealed = sealed.replaceAll(id, name)
  return sealed
}

/** Whether a response with this status is not at its end. */
export const isRunning = (status: unknown): boolean => status === 'queued' || status === 'in_progress'

/** The value of the last member of this name, which parsers keep; null if there is none. */
function memberText(text: string, { names, spans }: JsonMembers, name: string): string | null {
  const span = spans[names.lastIndexOf(name)]
  return span === undefined ? null : text.slice(...span)
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
  if (kind === null) return edits
  // An id of another form stays as it is: it could not be a part of a path when it comes back.
  const nameOf = (as: StoredKind, id: string): string => (isProviderId(id) ? nameFor(exchange, gateway, as, id) : id)
  const { id, previous_response_id: previous, conversation } = body
  if (typeof id === 'string') {
    edits.set('id', JSON.stringify(nameOf(kind, id)))
    if (exchange.stored?.isBackground === true) {
      // It could not be followed.
      if (!isProviderId(id)) throw new WrongId()
      exchange.call.background = { id, hasEnded: !isRunning(body.status) }
    }
  }
  if (kind === 'conv') return edits
  if (typeof previous === 'string') edits.set('previous_response_id', JSON.stringify(nameOf('resp', previous)))
  if (typeof conversation === 'string') edits.set('conversation', JSON.stringify(nameOf('conv', conversation)))
  else if (isObject(conversation) && typeof conversation.id === 'string') {
    edits.set('conversation', JSON.stringify({ ...conversation, id: nameOf('conv', conversation.id) }))
  }
  return edits
}

function checkAnswered({ gives, answersWith }: StoredCall, { id }: Readonly<JsonObject>): void {
  if (answersWith !== null && id !== answersWith) throw new WrongId()
  // A new conversation has an id.
  if (gives !== null && typeof id !== 'string') throw new WrongId()
}
