/**
 * The relying party of OpenID Connect: authorization code flow with PKCE, state and nonce (OpenID Connect Core 1.0
 * section 3.1, RFC 7636, RFC 9700). `openid-client` speaks the protocol and checks what it says; here is what it is
 * told, and what comes of its errors.
 *
 *   - The ID token's signature is checked against the provider's keys, although TLS would do for a token that comes
 *     from the token endpoint: a public key of the provider's set, by an algorithm that the provider announces.
 *   - Metadata is kept for ten minutes and keys for five, one fetch for all who wait. A key that is not among them
 *     makes the keys be fetched anew, at most once a minute.
 *   - The issuer must be the record's, to the letter, in the metadata, in the ID token and in the answer (RFC 9207).
 */
import * as client from 'openid-client'
import type { Clock } from '../../lib/clock.ts'
import { boundedFetch, type Fetch } from './bounded-fetch.ts'
import { isOnThisHost } from './identity-provider-resource.ts'
import { ProviderRefusal } from './provider-refusal.ts'
import type { KnownProvider } from './stored-identity-provider.ts'

export type Claims = Readonly<Record<string, unknown>>

/** What a provider says of a person now. */
export interface Vouched {
  subject: string
  claims: Claims
  /** With which it can be asked again; null where it gave none. */
  refreshToken: string | null
}

/** What binds an answer to the browser and the request that asked for it. */
export interface AttemptSecrets {
  state: string
  nonce: string
  verifier: string
}

const metadataMilliseconds = 10 * 60_000
/** Between the clocks of two hosts. */
const toleranceSeconds = 30
const google = 'https://accounts.google.com'

interface Known {
  version: number
  until: number
  configuration: Promise<client.Configuration>
}

export type RelyingParty = ReturnType<typeof createRelyingParty>

/** Makes the relying party of a control plane, which keeps what it has learnt of providers. */
export function createRelyingParty({ clock, fetch }: { clock: Clock; fetch: Fetch }) {
  const known = new Map<string, Known>()

  async function configurationOf(provider: KnownProvider): Promise<client.Configuration> {
    const kept = known.get(provider.id)
    if (kept !== undefined && kept.version === provider.version && clock.now() < kept.until) {
      return await kept.configuration
    }
    const configuration = discover(provider, fetch)
    known.set(provider.id, { version: provider.version, until: clock.now() + metadataMilliseconds, configuration })
    try {
      return await configuration
    } catch (error) {
      if (known.get(provider.id)?.configuration === configuration) known.delete(provider.id)
      throw error
    }
  }

  return {
    /** Where the browser goes to be asked who it is. Throws `ProviderRefusal`. */
    async authorizationUrl(provider: KnownProvider, redirectUri: string, secrets: AttemptSecrets): Promise<string> {
      const configuration = await configurationOf(provider)
      const [onlyDomain, ...others] = provider.config.domains
      const url = client.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: provider.config.scope,
        state: secrets.state,
        nonce: secrets.nonce,
        code_challenge: await client.calculatePKCECodeChallenge(secrets.verifier),
        code_challenge_method: 'S256',
        // Google gives a refresh token for this instead of for a scope.
        ...(provider.issuer === google ? { access_type: 'offline' } : {}),
        ...(provider.issuer === google && onlyDomain !== undefined && others.length === 0 ? { hd: onlyDomain } : {}),
      })
      return url.href
    },

    /** Exchanges the code of an answer. Throws `ProviderRefusal`. */
    async redeem(provider: KnownProvider, answer: URL, secrets: AttemptSecrets): Promise<Vouched> {
      const configuration = await configurationOf(provider)
      return await explained('invalid_answer', async () => {
        const tokens = await client.authorizationCodeGrant(configuration, answer, {
          expectedState: secrets.state,
          expectedNonce: secrets.nonce,
          pkceCodeVerifier: secrets.verifier,
          idTokenExpected: true,
        })
        const claims = requireClaims(tokens.claims())
        return await vouched(configuration, provider, tokens, claims)
      })
    },

    /**
     * Asks about a person again. Null: the provider has withdrawn its word. Throws `ProviderRefusal` where it gave no
     * usable answer.
     */
    async renew(provider: KnownProvider, refreshToken: string, subject: string): Promise<Vouched | null> {
      const configuration = await configurationOf(provider)
      return await explained('provider_unreachable', async () => {
        try {
          const tokens = await client.refreshTokenGrant(configuration, refreshToken)
          const claims = tokens.claims()
          // OpenID Connect Core 1.0 section 12.2: the same person.
          if (claims !== undefined && requireClaims(claims).sub !== subject) return null
          const said = claims ?? { sub: subject }
          const renewed = await vouched(configuration, provider, tokens, said)
          if (claims === undefined && Object.keys(renewed.claims).length === 1) {
            throw new ProviderRefusal(
              'invalid_answer',
              'The provider says nothing of the person when it is asked again',
            )
          }
          return { ...renewed, refreshToken: renewed.refreshToken ?? refreshToken }
        } catch (error) {
          if (error instanceof client.ResponseBodyError && error.error === 'invalid_grant') return null
          throw error
        }
      })
    },

    /** Where the browser goes to sign out at the provider too (RP-Initiated Logout 1.0); null where there is no such page. */
    async endSessionUrl(provider: KnownProvider, returnTo: string): Promise<string | null> {
      const configuration = await configurationOf(provider)
      if (configuration.serverMetadata().end_session_endpoint === undefined) return null
      return client.buildEndSessionUrl(configuration, { post_logout_redirect_uri: returnTo }).href
    },
  }
}

