/**
 * Resolves the models that may answer: the requested one, then its fallbacks in the order of the catalog record
 * (gateway/README.md). A listed model is served by its targets (upstream/targets). An unlisted model is served by the first provider that
 * accepts unlisted models and that the token may use; a provider that speaks the caller's language comes before one
 * that needs translation.
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
import { type Provider, type ProviderKind, serves, servesListed } from '../../providers/provider.ts'
import { type GovernedToken, modelAllowed } from '../../tokens/governed-token.ts'
import type { AccessPolicy } from '../../usage/limits.ts'
import { accessPoliciesOf, forbiddenBy } from '../../usage/rate/rate-demands.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type ResolvedModel, required } from '../exchange.ts'

export function resolveModel(exchange: Exchange, gateway: Pick<Gateway, 'worker' | 'targets'>): void {
  const { worker } = gateway
  const { model: id } = required(exchange.facts)
  const token = required(exchange.token)
  const { family } = exchange.dialect
  refuseAlternativeModels(exchange)
  const only = exchange.stored?.providerId ?? null
  const model = findModel(worker.view, id, family, token, only)
  if (model === null) throw notFound(worker.view, id, token)
  if (only !== null && model.provider.id !== only) throw storedElsewhere()
  if (!providerAllowed(token, model.provider)) throw new Failure('tokens.provider_not_allowed', { param: 'model' })
  if (!modelAllowed(token.modelFilter, model.id)) throw new Failure('tokens.model_not_allowed', { param: 'model' })
  if (worker.view.provider(model.provider.id) === null) throw keyNotArrived()
  exchange.model = model
  exchange.paths = findPaths(exchange, gateway, model)
  if (only !== null) exchange.paths = exchange.paths.filter(({ provider }) => provider.id === only)
  if (token.accessPolicyIds.length > 0) filterByAccessPolicies(exchange, accessPoliciesOf(token, worker.view.limits))
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
    return new Failure('model_family_unsupported', { param: 'model' })
  }
  if (listed === null || !view.closedProviders.includes(listed.providerId)) {
    return new Failure('model_not_found', { param: 'model' })
  }
  return keyNotArrived()
}

function storedElsewhere(): Failure {
  const message = 'Another provider stores the response or conversation that this continues: use a model of that one'
  return new Failure('invalid_parameter', { message, param: 'model' })
}

/** A provider's model is never sent to another provider while its key is missing. */
function keyNotArrived(): Failure {
  const message = "The key of this model's provider has not reached this gateway yet: retry shortly"
  return new Failure('dependency_unavailable', { message, param: 'model', retryAfter: 1 })
}

/** `only`: the one provider that may serve an unlisted model; null for all. */
function findModel(
  view: StateView,
  name: string,
  family: Family,
  token: GovernedToken,
  only: string | null,
): ResolvedModel | null {
  const listed = view.model(name)
  if (listed !== null) return resolveListed(view, listed, family, token, only)
  if (!isModelName(name)) return null
  let translated: ResolvedModel | null = null
  let forbidden: ResolvedModel | null = null
  for (const provider of view.providers()) {
    if (!provider.allowUnlistedModels || (only !== null && provider.id !== only)) continue
    const kind = kindFor(provider, family)
    const names = kind === null ? null : namesOf(kind, name)
    if (kind === null || names === null) continue
    // An alias of a listed model resolves to its record.
    const known = names.id === name ? null : view.model(names.id)
    if (known !== null) return resolveListed(view, known, family, token, only)
    const model: ResolvedModel = { ...namesInAnyCase(names), upstreamModel: names.id, provider, kind, listed: null }
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
  const kind = kindFor(provider, family)
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
function kindFor({ kind: name }: Provider, family: Family): ProviderKind | null {
  const kind = providerKinds.get(name)
  return kind === undefined || !serves(kind, family) ? null : kind
}
