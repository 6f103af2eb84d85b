/**
 * The control plane's HTTP server: one Elysia application that uses the plugin of each feature. The plugins follow
 * `conventions.ts`; this file adds what holds for every request, whether or not a route has it: the request id, the
 * headers of each answer, the errors, and the figures.
 *
 * Every error becomes an answer in one place, `onError`. Elysia's own answers are never sent: they echo the body.
 */
import { type AnyElysia, Elysia, type InternalRoute, NotFoundError, ParseError, ValidationError } from 'elysia'
import { z } from 'zod'
import { Failure, severalHosts } from '../failure.ts'
import type { Clock } from '../lib/clock.ts'
import { forAnyOrigin, preflightAnswer } from '../lib/http/any-origin.ts'
import { namesSeveralHosts, pathOf } from '../lib/http/request-path.ts'
import type { NewId } from '../lib/ids.ts'
import { recordRefusal } from './access.ts'
import { failureResponse, finished, requestIdOf } from './answer.ts'
import { failureOfIssue } from './body.ts'
import { type Api, Calls } from './call.ts'
import { openApiPath } from './conventions.ts'
import { type Health, healthRoutes } from './health.ts'
import { releaseKey } from './idempotency.ts'
import { ServedMethods } from './methods.ts'
import { type DescriptionOptions, descriptionRoutes } from './openapi/description.ts'

export interface ApplicationOptions extends Omit<Api, 'calls'>, Health, DescriptionOptions {
  /** One Elysia plugin for each feature. */
  features: readonly AnyElysia[]
  clock: Clock
  newId: NewId
  /** Called after every answer; `path` is the route's pattern, or null if no route matched. */
  answered?(answer: { method: string; path: string | null; status: number; seconds: number }): void
}

/** The whole API as one Elysia application: `fetch` answers a request. */
export function createApplication(options: ApplicationOptions) {
  const { features, clock, newId, log, baseUrl } = options
  const calls = new Calls()
  const api: Api = { ...options, calls }
  const routes = (): readonly InternalRoute[] => application.routes
  let served: ServedMethods | null = null
  const methods = (): ServedMethods => {
    served ??= new ServedMethods(routes())
    return served
  }
  const failed = async (request: Request, error: unknown): Promise<Response> => {
    const call = calls.of(request)
    const context = { requestId: call.requestId, log, origin: baseUrl }
    if (error instanceof NotFoundError) {
      const allow = methods().of(pathOf(request.url))
      if (allow.length === 0) return failureResponse(new Failure('not_found'), context)
      return failureResponse(new Failure('method_not_allowed'), { ...context, allow })
    }
    const thrown = thrownBy(error)
    await releaseKey(call, thrown, log)
    const refused = thrown instanceof Failure && thrown.code === 'permission_denied'
    if (refused && call.route !== null && !call.recordsRefusals) {
      await recordRefusal(api, call.route, call.principal, call.requestId)
    }
    return failureResponse(thrown, context)
  }
  /**
   * The last step of every answer. Elysia maps the answers of routes, failed ones too, and none where there is no
   * route.
   */
  const finish = (request: Request, response: Response): Response => {
    const call = calls.of(request)
    if (call.finished) return response
    call.finished = true
    const seconds = (clock.monotonic() - call.startedAt) / 1000
    options.answered?.({ method: request.method, path: call.route?.path ?? null, status: response.status, seconds })
    return finished(call.forAnyOrigin ? forAnyOrigin(response) : response, call.requestId)
  }
  // A route is compiled at its first request. Nothing is normalized: the schemas refuse what they do not know.
  const application = new Elysia({ name: 'control plane', normalize: false, strictPath: true })
    .decorate('api', api)
    .onRequest(({ request }) => {
      calls.begin(request, requestIdOf(request, newId), clock.monotonic())
      if (namesSeveralHosts(request)) throw new Failure('bad_request', { message: severalHosts })
      // Otherwise a parameter of another path would take this one's last part for its value.
      const allow = methods().ofFixedPath(pathOf(request.url))
      if (allow !== null && !allow.includes(request.method)) throw new NotFoundError()
    })
    .onError({ as: 'global' }, async ({ request, error, set }) => {
      // A header of the handler, such as a cookie, belongs to its own answer.
      set.headers = {}
      return finish(request, await failed(request, error))
    })
    .mapResponse({ as: 'global' }, ({ request, responseValue }) => {
      if (!(responseValue instanceof Response)) throw new TypeError('A route answered without a Response')
      return finish(request, responseValue)
    })
    .use(healthRoutes(options))
    .use(descriptionRoutes(options, routes))
  for (const feature of features) application.use(feature)
  for (const { method, path, hooks } of [...application.routes]) {
    if (hooks.anyOrigin) application.options(path, () => preflightAnswer(method), { access: 'public', anyOrigin: true })
  }
  for (const route of application.routes) prepare(route)
  return application
}

/** What a hook or a handler threw: Elysia wraps what its parser and its validation throw. */
function thrownBy(error: unknown): unknown {
  if (error instanceof ParseError) return error.cause
  if (!(error instanceof ValidationError)) return error
  // An id that does not have the form of one names nothing.
  if (error.type === 'params') return new Failure('not_found', { message: 'There is no such record' })
  return failureOfIssue(error.valueError)
}

/** Tells a route its own name. Throws where it breaks a convention that no type holds. */
function prepare({ method, path, hooks }: InternalRoute): void {
  const name = `The route ${method} ${path}`
  if (hooks.called === undefined) throw new Error(`${name} does not say who may call it: add access`)
  for (const schema of [hooks.query, hooks.body]) {
    const open = schema instanceof z.ZodObject && schema.def.catchall === undefined
    if (open) throw new Error(`${name} takes unknown fields: use z.strictObject, or z.looseObject where it means to`)
  }
  Object.assign(hooks.called, { method, path: openApiPath(path) })
}
