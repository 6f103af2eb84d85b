/**
 * Ends connections. From the moment that a row is marked as ended nobody gets its tokens; then they are revoked at the
 * authorization server where that takes revocations (RFC 7009), and the row is removed whether it does or not. What a
 * process did not finish, the next round does.
 */
import type { Event } from '../events/event.ts'
import { recordChange } from '../members/member-event.ts'
import type { ConnectionDependencies } from './dependencies.ts'
import { authorizationServerOf } from './discovery.ts'
import {
  type ConnectionOwner,
  type ConnectionRow,
  endConnectionOf,
  endedConnections,
  findEnded,
  openSecrets,
  removeEnded,
} from './stored-connection.ts'
import { upstreamFetch } from './upstream-fetch.ts'
import { revoke } from './upstream-oauth.ts'

const inOneRound = 20

/** Records that a person disconnects a server, and ends the connection with the newest tokens that it has. */
export async function disconnectOwner(
  dependencies: ConnectionDependencies,
  owner: ConnectionOwner,
  event: Event,
): Promise<void> {
  const { recorder, ledger, clock } = dependencies
  await recordChange(recorder, { event, ledger: [endConnectionOf(owner, clock.now())] })
  const ended = await findEnded(ledger, owner)
  if (ended !== null) await finishEnded(dependencies, ended)
}

/** One round over what has ended. */
export async function finishEndedConnections(dependencies: ConnectionDependencies): Promise<void> {
  const ended = await endedConnections(dependencies.ledger, inOneRound)
  await Promise.all(ended.map((row) => finishEnded(dependencies, row)))
}

/** Revokes the tokens of an ended connection there, as far as that is possible, and removes them here. */
export async function finishEnded(dependencies: ConnectionDependencies, row: ConnectionRow): Promise<void> {
  await revokeTokens(dependencies, row)
  await dependencies.ledger.write([removeEnded(row)])
}

/** Revokes the tokens of a connection that has ended or was replaced; false where that is not possible. */
export async function revokeTokens(dependencies: ConnectionDependencies, row: ConnectionRow): Promise<boolean> {
  try {
    return await revokeThere(dependencies, row)
  } catch (error) {
    dependencies.log.warn(
      { mcp_server_id: row.serverId, user_id: row.userId, issuer: row.issuer, error: String(error) },
      'The tokens of a connection could not be revoked at the authorization server: they are removed here only',
    )
    return false
  }
}

async function revokeThere(dependencies: ConnectionDependencies, row: ConnectionRow): Promise<boolean> {
  const secrets = openSecrets(dependencies.masterKey, row)
  // The place and the issuer as they were when the person connected: the record may have changed since, or be gone.
  const server = { url: secrets.url, personal: { issuer: secrets.named_issuer ?? undefined } }
  const fetch = upstreamFetch(dependencies, server)
  const authorizationServer = await authorizationServerOf(server, row.issuer, fetch)
  const client = { clientId: secrets.client_id, clientSecret: secrets.client_secret }
  const upstream = { authorizationServer, client, fetch }
  // The refresh token first: many end the whole approval with it.
  if (secrets.refresh_token !== null) await revoke(upstream, secrets.refresh_token)
  return await revoke(upstream, secrets.access_token)
}
