/**
 * Rotation: a new token with the same profile and the same usage accounts, so that no limit is refilled. The old one
 * is refused at once or when its grace period ends. Of two concurrent rotations one succeeds and the other is a
 * conflict.
 */

import { and, eq, isNull } from 'drizzle-orm'
import { requireVersion } from '../../api/entity-tag.ts'
import { changeVersion, type Recorder } from '../../events/recorder.ts'
import { Failure } from '../../failure.ts'
import { hashSecret } from '../../identity/secret.ts'
import { timestamp } from '../../lib/clock.ts'
import type { Propagation } from '../../store/propagation.ts'
import { condition, hasRow, newStateVersion, statement, update } from '../../store/query.ts'
import { tokens as ledgerTokens } from '../../store/schema/ledger/tokens.ts'
import { tokens as stateTokens, workloadIdentities } from '../../store/schema/state/tokens.ts'
import { accountsWith, type Creator, creatorStands, findCreator } from '../creation/creator.ts'
import { type Actor, mint, tokenEvent } from '../creation/minting.ts'
import { checkGrant } from '../creation/rules.ts'
import type { TokenDependencies } from '../dependencies.ts'
import { tokenStatus } from '../governed-token.ts'
import { isExhausted } from '../limits/depletion.ts'
import { resealed } from '../runtime/sealed-runtime-token.ts'
import { findToken, requireStateRow, type StoredToken } from '../stored-token.ts'
import { requireToken } from '../visibility.ts'
import type { MadeToken } from './create.ts'

export interface RotatedToken extends MadeToken {
  /** Waits for the gateways and reports the propagation. Nothing waits, or can fail, before it is called. */
  propagation: () => Promise<Propagation>
}

/**
 * `headers` may contain If-Match. Throws `not_found`, `version_mismatch`, `token_already_rotated` (with
 * `rotated_to_id`), `token_not_active`, `permission_denied`.
 */
export async function rotateToken(
  deps: TokenDependencies,
  actor: Actor,
  id: string,
  graceSeconds: number,
  headers: Headers,
): Promise<RotatedToken> {
  const old = await requireToken(deps.ledger, actor.principal, id)
  requireVersion(headers, old.version)
  refuseUnlessRotatable(old, deps.clock.now())
  if (await isExhausted(deps.depletion, old)) throw new Failure('token_not_active')
  const creator = await findCreator(deps, actor.principal)
  await checkGrant(actor.principal, old, deps.ledger, creator)
  try {
    return await rotate(deps, actor, { old, creator, graceSeconds })
  } catch (error) {
    if (error instanceof Failure && error.code === 'conflict') {
      refuseUnlessRotatable((await findToken(deps.ledger, id)) ?? old, deps.clock.now())
      if (headers.has('if-match')) throw new Failure('version_mismatch', { cause: error })
    }
    throw error
  }
}

function refuseUnlessRotatable(token: StoredToken, now: number): void {
  if (token.rotatedAt !== null) {
    throw new Failure('token_already_rotated', { extra: { rotated_to_id: token.rotatedToId } })
  }
  if (tokenStatus(token, now) !== 'active') throw new Failure('token_not_active')
}

async function rotate(
  deps: TokenDependencies,
  actor: Actor,
  { old, creator, graceSeconds }: { old: StoredToken; creator: Creator | null; graceSeconds: number },
): Promise<RotatedToken> {
  const only = await requireStateRow(deps.state, old.id)
  const rotatedAt = deps.clock.now() + graceSeconds * 1000
  const minted = mint(
    {
      name: old.name,
      metadata: old.metadata,
      profile: old,
      scope: old,
      ownership: { ownerKind: old.ownerKind, ownerId: old.ownerId, eventTeamId: only.eventTeamId },
      createdBy: actor.principal.name,
      rotatedFrom: old.id,
      accounts: { instead: accountsWith(only.accountIds, creator) },
    },
    deps,
  )
  const details = { token_id: old.id, name: old.name, rotated_to_id: minted.token.id, rotated_at: timestamp(rotatedAt) }
  const { eventTeamId } = only
  const { id, version, rotatedAt: rotated, revokedAt } = stateTokens
  const asRead = and(eq(id, old.id), eq(version, old.version), isNull(rotated), isNull(revokedAt))
  const sealed = old.purpose === 'gateway_runtime' ? await resealed(deps, only.hash, minted.secret) : []
  const change: Parameters<Recorder['change']>[0] = {
    event: tokenEvent({ type: 'token.rotated', actor, token: old, eventTeamId, details }, deps),
    guard: condition(and(hasRow(stateTokens, asRead), creatorStands(creator))),
    state: [
      ...minted.state,
      statement(update(stateTokens).set({ rotatedAt, version: newStateVersion }).where(eq(stateTokens.id, old.id))),
      // Callers that another issuer vouches for hold no secret of it, so they act as the new one from now on.
      statement(
        update(workloadIdentities)
          .set({ tokenId: minted.token.id, tokenHash: hashSecret(minted.secret), version: newStateVersion })
          .where(and(eq(workloadIdentities.tokenId, old.id), eq(workloadIdentities.deleted, 0))),
      ),
    ],
    ledger: [
      ...minted.ledger,
      statement(
        update(ledgerTokens)
          .set({ rotatedAt, rotatedToId: minted.token.id, version: changeVersion })
          .where(eq(ledgerTokens.id, old.id)),
      ),
      ...sealed,
    ],
    revoked: graceSeconds === 0 ? [only.hash] : [],
  }
  const { head } = await deps.recorder.change(change)
  if (sealed.length > 0) deps.onRuntimeToken?.(minted.secret)
  return {
    token: { ...minted.token, version: head.version },
    secret: minted.secret,
    async propagation() {
      const told = await deps.fleet.propagation(head.version)
      // Gateways that know of it still accept the old secret until its grace period ends.
      return { ...told, effective_by: timestamp(Math.max(Date.parse(told.effective_by), rotatedAt)) }
    },
  }
}
