/**
 * The control plane's HTTP server: routes as data in, one `fetch` out. Which route it is `router.ts` finds. A call goes
 * through, in this order:
 *
 *   request id → authenticate → permission → body → validation → idempotency → handler → reply
 *
 * Whatever is thrown on the way becomes an answer in one place (`answer.ts`).
 */
import { asFailure, Failure, severalHosts } from '../failure.ts'
import { handbookPaths, handbookResponse } from '../handbook/site.ts'
import { notDelegated } from '../identity/delegation.ts'
import { isPermission } from '../identity/permissions.ts'
import { anonymous, type Principal } from '../identity/principal.ts'
import { holdsSecret } from '../identity/secret.ts'
import type { Clock } from '../lib/clock.ts'
import { forAnyOrigin, preflightAnswer } from '../lib/http/any-origin.ts'
import { namesSeveralHosts } from '../lib/http/request-path.ts'
import type { NewId } from '../lib/ids.ts'
import type { Log } from '../lib/log/log.ts'
import { type AnswerContext, failureResponse, finished, jsonResponse, requestIdOf } from './answer.ts'
import { parseJsonObject, readBytes, readQuery, refusingUnknown, requireContentType, validate } from './body.ts'
import { openApiDocument } from './document.ts'
import { documentationPage } from './documentation.ts'
import { healthPaths, healthResponse } from './health.ts'
import type { AnswerStore, Claim } from './idempotency.ts'
import type { Access, Answer, AnyRoute, GatewayRouteDescription } from './route.ts'
import { createRouter, type RoutedCall } from './router.ts'
import { beyondToken } from './token-reach.ts'

export interface MountOptions {
  routes: readonly AnyRoute[]
  /** Who calls. Throws `missing_api_key`, `invalid_api_token`, `tokens.expired`; a database's failure passes through. */
  authenticate(request: Request): Promise<Principal>
  answers: AnswerStore
  clock: Clock
  newId: NewId
  log: Log
  baseUrl: string
  gatewayUrl: string
  /** Loaded when the description is first asked for. */
  gatewayRoutes(): Promise<readonly GatewayRouteDescription[]>
  ready(): { ok: boolean; reason?: string | undefined }
  metrics(): Promise<string>
  /** Told of a change that its caller lacks the permission for, or asks for more than the permission gives. Where this fails, the caller is refused all the same. */
  refused?(refusal: Refusal): Promise<void>
  /** Told of every answer; `path` is the route's pattern, or null where there is no such route. */
  answered?(answer: { method: string; path: string | null; status: number; seconds: number }): void
}

export interface Refusal {
  principal: Principal
  requestId: string
  /** As the routes write it: `POST /v1/tokens`. */
  route: string
  permission: Access
}

export function mount(options: MountOptions): { fetch(request: Request): Promise<Response> } {
  const matched = new WeakMap<Request, string>()
  const requestIds = new WeakMap<Request, string>()
  const idOf = (request: Request): string => requestIds.get(request) ?? options.newId()
  const answerContext = (request: Request) => ({
    requestId: idOf(request),
    log: options.log,
    origin: options.baseUrl,
  })
  const calls: RoutedCall[] = []
  const serve = (method: string, path: string, handle: Handle) =>
    calls.push({
      method,
      path,
      handle(request, params) {
        matched.set(request, path)
        return handle(request, params, idOf(request))
      },
    })

  const forPages = new Set<string>()
  for (const route of options.routes) {
    serve(route.method, route.path, callOf(options, route))
    if (!route.anyOrigin) continue
    forPages.add(route.path)
    serve('OPTIONS', route.path, () => preflightAnswer(route.method))
  }
  for (const path of healthPaths) serve('GET', path, () => healthResponse(path, options))
  // Made when it is first asked for: of all that a start would do for it, nothing is needed to be ready.
  let document: string | null = null
  serve('GET', '/v1/openapi.json', async () => {
    document ??= JSON.stringify(openApiDocument({ ...options, gatewayRoutes: await options.gatewayRoutes() }))
    return jsonResponse(200, document)
  })
  for (const { path, respond } of documentationPage()) serve('GET', path, respond)
  for (const path of handbookPaths) serve('GET', path, handbookResponse)
  const answer = createRouter({
    calls,
    failed: (error, request) => failureResponse(error, answerContext(request)),
    notServed: (request, allow) => notServed(allow, answerContext(request)),
  })

  const answerOf = (request: Request): Promise<Response> | Response =>
    namesSeveralHosts(request)
      ? failureResponse(new Failure('bad_request', { message: severalHosts }), answerContext(request))
      : answer(request)

  return {
    async fetch(request) {
      const startedAt = options.clock.monotonic()
      const requestId = requestIdOf(request, options.newId)
      requestIds.set(request, requestId)
      const response = finished(await answerOf(request), requestId)
      const seconds = (options.clock.monotonic() - startedAt) / 1000
      const path = matched.get(request) ?? null
      if (path !== null && forPages.has(path)) forAnyOrigin(response)
      options.answered?.({ method: request.method, path, status: response.status, seconds })
      return response
    },
  }
}

