/**
 * A control-plane route as data. One definition serves four readers: the server that mounts it, the validation of what
 * comes in, the authorization, and `/v1/openapi.json`. None of them knows Elysia: `router.ts` does.
 */
import type { z } from 'zod'
import type { Permission } from '../identity/permissions.ts'
import type { Principal } from '../identity/principal.ts'

/** Who may call: a permission; anyone signed in; a gateway by its runtime token or session; or everybody. */
export type Access = Permission | 'signed-in' | 'runtime:session' | 'public'

export interface Call<Params, Query, Body> {
  /** Who calls; on a public route an anonymous principal. */
  principal: Principal
  params: Params
  query: Query
  body: Body
  headers: Headers
  requestId: string
  /** Fires when the caller leaves. */
  signal: AbortSignal
}

/** A plain answer; give a `Response` instead for streams. */
export interface Answer<Reply> {
  reply: Reply
  headers?: Record<string, string>
  /** Set where the reply holds a secret, to the id of what was made: idempotent repeats answer 409 with it. */
  secretOf?: string
}

export interface Route<Params = unknown, Query = unknown, Body = unknown, Reply = unknown> {
  method: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  /** OpenAPI form: `/v1/tokens/{id}`. */
  path: string
  tag: string
  summary: string
  access: Access
  params?: z.ZodType<Params>
  query?: z.ZodType<Query>
  body?: z.ZodType<Body>
  /** Bodies that are not one JSON object are left to the handler: it reads `request`. */
  rawBody?: string
  /** A form and the answer of 400, for the description only: the handler reads `request` and judges it by other rules. */
  form?: { body: z.ZodType; refusal: z.ZodType }
  reply: z.ZodType<Reply>
  /** Content types beside JSON in which it answers, such as `text/csv`; a `Response` carries them. */
  alsoAnswers?: readonly string[]
  status?: 200 | 201 | 202
  /** Pages of any origin may call it and read its answers, without credentials of the browser. Only on a public route. */
  anyOrigin?: true
  /** Left out of `/v1/openapi.json`: between our own processes only. */
  internal?: true
  /** It concerns the whole organization, although its permission does not say so: tokens that are bound to a team or a user are refused. */
  wholeOrganization?: true
  /** It leaves events of its own where what its caller asks for goes beyond what the caller may do. */
  recordsRefusals?: true
  handle(
    call: Call<Params, Query, Body>,
    request: Request,
  ): Promise<Answer<Reply> | Response> | Answer<Reply> | Response
}

/** A route whose parts have been forgotten, as tables hold it. */
// biome-ignore lint/suspicious/noExplicitAny: a table holds routes of all types; `route` has checked each
export type AnyRoute = Route<any, any, any, any>

/** Checks a definition and forgets its parts' types, so that different routes fit one table. */
export const route = <Params, Query, Body, Reply>(definition: Route<Params, Query, Body, Reply>): AnyRoute => definition

/** A gateway route as the public description shows it; the gateway serves it without Elysia and without zod. */
export interface GatewayRouteDescription {
  method: 'GET' | 'POST'
  path: string
  family: string
  summary: string
  permission: Permission
  /** The policy stages this family supports (policies/README.md). */
  policyStages: readonly string[]
  request?: z.ZodType
  /** The content type of the request where it is not JSON. */
  requestType?: 'multipart/form-data'
  /** Left out where it never answers in JSON. */
  reply?: z.ZodType
  /** Content types beside JSON in which it answers, such as `text/event-stream`. */
  alsoAnswers?: readonly string[]
  /** The token may be sent as `x-api-key` too. */
  takesApiKey?: true
}
