/**
 * Which tokens a caller sees and may act on: a member the member's own; otherwise a team's token those of its team, a
 * user's token those of the user's teams and the user's own, and an unbound token or a session all. Invisible tokens
 * are answered with 404.
 */
import { and, eq, inArray, or, type SQL } from 'drizzle-orm'
import { Failure } from '../failure.ts'
import type { Role } from '../identity/permissions.ts'
import type { Principal } from '../identity/principal.ts'
import type { Database } from '../store/open.ts'
import { query, subquery } from '../store/query.ts'
import { memberships } from '../store/schema/ledger/people.ts'
import { tokens } from '../store/schema/ledger/tokens.ts'
import type { StoredToken } from './stored-token.ts'

/** The roles that read tokens of others; without one of them a caller sees only what is the caller's own. */
const readers = new Set<Role>(['owner', 'admin', 'operator', 'auditor'])

export const readsOthers = ({ roles }: Pick<Principal, 'roles'>): boolean => roles.some((role) => readers.has(role))

/** A condition on the ledger's `tokens`; undefined: all of them. */
export function visibleTokens(principal: Principal): SQL | undefined {
  const { kind, teamId, userId, tokenId } = principal
  const own = userId === null ? undefined : eq(tokens.userId, userId)
  if (!readsOthers(principal)) return or(own, eq(tokens.id, tokenId ?? ''))
  if (teamId !== null) return eq(tokens.teamId, teamId)
  if (kind === 'session' || userId === null) return undefined
  const teams = subquery.select({ id: memberships.teamId }).from(memberships).where(eq(memberships.userId, userId))
  return or(own, inArray(tokens.teamId, teams))
}

/** The token of this id. Throws `not_found` where there is none that the principal sees. */
export async function requireToken(ledger: Database, principal: Principal, id: string): Promise<StoredToken> {
  const seen = and(eq(tokens.id, id), visibleTokens(principal))
  const token = await query(ledger).select().from(tokens).where(seen).get()
  if (token === undefined) throw new Failure('not_found', { message: 'There is no such token' })
  return token
}
