/**
 * The access token of a person's connection that may be used now. One that is about to expire, or that the server has
 * refused, is refreshed: by one call at a time, over all control planes, because many authorization servers take a
 * refresh token that comes twice for stolen. An approval that is over ends the connection.
 */
import { createHash } from 'node:crypto'
import { anonymous } from '../identity/principal.ts'
import { recordChange } from '../members/member-event.ts'
import { connectionEvent } from './connection-event.ts'
import type { ConnectionDependencies } from './dependencies.ts'
import { authorizationServerOf } from './discovery.ts'
import { finishEnded } from './end-connections.ts'
import { configuredClient, type PersonalServer } from './personal-server.ts'
import {
  type ConnectionRow,
  type ConnectionSecrets,
  claimRefresh,
  endConnection,
  findConnection,
  isSameMade,
  openSecrets,
  renewConnection,
  sealSecrets,
} from './stored-connection.ts'
import { upstreamFetch } from './upstream-fetch.ts'
import { refresh, revoke, type Tokens, type Upstream } from './upstream-oauth.ts'

/** So long before its end a token is refreshed. */
const shortlyMilliseconds = 60_000
/** A refresh takes a few calls of at most ten seconds; then another process may try. */
const claimMilliseconds = 30_000
const pollMilliseconds = 100
/** A server that refuses every token does not have one refreshed for each call. */
const leastBetweenRefreshes = 10_000

export interface CurrentToken {
  accessToken: string
  /** Milliseconds since the epoch; null where the server does not say. */
  expiresAt: number | null
}

/** `unavailable`: there is a connection, but no token for now. Null: there is no connection (any more). */
export type TokenAnswer = CurrentToken | 'unavailable' | null

export type CurrentTokens = ReturnType<typeof createCurrentTokens>

/** Makes the source of tokens of one control plane, with the refreshes that run in it. */
export function createCurrentTokens(dependencies: ConnectionDependencies) {
  const running = new Map<string, Promise<TokenAnswer>>()
  return {
    /** `refused` is the SHA-256 of a token that the server has refused; null for none. */
    async of(server: PersonalServer, userId: string, refused: string | null): Promise<TokenAnswer> {
      const row = await findConnection(dependencies.ledger, { userId, serverId: server.id })
      if (row === null) return null
      const secrets = openSecrets(dependencies.masterKey, row)
      // A token goes to the place only that the person connected to.
      if (secrets.url !== server.url) return null
      const now = dependencies.clock.now()
      const isRefused = refused === sha256(secrets.access_token)
      const expires = row.expiresAt !== null && now >= row.expiresAt - shortlyMilliseconds
      if (!isRefused && !expires) return { accessToken: secrets.access_token, expiresAt: row.expiresAt }
      if (isRefused && row.refreshedAt !== null && now - row.refreshedAt < leastBetweenRefreshes) return 'unavailable'
      const key = `${userId} ${server.id}`
      const refreshing =
        running.get(key) ??
        refreshed(dependencies, { server, row, secrets, isRefused }).finally(() => running.delete(key))
      running.set(key, refreshing)
      return await refreshing
    },
  }
}

interface Refreshing {
  server: PersonalServer
  row: ConnectionRow
  secrets: ConnectionSecrets
  isRefused: boolean
}

async function refreshed(dependencies: ConnectionDependencies, refreshing: Refreshing): Promise<TokenAnswer> {
  const { ledger, clock } = dependencies
  const { row, secrets, server } = refreshing
  if (secrets.refresh_token === null) return await withoutRefreshToken(dependencies, refreshing)
  const now = clock.now()
  const claimed = await ledger.writeAndRead([claimRefresh(row, now, now + claimMilliseconds)])
  if (claimed.length === 0) return await otherProcess(dependencies, row)
  try {
    const fetch = upstreamFetch(dependencies, server)
    const authorizationServer = await authorizationServerOf(server, row.issuer, fetch)
    const client = await clientOf(dependencies, server, secrets)
    const tokens = await refresh({ authorizationServer, client, fetch }, secrets.refresh_token, secrets.resource)
    if (tokens === null) return await lose(dependencies, server, row, 'withdrawn')
    const isKept = await keep(dependencies, refreshing, tokens)
    if (!isKept) await revokeNew(dependencies, refreshing, { authorizationServer, client, fetch }, tokens)
    // The person may have disconnected, been disabled or connected another account meanwhile.
    const inForce = await findConnection(ledger, row)
    return inForce === null ? null : tokenOf(dependencies, inForce)
  } catch (error) {
    dependencies.log.warn(
      { mcp_server_id: server.id, user_id: row.userId, error: String(error) },
      'The access token of a connection could not be refreshed',
    )
    await ledger.write([renewConnection(row, { refreshingUntil: null })])
    return stillGood(dependencies, refreshing)
  }
}

