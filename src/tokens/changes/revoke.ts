/**
 * Revokes a token: at once for the control plane, and for gateways as soon as they have made the revocation durable.
 */

import { and, eq, isNull, sql } from 'drizzle-orm'
import { requireVersion } from '../../api/entity-tag.ts'
import { changeVersion } from '../../events/recorder.ts'
import { Failure } from '../../failure.ts'
import type { Propagation } from '../../store/propagation.ts'
import { condition, hasRow, newStateVersion, statement, update } from '../../store/query.ts'
import type { Revocation } from '../../store/schema/ledger/tokens.ts'
import { tokens as ledgerTokens } from '../../store/schema/ledger/tokens.ts'
import { tokens as stateTokens } from '../../store/schema/state/tokens.ts'
import { type Actor, tokenEvent } from '../creation/minting.ts'
import type { TokenDependencies } from '../dependencies.ts'
import { findStateRow, findToken, requireStateRow, type StateRow, type StoredToken } from '../stored-token.ts'
import { requireToken } from '../visibility.ts'

export interface Revoked {
  token: StoredToken
  /** Waits for the gateways and reports the propagation. Nothing fails before it is called. */
  propagation: () => Promise<Propagation>
}

/**
 * Revokes a token. A revoked one stays as it is, whatever version was read (RFC 9110 section 13.1.1). The predecessor
 * of a rotation keeps its grace period. `headers` may contain If-Match. Throws `not_found`, `version_mismatch`.
 */
export async function revokeToken(
  deps: TokenDependencies,
  actor: Actor,
  id: string,
  headers = new Headers(),
): Promise<Revoked> {
  const [token, row] = await readBoth(deps, actor, id)
  if (token.revokedAt !== null) return { token, propagation: () => deps.fleet.propagation(token.version) }
  requireVersion(headers, token.version)
  const revocation = { by: actor.principal.name, emergency: false, explanation: null }
  try {
    return await recordRevocation(deps, actor, token, { row, revocation, asRead: headers.has('if-match') })
  } catch (error) {
    if (!(error instanceof Failure) || error.code !== 'conflict') throw error
    // Another caller revoked it meanwhile. The state knows, even if that caller has not yet written to the ledger.
    const { revokedAt, version } = await requireStateRow(deps.state, id)
    if (revokedAt === null) throw headers.has('if-match') ? new Failure('version_mismatch', { cause: error }) : error
    return { token: { ...token, revokedAt, version }, propagation: () => deps.fleet.propagation(version) }
  }
}

/**
 * Revokes a token of any class with a reason; the id of the event is the evidence. `endRunningRequests` also ends its
 * open requests and connections on connected gateways. A token that was only revoked can be revoked this way once.
 * Predecessors in their grace period are revoked too, since nobody may use the token any more. Throws `not_found`,
 * and `token_not_active` if it was already revoked this way.
 */
export async function emergencyRevokeToken(
  deps: TokenDependencies,
  actor: Actor,
  id: string,
  { explanation, endRunningRequests }: { explanation: string; endRunningRequests: boolean },
): Promise<Revoked & { eventId: string }> {
  const [token, row] = await readBoth(deps, actor, id)
  if (token.revocation?.emergency === true) {
    throw new Failure('token_not_active', { message: 'The token has already been revoked in an emergency' })
  }
  const revocation = { by: actor.principal.name, emergency: true, explanation }
  const replaced = await replacedInGrace(deps, token)
  return recordRevocation(deps, actor, token, { row, revocation, endRunningRequests, replaced })
}

/** A token as both databases have it, read in parallel. Without a row in the state, `recordRevocation` refuses it. */
const readBoth = (deps: TokenDependencies, { principal }: Actor, id: string): Promise<[StoredToken, StateRow | null]> =>
  Promise.all([requireToken(deps.ledger, principal, id), findStateRow(deps.state, id)])

/** The predecessors of this token that may still be used. */
async function replacedInGrace(deps: TokenDependencies, { rotatedFrom }: StoredToken): Promise<StoredToken[]> {
  const before = rotatedFrom === null ? null : await findToken(deps.ledger, rotatedFrom)
  if (before === null) return []
  const inForce = before.revokedAt === null && (before.rotatedAt ?? 0) > deps.clock.now()
  return [...(inForce ? [before] : []), ...(await replacedInGrace(deps, before))]
}

interface RevocationPlan {
  row: StateRow | null
  revocation: Revocation
  endRunningRequests?: boolean
  /** Holds only if nobody has changed the token since it was read. */
  asRead?: boolean
  replaced?: readonly StoredToken[]
}

async function recordRevocation(
  deps: TokenDependencies,
  actor: Actor,
  token: StoredToken,
  { row, revocation, endRunningRequests = false, asRead = false, replaced = [] }: RevocationPlan,
) {
  if (row === null) throw new Failure('conflict')
  const revokedAt = token.revokedAt ?? deps.clock.now()
  const { emergency, explanation } = revocation
  const said = explanation === null ? {} : { explanation, revoke_active_sessions: endRunningRequests }
  const ended = [token, ...replaced]
  const also = replaced.length === 0 ? {} : { also_revoked: replaced.map(({ id }) => id) }
  const hashes = [
    row.hash,
    ...(await Promise.all(replaced.map(({ id }) => requireStateRow(deps.state, id)))).map(({ hash }) => hash),
  ]
  const event = tokenEvent(
    {
      type: emergency ? 'token.emergency_revoked' : 'token.revoked',
      actor,
      token,
      eventTeamId: row.eventTeamId,
      details: { token_id: token.id, name: token.name, ...said, ...also },
    },
    deps,
  )
  const unchanged =
    token.revokedAt === null && !asRead ? isNull(stateTokens.revokedAt) : eq(stateTokens.version, token.version)
  // Gateways get it before the ledger is written, so their acknowledgements arrive meanwhile.
  let propagation: Promise<Propagation> | null = null
  const { head } = await deps.recorder.change({
    event,
    guard: condition(hasRow(stateTokens, and(eq(stateTokens.id, token.id), unchanged))),
    state: ended.map(({ id, revokedAt: before }) =>
      statement(
        update(stateTokens)
          .set({ revokedAt: before ?? revokedAt, version: newStateVersion })
          .where(eq(stateTokens.id, id)),
      ),
    ),
    ledger: ended.map(({ id, revokedAt: before }) =>
      statement(
        update(ledgerTokens)
          .set({
            revokedAt: before ?? revokedAt,
            revocation,
            version: sql`max(${ledgerTokens.version}, ${changeVersion})`,
          })
          .where(eq(ledgerTokens.id, id)),
      ),
    ),
    revoked: hashes,
    endRequests: endRunningRequests ? hashes : [],
    onlyRevocations: true,
    announced({ version }) {
      propagation = deps.fleet.propagation(version)
      // The caller gets the error.
      propagation.catch(() => undefined)
    },
  })
  return {
    token: { ...token, revokedAt, revocation, version: head.version },
    propagation: () => propagation ?? deps.fleet.propagation(head.version),
    eventId: event.event_id,
  }
}
