/**
 * The stages of a request to a model that names what a provider stores: `previous_response_id` and `conversation` are
 * opened and replaced by the provider's ids, and only that provider may answer. `background` needs such a provider too.
 */
import { Failure } from '../../failure.ts'
import { isGiven, isObject, textOf } from '../../languages/reading/json-value.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, keepPaths, required } from '../exchange.ts'
import { languageOf } from '../request/translate.ts'
import { admitToBackground } from './background.ts'
import { openId } from './sealed-id.ts'
import { newStoredState, type StoredKind } from './stored-state.ts'

/** Opens the ids. Throws `previous_response_not_found` or `stored_object_not_found` for what is not the owner's. */
export function openReferences(exchange: Exchange, gateway: Gateway): void {
  const { dialect, parsed } = exchange
  if (dialect.family !== 'responses' || parsed === null) return
  const { previous_response_id: previous, conversation } = parsed
  if (isGiven(previous)) {
    const id = open(exchange, gateway, 'resp', previous)
    if (id === null) throw new Failure('previous_response_not_found', { param: 'previous_response_id' })
    exchange.edits.set('previous_response_id', JSON.stringify(id))
  }
  if (isGiven(conversation)) {
    const id = open(exchange, gateway, 'conv', isObject(conversation) ? conversation.id : conversation)
    if (id === null) throw new Failure('stored_object_not_found', { param: 'conversation' })
    exchange.edits.set('conversation', JSON.stringify(isObject(conversation) ? { ...conversation, id } : id))
  }
}

/** The provider's id; null if the value is no id that was sealed for this owner. */
function open(exchange: Exchange, gateway: Gateway, kind: StoredKind, value: unknown): string | null {
  const name = textOf(value)
  const place = name === null ? null : openId(kind, name, required(exchange.token), gateway)
  if (name === null || place === null) return null
  exchange.stored ??= newStoredState()
  const { stored } = exchange
  if (stored.providerId !== null && stored.providerId !== place.providerId) {
    const message = 'previous_response_id and conversation are stored by two providers: send one of them'
    throw new Failure('invalid_parameter', { message, param: 'conversation' })
  }
  stored.providerId = place.providerId
  stored.names.set(place.id, name)
  return place.id
}

/**
 * Keeps the paths that can answer what needs a provider that stores. Throws `stored_responses_unsupported` when the
 * requested model's provider is none.
 */
export function requireStoring(exchange: Exchange, gateway: Gateway): void {
  const { dialect, parsed } = exchange
  const isBackground = dialect.family === 'responses' && parsed?.background === true
  if (dialect.endpoint === undefined && !isBackground) return
  if (isBackground) admitToBackground(exchange, gateway)
  keepPaths(exchange, (path) => {
    if (path.kind.storesResponses === true && languageOf(exchange, path) === null) return
    throw new Failure('stored_responses_unsupported', { param: 'model' })
  })
}
