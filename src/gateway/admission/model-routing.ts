/**
 * Resolves the models that may answer: the requested one, then its fallbacks in the order of the catalog record
 * (gateway/README.md). A listed model is served by its targets (upstream/targets). An unlisted model is served by a provider that accepts
 * unlisted models and that the token may use: the one that the name's prefix names (providers/presets/model-prefix.ts),
 * else the first one whose price table has the model, else the first one. Among those that are equal in this, a
 * provider that speaks the caller's language comes before one that needs translation.
 *
 * The requested model must be known and allowed. Unknown is 404 `model_not_found` (503 while its provider's key has not
 * arrived, 400 `model_family_unsupported` on a route that the model does not serve). The bindings of the token and each
 * access policy must allow it, else 403 `tokens.provider_not_allowed` or `tokens.model_not_allowed`. A fallback that
 * the gateway, the token or the family cannot use is skipped. Fallbacks of fallbacks are not followed, so a cycle of
 * records is harmless.
 */

import { Failure } from '../../failure.ts'
import type { CatalogModel, StateView } from '../../fleet/protocol/worker.ts'
import type { Family } from '../../languages/families.ts'
import { providerKinds } from '../../providers/kinds/index.ts'
import { isModelName, type ModelNames, namesInAnyCase } from '../../providers/model-name.ts'
import { namedProviders, namesBelowPresets } from '../../providers/presets/model-prefix.ts'
import type { PriceBook } from '../../providers/prices/price-book.ts'
import { type Provider, type ProviderKind, serves, servesListed } from '../../providers/provider.ts'
import { type GovernedToken, modelAllowed } from '../../tokens/governed-token.ts'
import type { AccessPolicy } from '../../usage/limits.ts'
import { accessPoliciesOf, forbiddenBy } from '../../usage/rate/rate-demands.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type ResolvedModel, required } from '../exchange.ts'
import { checkLive } from './authenticate.ts'

/** What the resolution needs of the gateway. */
type Resolving = Pick<Gateway, 'worker' | 'prices' | 'clock' | 'targets'>

export function resolveModel(exchange: Exchange, gateway: Resolving): Promise<void> | void {
  const { view } = gateway.worker
  const { model: id } = required(exchange.facts)
  const token = required(exchange.token)
  const { family } = exchange.dialect
  refuseAlternativeModels(exchange)
  const only = exchange.stored?.providerId ?? null
  const listed = view.model(id)
  if (listed === null && !gateway.prices.isLoaded && mayChoose(view)) return resolveLater(exchange, gateway)
  const model = listed === null ? findUnlisted(id, exchange, gateway) : resolveListed(view, listed, family, token, only)
  if (model === null) throw notFound(view, id, token)
  if (only !== null && model.provider.id !== only) throw storedElsewhere()
  if (!providerAllowed(token, model.provider)) throw new Failure('tokens.provider_not_allowed', { param: 'model' })
  if (!modelAllowed(token.modelFilter, model.id)) throw new Failure('tokens.model_not_allowed', { param: 'model' })
  if (view.provider(model.provider.id) === null) throw keyNotArrived()
  exchange.model = model
  exchange.paths = findPaths(exchange, gateway, model)
  if (only !== null) exchange.paths = exchange.paths.filter(({ provider }) => provider.id === only)
  if (token.accessPolicyIds.length > 0) filterByAccessPolicies(exchange, accessPoliciesOf(token, view.limits))
  exchange.model = exchange.paths[0] ?? model
}

/** The targets of the requested model in the order in which they are tried, then those of its fallbacks. */
function findPaths(
  { token, sessionId, dialect }: Exchange,
  { worker, targets }: Pick<Gateway, 'worker' | 'targets'>,
  model: ResolvedModel,
): readonly ResolvedModel[] {
  const { listed } = model
  if (listed === null || (listed.fallbacks.length === 0 && listed.targets === null)) return [model]
  const models = [model, ...findFallbacks(worker.view, model, dialect.family, required(token))]
  return models.flatMap((each) => {
    const records = each.listed?.targets
    if (!records) return each
    const usable = records.flatMap((record) => {
      const path = resolveTarget(worker.view, record, dialect.family)
      return path !== null && providerAllowed(required(token), path.provider) ? [path] : []
    })
    return targets.order(usable, sessionId)
  })
}

/** Loads the price table, which the choice between several providers needs. */
async function resolveLater(exchange: Exchange, gateway: Resolving): Promise<void> {
  await gateway.prices.load()
  checkLive(exchange, gateway)
  resolveModel(exchange, gateway)
}