/** The secret of the operator's client as it is now; that of another as it was when the person connected. */
async function clientOf(dependencies: ConnectionDependencies, server: PersonalServer, secrets: ConnectionSecrets) {
  const configured = await configuredClient(dependencies, server)
  if (configured?.clientId === secrets.client_id) return configured
  return { clientId: secrets.client_id, clientSecret: secrets.client_secret }
}

/** False where the connection is no longer the one that was read. */
async function keep(
  { ledger, masterKey, clock }: ConnectionDependencies,
  { row, secrets }: Refreshing,
  tokens: Tokens,
): Promise<boolean> {
  const now = clock.now()
  const expiresAt = tokens.expiresIn === null ? null : now + 1000 * tokens.expiresIn
  const renewed: ConnectionSecrets = {
    ...secrets,
    access_token: tokens.accessToken,
    refresh_token: tokens.refreshToken ?? secrets.refresh_token,
  }
  const sealed = sealSecrets(masterKey, row, renewed)
  const scope = tokens.scope ?? row.scope
  const changes = { sealed, scope, expiresAt, refreshedAt: now, refreshingUntil: null }
  return (await ledger.writeAndRead([renewConnection(row, changes)])).length > 0
}

/** Revokes tokens that belong to no connection any more, as far as that is possible: nobody else knows them. */
async function revokeNew(
  { log }: ConnectionDependencies,
  { server, row }: Refreshing,
  upstream: Upstream,
  { refreshToken, accessToken }: Tokens,
): Promise<void> {
  try {
    if (refreshToken !== null) await revoke(upstream, refreshToken)
    await revoke(upstream, accessToken)
  } catch (error) {
    log.warn(
      { mcp_server_id: server.id, user_id: row.userId, error: String(error) },
      'The new tokens of a connection that has ended could not be revoked at the authorization server',
    )
  }
}

const tokenOf = ({ masterKey }: ConnectionDependencies, row: ConnectionRow): CurrentToken => ({
  accessToken: openSecrets(masterKey, row).access_token,
  expiresAt: row.expiresAt,
})

async function withoutRefreshToken(dependencies: ConnectionDependencies, refreshing: Refreshing): Promise<TokenAnswer> {
  const good = stillGood(dependencies, refreshing)
  return good === 'unavailable' ? await lose(dependencies, refreshing.server, refreshing.row, 'expired') : good
}

/** The token that is there, while it has neither expired nor been refused. */
function stillGood({ clock }: ConnectionDependencies, { row, secrets, isRefused }: Refreshing): TokenAnswer {
  const hasExpired = row.expiresAt !== null && clock.now() >= row.expiresAt
  if (isRefused || hasExpired) return 'unavailable'
  return { accessToken: secrets.access_token, expiresAt: row.expiresAt }
}

/** Waits for the refresh of another control plane. */
async function otherProcess(dependencies: ConnectionDependencies, before: ConnectionRow): Promise<TokenAnswer> {
  const { ledger, clock } = dependencies
  const until = clock.monotonic() + claimMilliseconds
  for (;;) {
    const row = await findConnection(ledger, before)
    if (row === null) return null
    if (!isSameMade(row, before)) return tokenOf(dependencies, row)
    if (row.refreshingUntil === null || clock.monotonic() > until) return 'unavailable'
    await Bun.sleep(pollMilliseconds)
  }
}

async function lose(
  dependencies: ConnectionDependencies,
  server: PersonalServer,
  row: ConnectionRow,
  reason: 'withdrawn' | 'expired',
): Promise<null> {
  const event = await connectionEvent(dependencies, {
    type: 'mcp_connection.lost',
    refused: `mcp_connection.${reason}`,
    principal: { ...anonymous, name: `mcp-server:${server.id}` },
    requestId: dependencies.newId(),
    userId: row.userId,
    server,
  })
  await recordChange(dependencies.recorder, { event, ledger: [endConnection(row, dependencies.clock.now())] })
  await finishEnded(dependencies, row)
  return null
}

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex')
