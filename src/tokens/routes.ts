/** The routes of `/v1/tokens` (handbook/tokens.md). */
import { type AnyElysia, Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../api/conventions.ts'
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
import { idParams, type ToRecord, type ToRecords, tokenValue } from './route-parts.ts'
import { createTokenBody } from './token-body.ts'
import { validateToken, validationSchema } from './validate.ts'
import { tokenViews, tokenViewsSchema } from './views.ts'
import { requireToken } from './visibility.ts'

export function tokenRoutes(deps: TokenDependencies): AnyElysia[] {
  const { ledger, clock, depletion } = deps
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
    new Elysia({ name: 'tokens' })
      .use(conventions)
      .post(
        '/v1/tokens',
        async ({ principal, requestId, body, showsSecretOf, status }) => {
          const actor = { principal, requestId }
          const { token, secret } = await recordingRefusal(deps, actor, { type: 'token.created', tokenId: null }, () =>
            createToken(deps, actor, body),
          )
          const made = await toRecord(token)
          showsSecretOf(token.id)
          return status(201, { ...made, token_value: secret })
        },
        {
          access: 'tokens:write',
          recordsRefusals: true,
          body: createTokenBody,
          versioned: true,
          response: { 201: tokenRecordSchema.extend({ token_value: tokenValue }) },
          detail: {
            tags: ['Tokens'],
            summary:
              'Creates a token; missing fields come from the calling token if it is narrower, wider ones are refused',
          },
        },
      )
      .get(
        '/v1/tokens',
        async ({ principal, query }) => {
          const at = { now: deps.clock.now(), depletion: deps.depletion }
          const page = await listTokens(deps.ledger, principal, query, at)
          return { tokens: await toRecords(page.tokens), next_cursor: page.nextCursor }
        },
        {
          access: 'tokens:read',
          query: listTokensQuery,
          response: z.object({ tokens: z.array(tokenRecordSchema), next_cursor: z.string().nullable() }),
          detail: { tags: ['Tokens'], summary: 'Lists tokens, newest first' },
        },
      )
      .get(
        '/v1/tokens/alerts',
        async ({ principal, query }) => {
          const page = await listAlerts(deps, principal, query, await organizationId())
          return { alerts: page.alerts, next_cursor: page.nextCursor }
        },
        {
          access: 'tokens:read',
          query: listAlertsQuery,
          response: z.object({ alerts: z.array(alertSchema), next_cursor: z.string().nullable() }),
          detail: {
            tags: ['Tokens'],
            summary:
              'Lists tokens that need attention: near exhaustion or exhausted, expiring, expired, due for rotation, revoked in emergency',
          },
        },
      )
      .get(
        '/v1/tokens/views',
        async ({ principal }) => await tokenViews(ledger, principal, { now: clock.now(), depletion }),
        {
          access: 'tokens:read',
          query: z.strictObject({}),
          response: tokenViewsSchema,
          detail: { tags: ['Tokens'], summary: 'Counts tokens by status, purpose, key class and team' },
        },
      )
      .post(
        '/v1/tokens/validate',
        async ({ principal, body }) => await validateToken(deps, principal, body.token, deps.clock.now()),
        {
          access: 'tokens:read',
          body: z.strictObject({ token: z.string().max(1000) }),
          response: validationSchema,
          detail: { tags: ['Tokens'], summary: 'Says whether a secret belongs to a usable token' },
        },
      )
      .get(
        '/v1/tokens/:id',
        async ({ principal, params }) => {
          const reply = await toRecord(await requireToken(deps.ledger, principal, params.id))
          return reply
        },
        {
          access: 'tokens:read',
          params: idParams,
          versioned: true,
          response: tokenRecordSchema,
          detail: { tags: ['Tokens'], summary: 'Reads a token' },
        },
      )
      .delete(
        '/v1/tokens/:id',
        async ({ principal, requestId, params: { id }, request }) => {
          const { token, propagation } = await revokeToken(deps, { principal, requestId }, id, request.headers)
          const [reached, revoked] = await Promise.all([propagation(), toRecord(token)])
          return { ...revoked, propagation: reached }
        },
        {
          access: 'tokens:revoke',
          params: idParams,
          versioned: true,
          ifMatch: true,
          response: tokenRecordSchema.extend({ propagation: propagationSchema }),
          detail: {
            tags: ['Tokens'],
            summary: 'Revokes a token, and none that it replaced; If-Match names the version that was read',
          },
        },
      ),
    changeRoutes(deps, toRecord),
  ]
}

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
