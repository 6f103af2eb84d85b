/**
 * The stages of a call for a stored object: reads its path and query, opens the id, and finds the provider that has the
 * object. A conversation is made by the provider that serves `model`, a member of the gateway's own, and without it by
 * the first provider of the catalog that stores responses and that the token may use.
 */
import { Failure } from '../../failure.ts'
import type { CatalogModel } from '../../fleet/protocol/worker.ts'
import { textOf } from '../../languages/reading/json-value.ts'
import { pathOf } from '../../lib/http/request-path.ts'
import { providerKinds } from '../../providers/kinds/index.ts'
import type { Provider, ProviderKind } from '../../providers/provider.ts'
import { modelAllowed } from '../../tokens/governed-token.ts'
import { accessPoliciesOf, forbiddenBy } from '../../usage/rate/rate-demands.ts'
import { resolveModel } from '../admission/model-routing.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type ResolvedModel, required } from '../exchange.ts'
import { readRequest } from '../request/read-request.ts'
import type { StoredRoute } from './routes.ts'
import { isProviderId, openId, type StoredPlace } from './sealed-id.ts'
import { newStoredState } from './stored-state.ts'

const encoder = new TextEncoder()
/** Reads the body, or for a call without one what stands in its place. Nothing of the path is opened yet. */
export const readStoredCall =
  (route: Pick<StoredRoute, 'method' | 'query' | 'body'>) =>
  (exchange: Exchange, gateway: Gateway): Promise<void> | void => {
    const { request } = exchange
    const query = readQuery(request.url, route.query)
    exchange.stored = newStoredState()
    if (route.body === 'none' || (route.body === 'optional' && request.body === null)) {
      // What an event's hash and a reviewer's grant stand for.
      exchange.body = encoder.encode(JSON.stringify({ [route.method]: `${pathOf(request.url)}${query}` }))
      exchange.parsed = new URLSearchParams(query).get('stream') === 'true' ? { stream: true } : {}
      exchange.facts = exchange.dialect.read(exchange.parsed)
      return
    }
    return readRequest(exchange, gateway)
  }

/** The query as it goes on: only what the route knows. Throws `unknown_parameter` and `invalid_parameter`. */
function readQuery(url: string, forms: StoredRoute['query']): string {
  const start = url.indexOf('?')
  if (start < 0) return ''
  const passed = new URLSearchParams()
  for (const [name, value] of new URLSearchParams(url.slice(start + 1))) {
    const form = Object.hasOwn(forms, name) ? forms[name] : undefined
    if (form === undefined) {
      throw new Failure('unknown_parameter', { message: 'The query has a parameter that this route does not know' })
    }
    if (!form.safeParse(value).success) {
      const message = `${name} has a wrong value: see /v1/openapi.json`
      throw new Failure('invalid_parameter', { message, param: name })
    }
    passed.append(name, value)
  }
  return passed.size === 0 ? '' : `?${passed}`
}

/** Opens the id in the path and finds the provider. Throws `stored_object_not_found`. */
export const openStoredCall =
  (route: StoredRoute) =>
  (exchange: Exchange, gateway: Gateway): void => {
    const { request } = exchange
    const [, , , name = '', , item = ''] = pathOf(request.url).split('/')
    const query = readQuery(request.url, route.query)
    const place = route.kind === null ? null : openPlace(exchange, gateway, route, name)
    const model = place === null ? maker(exchange, gateway) : holderOf(exchange, gateway, place, storesResponses)
    if (route.hasItem && !isProviderId(item)) throw notFound()
    exchange.model = model
    exchange.paths = [model]
    exchange.facts = { ...required(exchange.facts), model: model.upstreamModel }
    const id = place?.id ?? ''
    const answersWith = route.answers === 'item' ? item : route.answers === 'object' && place !== null ? id : null
    const path = route.upstream(id, item) + query
    exchange.stored = {
      ...required(exchange.stored),
      call: { method: route.method, path, gives: route.gives, answersWith },
    }
    if (place !== null) exchange.stored.names.set(id, name)
  }