/** Whether more than one provider serves models that the catalog does not list. */
const mayChoose = (view: StateView): boolean => servingUnlisted(view, null).length > 1

/**
 * Fields by which some providers choose a model other than the named one (OpenRouter, LiteLLM). Bindings, policies and
 * prices would then apply to a model that does not answer.
 */
const alternativeModelFields = ['models', 'fallbacks', 'preset']

function refuseAlternativeModels({ parsed }: Exchange): void {
  if (parsed === null) return
  for (const param of alternativeModelFields) {
    if (!Object.hasOwn(parsed, param)) continue
    const message = `${param} would let the provider choose another model: name one in model, and list fallbacks in the catalog`
    throw new Failure('invalid_parameter', { message, param })
  }
}

/** Keeps the paths that every access policy allows. Throws 403 when no target of the requested model is among them. */
function filterByAccessPolicies(exchange: Exchange, policies: readonly AccessPolicy[]): void {
  const model = required(exchange.model)
  const allowed = exchange.paths.filter((path) => policies.every((policy) => forbiddenBy(policy, path) === null))
  if (allowed[0]?.id !== model.id) {
    for (const policy of policies) {
      const forbidden = forbiddenBy(policy, model)
      if (forbidden !== null) throw new Failure(`tokens.${forbidden}_not_allowed`, { param: 'model' })
    }
    throw new Failure('tokens.provider_not_allowed', { param: 'model' })
  }
  exchange.paths = allowed
}

/** A model of a provider that was just created is not unknown: its key has not arrived yet. */
function notFound(view: StateView, id: string, token: GovernedToken): Failure {
  const listed = view.model(id)
  const provider = listed === null ? null : view.provider(listed.providerId)
  const kind = providerKinds.get(provider?.kind ?? '')
  if (listed !== null && !hasValidNames(listed, kind)) return new Failure('model_not_found', { param: 'model' })
  if (provider !== null && providerAllowed(token, provider) && modelAllowed(token.modelFilter, id)) {
    return unsupportedFamily()
  }
  if (listed === null || !view.closedProviders.includes(listed.providerId)) {
    return new Failure('model_not_found', { param: 'model' })
  }
  return keyNotArrived()
}

const unsupportedFamily = (): Failure => new Failure('model_family_unsupported', { param: 'model' })

function storedElsewhere(): Failure {
  const message = 'Another provider stores the response or conversation that this continues: use a model of that one'
  return new Failure('invalid_parameter', { message, param: 'model' })
}

/** A provider's model is never sent to another provider while its key is missing. */
function keyNotArrived(): Failure {
  const message = "The key of this model's provider has not reached this gateway yet: retry shortly"
  return new Failure('dependency_unavailable', { message, param: 'model', retryAfter: 1 })
}

/** What decides who serves a model that the catalog does not list. */
interface Choice {
  view: StateView
  prices: PriceBook
  /** Milliseconds since the epoch. */
  now: number
  family: Family
  token: GovernedToken
  /** The one provider that may serve it; null for all. */
  only: string | null
}

function findUnlisted(name: string, exchange: Exchange, { worker, prices, clock }: Resolving): ResolvedModel | null {
  if (!isModelName(name)) return null
  const { view } = worker
  const { family } = exchange.dialect
  const only = exchange.stored?.providerId ?? null
  const choice = { view, prices, now: clock.now(), family, token: required(exchange.token), only }
  const serving = servingUnlisted(view, only)
  const named = namedProviders(name, serving)
  if (named === null) return withAlias(bestOf(serving, choice, name), name)
  if (!named.providers.some((provider) => kindFor(provider, family, named.model) !== null)) throw unsupportedFamily()
  return withAlias(bestOf(named.providers, choice, named.model), name)
}

/** The first of the best of these providers; one that the token may not use only if it may use none. */
function bestOf(serving: readonly Provider[], choice: Choice, name: string): ResolvedModel | null {
  const { view, prices, now, family, token, only } = choice
  let best: ResolvedModel | null = null
  let bestRank = -1
  for (const provider of serving) {
    const kind = kindFor(provider, family, name)
    const names = kind === null ? null : namesOf(kind, name)
    if (kind === null || names === null) continue
    // An alias of a listed model resolves to its record, and so does a name with a prefix at the record's provider.
    const known = view.model(names.id)
    if (known !== null && (names.id !== name || known.providerId === provider.id)) {
      return resolveListed(view, known, family, token, only)
    }
    const rank = !providerAllowed(token, provider) ? 0 : kind.families.includes(family) ? 2 : 1
    const isPriced = rank > 0 && serving.length > 1 && prices.lists({ upstreamModel: names.id, provider }, now)
    if (rank + (isPriced ? 2 : 0) <= bestRank) continue
    bestRank = rank + (isPriced ? 2 : 0)
    best = { ...unlistedNames(names), upstreamModel: names.id, provider, kind, listed: null }
  }
  return best
}

