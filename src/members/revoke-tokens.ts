/** Revokes a person's tokens when their basis ends: the person's access, or the place in a team. */
import { and, eq, isNull } from 'drizzle-orm'
import { query } from '../store/query.ts'
import { tokens } from '../store/schema/ledger/tokens.ts'
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
  const { ledger } = dependencies
  const ofTeam = teamId === null ? undefined : eq(tokens.teamId, teamId)
  const inForce = await query(ledger)
    .select({ id: tokens.id })
    .from(tokens)
    .where(and(eq(tokens.userId, userId), ofTeam, isNull(tokens.revokedAt)))
  // A provider's principal holds no role, and would see none of the tokens that end by its word.
  const system: Actor = {
    ...actor,
    principal: { ...actor.principal, teamId: null, userId: null, roles: ['owner'] },
  }
  for (const { id } of inForce) await (await revokeToken(dependencies, system, id)).propagation()
}
