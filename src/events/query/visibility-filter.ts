/** Whose events a caller sees, as a filter of the log. */
import type { Principal } from '../../identity/principal.ts'
import type { Database } from '../../store/open.ts'
import type { FacetFilter } from '../log/log-query.ts'
import { type Visibility, visibilityOf } from '../visibility.ts'

/** What every event that is shown must meet; none for a caller that sees every event. */
export function visibilityFilter({ teams, ownTokens }: Visibility): FacetFilter[] | 'nothing' {
  if (teams === 'every') return []
  if (teams.length > 0) return [{ facet: 'team', values: teams }]
  return ownTokens.length > 0 ? [{ facet: 'token', values: ownTokens }] : 'nothing'
}

/** What this caller sees now. */
export async function visibilityFor(ledger: Database, principal: Principal): Promise<Visibility> {
  const { userId } = principal
  if (userId === null) return visibilityOf(principal, { teams: [], tokens: [] })
  const ids = async (sql: string) => (await ledger.read<{ id: string }>(sql, [userId])).map(({ id }) => id)
  const teams = await ids('select team_id as id from memberships where user_id = ?')
  const tokens = teams.length > 0 ? [] : await ids('select id from tokens where user_id = ?')
  return visibilityOf(principal, { teams, tokens })
}
