/**
 * An MCP server at which each person has an account: the official library's server behind `oidc-provider` of npm, which
 * is its authorization server, both at one origin of this host. People sign in on its page by their name. It takes
 * registrations of clients (RFC 7591), resource indicators (RFC 8707) and revocations (RFC 7009).
 */
import { generateKeyPairSync } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import Provider from 'oidc-provider'
import { OfficialMcpServer } from './official-mcp-server.ts'

export interface ProtectedMcpServer extends AsyncDisposable {
  /** The authorization server. */
  issuer: string
  /** The MCP server. */
  url: string
  mcp: OfficialMcpServer
  /** Who called the MCP server, one name for each request that it took. */
  readonly callers: string[]
  /** Grants of refresh tokens so far. */
  refreshes: number
  /** Paths of revocations and registrations that were called. */
  readonly asked: string[]
  /** Accounts that need the scope issues:write. */
  readonly readers: Set<string>
  /** Accounts of which a revocation ends all approvals. */
  readonly oneApproval: Set<string>
  /** Accounts that may do nothing there. */
  readonly forbidden: Set<string>
  /** From now on all access tokens that were issued before are refused. */
  refuseTokens(): void
  /** The approvals of a person are over. */
  withdraw(name: string): Promise<void>
}

const loginPage = (uid: string) => `<!doctype html><html lang="en"><title>The tracker</title>
<h1>Sign in at the tracker</h1>
<form method="post" action="/interaction/${uid}">
<label>Your name <input name="login" required></label><button type="submit">Sign in here</button>
</form></html>`

export interface ProtectedServerOptions {
  accessTokenSeconds?: number
  /** A client that is registered beforehand. */
  client?: { client_id: string; client_secret: string; redirect_uris: string[] }
}

