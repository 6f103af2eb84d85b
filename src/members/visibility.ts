/**
 * Which people and teams a caller sees, like `tokens/visibility.ts` for tokens: a caller bound to a team sees that
 * team and its members; one bound to a person sees the person, their teams and the members; all others see everything.
 * Invisible records are answered with 404.
 */
import { and, eq, inArray, or, type SQL } from 'drizzle-orm'
import { Failure } from '../failure.ts'
import type { Principal } from '../identity/principal.ts'
import type { Database } from '../store/open.ts'
import { query, subquery } from '../store/query.ts'
import { memberships, teams, users } from '../store/schema/ledger/people.ts'

const membershipsOf = (userId: string) =>
  subquery.select({ teamId: memberships.teamId }).from(memberships).where(eq(memberships.userId, userId))

/** A condition on the ledger's `teams`; undefined: all of them. */
export function visibleTeams({ kind, teamId, userId }: Principal): SQL | undefined {
  if (teamId !== null) return eq(teams.id, teamId)
  if (kind === 'session' || userId === null) return undefined
  return inArray(teams.id, membershipsOf(userId))
}

/** A condition on the ledger's `users`; undefined: all of them. */
export function visibleUsers({ kind, teamId, userId }: Principal): SQL | undefined {
  const inTeams = (condition: SQL) =>
    inArray(users.id, subquery.select({ userId: memberships.userId }).from(memberships).where(condition))
  if (teamId !== null) return inTeams(eq(memberships.teamId, teamId))
  if (kind === 'session' || userId === null) return undefined
  return or(eq(users.id, userId), inTeams(inArray(memberships.teamId, membershipsOf(userId))))
}

/** Throws `not_found` where the caller does not see this person, or there is none. */
export async function requireVisibleUser(ledger: Database, principal: Principal, id: string): Promise<void> {
  const found = await query(ledger).$count(users, and(eq(users.id, id), visibleUsers(principal)))
  if (found === 0) throw new Failure('not_found', { message: 'There is no such person' })
}

/** Throws `not_found` where the caller does not see this team, or there is none. */
export async function requireVisibleTeam(ledger: Database, principal: Principal, id: string): Promise<void> {
  const found = await query(ledger).$count(teams, and(eq(teams.id, id), visibleTeams(principal)))
  if (found === 0) throw new Failure('not_found', { message: 'There is no such team' })
}