async function discover(provider: KnownProvider, fetch: Fetch): Promise<client.Configuration> {
  const { issuer, clientId, clientSecret } = provider
  return await explained('provider_unreachable', async () => {
    const plain = isOnThisHost(issuer) && issuer.startsWith('http:') ? [client.allowInsecureRequests] : []
    const bounded = boundedFetch(fetch)
    const configuration = await client.discovery(
      new URL(issuer),
      clientId,
      { [client.clockTolerance]: toleranceSeconds },
      (server, metadata, body, headers) => authenticate(clientSecret)(server, metadata, body, headers),
      {
        execute: [client.enableNonRepudiationChecks, ...plain],
        [client.customFetch]: (url, { body, ...options }) =>
          bounded(url, { ...options, ...(body === undefined ? {} : { body: requestBody(body) }) }),
      },
    )
    const found = configuration.serverMetadata()
    if (found.issuer !== issuer) {
      throw new ProviderRefusal('invalid_answer', `The provider calls itself ${found.issuer}: write that as the issuer`)
    }
    return configuration
  })
}

/** The client sends forms and nothing else. */
export function requestBody(body: client.FetchBody): string | null {
  if (body === undefined || body === null) return null
  if (typeof body === 'string' || body instanceof URLSearchParams) return String(body)
  throw new TypeError('A request to a provider has a form for its body')
}

/** Basic where the provider takes it, as is usual where it says nothing (OpenID Connect Discovery 1.0 section 3). */
export const authenticate =
  (secret: string | null): client.ClientAuth =>
  (server, metadata, body, headers) => {
    const methods = server.token_endpoint_auth_methods_supported ?? ['client_secret_basic']
    const basic = methods.includes('client_secret_basic')
    const method =
      secret === null ? client.None() : basic ? client.ClientSecretBasic(secret) : client.ClientSecretPost(secret)
    method(server, metadata, body, headers)
  }

type IdTokenClaims = NonNullable<ReturnType<Awaited<ReturnType<typeof client.refreshTokenGrant>>['claims']>>

/** `iat` is required by the library, but may lie in the future: such a token was not made by an honest clock. */
function requireClaims(claims: IdTokenClaims | undefined): IdTokenClaims {
  if (claims === undefined) throw new ProviderRefusal('invalid_answer', 'The provider sent no ID token')
  if (claims.iat * 1000 > Date.now() + toleranceSeconds * 1000) {
    throw new ProviderRefusal('invalid_answer', 'The ID token was issued in the future')
  }
  return claims
}

type Tokens = Awaited<ReturnType<typeof client.refreshTokenGrant>>

/** What the ID token leaves out, the provider is asked for at its UserInfo endpoint (section 5.3). */
async function vouched(
  configuration: client.Configuration,
  { config }: KnownProvider,
  tokens: Tokens,
  claims: Claims & { sub: string },
): Promise<Vouched> {
  const [groups = ''] = config.groups_claim.split('.')
  const hasGroups = config.groups.length === 0 || (claims[config.groups_claim] ?? claims[groups]) !== undefined
  const isComplete = claims.email !== undefined && hasGroups
  const canAsk = configuration.serverMetadata().userinfo_endpoint !== undefined
  const more = isComplete || !canAsk ? {} : await client.fetchUserInfo(configuration, tokens.access_token, claims.sub)
  return { subject: claims.sub, claims: { ...more, ...claims }, refreshToken: tokens.refresh_token ?? null }
}

/** Runs a call of the library; what it throws becomes a refusal that names what went wrong, and holds no token. */
async function explained<Result>(
  otherwise: 'invalid_answer' | 'provider_unreachable',
  call: () => Promise<Result>,
): Promise<Result> {
  try {
    return await call()
  } catch (error) {
    throw refusalOf(error, otherwise)
  }
}

export const clientFaults = ['invalid_client', 'unauthorized_client', 'invalid_scope', 'unsupported_grant_type']

function refusalOf(error: unknown, otherwise: 'invalid_answer' | 'provider_unreachable'): ProviderRefusal {
  // What our own `fetch` throws, the library wraps.
  const own = error instanceof Error && error.cause instanceof ProviderRefusal ? error.cause : error
  if (own instanceof ProviderRefusal) return own
  if (error instanceof client.AuthorizationResponseError) {
    const reason = clientFaults.includes(error.error) ? 'provider_refused_client' : 'provider_denied'
    return new ProviderRefusal(reason, `The provider answered ${plain(error.error)}`)
  }
  if (error instanceof client.ResponseBodyError) {
    const reason = clientFaults.includes(error.error) ? 'provider_refused_client' : otherwise
    return new ProviderRefusal(reason, `The provider's token endpoint answered ${plain(error.error)}`)
  }
  return new ProviderRefusal(otherwise, plain(error instanceof Error ? error.message : String(error)))
}

/** Another system's words, short enough for a log line. */
const plain = (text: string): string => text.replaceAll(/[^\x20-\x7e]/g, ' ').slice(0, 200)