export async function startProtectedMcpServer(
  port: number,
  { accessTokenSeconds = 3600, client }: ProtectedServerOptions = {},
): Promise<ProtectedMcpServer> {
  const issuer = `http://127.0.0.1:${port}`
  const url = `${issuer}/mcp`
  const mcp = new OfficialMcpServer()
  const callers: string[] = []
  const asked: string[] = []
  const forbidden = new Set<string>()
  const readers = new Set<string>()
  const oneApproval = new Set<string>()
  const grants = new Map<string, string[]>()
  let refusedUntil = 0
  let refreshes = 0
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const provider = new Provider(issuer, {
    clients: client === undefined ? [] : [client],
    jwks: { keys: [{ ...privateKey.export({ format: 'jwk' }), kid: 'first', use: 'sig', alg: 'RS256' }] },
    scopes: ['openid', 'offline_access'],
    clientAuthMethods: ['none', 'client_secret_basic', 'client_secret_post'],
    cookies: { keys: ['a key of the cookies of this provider'] },
    features: {
      devInteractions: { enabled: false },
      registration: { enabled: true },
      revocation: { enabled: true },
      resourceIndicators: {
        enabled: true,
        useGrantedResource: () => true,
        getResourceServerInfo: (_context: unknown, resource: string) => {
          if (resource !== url) throw new Error(`Asked for ${resource}`)
          return { scope: 'issues:read issues:write', audience: url, accessTokenTTL: accessTokenSeconds }
        },
      },
    },
    pkce: { required: () => true },
    rotateRefreshToken: () => true,
    issueRefreshToken: () => true,
    interactions: { url: (_context: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
    findAccount: (_context: unknown, sub: string) => ({ accountId: sub, claims: () => ({ sub }) }),
  })
  provider.on('grant.success', (context) => {
    if (context.oidc.params.grant_type === 'refresh_token') refreshes += 1
  })

  /** Who are you, which the page asks, and may the client do this, which everybody answers with yes. */
  async function interact(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { uid, prompt, params, session } = await provider.interactionDetails(request, response)
    if (prompt.name === 'consent') {
      const accountId = session?.accountId ?? ''
      const grant = new provider.Grant({ accountId, clientId: params.client_id })
      for (const scope of prompt.details.missingOIDCScope ?? []) grant.addOIDCScope(scope)
      for (const [resource, scopes] of Object.entries(prompt.details.missingResourceScopes ?? {})) {
        grant.addResourceScope(resource, scopes.join(' '))
      }
      // A client asks again when the person connects again.
      grant.addOIDCScope('offline_access')
      const grantId = await grant.save()
      grants.set(accountId, [...(grants.get(accountId) ?? []), grantId])
      return await provider.interactionFinished(request, response, { consent: { grantId } })
    }
    if (request.method !== 'POST') {
      response.setHeader('content-type', 'text/html; charset=utf-8')
      response.end(loginPage(uid))
      return
    }
    const accountId = new URLSearchParams((await bodyOf(request)).toString()).get('login') ?? ''
    await provider.interactionFinished(request, response, { login: { accountId } })
  }

  /** The MCP server takes tokens of its own only (RFC 8707), and says where to get one (RFC 9728). */
  async function answerMcp(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [, secret = ''] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? []
    const token = await provider.AccessToken.find(secret)
    if (token === undefined || token.aud !== url || token.iat < refusedUntil) {
      const challenge = `Bearer resource_metadata="${issuer}/.well-known/oauth-protected-resource/mcp", scope="issues:read"`
      response.writeHead(401, { 'www-authenticate': challenge }).end()
      return
    }
    if (forbidden.has(token.accountId)) {
      response.writeHead(403).end()
      return
    }
    if (readers.has(token.accountId) && !token.scope.split(' ').includes('issues:write')) {
      response.writeHead(403, { 'www-authenticate': 'Bearer error="insufficient_scope", scope="issues:write"' }).end()
      return
    }
    callers.push(token.accountId)
    const { host: _host, ...headers } = request.headers
    const body = request.method === 'POST' ? new Uint8Array(await bodyOf(request)) : null
    const leaving = new AbortController()
    response.on('close', () => leaving.abort())
    const answer = await fetch(mcp.url, {
      method: request.method ?? 'GET',
      headers: Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]),
      body,
      signal: leaving.signal,
    })
    response.writeHead(answer.status, Object.fromEntries(answer.headers))
    if (answer.body === null) response.end()
    else await pipeline(Readable.fromWeb(answer.body), response).catch(() => undefined)
  }

  async function withdraw(name: string): Promise<void> {
    for (const grantId of grants.get(name) ?? []) await (await provider.Grant.find(grantId))?.destroy()
  }

  const answer = provider.callback()
  const server = createServer((request, response) => {
    const path = request.url ?? ''
    if (path === '/.well-known/oauth-protected-resource/mcp') {
      response.setHeader('content-type', 'application/json')
      response.end(JSON.stringify({ resource: url, authorization_servers: [issuer] }))
      return
    }
    if (path === '/reg' || path === '/token/revocation') asked.push(path)
    if (path === '/token/revocation') for (const name of oneApproval) void withdraw(name)
    const isOwn = path === '/mcp' || path.startsWith('/interaction/')
    if (!isOwn) return answer(request, response)
    const own = path === '/mcp' ? answerMcp : interact
    own(request, response).catch((error: unknown) => {
      response.statusCode = 500
      response.end(String(error))
    })
  })
  await new Promise<void>((listening) => {
    server.listen(port, '127.0.0.1', listening)
  })
  return {
    ...{ issuer, url, mcp, callers, asked, forbidden, readers, oneApproval },
    get refreshes() {
      return refreshes
    },
    refuseTokens() {
      // Tokens are dated to the second.
      refusedUntil = Math.floor(Date.now() / 1000) + 1
    },
    withdraw,
    async [Symbol.asyncDispose]() {
      await mcp.stop()
      server.closeAllConnections()
      await new Promise((closed) => {
        server.close(closed)
      })
    },
  }
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Uint8Array[] = []
  for await (const part of request) parts.push(part)
  return Buffer.concat(parts)
}
