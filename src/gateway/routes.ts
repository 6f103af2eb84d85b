/**
 * The addresses of the gateway as one Elysia application. It finds the route and nothing else: parsing is off, and each
 * handler gets the request as it arrived. Routes to models and model discovery run through `pipeline.ts`; the rest
 * answers for the process itself. Any other path is 404 and never forwarded.
 */
import { Elysia } from 'elysia'
import { asFailure, Failure } from '../failure.ts'
import { chat } from '../languages/chat/dialect.ts'
import type { Dialect } from '../languages/dialect.ts'
import { families, isPosted, type ModelFamily, modelFamilies, routeOf } from '../languages/families.ts'
import { gemini } from '../languages/gemini/dialect.ts'
import { geminiModelsPath } from '../languages/gemini/request-form.ts'
import { dialects } from '../languages/index.ts'
import { withoutRequest } from '../languages/mcp/dialect.ts'
import { countTokens, countTokensPath } from '../languages/messages/count-tokens.ts'
import { messages } from '../languages/messages/dialect.ts'
import { compact, compactPath, storedObjects } from '../languages/responses/stored.ts'
import { pathOf, withAddress } from '../lib/http/request-path.ts'
import { managedSettingsPath } from './agent-protocol/managed-settings.ts'
import { type SignIn, signInPaths } from './agent-protocol/sign-in.ts'
import { batchObjects } from './batches/batch-dialect.ts'
import { batchesPath, batchRoutes, filesPath, listRoutes, uploadRoute } from './batches/routes.ts'
import { failureResponse } from './error-response.ts'
import type { Connection } from './exchange.ts'
import { checkQuery, geminiRoute, geminiRoutes, inAskedForm } from './gemini-routes.ts'
import type { GovernedRoute } from './govern.ts'
import { mcpPath } from './mcp/answer-call.ts'
import { modelsPath } from './model-discovery.ts'
import {
  batchStages,
  discoveryStages,
  inferenceStages,
  listStages,
  managedSettingsStages,
  storedStages,
  telemetryStages,
  tokenCountStages,
  uploadStages,
} from './pipeline.ts'
import {
  answerProcessEndpoint,
  type ProcessEndpoint,
  pageReadablePaths,
  preflightAboutItself,
  processPaths,
} from './process-endpoints.ts'
import { conversationsPath, describedPath, storedRoutes } from './stored/routes.ts'
import { signals } from './telemetry-intake/attribution.ts'
import { intakePath, telemetry } from './telemetry-intake/intake.ts'

/** A request as the listener has it. */
export interface Arrival {
  request: Request
  connection: Connection | null
  requestId: string
}

export interface RouteHandlers {
  /** The most bytes of one frame of a stream. */
  frameLimit: number
  itself: ProcessEndpoint
  govern(route: GovernedRoute, arrival: Arrival): Promise<Response>
  mcp(arrival: Arrival): Promise<Response>
  signIn: SignIn
  /** Sends what no exchange answers. */
  untracked(request: Request, answer: Promise<Response> | Response): Promise<Response>
}

/** The addresses of Gemini's language name the model (`gemini-routes.ts`); nothing is posted to a realtime session. */
function isAtOnePath(family: ModelFamily): boolean {
  return family !== 'gemini' && isPosted(family)
}

const inferenceRoutes: readonly (GovernedRoute & { path: string })[] = [
  ...modelFamilies.filter(isAtOnePath).map((family) => ({
    route: routeOf(family),
    path: families[family].path,
    family,
    dialect: dialects[family],
    stages: inferenceStages,
  })),
  {
    route: `POST ${countTokensPath}`,
    path: countTokensPath,
    family: 'count_tokens',
    dialect: countTokens,
    stages: tokenCountStages,
  },
  {
    route: `POST ${compactPath}`,
    path: compactPath,
    family: 'responses',
    dialect: compact,
    stages: inferenceStages,
  },
]

/** The routes of stored objects, files and batches by their path, and in it by their method. */
const storedByPath = new Map<string, Map<string, GovernedRoute>>()
for (const stored of storedRoutes) {
  const { method, path } = stored
  const route = `${method} ${describedPath(stored)}`
  const governed = { route, family: 'responses', dialect: storedObjects, stages: storedStages(stored) }
  storedByPath.set(path, (storedByPath.get(path) ?? new Map<string, GovernedRoute>()).set(method, governed))
}

