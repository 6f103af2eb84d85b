/** Revokes a person's tokens when their basis ends: the person's access, or the place in a team. */

import { revokeToken } from '../tokens/changes/revoke.ts'
import type { Actor } from '../tokens/creation/minting.ts'
import type { MemberDependencies } from './dependencies.ts'

/**
 * Revokes the tokens that are bound to this person; where a team is given, those bound to both. One already revoked is
 * left out, so a repeat finishes what was interrupted.
 */
export async function revokeTokensOf(
  dependencies: MemberDependencies,
  actor: Actor,
  { userId, teamId = null }: { userId: string; teamId?: string | null },
): Promise<void> {
  const inForce = await dependencies.ledger.read<{ id: string }>(
    'select id from tokens where user_id = ? and (? is null or team_id = ?) and revoked_at is null',
    [userId, teamId, teamId],
  )
  const system = { ...actor, principal: { ...actor.principal, teamId: null, userId: null } }
  for (const { id } of inForce) await (await revokeToken(dependencies, system, id)).propagation()
}
