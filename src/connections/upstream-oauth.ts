/**
 * This installation as an OAuth client of an authorization server that an MCP server names: authorization code with
 * PKCE, state and resource (RFC 7636, RFC 8707, RFC 9207), refresh and revocation (RFC 7009). `openid-client` speaks
 * the protocol and checks the answers.
 */
import * as client from 'openid-client'
import type { Fetch } from '../members/identity-providers/bounded-fetch.ts'
import { ProviderRefusal } from '../members/identity-providers/provider-refusal.ts'
import { authenticate, clientFaults, requestBody } from '../members/identity-providers/relying-party.ts'
import type { AuthorizationServer } from './discovery.ts'
import type { UpstreamClient } from './upstream-client.ts'

/** All that a call needs to know of the other side. */
export interface Upstream {
  authorizationServer: AuthorizationServer
  client: UpstreamClient
  fetch: Fetch
}

export interface Tokens {
  accessToken: string
  /** Null where there is none. */
  refreshToken: string | null
  /** Seconds from now; null where the server does not say. */
  expiresIn: number | null
  /** Null: as it was asked for (RFC 6749 section 5.1). */
  scope: string | null
}

export interface AuthorizationSecrets {
  state: string
  verifier: string
}

/** Where the browser goes. */
export async function authorizationUrl(
  upstream: Upstream,
  { redirectUri, resource, scope }: { redirectUri: string; resource: string; scope: string | null },
  { state, verifier }: AuthorizationSecrets,
): Promise<string> {
  const lasting = scopeWithRefresh(upstream.authorizationServer, scope)
  const url = client.buildAuthorizationUrl(configurationOf(upstream), {
    redirect_uri: redirectUri,
    resource,
    state,
    code_challenge: await client.calculatePKCECodeChallenge(verifier),
    code_challenge_method: 'S256',
    ...(lasting === null ? {} : { scope: lasting }),
    // OpenID Connect Core 1.0 section 11: without it offline_access is left out.
    ...(lasting?.split(' ').includes('offline_access') === true ? { prompt: 'consent' } : {}),
  })
  return url.href
}

/** An authorization server that has the scope for it is asked for a refresh token (MCP, Refresh Tokens). */
function scopeWithRefresh({ scopes_supported: scopes }: AuthorizationServer, scope: string | null): string | null {
  const asked = scope?.split(' ') ?? []
  if (scopes?.includes('offline_access') !== true || asked.includes('offline_access')) return scope
  return [...asked, 'offline_access'].join(' ')
}

/** Exchanges the code of an answer. Rejects with a `ProviderRefusal`. */
export const redeem = (
  upstream: Upstream,
  answer: URL,
  resource: string,
  { state, verifier }: AuthorizationSecrets,
): Promise<Tokens> =>
  explained(async () =>
    tokensOf(
      await client.authorizationCodeGrant(
        configurationOf(upstream),
        answer,
        { expectedState: state, pkceCodeVerifier: verifier },
        { resource },
      ),
    ),
  )

/** Null: the person's approval is over. Rejects with a `ProviderRefusal` where there is no usable answer. */
export async function refresh(upstream: Upstream, refreshToken: string, resource: string): Promise<Tokens | null> {
  return await explained(async () => {
    try {
      return tokensOf(await client.refreshTokenGrant(configurationOf(upstream), refreshToken, { resource }))
    } catch (error) {
      if (error instanceof client.ResponseBodyError && error.error === 'invalid_grant') return null
      throw error
    }
  })
}

/** False where the authorization server offers no revocation. Rejects with a `ProviderRefusal`. */
export async function revoke(upstream: Upstream, token: string): Promise<boolean> {
  if (upstream.authorizationServer.revocation_endpoint === undefined) return false
  await explained(() => client.tokenRevocation(configurationOf(upstream), token))
  return true
}

function configurationOf({ authorizationServer, client: { clientId, clientSecret }, fetch }: Upstream) {
  const configuration = new client.Configuration(
    withoutUndefined(authorizationServer),
    clientId,
    undefined,
    authenticate(clientSecret),
  )
  configuration[client.customFetch] = (url, { body, ...options }) =>
    fetch(url, { ...options, ...(body === undefined ? {} : { body: requestBody(body) }) })
  // Which addresses may be plain is decided where each is called (`upstream-fetch.ts`).
  client.allowInsecureRequests(configuration)
  return configuration
}

/** The library tells a member that is absent from one that is undefined. */
const withoutUndefined = (metadata: AuthorizationServer): client.ServerMetadata => JSON.parse(JSON.stringify(metadata))

/** The form of an access token that a header can carry; the gateway sends it as it is. */
const tokenForm = /^[\x21-\x7e]{1,8192}$/

function tokensOf({
  access_token,
  refresh_token,
  expires_in,
  scope,
}: Awaited<ReturnType<typeof client.refreshTokenGrant>>): Tokens {
  if (!tokenForm.test(access_token)) throw new ProviderRefusal('invalid_answer', 'The access token has no usable form')
  return {
    accessToken: access_token,
    refreshToken: refresh_token ?? null,
    expiresIn: expires_in ?? null,
    scope: scope ?? null,
  }
}

/** Runs a call of the library; what it throws becomes a refusal that holds no token. */
async function explained<Result>(call: () => Promise<Result>): Promise<Result> {
  try {
    return await call()
  } catch (error) {
    throw refusalOf(error)
  }
}

function refusalOf(error: unknown): ProviderRefusal {
  const own = error instanceof Error && error.cause instanceof ProviderRefusal ? error.cause : error
  if (own instanceof ProviderRefusal) return own
  if (error instanceof client.AuthorizationResponseError) {
    const reason = clientFaults.includes(error.error) ? 'provider_refused_client' : 'provider_denied'
    return new ProviderRefusal(reason, `The authorization server answered ${plain(error.error)}`)
  }
  if (error instanceof client.ResponseBodyError) {
    const reason = clientFaults.includes(error.error) ? 'provider_refused_client' : 'invalid_answer'
    return new ProviderRefusal(reason, `The token endpoint answered ${plain(error.error)}`)
  }
  return new ProviderRefusal('invalid_answer', plain(error instanceof Error ? error.message : String(error)))
}

/** Another system's words, short enough for a log line. */
const plain = (text: string): string => text.replaceAll(/[^\x20-\x7e]/g, ' ').slice(0, 200)
