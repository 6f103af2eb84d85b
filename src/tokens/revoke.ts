/** Revoking a token: at once for the control plane, and for gateways as soon as they have made the denial durable. */

import { versionArgument } from '../events/recorder.ts'
import { Failure } from '../failure.ts'
import type { Propagation } from '../fleet/wire.ts'
import { newStateVersion } from '../store/rows.ts'
import { type Actor, type TokenDependencies, tokenEvent } from './minting.ts'
import { type Revocation, requireStateRow, type StoredToken } from './stored-token.ts'
import { requireToken } from './visibility.ts'

export interface Revoked {
  token: StoredToken
  /** Waits for the gateways and says who has it; nothing waits, or can fail, before it is asked. */
  propagation: () => Promise<Propagation>
}

/** Revokes a token; one that is revoked already stays as it is. Throws `not_found`. */
export async function revokeToken(deps: TokenDependencies, actor: Actor, id: string): Promise<Revoked> {
  const token = await requireToken(deps.ledger, actor.principal, id)
  if (token.revokedAt !== null) return { token, propagation: () => deps.fleet.propagation(token.version) }
  const revocation = { by: actor.principal.name, emergency: false, explanation: null }
  try {
    return await recordRevocation(deps, actor, token, revocation)
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'conflict') throw error
    // Somebody else revoked it meanwhile; the state knows, even if that one has not finished writing to the ledger.
    const { revokedAt, version } = await requireStateRow(deps.state, id)
    if (revokedAt === null) throw error
    return { token: { ...token, revokedAt, version }, propagation: () => deps.fleet.propagation(version) }
  }
}

/**
 * Revokes a token of whatever class and says why; the id of the event is the proof. `cutRunning` also ends the requests
 * and connections that the token has open on connected gateways. One that was only revoked takes this on once. Throws
 * `not_found`, and `token_not_active` where it has been revoked so already.
 */
export async function emergencyRevokeToken(
  deps: TokenDependencies,
  actor: Actor,
  id: string,
  { explanation, cutRunning }: { explanation: string; cutRunning: boolean },
): Promise<Revoked & { eventId: string }> {
  const token = await requireToken(deps.ledger, actor.principal, id)
  if (token.revocation?.emergency === true) {
    throw new Failure('token_not_active', { message: 'The token has already been revoked in an emergency' })
  }
  return recordRevocation(deps, actor, token, { by: actor.principal.name, emergency: true, explanation }, cutRunning)
}

async function recordRevocation(
  deps: TokenDependencies,
  actor: Actor,
  token: StoredToken,
  revocation: Revocation,
  cutRunning = false,
) {
  const only = await requireStateRow(deps.state, token.id)
  const revokedAt = token.revokedAt ?? deps.clock.now()
  const { emergency, explanation } = revocation
  const said = explanation === null ? {} : { explanation, revoke_active_sessions: cutRunning }
  const event = tokenEvent(
    {
      type: emergency ? 'token.emergency_revoked' : 'token.revoked',
      actor,
      tokenId: token.id,
      eventTeamId: only.eventTeamId,
      details: { token_id: token.id, name: token.name, ...said },
    },
    deps,
  )
  const { head } = await deps.recorder.change({
    event,
    guard:
      token.revokedAt === null
        ? { sql: 'select revoked_at is null from tokens where id = ?', args: [token.id] }
        : { sql: 'select version = ? from tokens where id = ?', args: [token.version, token.id] },
    state: [
      {
        sql: `update tokens set revoked_at = ?, version = ${newStateVersion} where id = ?`,
        args: [revokedAt, token.id],
      },
    ],
    ledger: [
      {
        sql: 'update tokens set revoked_at = ?, revocation = ?, version = max(version, ?) where id = ?',
        args: [revokedAt, JSON.stringify(revocation), versionArgument, token.id],
      },
    ],
    deny: [only.hash],
    cut: cutRunning ? [only.hash] : [],
  })
  return {
    token: { ...token, revokedAt, revocation, version: head.version },
    propagation: () => deps.fleet.propagation(head.version),
    eventId: event.event_id,
  }
}