export const notFound = (): Failure => new Failure('stored_object_not_found')

function openPlace(exchange: Exchange, gateway: Gateway, { kind }: StoredRoute, name: string): StoredPlace {
  const place = kind === null ? null : openId(kind, name, required(exchange.token), gateway)
  if (place === null) throw notFound()
  return place
}

/** Whether a kind of provider has objects of the sort that a call is about. */
export type HasObjects = (kind: ProviderKind) => boolean

const storesResponses: HasObjects = (kind) => kind.storesResponses === true

/** The provider of a stored object, as a path to call. What the token may not use any more is refused as a model is. */
export function holderOf(
  exchange: Exchange,
  { worker }: Gateway,
  { providerId, model }: StoredPlace,
  hasObjects: HasObjects,
): ResolvedModel {
  const known = worker.view.providers().find(({ id }) => id === providerId)
  if (known === undefined) throw notFound()
  const provider = worker.view.provider(providerId)
  if (provider === null) {
    const message = 'The key of the provider that stores this has not reached this gateway yet: retry shortly'
    throw new Failure('dependency_unavailable', { message, retryAfter: 1 })
  }
  const forbidden = forbiddenPart(exchange, worker.view.limits, provider, model)
  if (forbidden !== null) throw new Failure(`tokens.${forbidden}_not_allowed`)
  return pathTo(provider, model, upstreamModelAt(worker.view.model(model), providerId) ?? model, hasObjects)
}

function upstreamModelAt(listed: CatalogModel | null, providerId: string): string | undefined {
  const target = listed?.targets?.find((each) => each.providerId === providerId)
  return (target ?? listed)?.upstreamModel
}

/** The provider that makes a conversation. */
function maker(exchange: Exchange, gateway: Gateway): ResolvedModel {
  const { view } = gateway.worker
  const named = textOf(required(exchange.parsed).model)
  if (named !== null && named !== '') {
    resolveModel(exchange, gateway)
    const { provider, kind } = required(exchange.model)
    if (kind.storesResponses !== true) throw new Failure('stored_responses_unsupported', { param: 'model' })
    exchange.edits.set('model', null)
    return pathTo(provider, '', '')
  }
  const storing = view.providers().filter(({ kind }) => providerKinds.get(kind)?.storesResponses === true)
  const usable = storing.find(
    (provider) => view.provider(provider.id) !== null && forbiddenPart(exchange, view.limits, provider, '') === null,
  )
  if (usable !== undefined) return pathTo(usable, '', '')
  if (storing.length > 0) throw new Failure('tokens.provider_not_allowed')
  throw new Failure('stored_responses_unsupported', { message: 'No provider of this gateway stores conversations' })
}

type Limits = Gateway['worker']['view']['limits']

function forbiddenPart(exchange: Exchange, limits: Limits, provider: Provider, model: string) {
  const token = required(exchange.token)
  if (token.provider !== null && token.provider !== provider.name) return 'provider'
  if (model !== '' && !modelAllowed(token.modelFilter, model)) return 'model'
  for (const policy of accessPoliciesOf(token, limits)) {
    const part = forbiddenBy(model === '' ? { ...policy, models: null } : policy, { id: model, provider })
    if (part !== null) return part
  }
  return null
}

function pathTo(provider: Provider, id: string, upstreamModel: string, hasObjects = storesResponses): ResolvedModel {
  const kind = providerKinds.get(provider.kind)
  if (kind === undefined || !hasObjects(kind)) throw notFound()
  const aliases = id === '' ? [] : (kind.modelNames?.(id)?.aliases ?? [])
  return { id, aliases, upstreamModel, provider, kind, listed: null }
}

/**
 * Policies add members to requests for models, such as instructions. A call for a stored object keeps only changes of
 * what its body has.
 */
export function keepOwnMembers(exchange: Exchange): void {
  const { edits, members } = exchange
  const own = members === null || 'parts' in members ? [] : members.names
  for (const name of edits.keys()) if (!own.includes(name)) edits.delete(name)
}
