/** The routes that change a token or make one from another (handbook/tokens.md). */
import { z } from 'zod'
import { type AnyRoute, route } from '../../api/route.ts'
import { noteText } from '../../identity/free-text.ts'
import { propagationSchema } from '../../store/propagation.ts'
import { recordingRefusal } from '../creation/refusal.ts'
import type { TokenDependencies } from '../dependencies.ts'
import { limitUsageSchema } from '../limits/limit-usage.ts'
import { tokenRecordSchema } from '../record.ts'
import { actorOf, etag, idParams, type ToRecord, tokenValue } from '../route-parts.ts'
import { cloneTokenBody, updateTokenBody } from '../token-body.ts'
import { cloneToken } from './clone.ts'
import { emergencyRevokeToken } from './revoke.ts'
import { rotateToken } from './rotate.ts'
import { updateToken } from './update.ts'

export const changeRoutes = (deps: TokenDependencies, toRecord: ToRecord): AnyRoute[] => [
  update(deps, toRecord),
  rotate(deps, toRecord),
  clone(deps, toRecord),
  emergencyRevoke(deps, toRecord),
]

const update = (deps: TokenDependencies, toRecord: ToRecord): AnyRoute =>
  route({
    method: 'PATCH',
    path: '/v1/tokens/{id}',
    tag: 'Tokens',
    summary: 'Rename or narrow a token; If-Match names the version that was read',
    access: 'tokens:write',
    params: idParams,
    body: updateTokenBody,
    reply: tokenRecordSchema.extend({
      propagation: propagationSchema,
      usage: limitUsageSchema.nullable().describe('Where a limit was changed, how much of each is used'),
    }),
    recordsRefusals: true,
    async handle(call) {
      const [actor, { id }] = [actorOf(call), call.params]
      const attempted = { type: 'token.updated', tokenId: id } as const
      const { token, propagation, usage } = await recordingRefusal(deps, actor, attempted, () =>
        updateToken(deps, actor, id, call.body, call.headers),
      )
      const [reached, used, updated] = await Promise.all([propagation(), usage(), toRecord(token)])
      return { reply: { ...updated, propagation: reached, usage: used }, headers: etag(updated) }
    },
  })

const rotate = (deps: TokenDependencies, toRecord: ToRecord): AnyRoute =>
  route({
    method: 'POST',
    path: '/v1/tokens/{id}/rotate',
    tag: 'Tokens',
    summary: 'Replace a token by a new one of the same profile; If-Match names the version that was read',
    access: 'tokens:write',
    params: idParams,
    body: z.strictObject({ grace_period_seconds: z.number().int().min(0).max(86_400).default(0) }),
    reply: tokenRecordSchema.extend({ token_value: tokenValue, propagation: propagationSchema }),
    status: 201,
    recordsRefusals: true,
    async handle(call) {
      const grace = call.body.grace_period_seconds
      const [actor, { id }] = [actorOf(call), call.params]
      const attempted = { type: 'token.rotated', tokenId: id } as const
      const { token, secret, propagation } = await recordingRefusal(deps, actor, attempted, () =>
        rotateToken(deps, actor, id, grace, call.headers),
      )
      const [reached, made] = await Promise.all([propagation(), toRecord(token)])
      const reply = { ...made, token_value: secret, propagation: reached }
      return { reply, secretOf: token.id, headers: etag(made) }
    },
  })

const clone = (deps: TokenDependencies, toRecord: ToRecord): AnyRoute =>
  route({
    method: 'POST',
    path: '/v1/tokens/{id}/clone',
    tag: 'Tokens',
    summary: 'Make a token of equal or narrower scope from another',
    access: 'tokens:write',
    params: idParams,
    body: cloneTokenBody,
    reply: tokenRecordSchema.extend({ token_value: tokenValue }),
    status: 201,
    recordsRefusals: true,
    async handle(call) {
      const [actor, { id }] = [actorOf(call), call.params]
      const attempted = { type: 'token.cloned', tokenId: id } as const
      const { token, secret } = await recordingRefusal(deps, actor, attempted, () =>
        cloneToken(deps, actor, id, call.body),
      )
      const made = await toRecord(token)
      return { reply: { ...made, token_value: secret }, secretOf: token.id, headers: etag(made) }
    },
  })

const emergencyRevoke = (deps: TokenDependencies, toRecord: ToRecord): AnyRoute =>
  route({
    method: 'POST',
    path: '/v1/tokens/{id}/emergency-revoke',
    tag: 'Tokens',
    summary: 'Revoke a token at once, and those it replaced that are in their grace period, and record why',
    access: 'tokens:revoke',
    params: idParams,
    body: z.strictObject({
      explanation: noteText(2000).min(1),
      revoke_active_sessions: z
        .boolean()
        .default(false)
        .describe('Also end the requests and connections that the token has open on connected gateways'),
    }),
    reply: tokenRecordSchema.extend({ proof_event_id: z.uuid(), propagation: propagationSchema }),
    async handle(call) {
      const { explanation, revoke_active_sessions: cutRunning } = call.body
      const how = { explanation, cutRunning }
      const { token, eventId, propagation } = await emergencyRevokeToken(deps, actorOf(call), call.params.id, how)
      const [reached, revoked] = await Promise.all([propagation(), toRecord(token)])
      const reply = { ...revoked, proof_event_id: eventId, propagation: reached }
      return { reply, headers: etag(revoked) }
    },
  })
