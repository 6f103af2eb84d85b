/**
 * The conventions of the control plane as an Elysia plugin. A feature writes
 * `new Elysia({ name: 'teams' }).use(conventions).get(path, handler, { access, query, response, detail })`.
 *
 * The macro `access` brings the hooks of a call, in this order:
 *
 *   authenticate → permission → body (`parse`; `transform` where there is none) → validation by Elysia
 *   → idempotency (`beforeHandle`) → handler → reply (`afterHandle`)
 *
 * Elysia's own parsers never run: `body.ts` reads a body, after the permission is checked. Replies are not validated at
 * run time: the compiler checks them against `response`, and a change that was made is answered whatever it looks like.
 */
import { Elysia, ElysiaCustomStatusResponse, type HTTPHeaders } from 'elysia'
import type { z } from 'zod'
import { type Access, type CalledRoute, recordRefusal, requireAccess } from './access.ts'
import { jsonResponse } from './answer.ts'
import { parseJsonObject, readBytes, readQuery, requireContentType } from './body.ts'
import type { Api, Call } from './call.ts'
import { entityTag } from './entity-tag.ts'
import { beginOnce, keepAnswer } from './idempotency.ts'

/** The options of a route that the hooks of `access`, the application and the description look at. */
export interface RouteOptions {
  /** Made by `access`; the application adds the path, which Elysia gives to no macro. */
  called?: CalledRoute | undefined
  query?: unknown
  body?: unknown
  bodyType?: string | undefined
  anyOrigin?: true | undefined
  internal?: true | undefined
  ifMatch?: true | undefined
  form?: z.ZodType | undefined
  answers?: readonly string[] | undefined
  failures?: readonly FailureStatus[] | undefined
  versioned?: true | undefined
  wholeOrganization?: true | undefined
  recordsRefusals?: true | undefined
}

type FailureStatus = 400 | 401 | 403 | 404 | 409 | 410 | 412 | 422 | 429 | 503

interface Singleton {
  decorator: { api: Api }
  store: Record<never, never>
  derive: Record<never, never>
  resolve: Record<never, never>
}

/** A macro that is a mark on the route and has no hooks of its own. */
const mark = (_set: true) => ({})

export const conventions = new Elysia<'', Singleton>({ name: 'conventions' })
  /** The body has this content type instead of JSON; the handler gets its bytes. */
  .macro('bodyType', (_type: string) => ({}))
  /** Pages of any origin may call it, without credentials of the browser. Only on a public route. */
  .macro('anyOrigin', mark)
  /** Left out of `/v1/openapi.json`: only our own processes call it. */
  .macro('internal', mark)
  /** The handler makes the change only for the version that `If-Match` names. */
  .macro('ifMatch', mark)
  /** A form that the handler reads from the request itself, for the description only. */
  .macro('form', (_form: z.ZodType) => ({}))
  /** Content types beside JSON in which it answers, such as `text/csv`; a `Response` carries them. */
  .macro('answers', (_types: readonly string[]) => ({}))
  /** Statuses of failures beside those that follow from the route: see `openapi/operation.ts`. */
  .macro('failures', (_statuses: readonly FailureStatus[]) => ({}))
  /** The reply is one record: its `version` is the `ETag`. */
  .macro('versioned', mark)
  /**
   * It concerns the whole organization, although its permission does not say so: tokens of a team or a user are
   * refused.
   */
  .macro('wholeOrganization', mark)
  /** The handler records its own event when the caller may not do what it asks for. */
  .macro('recordsRefusals', mark)
  .macro('access', (access: Access) => {
    let options: RouteOptions = {}
    const route: CalledRoute = { method: '', path: '', access, wholeOrganization: false, internal: false }
    const admit = async (api: Api, request: Request): Promise<Call> => {
      const call = api.calls.of(request)
      if (call.route !== null) return call
      call.route = route
      call.forAnyOrigin = options.anyOrigin === true
      call.recordsRefusals = options.recordsRefusals === true
      if (access !== 'public') call.principal = await api.authenticate(request)
      try {
        requireAccess(route, call.principal)
      } catch (refused) {
        call.recordsRefusals = true
        await recordRefusal(api, route, call.principal, call.requestId)
        throw refused
      }
      return call
    }
    return {
      introspect(hooks: RouteOptions) {
        options = hooks
        route.wholeOrganization = hooks.wholeOrganization === true
        route.internal = hooks.internal === true
        hooks.called = route
      },
      async parse({ api, request }: { api: Api; request: Request }) {
        const call = await admit(api, request)
        if (options.body === undefined) return null
        if (options.bodyType !== undefined) requireContentType(request, options.bodyType)
        else if (request.body !== null) requireContentType(request, 'application/json')
        call.bytes = await readBytes(request)
        return options.bodyType === undefined ? parseJsonObject(call.bytes) : call.bytes
      },
      async transform({ api, request, query }: { api: Api; request: Request; query: Record<string, string> }) {
        await admit(api, request)
        if (options.query === undefined) return
        // Changed in place: Elysia reads the source of its hooks, and understands destructuring only.
        for (const name of Object.keys(query)) delete query[name]
        Object.assign(query, readQuery(new URL(request.url)))
      },
      resolve({ api, request }: { api: Api; request: Request }) {
        const call = api.calls.of(request)
        return {
          /** Who calls; on a public route an anonymous principal. */
          principal: call.principal,
          requestId: call.requestId,
          /** The reply shows the secret of this record once: an idempotent repeat answers 409 with the id. */
          showsSecretOf(id: string) {
            call.secretOf = id
          },
        }
      },
      async beforeHandle({ api, request }: { api: Api; request: Request }) {
        if (request.method !== 'POST' || access === 'public' || options.internal) return undefined
        return await beginOnce(api.answers, request, api.calls.of(request))
      },
      async afterHandle({
        api,
        request,
        responseValue,
        set,
      }: {
        api: Api
        request: Request
        responseValue: unknown
        set: { headers: HTTPHeaders }
      }) {
        const call = api.calls.of(request)
        if (responseValue instanceof Response) {
          await call.claim?.release()
          return responseValue
        }
        const custom = responseValue instanceof ElysiaCustomStatusResponse
        const status = custom ? Number(responseValue.code) : 200
        const reply: unknown = custom ? responseValue.response : responseValue
        const headers: Record<string, string> = {}
        for (const [name, value] of Object.entries(set.headers)) headers[name] = String(value)
        if (options.versioned) headers.etag = entityTag(versionOf(reply))
        set.headers = {}
        const body = JSON.stringify(reply)
        await keepAnswer(call, { status, headers, body }, api.log)
        return jsonResponse(status, body, headers)
      },
    }
  })

/** `/v1/tokens/:id` as OpenAPI writes it: `/v1/tokens/{id}`. */
export const openApiPath = (path: string): string => path.replaceAll(/:(\w+)/g, '{$1}')

/** `/v1/tokens/{id}` as Elysia writes it: `/v1/tokens/:id`. */
export const elysiaPath = (path: string): string => path.replaceAll(/\{(\w+)\}/g, ':$1')

function versionOf(reply: unknown): number {
  if (typeof reply === 'object' && reply !== null && 'version' in reply) return Number(reply.version)
  throw new TypeError('The reply of a versioned route has no version')
}
