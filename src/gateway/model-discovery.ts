/**
 * Lists the models that the token may use: those of the catalog, and those that providers offer which take models that
 * the catalog does not list (providers/catalog/offered-models.ts). No model is called, so there is no open record; the
 * outcome is recorded. Anthropic's and Google's clients get their own forms, all others one page that any client reads
 * (gateway/README.md).
 *
 * Codex asks with `client_version` and reads a list `models` of its own form (openai/codex, protocol/openai_models.rs).
 * Such an entry replaces all that Codex knows of a model, its instructions and tools included, which only its own
 * release has. So the list is empty: Codex then keeps its own catalog, and has no error.
 */
import { Failure } from '../failure.ts'
import type { CatalogModel, StateView } from '../fleet/protocol/worker.ts'
import { geminiModelsPath } from '../languages/gemini/request-form.ts'
import { timestamp } from '../lib/clock.ts'
import { pathOf } from '../lib/http/request-path.ts'
import { offeredId } from '../providers/catalog/offered-models.ts'
import { providerKinds } from '../providers/kinds/index.ts'
import type { OfferedModel, Provider, ProviderKind } from '../providers/provider.ts'
import { type GovernedToken, modelAllowed } from '../tokens/governed-token.ts'
import { accessPoliciesOf, forbiddenBy } from '../usage/rate/rate-demands.ts'
import { finishExchange } from './accounting/exchange-record.ts'
import { checkLive } from './admission/authenticate.ts'
import type { Gateway } from './context.ts'
import { type Exchange, required } from './exchange.ts'

export const modelsPath = '/v1/models'

export async function answerModels(exchange: Exchange, gateway: Gateway): Promise<void> {
  const id = modelInPath(exchange.request.url)
  const offers = await offersFor(required(exchange.token), gateway)
  checkLive(exchange, gateway)
  const listing: Listing = { view: gateway.worker.view, token: required(exchange.token), offers }
  const body = exchange.dialect.family === 'gemini' ? geminiBody(listing, id) : openBody(exchange, listing, id)
  await finishExchange(exchange, gateway, { verdict: 'allow', reason: 'ok', status: 200 })
  const headers: Record<string, string> = { 'x-request-id': exchange.requestId, 'x-service-verdict': 'ALLOW' }
  if (exchange.dialect.family === 'messages') headers['request-id'] = exchange.requestId
  exchange.answer = Response.json(body, { headers })
}

function openBody({ dialect, request }: Exchange, listing: Listing, id: string | null) {
  const shown = dialect.family === 'messages' ? anthropicModel : model
  if (id !== null) return shown(oneModel(listing, id))
  const isForCodex = new URL(request.url).searchParams.has('client_version')
  return { ...page(modelsOf(listing), shown), ...(isForCodex && { models: [] }) }
}

/** All models are on the first page of Google's form. */
const geminiBody = (listing: Listing, id: string | null) =>
  id === null ? { models: modelsOf(listing).map(geminiModel) } : geminiModel(oneModel(listing, id))

/** What one provider offers; `models` is null if its list is not known. */
interface Offer {
  provider: Provider
  kind: ProviderKind
  models: ReadonlyMap<string, OfferedModel> | null
}

interface Listing {
  view: StateView
  token: GovernedToken
  offers: readonly Offer[]
}

/** A model that the token may use. */
interface Entry {
  id: string
  displayName: string
  provider: string
  createdAt: number
}

/** The id after the path of the list, with slashes plain or as %2F; null for the whole list. */
function modelInPath(url: string): string | null {
  const path = pathOf(url)
  const list = path.startsWith(geminiModelsPath) ? geminiModelsPath : modelsPath
  if (path === list) return null
  try {
    return decodeURIComponent(path.slice(list.length + 1))
  } catch (thrown) {
    throw new Failure('model_not_found', { param: 'model', cause: thrown })
  }
}

