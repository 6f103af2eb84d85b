/** What the authorization server says of itself (RFC 8414), and the control plane as a protected resource (RFC 9728). */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { grantTypes } from '../clients/client-resource.ts'
import type { OAuthDependencies } from '../dependencies.ts'
import { activeScopes } from '../scope.ts'
import { protectedResource, protectedResourcePath } from './protected-resource.ts'

const tag = 'OAuth'

export const metadataRoutes = (dependencies: OAuthDependencies) => {
  const { baseUrl, consoleUrl, settings, documents } = dependencies
  return new Elysia({ name: 'metadata' })
    .use(conventions)
    .get(
      '/.well-known/oauth-authorization-server',
      () => ({
        issuer: baseUrl(),
        authorization_endpoint: `${consoleUrl().replace(/\/$/, '')}/oauth/authorize`,
        token_endpoint: `${baseUrl()}/v1/oauth/token`,
        device_authorization_endpoint: `${baseUrl()}/v1/oauth/device_authorization`,
        revocation_endpoint: `${baseUrl()}/v1/oauth/revoke`,
        ...(settings.oauth_dynamic_registration === 'allowed'
          ? { registration_endpoint: `${baseUrl()}/v1/oauth/register` }
          : {}),
        client_id_metadata_document_supported: documents.accepted,
        response_types_supported: ['code'],
        response_modes_supported: ['query'],
        grant_types_supported: [...grantTypes],
        token_endpoint_auth_methods_supported: ['none'],
        revocation_endpoint_auth_methods_supported: ['none'],
        code_challenge_methods_supported: ['S256'],
        authorization_response_iss_parameter_supported: true,
        scopes_supported: [...activeScopes(settings.oauth_scopes)],
      }),
      {
        access: 'public',
        anyOrigin: true,
        response: z.looseObject({ issuer: z.string() }),
        detail: { tags: [tag], summary: 'The authorization server (RFC 8414)' },
      },
    )
    .get(
      protectedResourcePath,
      () => {
        const scopes = activeScopes(settings.oauth_scopes).filter((scope) => !ofGateway.has(scope))
        return { ...protectedResource(baseUrl(), baseUrl(), scopes) }
      },
      {
        access: 'public',
        anyOrigin: true,
        response: z.looseObject({ resource: z.string() }),
        detail: { tags: [tag], summary: 'This API as a protected resource (RFC 9728)' },
      },
    )
}

/** Scopes of the gateway permit nothing here. */
const ofGateway: ReadonlySet<string> = new Set(['gateway:invoke', 'mcp:invoke'])
