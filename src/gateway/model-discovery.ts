/**
 * Lists the catalog models that the token may use, in one page that the OpenAI and the Anthropic client both read
 * (gateway/README.md). It calls no provider, so there is no open record; the outcome is recorded.
 */
import { Failure } from '../failure.ts'
import type { CatalogModel, StateView } from '../fleet/protocol/worker.ts'
import { timestamp } from '../lib/clock.ts'
import { pathOf } from '../lib/http/request-path.ts'
import { providerKinds } from '../providers/kinds/index.ts'
import { type GovernedToken, modelAllowed } from '../tokens/governed-token.ts'
import { accessPoliciesOf, forbiddenBy } from '../usage/rate/rate-demands.ts'
import { finishExchange } from './accounting/exchange-record.ts'
import type { Gateway } from './context.ts'
import { type Exchange, required } from './exchange.ts'

export const modelsPath = '/v1/models'

export async function answerModels(exchange: Exchange, gateway: Gateway): Promise<void> {
  const { view } = gateway.worker
  const token = required(exchange.token)
  const id = modelInPath(exchange.request.url)
  const body = id === null ? modelPage(view, token) : oneModel(view, token, id)
  await finishExchange(exchange, gateway, { verdict: 'allow', reason: 'ok', status: 200 })
  exchange.answer = Response.json(body, {
    headers: { 'x-request-id': exchange.requestId, 'x-service-verdict': 'ALLOW' },
  })
}

/** The id after `/v1/models/`, with slashes plain or as %2F; null for the whole list. */
function modelInPath(url: string): string | null {
  const path = pathOf(url)
  if (path === modelsPath) return null
  try {
    return decodeURIComponent(path.slice(modelsPath.length + 1))
  } catch (thrown) {
    throw new Failure('model_not_found', { param: 'model', cause: thrown })
  }
}

function oneModel(view: StateView, token: GovernedToken, id: string) {
  const model = view.model(id)
  const entry = model === null ? null : modelEntry(view, token, model)
  if (entry === null) throw new Failure('model_not_found', { param: 'model' })
  return entry
}

function modelPage(view: StateView, token: GovernedToken) {
  const data = view
    .models()
    .map((model) => modelEntry(view, token, model))
    .filter((entry) => entry !== null)
  return {
    object: 'list',
    data,
    has_more: false,
    first_id: data.at(0)?.id ?? null,
    last_id: data.at(-1)?.id ?? null,
  }
}

/** A model in the form of both clients; null when the token may not use it or this gateway cannot serve it. */
function modelEntry(view: StateView, token: GovernedToken, { id, providerId, createdAt }: CatalogModel) {
  const provider = view.provider(providerId)
  if (provider === null || !providerKinds.has(provider.kind)) return null
  if (token.provider !== null && token.provider !== provider.name) return null
  if (!modelAllowed(token.modelFilter, id)) return null
  const forbidden = accessPoliciesOf(token, view.limits).some(
    (policy) => forbiddenBy(policy, { id, provider }) !== null,
  )
  if (forbidden) return null
  return {
    id,
    object: 'model',
    created: Math.floor(createdAt / 1000),
    owned_by: provider.name,
    type: 'model',
    display_name: id,
    created_at: timestamp(createdAt),
  }
}
