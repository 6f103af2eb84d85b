/** The routes that change a token or make one from another (handbook/tokens.md). */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { noteText } from '../../identity/free-text.ts'
import { propagationSchema } from '../../store/propagation.ts'
import { recordingRefusal } from '../creation/refusal.ts'
import type { TokenDependencies } from '../dependencies.ts'
import { limitUsageSchema } from '../limits/limit-usage.ts'
import { tokenRecordSchema } from '../record.ts'
import { idParams, type ToRecord, tokenValue } from '../route-parts.ts'
import { cloneTokenBody, updateTokenBody } from '../token-body.ts'
import { cloneToken } from './clone.ts'
import { emergencyRevokeToken } from './revoke.ts'
import { rotateToken } from './rotate.ts'
import { updateToken } from './update.ts'

export const changeRoutes = (deps: TokenDependencies, toRecord: ToRecord) =>
  new Elysia({ name: 'change' })
    .use(conventions)
    .patch(
      '/v1/tokens/:id',
      async ({ principal, requestId, params: { id }, body, request }) => {
        const actor = { principal, requestId }
        const attempted = { type: 'token.updated', tokenId: id } as const
        const { token, propagation, usage } = await recordingRefusal(deps, actor, attempted, () =>
          updateToken(deps, actor, id, body, request.headers),
        )
        const [reached, used, updated] = await Promise.all([propagation(), usage(), toRecord(token)])
        return { ...updated, propagation: reached, usage: used }
      },
      {
        access: 'tokens:write',
        recordsRefusals: true,
        params: idParams,
        body: updateTokenBody,
        versioned: true,
        ifMatch: true,
        response: tokenRecordSchema.extend({
          propagation: propagationSchema,
          usage: limitUsageSchema.nullable().describe('Where a limit was changed, how much of each is used'),
        }),
        detail: { tags: ['Tokens'], summary: 'Renames or narrows a token; If-Match names the version that was read' },
      },
    )
    .post(
      '/v1/tokens/:id/rotate',
      async ({ principal, requestId, params: { id }, body, request, showsSecretOf, status }) => {
        const grace = body.grace_period_seconds
        const actor = { principal, requestId }
        const attempted = { type: 'token.rotated', tokenId: id } as const
        const { token, secret, propagation } = await recordingRefusal(deps, actor, attempted, () =>
          rotateToken(deps, actor, id, grace, request.headers),
        )
        const [reached, made] = await Promise.all([propagation(), toRecord(token)])
        const reply = { ...made, token_value: secret, propagation: reached }
        showsSecretOf(token.id)
        return status(201, reply)
      },
      {
        access: 'tokens:write',
        recordsRefusals: true,
        params: idParams,
        body: z.strictObject({ grace_period_seconds: z.number().int().min(0).max(86_400).default(0) }),
        versioned: true,
        ifMatch: true,
        response: { 201: tokenRecordSchema.extend({ token_value: tokenValue, propagation: propagationSchema }) },
        detail: {
          tags: ['Tokens'],
          summary: 'Replaces a token with a new one of the same profile; If-Match names the version that was read',
        },
      },
    )
    .post(
      '/v1/tokens/:id/clone',
      async ({ principal, requestId, params: { id }, body, showsSecretOf, status }) => {
        const actor = { principal, requestId }
        const attempted = { type: 'token.cloned', tokenId: id } as const
        const { token, secret } = await recordingRefusal(deps, actor, attempted, () =>
          cloneToken(deps, actor, id, body),
        )
        const made = await toRecord(token)
        showsSecretOf(token.id)
        return status(201, { ...made, token_value: secret })
      },
      {
        access: 'tokens:write',
        recordsRefusals: true,
        params: idParams,
        body: cloneTokenBody,
        versioned: true,
        response: { 201: tokenRecordSchema.extend({ token_value: tokenValue }) },
        detail: { tags: ['Tokens'], summary: 'Creates a token of equal or narrower scope from another' },
      },
    )
    .post(
      '/v1/tokens/:id/emergency-revoke',
      async ({ principal, requestId, params: { id }, body }) => {
        const { explanation, revoke_active_sessions: endRunningRequests } = body
        const how = { explanation, endRunningRequests }
        const { token, eventId, propagation } = await emergencyRevokeToken(deps, { principal, requestId }, id, how)
        const [reached, revoked] = await Promise.all([propagation(), toRecord(token)])
        const reply = { ...revoked, proof_event_id: eventId, propagation: reached }
        return reply
      },
      {
        access: 'tokens:revoke',
        params: idParams,
        body: z.strictObject({
          explanation: noteText(2000).min(1),
          revoke_active_sessions: z
            .boolean()
            .default(false)
            .describe('Also end the requests and connections that the token has open on connected gateways'),
        }),
        versioned: true,
        response: tokenRecordSchema.extend({ proof_event_id: z.uuid(), propagation: propagationSchema }),
        detail: {
          tags: ['Tokens'],
          summary: 'Revokes a token at once, with the replaced tokens in their grace period, and records why',
        },
      },
    )