for (const { method, path, stages } of [
  { ...uploadRoute, stages: uploadStages },
  ...listRoutes.map((route) => ({ ...route, stages: listStages(route.kind) })),
  ...batchRoutes.map((route) => ({ ...route, stages: batchStages(route) })),
]) {
  const governed = { route: `${method} ${describedPath({ path })}`, family: 'batches', dialect: batchObjects, stages }
  storedByPath.set(path, (storedByPath.get(path) ?? new Map<string, GovernedRoute>()).set(method, governed))
}

const versionedPaths: ReadonlySet<string> = new Set([
  ...inferenceRoutes.map(({ path }) => path),
  ...modelFamilies.flatMap((family) => (families[family].webSockets ?? []).map(({ path }) => path)),
])

const discoveryIn = (dialect: Dialect, path = modelsPath): GovernedRoute => ({
  route: `GET ${path}`,
  family: 'models',
  dialect,
  stages: discoveryStages,
})
const discovery = discoveryIn(chat)
const messagesDiscovery = discoveryIn(messages)
const geminiDiscovery = discoveryIn(gemini, geminiModelsPath)

/**
 * Anthropic's clients send their version with every request, and Google's their own header of the token: each reads
 * lists and errors in its own form.
 */
function discoveryFor({ headers, url }: Request): GovernedRoute {
  if (isOfGemini(headers, pathOf(url))) return geminiDiscovery
  return headers.has('anthropic-version') ? messagesDiscovery : discovery
}

const isOfGemini = (headers: Headers, path: string): boolean =>
  path.startsWith('/v1beta/') || headers.has('x-goog-api-key') || headers.has('x-goog-api-client')

const managedSettings: GovernedRoute = {
  route: `GET ${managedSettingsPath}`,
  family: 'managed_settings',
  dialect: messages,
  stages: managedSettingsStages,
}

const telemetryRoutes: readonly (GovernedRoute & { path: string })[] = signals.map((signal) => ({
  route: `POST ${intakePath(signal)}`,
  path: intakePath(signal),
  family: 'telemetry',
  dialect: telemetry,
  stages: telemetryStages(signal),
}))

/** The routes at one path that take a body. */
const postedRoutes = [...inferenceRoutes, ...telemetryRoutes]