/** Asks the providers that take unlisted models and that the token may use, all at once. */
function offersFor(token: GovernedToken, { worker, offeredModels }: Gateway): Promise<Offer[]> {
  const { view } = worker
  const asked = view.providers().flatMap((provider) => {
    const kind = providerKinds.get(provider.kind)
    const isUsable = provider.allowUnlistedModels && view.provider(provider.id) !== null && isBoundTo(token, provider)
    return isUsable && kind?.offered !== undefined ? [{ provider, kind }] : []
  })
  return Promise.all(
    asked.map(async ({ provider, kind }) => ({ provider, kind, models: await offeredModels.of(provider, kind) })),
  )
}

const isBoundTo = (token: GovernedToken, { name }: Provider): boolean =>
  token.provider === null || token.provider === name

function oneModel(listing: Listing, id: string): Entry {
  const { view, offers } = listing
  const listed = view.model(id)
  if (listed !== null) {
    const entry = listedEntry(listing, listed)
    if (entry === null) throw new Failure('model_not_found', { param: 'model' })
    return entry
  }
  for (const { provider, kind, models } of offers) {
    const name = offeredId(kind, id)
    const offered = name === null ? undefined : models?.get(name)
    const entry = name === null || offered === undefined ? null : entryOf(listing, name, provider, offered)
    if (entry !== null) return entry
  }
  throw new Failure('model_not_found', { param: 'model', ...unknownOffers(offers) })
}

/** A model may exist at a provider whose list is not known. */
function unknownOffers(offers: readonly Offer[]): { message?: string } {
  const unknown = offers.filter(({ models }) => models === null).map(({ provider }) => provider.name)
  if (unknown.length === 0) return {}
  return { message: `No such model is known here. These providers did not list their models: ${unknown.join(', ')}` }
}

/** The catalog's models, then those that providers offer beside it, each id once. */
function modelsOf(listing: Listing): Entry[] {
  const { view, offers } = listing
  const entries = view.models().flatMap((listed) => listedEntry(listing, listed) ?? [])
  const seen = new Set<string>()
  for (const { provider, models } of offers) {
    for (const [id, offered] of models ?? []) {
      if (seen.has(id) || view.model(id) !== null) continue
      const entry = entryOf(listing, id, provider, offered)
      if (entry === null) continue
      seen.add(id)
      entries.push(entry)
    }
  }
  return entries
}

/** By the first target that the token may use; null if there is none. */
function listedEntry(listing: Listing, listed: CatalogModel): Entry | null {
  for (const { providerId } of listed.targets ?? [listed]) {
    const entry = entryOf(listing, listed.id, listing.view.provider(providerId), listed)
    if (entry !== null) return entry
  }
  return null
}

/** Null when the token may not use the model or this gateway cannot serve it. */
function entryOf(
  { view, token }: Listing,
  id: string,
  provider: Provider | null,
  { createdAt, displayName }: { createdAt: number | null; displayName?: string | null },
): Entry | null {
  if (provider === null || !providerKinds.has(provider.kind)) return null
  if (!isBoundTo(token, provider) || !modelAllowed(token.modelFilter, id)) return null
  const policies = accessPoliciesOf(token, view.limits)
  if (policies.some((policy) => forbiddenBy(policy, { id, provider }) !== null)) return null
  return { id, displayName: displayName ?? id, provider: provider.name, createdAt: createdAt ?? 0 }
}

const anthropicModel = ({ id, displayName, createdAt }: Entry) => ({
  type: 'model',
  id,
  display_name: displayName,
  created_at: timestamp(createdAt),
})

const geminiModel = ({ id, displayName }: Entry) => ({
  name: `models/${id}`,
  displayName,
  supportedGenerationMethods: ['generateContent', 'countTokens'],
})

/** The members that either client reads. */
const model = (entry: Entry) => ({
  object: 'model',
  created: Math.floor(entry.createdAt / 1000),
  owned_by: entry.provider,
  ...anthropicModel(entry),
})

function page(entries: readonly Entry[], shown: typeof model | typeof anthropicModel) {
  return {
    ...(shown === model && { object: 'list' }),
    data: entries.map(shown),
    has_more: false,
    first_id: entries.at(0)?.id ?? null,
    last_id: entries.at(-1)?.id ?? null,
  }
}
