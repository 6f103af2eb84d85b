/**
 * Which people and teams a caller sees, like `tokens/visibility.ts` for tokens: a caller bound to a team sees that
 * team and its members; one bound to a person sees the person, their teams and the members; all others see everything.
 * Invisible records are answered with 404.
 */
import { Failure } from '../failure.ts'
import type { Principal } from '../identity/principal.ts'
import type { Database } from '../store/open.ts'
import type { Statement } from '../store/statement.ts'

const everything: Statement = { sql: '1', args: [] }
const teamsOf = 'select team_id from memberships where user_id = ?'

/** A condition on the ledger's `teams`, known as `t`. */
export function visibleTeams({ kind, teamId, userId }: Principal): Statement {
  if (teamId !== null) return { sql: 't.id = ?', args: [teamId] }
  if (kind === 'session' || userId === null) return everything
  return { sql: `t.id in (${teamsOf})`, args: [userId] }
}

/** A condition on the ledger's `users`. */
export function visibleUsers({ kind, teamId, userId }: Principal): Statement {
  if (teamId !== null) {
    return { sql: 'users.id in (select user_id from memberships where team_id = ?)', args: [teamId] }
  }
  if (kind === 'session' || userId === null) return everything
  return {
    sql: `(users.id = ? or users.id in (select user_id from memberships where team_id in (${teamsOf})))`,
    args: [userId, userId],
  }
}

/** Throws `not_found` where the caller does not see this person, or there is none. */
export async function requireVisibleUser(ledger: Database, principal: Principal, id: string): Promise<void> {
  const { sql, args } = visibleUsers(principal)
  const found = await ledger.read(`select 1 from users where users.id = ? and ${sql}`, [id, ...args])
  if (found.length === 0) throw new Failure('not_found', { message: 'There is no such person' })
}

/** Throws `not_found` where the caller does not see this team, or there is none. */
export async function requireVisibleTeam(ledger: Database, principal: Principal, id: string): Promise<void> {
  const { sql, args } = visibleTeams(principal)
  const found = await ledger.read(`select 1 from teams t where t.id = ? and ${sql}`, [id, ...args])
  if (found.length === 0) throw new Failure('not_found', { message: 'There is no such team' })
}
