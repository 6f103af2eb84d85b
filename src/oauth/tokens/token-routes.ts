/** `/v1/oauth/token` and `/v1/oauth/revoke` over HTTP. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { grantTypes } from '../clients/client-resource.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { answered, refusalSchema } from '../protocol-answer.ts'
import { issueTokens } from './issue-tokens.ts'
import { revoke } from './revoke.ts'

export const tokenRoutes = (dependencies: OAuthDependencies) =>
  new Elysia({ name: 'token' })
    .use(conventions)
    .post(
      '/v1/oauth/token',
      ({ requestId, request }) =>
        answered(dependencies, request, requestId, (parameters) => issueTokens(dependencies, parameters, requestId)),
      {
        access: 'public',
        anyOrigin: true,
        form: z.object({
          grant_type: z.enum(grantTypes),
          client_id: z.string(),
          code: z.string().optional(),
          redirect_uri: z.string().optional(),
          code_verifier: z.string().optional(),
          refresh_token: z.string().optional(),
          device_code: z.string().optional(),
          scope: z.string().optional().describe('At a refresh, a part of what was approved'),
          resource: z.string().optional().describe('May come several times (RFC 8707)'),
        }),
        response: {
          200: z.object({
            access_token: z.string(),
            token_type: z.literal('Bearer'),
            expires_in: z.number().int().describe('Seconds'),
            refresh_token: z.string(),
            scope: z.string(),
          }),
          400: refusalSchema,
          500: refusalSchema,
          503: refusalSchema,
        },
        detail: {
          tags: [tag],
          summary:
            'Issues tokens for an authorization code, a refresh token or a device code (RFC 6749, 8628); accepts JSON too',
        },
      },
    )
    .post(
      '/v1/oauth/revoke',
      ({ requestId, request }) =>
        answered(dependencies, request, requestId, (parameters) => revoke(dependencies, parameters, requestId)),
      {
        access: 'public',
        anyOrigin: true,
        form: z.object({
          client_id: z.string(),
          token: z.string(),
          token_type_hint: z.string().optional(),
        }),
        response: {
          200: z.object({
            propagation: z.looseObject({}).optional().describe('Which gateways know, where a token was revoked'),
          }),
          400: refusalSchema,
          500: refusalSchema,
          503: refusalSchema,
        },
        detail: { tags: [tag], summary: 'Revokes an access or refresh token (RFC 7009); accepts JSON too' },
      },
    )

const tag = 'OAuth'
