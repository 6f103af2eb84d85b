/** Which answers may hold ids that are replaced, and the id that a caller gets for a provider's id. */
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { languageOf } from '../request/translate.ts'
import { isProviderId, sealId } from './sealed-id.ts'
import { newStoredState, type StoredKind } from './stored-state.ts'

/** Whether the answer may hold ids that are replaced. */
export const mayHoldIds = (exchange: Exchange): boolean =>
  sealsIds(exchange) ||
  (exchange.stored !== null && (exchange.stored.names.size > 0 || exchange.stored.call?.editsOf !== undefined))

/** Whether new ids in the answer are sealed: the provider speaks the language itself and stores the response. */
function sealsIds(exchange: Exchange): boolean {
  const { dialect, model, parsed, stored } = exchange
  if (dialect.family !== 'responses' || model === null || model.kind.storesResponses !== true) return false
  if (dialect.readsStored) return true
  if (dialect.endpoint !== undefined || languageOf(exchange, model) !== null) return false
  return parsed?.store !== false || stored?.isBackground === true
}

/**
 * The id that the caller gets for a provider's id. What the request itself named is always replaced. An id of another
 * form stays as it is: it could not be a part of a path when it comes back.
 */
export function nameOf(exchange: Exchange, gateway: Gateway, kind: StoredKind, id: string): string {
  const known = exchange.stored?.names.get(id)
  if (known !== undefined) return known
  if (!isProviderId(id) || !sealsIds(exchange)) return id
  const { provider, id: model } = required(exchange.model)
  const place = { providerId: provider.id, model: kind === 'conv' ? '' : model, id, more: [] }
  const name = sealId(kind, place, required(exchange.token), gateway)
  exchange.stored ??= newStoredState()
  exchange.stored.names.set(id, name)
  return name
}
