/** Which answers have sealed ids, and the id that a caller gets for a provider's id. */
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { languageOf } from '../request/translate.ts'
import { sealId } from './sealed-id.ts'
import { newStoredState, type StoredKind } from './stored-state.ts'

/** Whether ids in the answer are sealed: the provider speaks the language itself and stores the response. */
export function sealsIds(exchange: Exchange): boolean {
  const { dialect, model, parsed, stored } = exchange
  if (dialect.family !== 'responses' || model === null || model.kind.storesResponses !== true) return false
  if (dialect.readsStored) return true
  if (dialect.endpoint !== undefined || languageOf(exchange, model) !== null) return false
  return parsed?.store !== false || stored?.isBackground === true
}

/** The id that the caller gets for a provider's id. */
export function nameFor(exchange: Exchange, gateway: Gateway, kind: StoredKind, id: string): string {
  exchange.stored ??= newStoredState()
  const known = exchange.stored.names.get(id)
  if (known !== undefined) return known
  const { provider, id: model } = required(exchange.model)
  const place = { providerId: provider.id, model: kind === 'conv' ? '' : model, id }
  const name = sealId(kind, place, required(exchange.token), gateway)
  exchange.stored.names.set(id, name)
  return name
}
