/**
 * An OpenID provider for tests that does what it is told, dishonest things too: each step can be replaced. It asks
 * nobody anything; `answerTo` is what its sign-in page would send the browser back with.
 */
import { createHash, createHmac, generateKeyPairSync, type KeyObject, sign } from 'node:crypto'

type Json = Record<string, unknown>

export interface TokenHeader {
  alg: string
  kid?: string
  [name: string]: unknown
}

export interface OpenIdProvider {
  issuer: string
  /** What is said of whoever signs in next, and of everybody who is asked about again. */
  claims: Json
  /** Whether refresh tokens are given, and still taken. */
  refresh: 'given' | 'withheld' | 'withdrawn' | 'unavailable'
  /** The parts that a test replaces. */
  behaviour: {
    discovery(document: Json): Json
    keys(set: { keys: Json[] }): Response | Promise<Response>
    header(header: TokenHeader): TokenHeader
    payload(payload: Json): Json
    signed(token: { header: TokenHeader; payload: Json }, key: KeyObject): string
    tokens(answer: Json): Json
    userinfo: Json | null
  }
  key: KeyObject
  publicKey: KeyObject
  /** Requests by path. */
  seen: { path: string; body: URLSearchParams; authorization: string | null }[]
  /** New keys in place of the old ones. */
  rotateKeys(kid: string): void
  /** The address at which the browser comes back, as for a person who signed in. */
  answerTo(authorizationUrl: string, changes?: Record<string, string | null>): string
  stop(): Promise<void>
}

const encoded = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url')

/** A JWS in its compact form (RFC 7515 section 3.1) by RS256. */
export function signedByRsa(header: TokenHeader, payload: Json, key: KeyObject): string {
  const input = `${encoded(header)}.${encoded(payload)}`
  return `${input}.${sign('RSA-SHA256', Buffer.from(input), key).toString('base64url')}`
}

/** The same by HS256, with any text as the secret. */
export function signedBySecret(header: TokenHeader, payload: Json, secret: string): string {
  const input = `${encoded(header)}.${encoded(payload)}`
  return `${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`
}

export const unsigned = (payload: Json): string => `${encoded({ alg: 'none' })}.${encoded(payload)}.`

const newPair = () => generateKeyPairSync('rsa', { modulusLength: 2048 })
/** The pairs of providers that have stopped. Making one takes as long as most tests; providers that run share none. */
const unusedPairs: ReturnType<typeof newPair>[] = []

export function startOpenIdProvider(options: { claims?: Json; port?: number } = {}): OpenIdProvider {
  let kid = 'key-1'
  const codes = new Map<string, { nonce: string | null; challenge: string; redirectUri: string; clientId: string }>()
  const clients = new Map<string, string>()
  const pair = unusedPairs.pop() ?? newPair()
  const server = Bun.serve({
    hostname: '127.0.0.1',
    port: options.port ?? 0,
    // A key set that hangs, hangs for longer than anybody waits.
    idleTimeout: 255,
    fetch: (request) => serve(request),
  })
  const issuer = `http://127.0.0.1:${server.port}`
  const provider: OpenIdProvider = {
    issuer,
    claims: options.claims ?? { sub: 'subject-1', email: 'ann@example.com', email_verified: true, name: 'Ann' },
    refresh: 'given',
    behaviour: {
      discovery: (document) => document,
      keys: (set) => Response.json(set),
      header: (header) => header,
      payload: (payload) => payload,
      signed: ({ header, payload }, key) => signedByRsa(header, payload, key),
      tokens: (answer) => answer,
      userinfo: null,
    },
    key: pair.privateKey,
    publicKey: pair.publicKey,
    seen: [],
    rotateKeys(next) {
      const made = newPair()
      kid = next
      provider.key = made.privateKey
      provider.publicKey = made.publicKey
    },
    answerTo(authorizationUrl, changes = {}) {
      const asked = new URL(authorizationUrl).searchParams
      const code = crypto.randomUUID()
      codes.set(code, {
        nonce: asked.get('nonce'),
        challenge: asked.get('code_challenge') ?? '',
        redirectUri: asked.get('redirect_uri') ?? '',
        clientId: asked.get('client_id') ?? '',
      })
      const answer = new URL(asked.get('redirect_uri') ?? '')
      const given: Record<string, string | null> = { code, state: asked.get('state'), iss: issuer, ...changes }
      for (const [name, value] of Object.entries(given)) if (value !== null) answer.searchParams.set(name, value)
      return answer.href
    },
    async stop() {
      await server.stop(true)
      unusedPairs.push(pair)
    },
  }
  const document = () => ({
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    jwks_uri: `${issuer}/keys`,
    userinfo_endpoint: `${issuer}/userinfo`,
    end_session_endpoint: `${issuer}/end`,
    response_types_supported: ['code'],
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
    code_challenge_methods_supported: ['S256'],
    authorization_response_iss_parameter_supported: true,
  })

  async function serve(request: Request): Promise<Response> {
    const path = new URL(request.url).pathname
    const body = new URLSearchParams(await request.text())
    provider.seen.push({ path, body, authorization: request.headers.get('authorization') })
    if (path === '/.well-known/openid-configuration') return Response.json(provider.behaviour.discovery(document()))
    if (path === '/keys') {
      const jwk = provider.publicKey.export({ format: 'jwk' })
      return await provider.behaviour.keys({ keys: [{ ...jwk, kid, use: 'sig', alg: 'RS256' }] })
    }
    if (path === '/userinfo') {
      const said = provider.behaviour.userinfo
      return Response.json(said ?? { sub: provider.claims.sub })
    }
    if (path === '/token') return token(body)
    return new Response('', { status: 404 })
  }

  const refusal = (error: string, status = 400) => Response.json({ error }, { status })

  function token(body: URLSearchParams): Response {
    if (body.get('grant_type') === 'refresh_token') {
      if (provider.refresh === 'unavailable') return new Response('down', { status: 503 })
      const client = clients.get(body.get('refresh_token') ?? '')
      if (provider.refresh === 'withdrawn' || client === undefined) return refusal('invalid_grant')
      clients.delete(body.get('refresh_token') ?? '')
      return answer(client, null)
    }
    const code = codes.get(body.get('code') ?? '')
    codes.delete(body.get('code') ?? '')
    const challenge = createHash('sha256')
      .update(body.get('code_verifier') ?? '')
      .digest('base64url')
    const fits = code !== undefined && code.challenge === challenge && code.redirectUri === body.get('redirect_uri')
    return fits ? answer(code.clientId, code.nonce) : refusal('invalid_grant')
  }

  function answer(clientId: string, nonce: string | null): Response {
    const now = Math.floor(Date.now() / 1000)
    const usual = { iss: issuer, aud: clientId, iat: now, exp: now + 300, ...provider.claims }
    const payload = provider.behaviour.payload(nonce === null ? usual : { ...usual, nonce })
    const header = provider.behaviour.header({ alg: 'RS256', kid })
    const refreshToken = crypto.randomUUID()
    if (provider.refresh !== 'withheld') clients.set(refreshToken, clientId)
    return Response.json(
      provider.behaviour.tokens({
        access_token: crypto.randomUUID(),
        token_type: 'Bearer',
        expires_in: 300,
        id_token: provider.behaviour.signed({ header, payload }, provider.key),
        ...(provider.refresh === 'withheld' ? {} : { refresh_token: refreshToken }),
      }),
    )
  }
  return provider
}
