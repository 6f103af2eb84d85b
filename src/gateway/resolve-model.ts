/**
 * Which models may answer: the one that was asked for, then its fallbacks in the order of the catalog's record (contract
 * section 6). A model that the catalog lists is its provider's; one that it does not list is the first provider's that
 * takes such models and that the token may use, one that speaks the caller's language before one that is translated for.
 *
 * The model that was asked for has to be known and allowed: 404 `model_not_found` (503 while its provider's key is still
 * on the way, 400 `model_family_unsupported` where the route is another than it serves), and allowed by the token's
 * bindings and by each of its access policies: 403 `tokens.provider_not_allowed`, `tokens.model_not_allowed`. A fallback
 * that this gateway, the token or the family cannot use is passed over; the fallbacks of fallbacks are not followed, so
 * that a circle among records means nothing.
 */

import type { Family } from '../dialects/dialect.ts'
import { Failure } from '../failure.ts'
import type { CatalogModel, StateView } from '../fleet/lane.ts'
import { providerKinds } from '../providers/index.ts'
import { type Provider, serves, servesListed } from '../providers/provider.ts'
import { type GovernedToken, modelAllowed } from '../tokens/governed.ts'
import type { AccessPolicy } from '../usage/limits.ts'
import { accessPoliciesOf, forbiddenBy } from '../usage/rate-demands.ts'
import { type Exchange, type Gateway, given, type ResolvedModel } from './exchange.ts'

export function resolveModel(exchange: Exchange, { lane }: Pick<Gateway, 'lane'>): void {
  const { model: id } = given(exchange.facts)
  const token = given(exchange.token)
  const { family } = exchange.dialect
  const model = findModel(lane.view, id, family, token)
  if (model === null) throw notFound(lane.view, id, token)
  if (!providerAllowed(token, model.provider)) throw new Failure('tokens.provider_not_allowed', { param: 'model' })
  if (!modelAllowed(token.modelFilter, id)) throw new Failure('tokens.model_not_allowed', { param: 'model' })
  if (lane.view.provider(model.provider.id) === null) throw keyOnTheWay()
  exchange.model = model
  const fallbacks = model.listed?.fallbacks ?? []
  exchange.paths = fallbacks.length === 0 ? [model] : [model, ...findFallbacks(lane.view, model, family, token)]
  if (token.accessPolicyIds.length > 0) boundPaths(exchange, accessPoliciesOf(token, lane.view.limits))
}

/** Leaves the paths that every access policy allows. Throws 403 where the model that was asked for is not among them. */
function boundPaths(exchange: Exchange, policies: readonly AccessPolicy[]): void {
  for (const policy of policies) {
    const forbidden = forbiddenBy(policy, given(exchange.model))
    if (forbidden !== null) throw new Failure(`tokens.${forbidden}_not_allowed`, { param: 'model' })
  }
  exchange.paths = exchange.paths.filter((path) => policies.every((policy) => forbiddenBy(policy, path) === null))
}

/** A model of a provider that was made a moment ago is not unknown: its key is on the way. */
function notFound(view: StateView, id: string, token: GovernedToken): Failure {
  const listed = view.model(id)
  const provider = listed === null ? null : view.provider(listed.providerId)
  if (provider !== null && providerAllowed(token, provider) && modelAllowed(token.modelFilter, id)) {
    return new Failure('model_family_unsupported', { param: 'model' })
  }
  if (listed === null || !view.closedProviders.includes(listed.providerId)) {
    return new Failure('model_not_found', { param: 'model' })
  }
  return keyOnTheWay()
}

/** Nor does what is that provider's go to another one meanwhile. */
function keyOnTheWay(): Failure {
  const message = "The key of this model's provider has not reached this gateway yet: retry shortly"
  return new Failure('dependency_unavailable', { message, param: 'model', retryAfter: 1 })
}

/** Segments that would climb in the path of a provider that has the model's name in its address (RFC 3986 section 5.2.4). */
const climbing = new Set(['.', '..'])

function findModel(view: StateView, id: string, family: Family, token: GovernedToken): ResolvedModel | null {
  const listed = view.model(id)
  if (listed !== null) return resolveListed(view, listed, family)
  if (climbing.has(id)) return null
  let translated: ResolvedModel | null = null
  let forbidden: ResolvedModel | null = null
  for (const provider of view.providers()) {
    if (!provider.allowUnlistedModels) continue
    const model = resolved(id, id, provider, family, null)
    if (model === null) continue
    if (!providerAllowed(token, provider)) forbidden ??= model
    else if (model.kind.families.includes(family)) return model
    else translated ??= model
  }
  return translated ?? forbidden
}

function findFallbacks(view: StateView, primary: ResolvedModel, family: Family, token: GovernedToken): ResolvedModel[] {
  const found: ResolvedModel[] = []
  const seen = new Set([primary.id])
  for (const id of primary.listed?.fallbacks ?? []) {
    if (seen.has(id) || !modelAllowed(token.modelFilter, id)) continue
    seen.add(id)
    const listed = view.model(id)
    const model = listed === null ? null : resolveListed(view, listed, family)
    if (model !== null && providerAllowed(token, model.provider)) found.push(model)
  }
  return found
}

function resolveListed(view: StateView, listed: CatalogModel, family: Family): ResolvedModel | null {
  const model = resolved(listed.id, listed.upstreamModel, view.provider(listed.providerId), family, listed)
  return model !== null && listed.families !== null && !servesListed(model.kind, listed.families, family) ? null : model
}

const providerAllowed = (token: GovernedToken, { name }: Provider): boolean =>
  token.provider === null || token.provider === name

/** Null where the gateway may not use the provider, does not know its kind, or the kind neither speaks the family nor is translated for. */
function resolved(
  id: string,
  upstreamModel: string,
  provider: Provider | null,
  family: Family,
  listed: CatalogModel | null,
): ResolvedModel | null {
  const kind = provider === null ? undefined : providerKinds.get(provider.kind)
  if (provider === null || kind === undefined || !serves(kind, family)) return null
  return { id, upstreamModel, provider, kind, listed }
}
