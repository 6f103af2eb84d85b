/**
 * Which provider answers for the model that was asked for: the one the catalog names, else the first provider that
 * serves models the catalog does not list; and whether the token may use both (contract section 6).
 */

import type { Family } from '../dialects/dialect.ts'
import { Failure } from '../failure.ts'
import type { CatalogModel, StateView } from '../fleet/lane.ts'
import { providerKinds } from '../providers/index.ts'
import type { Provider } from '../providers/provider.ts'
import { modelAllowed } from '../tokens/governed.ts'
import { type Exchange, type Gateway, given, type ResolvedModel } from './exchange.ts'

export function resolveModel(exchange: Exchange, { lane }: Gateway): void {
  const { model: id } = given(exchange.facts)
  const token = given(exchange.token)
  const model = findModel(lane.view, id, exchange.dialect.family)
  if (model === null) throw new Failure('model_not_found', { param: 'model' })
  if (token.provider !== null && token.provider !== model.provider.name) {
    throw new Failure('tokens.provider_not_allowed', { param: 'model' })
  }
  if (!modelAllowed(token.modelFilter, id)) throw new Failure('tokens.model_not_allowed', { param: 'model' })
  exchange.model = model
  exchange.paths = [model]
}

function findModel(view: StateView, id: string, family: Family): ResolvedModel | null {
  const listed = view.model(id)
  if (listed !== null) return resolved(id, listed.upstreamModel, view.provider(listed.providerId), family, listed)
  for (const provider of view.providers()) {
    const model = provider.allowUnlistedModels ? resolved(id, id, provider, family) : null
    if (model !== null) return model
  }
  return null
}

/** Null where the gateway may not use the provider, does not know its kind, or the kind does not serve the family. */
function resolved(
  id: string,
  upstreamModel: string,
  provider: Provider | null,
  family: Family,
  listed: CatalogModel | null = null,
): ResolvedModel | null {
  const kind = provider === null ? undefined : providerKinds.get(provider.kind)
  if (provider === null || kind === undefined || !kind.families.includes(family)) return null
  return { id, upstreamModel, provider, kind, listed }
}