type Handle = (request: Request, params: unknown, requestId: string) => Promise<Response> | Response

const notServed = (allow: readonly string[], context: AnswerContext): Response =>
  allow.length === 0
    ? failureResponse(new Failure('not_found'), context)
    : failureResponse(new Failure('method_not_allowed'), { ...context, allow })

/** Made at a route's first call: for all routes they would be an eighth of the schemas of a start. */
const strictSchemas = ({ query, body }: AnyRoute) => ({
  query: query && refusingUnknown(query),
  body: body && refusingUnknown(body),
})

/** Everything one route does with a request, from authentication to reply. */
function callOf(options: MountOptions, route: AnyRoute): Handle {
  const { rawBody } = route
  let schemas: ReturnType<typeof strictSchemas> | null = null
  return async (request, rawParams, requestId) => {
    const principal = route.access === 'public' ? anonymous : await options.authenticate(request)
    if (!mayCall(route, principal)) {
      await tellOfRefusal(options, route, principal, requestId)
      throw refusalOf(route, principal)
    }
    const bytes = await bodyBytes(route, request)
    const url = new URL(request.url)
    schemas ??= strictSchemas(route)
    const call = {
      principal,
      params: route.params && validateParams(route.params, rawParams),
      query: schemas.query && validate(schemas.query, readQuery(url)),
      body: schemas.body && validate(schemas.body, parseJsonObject(bytes)),
      headers: request.headers,
      requestId,
      signal: request.signal,
    }
    const handle = async () => {
      try {
        return await route.handle(call, rawBody === undefined ? request : withBytes(request, bytes))
      } catch (error) {
        const refused = error instanceof Failure && error.code === 'permission_denied'
        if (refused && !route.recordsRefusals) await tellOfRefusal(options, route, principal, requestId)
        throw error
      }
    }
    const key = request.headers.get('idempotency-key')
    const repeatable = key !== null && route.method === 'POST' && route.access !== 'public' && !route.internal
    if (!repeatable) return reply(route, await handle())
    const routeName = `${route.method} ${route.path}`
    const bodyHash = new Bun.CryptoHasher('sha256').update(`${url.pathname}${url.search}\0`).update(bytes).digest('hex')
    const begun = await options.answers.begin({
      principal: principal.name,
      key: checkedKey(key),
      route: routeName,
      bodyHash,
    })
    if ('claim' in begun) return await answerOnce(options.log, route, begun.claim, handle)
    return jsonResponse(begun.kept.status, begun.kept.body, { ...begun.kept.headers, 'idempotency-replayed': 'true' })
  }
}

function mayCall(route: AnyRoute, principal: Principal): boolean {
  const { access } = route
  if (access === 'public') return true
  if (principal.kind === 'anonymous') return false
  // What only a person can be asked for is in no scope (oauth/README.md).
  if (access === 'signed-in') return principal.delegation === undefined
  if (access === 'runtime:session') return principal.kind === 'runtime'
  return principal.permissions.has(access) && beyondToken(route, principal) === null
}