/** A denial of a model holds under each of its names. */
const unlistedNames = ({ id, aliases }: ModelNames): ModelNames =>
  namesInAnyCase({ id, aliases: [...aliases, ...namesBelowPresets(id)] })

/** The model with the name that the caller wrote as an alias, also where that leads to a record. */
const withAlias = (model: ResolvedModel | null, name: string): ResolvedModel | null =>
  model === null || model.id === name || model.aliases.includes(name)
    ? model
    : { ...model, ...namesInAnyCase({ id: model.id, aliases: [...model.aliases, name] }) }

/** `only`: the one provider that may serve it; null for all. */
const servingUnlisted = (view: StateView, only: string | null): readonly Provider[] =>
  view.providers().filter(({ allowUnlistedModels, id }) => allowUnlistedModels && (only === null || id === only))

function findFallbacks(view: StateView, primary: ResolvedModel, family: Family, token: GovernedToken): ResolvedModel[] {
  const found: ResolvedModel[] = []
  const seen = new Set([primary.id])
  for (const id of primary.listed?.fallbacks ?? []) {
    if (seen.has(id) || !modelAllowed(token.modelFilter, id)) continue
    seen.add(id)
    const listed = view.model(id)
    const model = listed === null ? null : resolveListed(view, listed, family, token, null)
    if (model !== null && providerAllowed(token, model.provider)) found.push(model)
  }
  return found
}

/** Resolved records by family. An entry is valid while the record and its provider are the same objects. */
const resolvedRecords = new WeakMap<CatalogModel, Map<Family, ResolvedModel>>()

/** The first target that the token may use and that is at the provider `only`; without one, the first that resolves. */
function resolveListed(
  view: StateView,
  listed: CatalogModel,
  family: Family,
  token: GovernedToken,
  only: string | null,
): ResolvedModel | null {
  if (listed.targets === null) return resolveTarget(view, listed, family)
  let first: ResolvedModel | null = null
  for (const target of listed.targets) {
    const model = resolveTarget(view, target, family)
    if (model === null) continue
    if (providerAllowed(token, model.provider) && (only === null || only === model.provider.id)) return model
    first ??= model
  }
  return first
}

function resolveTarget(view: StateView, listed: CatalogModel, family: Family): ResolvedModel | null {
  const provider = view.provider(listed.providerId)
  if (provider === null) return null
  const known = resolvedRecords.get(listed)
  const last = known?.get(family)
  if (last?.provider === provider) return last
  const model = resolveRecord(provider, listed, family)
  if (model === null) return null
  if (known === undefined) resolvedRecords.set(listed, new Map([[family, model]]))
  else known.set(family, model)
  return model
}

function resolveRecord(provider: Provider, listed: CatalogModel, family: Family): ResolvedModel | null {
  const { id, upstreamModel, families } = listed
  const kind = kindFor(provider, family, upstreamModel)
  if (kind === null || !hasValidNames(listed, kind)) return null
  if (families !== null && !servesListed(kind, families, family)) return null
  const names = namesOf(kind, id)
  const aliases = names === null ? [] : [names.id, ...names.aliases].filter((name) => name !== id)
  return { id, aliases, upstreamModel, provider, kind, listed }
}

/** A record may be older than the rule for names. */
const hasValidNames = ({ id, upstreamModel }: CatalogModel, kind: ProviderKind | undefined): boolean =>
  isModelName(id) && isModelName(upstreamModel) && kind?.takesName?.(upstreamModel) !== false

const namesOf = (kind: ProviderKind, name: string): ModelNames | null =>
  kind.modelNames === undefined ? { id: name, aliases: [] } : kind.modelNames(name)

const providerAllowed = (token: GovernedToken, { name }: Provider): boolean =>
  token.provider === null || token.provider === name

/** Returns null when this version does not know the kind, or when it neither speaks nor translates the family. */
function kindFor({ kind: name }: Provider, family: Family, model: string): ProviderKind | null {
  const found = providerKinds.get(name)
  const kind = found?.forModel === undefined ? found : found.forModel(model)
  return kind === undefined || !serves(kind, family) ? null : kind
}
