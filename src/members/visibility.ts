/**
 * Which people and teams a caller sees, as `tokens/visibility.ts` has it for tokens: what is bound to a team that team
 * and who is in it, what is bound to a person the person, the person's teams and who is in those, everything else all.
 * What is not seen is answered as if it did not exist.
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