/** Takes an arrival to its route. */
export function createRoutes({
  frameLimit,
  itself,
  govern,
  mcp,
  signIn,
  untracked,
}: RouteHandlers): (arrival: Arrival) => Response | Promise<Response> {
  const arrivals = new WeakMap<Request, Arrival>()
  const arrivalOf = (request: Request): Arrival => {
    const arrival = arrivals.get(request)
    if (arrival === undefined) throw new Error('The request did not come through the listener')
    return arrival
  }
  const refused = (routed: Request, failure: Failure, allow?: string, dialect?: Dialect) => {
    const { request, requestId } = arrivalOf(routed)
    const answer = failureResponse(dialect ?? dialectOf(pathOf(request.url)), failure, requestId, null)
    if (allow !== undefined) answer.headers.set('allow', allow)
    return untracked(request, answer)
  }
  const notAllowed = (request: Request, allow: string) => refused(request, new Failure('method_not_allowed'), allow)
  const discover = (request: Request) => {
    if (request.method !== 'GET') return notAllowed(request, 'GET')
    const route = discoveryFor(request)
    if (route !== geminiDiscovery) return govern(route, arrivalOf(request))
    return asked(request, (arrival) => govern(route, arrival))
  }

  const askGemini = (request: Request) =>
    asked(request, async (arrival, url) => inAskedForm(await govern(geminiRoute(url), arrival), url, frameLimit))

  /** Answers a request in Gemini's language, unless its address holds a token. */
  const asked = async (request: Request, answer: (arrival: Arrival, url: URL) => Promise<Response>) => {
    const arrival = arrivalOf(request)
    try {
      const url = new URL(arrival.request.url)
      checkQuery(url)
      return await answer(arrival, url)
    } catch (thrown) {
      return refused(request, asFailure(thrown), undefined, gemini)
    }
  }
  /** A model is read with GET, and asked in Gemini's language with POST. */
  const atModel = (request: Request, model: string) => {
    if (model === '') return notFound(request)
    const method = model.slice(model.lastIndexOf(':') + 1)
    if (request.method === 'POST' && model.includes(':')) return askGemini(request)
    return Object.hasOwn(geminiRoutes, method) ? notAllowed(request, 'POST') : discover(request)
  }

  const raw = { parse: 'none' } as const
  const routes = new Elysia({ name: 'gateway', normalize: false, strictPath: true })
    .onError(({ request, error }) => refused(request, asFailure(error)))
    // Agents try the connection with it. It answers for nothing else.
    .head('/', ({ request }) => untracked(arrivalOf(request).request, new Response(null)), raw)
    .all(
      managedSettingsPath,
      ({ request }) =>
        request.method === 'GET' ? govern(managedSettings, arrivalOf(request)) : notAllowed(request, 'GET'),
      raw,
    )
    .all(mcpPath, ({ request }) => mcp(arrivalOf(request)), raw)
    // Client secrets and calls, which connect an application to the provider itself.
    .all(`${families.realtime.path}/*`, ({ request }) => refused(request, new Failure('realtime_secret_refused')), raw)
    .all('/*', ({ request }) => notFound(request), raw)
  for (const path of [modelsPath, geminiModelsPath]) {
    routes.all(path, ({ request }) => discover(request), raw)
    routes.all(`${path}/*`, ({ request, params }) => atModel(request, params['*']), raw)
  }
  for (const route of postedRoutes) {
    routes.post(route.path, ({ request }) => govern(route, arrivalOf(request)), raw)
    routes.all(route.path, ({ request }) => notAllowed(request, 'POST'), raw)
  }
  for (const [path, byMethod] of storedByPath) {
    const allow = [...byMethod.keys()].join(', ')
    routes.all(
      path,
      ({ request }) => {
        const route = byMethod.get(request.method)
        return route === undefined ? notAllowed(request, allow) : govern(route, arrivalOf(request))
      },
      raw,
    )
  }
  for (const [path, method] of Object.entries(signInPaths)) {
    routes.all(
      path,
      ({ request }) => {
        const { request: arrived, requestId } = arrivalOf(request)
        if (arrived.method !== method) return notAllowed(request, method)
        return untracked(arrived, signIn.answer(path, arrived, requestId))
      },
      raw,
    )
  }
  for (const path of processPaths) {
    routes.get(path, ({ request }) => {
      const { request: arrived, requestId } = arrivalOf(request)
      return untracked(arrived, answerProcessEndpoint(itself, path, requestId))
    })
    routes.all(path, ({ request }) => notAllowed(request, 'GET, HEAD'), raw)
  }
  // A browser asks first whether a page of another origin may read it.
  for (const path of pageReadablePaths) {
    routes.options(path, ({ request }) => {
      const { request: arrived, requestId } = arrivalOf(request)
      return untracked(arrived, preflightAboutItself(requestId))
    })
  }

  return (arrival) => {
    // For Elysia only: a handler gets the request that the listener knows.
    const routed = withAddress(arrival.request)
    arrivals.set(routed, arrival)
    return routes.fetch(routed)
  }

  function notFound(request: Request) {
    const path = pathOf(request.url)
    const meant = meantPath(path)
    if (meant === null) return refused(request, new Failure('not_found'))
    const problem = path.startsWith('/v1/') ? 'This path has /v1 twice' : 'This path has no /v1 at its beginning'
    const message = `${problem}: send the request to ${meant}, by changing the base URL of the client`
    return refused(request, new Failure('not_found', { message }), undefined, dialectOf(meant))
  }
}

/** The path of a route that a client meant, whose base URL has no `/v1` or one too many; null if there is none. */
function meantPath(path: string): string | null {
  const meant = `/v1${path.replace(/^(?:\/v1)+(?=\/)/, '')}`
  if (meant === path) return null
  if (meant === modelsPath || meant.startsWith(`${modelsPath}/`)) return modelsPath
  if (isBelow(meant, families.responses.path)) return families.responses.path
  for (const path of [conversationsPath, filesPath, batchesPath]) if (isBelow(meant, path)) return path
  return versionedPaths.has(meant) ? meant : null
}

const isBelow = (path: string, above: string): boolean => path === above || path.startsWith(`${above}/`)

/** At a family's path, and below it where nothing is, a caller is answered in the language of the family. */
export function dialectOf(path: string): Dialect {
  if (path === mcpPath) return withoutRequest
  if (path === managedSettingsPath) return messages
  if (path.startsWith('/v1beta/')) return gemini
  const route = postedRoutes.find((each) => path === each.path || path.startsWith(`${each.path}/`))
  return route?.dialect ?? chat
}
