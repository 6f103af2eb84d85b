/** The routes of `/v1/tokens` (handbook/tokens.md). */
import { z } from 'zod'
import { type AnyRoute, route } from '../api/route.ts'
import type { Database } from '../store/open.ts'
import { propagationSchema } from '../store/propagation.ts'
import { changeRoutes } from './changes/change-routes.ts'
import { createToken } from './changes/create.ts'
import { revokeToken } from './changes/revoke.ts'
import { attachedPolicies } from './creation/attached-policies.ts'
import { recordingRefusal } from './creation/refusal.ts'
import type { TokenDependencies } from './dependencies.ts'
import { alertSchema, listAlerts, listAlertsQuery } from './limits/alerts.ts'
import { listTokens, listTokensQuery } from './list.ts'
import { organizationId } from './organization.ts'
import { tokenRecord, tokenRecordSchema } from './record.ts'
import { actorOf, etag, idParams, type ToRecord, type ToRecords, tokenValue } from './route-parts.ts'
import { createTokenBody } from './token-body.ts'
import { validateToken, validationSchema } from './validate.ts'
import { tokenViews, tokenViewsSchema } from './views.ts'
import { requireToken } from './visibility.ts'

export function tokenRoutes(deps: TokenDependencies): AnyRoute[] {
  const organizationId = organizationOf(deps.ledger)
  const toRecords: ToRecords = async (tokens) => {
    const [organization, used] = [await organizationId(), await deps.depletion.read(tokens)]
    const policies = await attachedPolicies(deps.ledger, [...new Set(tokens.flatMap(({ policyIds }) => policyIds))])
    return tokens.map((token) => ({
      ...tokenRecord(token, organization, deps.clock.now(), used.get(token.id) ?? null),
      policies: policies.filter(({ id }) => token.policyIds.includes(id)),
    }))
  }
  const toRecord: ToRecord = async (token) => {
    const [record] = await toRecords([token])
    if (record === undefined) throw new Error('A token has no record')
    return record
  }
  return [
    create(deps, toRecord),
    list(deps, toRecords),
    alerts(deps, organizationId),
    views(deps),
    validate(deps),
    get(deps, toRecord),
    revoke(deps, toRecord),
    ...changeRoutes(deps, toRecord),
  ]
}

const create = (deps: TokenDependencies, toRecord: ToRecord): AnyRoute =>
  route({
    method: 'POST',
    path: '/v1/tokens',
    tag: 'Tokens',
    summary: 'Make a token; what is left out comes from the calling token where that is narrower, more is refused',
    access: 'tokens:write',
    body: createTokenBody,
    reply: tokenRecordSchema.extend({ token_value: tokenValue }),
    status: 201,
    recordsRefusals: true,
    async handle(call) {
      const actor = actorOf(call)
      const { token, secret } = await recordingRefusal(deps, actor, { type: 'token.created', tokenId: null }, () =>
        createToken(deps, actor, call.body),
      )
      const made = await toRecord(token)
      return { reply: { ...made, token_value: secret }, secretOf: token.id, headers: etag(made) }
    },
  })

const list = (deps: TokenDependencies, toRecords: ToRecords): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/tokens',
    tag: 'Tokens',
    summary: 'List tokens, newest first',
    access: 'tokens:read',
    query: listTokensQuery,
    reply: z.object({ tokens: z.array(tokenRecordSchema), next_cursor: z.string().nullable() }),
    async handle({ principal, query }) {
      const at = { now: deps.clock.now(), depletion: deps.depletion }
      const page = await listTokens(deps.ledger, principal, query, at)
      return { reply: { tokens: await toRecords(page.tokens), next_cursor: page.nextCursor } }
    },
  })

const get = (deps: TokenDependencies, toRecord: ToRecord): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/tokens/{id}',
    tag: 'Tokens',
    summary: 'Read a token',
    access: 'tokens:read',
    params: idParams,
    reply: tokenRecordSchema,
    async handle({ principal, params }) {
      const reply = await toRecord(await requireToken(deps.ledger, principal, params.id))
      return { reply, headers: etag(reply) }
    },
  })

const revoke = (deps: TokenDependencies, toRecord: ToRecord): AnyRoute =>
  route({
    method: 'DELETE',
    path: '/v1/tokens/{id}',
    tag: 'Tokens',
    summary: 'Revoke a token, and no other that it replaced; If-Match names the version that was read',
    access: 'tokens:revoke',
    params: idParams,
    reply: tokenRecordSchema.extend({ propagation: propagationSchema }),
    async handle(call) {
      const { token, propagation } = await revokeToken(deps, actorOf(call), call.params.id, call.headers)
      const [reached, revoked] = await Promise.all([propagation(), toRecord(token)])
      return { reply: { ...revoked, propagation: reached }, headers: etag(revoked) }
    },
  })

const alerts = (deps: TokenDependencies, organizationId: () => Promise<string>): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/tokens/alerts',
    tag: 'Tokens',
    summary:
      'List tokens to look at: near exhaustion or exhausted, expiring, expired, due for rotation, revoked in emergency',
    access: 'tokens:read',
    query: listAlertsQuery,
    reply: z.object({ alerts: z.array(alertSchema), next_cursor: z.string().nullable() }),
    async handle({ principal, query }) {
      const page = await listAlerts(deps, principal, query, await organizationId())
      return { reply: { alerts: page.alerts, next_cursor: page.nextCursor } }
    },
  })

const views = ({ ledger, clock, depletion }: TokenDependencies): AnyRoute =>
  route({
    method: 'GET',
    path: '/v1/tokens/views',
    tag: 'Tokens',
    summary: 'Count tokens by status, purpose, key class and team',
    access: 'tokens:read',
    query: z.strictObject({}),
    reply: tokenViewsSchema,
    handle: async ({ principal }) => ({
      reply: await tokenViews(ledger, principal, { now: clock.now(), depletion }),
    }),
  })

const validate = (deps: TokenDependencies): AnyRoute =>
  route({
    method: 'POST',
    path: '/v1/tokens/validate',
    tag: 'Tokens',
    summary: 'Say whether a secret is one of a usable token',
    access: 'tokens:read',
    body: z.strictObject({ token: z.string().max(1000) }),
    reply: validationSchema,
    handle: async ({ principal, body }) => ({
      reply: await validateToken(deps, principal, body.token, deps.clock.now()),
    }),
  })

/** The organization never changes once it is made, so it is read once. */
function organizationOf(ledger: Database): () => Promise<string> {
  let known: string | null = null
  return async () => {
    if (known !== null) return known
    const organization = await organizationId(ledger)
    if (organization === null) throw new Error('There is no organization: the first start has not run')
    known = organization
    return organization
  }
}