function refusalOf(route: AnyRoute, principal: Principal): Failure {
  const { access } = route
  if (principal.kind === 'anonymous') return new Failure('missing_api_key')
  if (principal.delegation !== undefined && isPermission(access)) return notDelegated(principal.delegation, access)
  if (access === 'signed-in') return new Failure('permission_denied', { message: 'Only a person can do this' })
  if (access === 'runtime:session') {
    return new Failure('permission_denied', { message: "Only a gateway's session may do this" })
  }
  const holds = isPermission(access) && principal.permissions.has(access)
  const beyond = holds ? beyondToken(route, principal) : null
  return new Failure('permission_denied', { message: beyond ?? `This needs the permission ${access}` })
}

async function tellOfRefusal(
  { refused, log }: MountOptions,
  { method, path, access, internal }: AnyRoute,
  principal: Principal,
  requestId: string,
): Promise<void> {
  if (method === 'GET' || internal || principal.kind === 'anonymous' || refused === undefined) return
  try {
    await refused({ principal, requestId, route: `${method} ${path}`, permission: access })
  } catch (error) {
    log.error({ request_id: requestId, error: String(error) }, 'A refusal was not recorded')
  }
}

async function bodyBytes({ body, rawBody }: AnyRoute, request: Request): Promise<Uint8Array> {
  if (body === undefined && rawBody === undefined) return new Uint8Array()
  if (rawBody !== undefined) requireContentType(request, rawBody)
  else if (request.body !== null) requireContentType(request, 'application/json')
  return await readBytes(request)
}

/** An id that has not the form of one names nothing. */
function validateParams(schema: NonNullable<AnyRoute['params']>, params: unknown): unknown {
  const parsed = schema.safeParse(params)
  if (!parsed.success) throw new Failure('not_found', { message: 'There is no such record' })
  return parsed.data
}

const withBytes = (request: Request, bytes: Uint8Array): Request =>
  new Request(request.url, {
    method: request.method,
    headers: request.headers,
    body: Buffer.from(bytes),
    signal: request.signal,
  })

function checkedKey(key: string): string {
  if (/^[\x21-\x7e]{1,255}$/.test(key)) return key
  throw new Failure('invalid_parameter', {
    message: 'Send 1 to 255 visible ASCII characters',
    param: 'Idempotency-Key',
  })
}

function reply(route: AnyRoute, answer: Answer<unknown> | Response): Response {
  if (answer instanceof Response) return answer
  return jsonResponse(route.status ?? 200, JSON.stringify(answer.reply), answer.headers)
}

/** Runs the handler under a claim and keeps its answer. */
async function answerOnce(
  log: Log,
  route: AnyRoute,
  claim: Claim,
  handle: () => ReturnType<AnyRoute['handle']>,
): Promise<Response> {
  let answer: Answer<unknown> | Response
  try {
    answer = await handle()
  } catch (error) {
    // What failed on our side may have been done all the same: its key stays taken for a minute, so that a repeat does
    // not do it twice. Any other failure has changed nothing; a key that could not be freed frees itself.
    if (asFailure(error).status < 500)
      await claim.release().catch((failed: unknown) => log.warn({ error: String(failed) }, 'A key was not freed'))
    throw error
  }
  if (answer instanceof Response) {
    await claim.release()
    return answer
  }
  const { headers = {}, secretOf } = answer
  const status = route.status ?? 200
  const body = JSON.stringify(answer.reply)
  // What holds a secret is not kept, whether or not its route has thought of it.
  const made = secretOf ?? (holdsSecret(body) ? '' : undefined)
  // What was made is made: an answer that cannot be kept is still given, above all one whose secret is shown once.
  await claim
    .keep({ status, headers, body }, made)
    .catch((failed: unknown) => log.error({ error: String(failed) }, 'An idempotent answer was not kept'))
  return jsonResponse(status, body, headers)
}
