/**
 * Which tokens a caller sees and may act on: a member the member's own; otherwise a team's token those of its team, a
 * user's token those of the user's teams and the user's own, and an unbound token or a session all. Invisible tokens
 * are answered with 404.
 */
import { Failure } from '../failure.ts'
import type { Role } from '../identity/permissions.ts'
import type { Principal } from '../identity/principal.ts'
import type { Database } from '../store/open.ts'
import type { Statement } from '../store/statement.ts'
import { openToken, type StoredToken } from './stored-token.ts'

/** The roles that read tokens of others; without one of them a caller sees only what is the caller's own. */
const readsOthers = new Set<Role>(['owner', 'admin', 'operator', 'auditor'])

/** A condition on the ledger's `tokens`. */
export function visibleTokens(principal: Principal): Statement {
  const { kind, teamId, userId, tokenId, roles } = principal
  if (!roles.some((role) => readsOthers.has(role))) return { sql: '(user_id = ? or id = ?)', args: [userId, tokenId] }
  if (teamId !== null) return { sql: 'team_id = ?', args: [teamId] }
  if (kind === 'session' || userId === null) return { sql: '1', args: [] }
  return {
    sql: '(user_id = ? or team_id in (select team_id from memberships where user_id = ?))',
    args: [userId, userId],
  }
}

/** The token of this id. Throws `not_found` where there is none that the principal sees. */
export async function requireToken(ledger: Database, principal: Principal, id: string): Promise<StoredToken> {
  const visible = visibleTokens(principal)
  const [row] = await ledger.read(`select * from tokens where id = ? and ${visible.sql}`, [id, ...visible.args])
  if (row === undefined) throw new Failure('not_found', { message: 'There is no such token' })
  return openToken(row)
}
