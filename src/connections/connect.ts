/**
 * Connects a person's account at an MCP server: the address that the browser goes to, and what becomes of the answer.
 */
import { createHash } from 'node:crypto'
import { ProviderRefusal } from '../members/identity-providers/provider-refusal.ts'
import { recordChange } from '../members/member-event.ts'
import { sessionPrincipal } from '../members/sessions/authenticate-session.ts'
import type { LiveSession } from '../members/sessions/session.ts'
import { type Attempt, connectionAttempts } from './connection-attempt.ts'
import { connectionEvent } from './connection-event.ts'
import { createCurrentTokens } from './current-token.ts'
import type { ConnectionDependencies } from './dependencies.ts'
import { authorizationServerOf, discover } from './discovery.ts'
import { revokeTokens } from './end-connections.ts'
import type { PersonalServer } from './personal-server.ts'
import {
  type ConnectionRow,
  findConnection,
  findEnded,
  keepConnection,
  openSecrets,
  sealSecrets,
} from './stored-connection.ts'
import { forgetRegisteredClient, redirectUriOf, upstreamClient } from './upstream-client.ts'
import { upstreamFetch } from './upstream-fetch.ts'
import { authorizationUrl, redeem } from './upstream-oauth.ts'

/**
 * Where the browser goes, and the cookie that it carries. `more` is asked for beside what the account gave before.
 * Rejects with a `ProviderRefusal`.
 */
export async function beginConnection(
  dependencies: ConnectionDependencies,
  server: PersonalServer,
  { userId }: LiveSession,
  more: string | null,
): Promise<{ redirectTo: string; cookie: string }> {
  const fetch = upstreamFetch(dependencies, server)
  const { authorizationServer, resource, scope: usual } = await discover(server, fetch)
  const before = more === null ? null : await findConnection(dependencies.ledger, { userId, serverId: server.id })
  const scope = more === null ? usual : union([before?.scope ?? usual, more])
  const client = await upstreamClient(dependencies, server, authorizationServer, fetch)
  const { attempt, cookie } = connectionAttempts.begin(dependencies, {
    ...{ serverId: server.id, userId, url: server.url, issuer: authorizationServer.issuer },
    ...{ resource, scope, clientId: client.clientId },
  })
  const redirectUri = redirectUriOf(dependencies, server.id)
  const upstream = { authorizationServer, client, fetch }
  return { redirectTo: await authorizationUrl(upstream, { redirectUri, resource, scope }, attempt), cookie }
}

/** The words of some scopes, each once. */
const union = (scopes: readonly (string | null)[]): string =>
  [...new Set(scopes.flatMap((scope) => scope?.split(' ') ?? []))].join(' ')

/**
 * Takes the answer of the authorization server. It goes to the issuer that the attempt began with, whatever the server
 * names by now. Rejects with a `ProviderRefusal`.
 */
export async function finishConnection(
  dependencies: ConnectionDependencies,
  { server, attempt, session }: { server: PersonalServer; attempt: Attempt; session: LiveSession },
  { query, requestId }: { query: string; requestId: string },
): Promise<void> {
  const fetch = upstreamFetch(dependencies, server)
  const authorizationServer = await authorizationServerOf(server, attempt.issuer, fetch)
  const client = await upstreamClient(dependencies, server, authorizationServer, fetch)
  if (client.clientId !== attempt.clientId || server.url !== attempt.url) {
    throw new ProviderRefusal('attempt_missing', 'The MCP server was changed meanwhile: connect again')
  }
  // What was sent, at the address that the authorization server was told: the Host header has no say.
  const answer = new URL(redirectUriOf(dependencies, server.id) + query)
  const tokens = await redeem({ authorizationServer, client, fetch }, answer, attempt.resource, attempt).catch(
    async (error: unknown) => {
      const isUnknown = error instanceof ProviderRefusal && error.reason === 'provider_refused_client'
      if (isUnknown) await forgetRegisteredClient(dependencies, server.id)
      throw error
    },
  )
  const { clock, masterKey } = dependencies
  const [owner, now] = [{ userId: session.userId, serverId: server.id }, clock.now()]
  const { ledger } = dependencies
  const before = (await findConnection(ledger, owner)) ?? (await findEnded(ledger, owner))
  const scope = tokens.scope ?? attempt.scope
  const event = await connectionEvent(dependencies, {
    type: 'mcp_connection.created',
    principal: sessionPrincipal(session),
    requestId,
    userId: session.userId,
    server,
    details: { issuer: authorizationServer.issuer, ...(scope === null ? {} : { scope }) },
  })
  const connection = keepConnection({
    ...owner,
    sealed: sealSecrets(masterKey, owner, {
      ...{ url: server.url, named_issuer: server.personal.issuer ?? null, resource: attempt.resource },
      ...{ client_id: client.clientId, client_secret: client.clientSecret },
      ...{ access_token: tokens.accessToken, refresh_token: tokens.refreshToken },
    }),
    issuer: authorizationServer.issuer,
    scope,
    connectedAt: now,
    expiresAt: tokens.expiresIn === null ? null : now + 1000 * tokens.expiresIn,
    refreshedAt: null,
    refreshingUntil: null,
    endedAt: null,
  })
  await recordChange(dependencies.recorder, { event, ledger: [connection] })
  if (before !== null) await endReplaced(dependencies, { server, before, accessToken: tokens.accessToken })
}

/**
 * Revokes the tokens of the connection that was replaced. Some authorization servers keep one approval for a person and
 * a client, and end the new one with the old, so the new one is refreshed at once. Rejects with a `ProviderRefusal` when
 * it is gone: there is nothing to revoke the next time.
 */
async function endReplaced(
  dependencies: ConnectionDependencies,
  { server, before, accessToken }: { server: PersonalServer; before: ConnectionRow; accessToken: string },
): Promise<void> {
  if (openSecrets(dependencies.masterKey, before).access_token === accessToken) return
  if (!(await revokeTokens(dependencies, before))) return
  const digest = createHash('sha256').update(accessToken).digest('hex')
  if ((await createCurrentTokens(dependencies).of(server, before.userId, digest)) !== null) return
  throw new ProviderRefusal(
    'provider_denied',
    'The authorization server ended the new approval together with the old one: connect once more',
  )
}
