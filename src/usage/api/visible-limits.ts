/**
 * What a caller sees of limits and of what is used of them: everything, or, with a token that is bound to a team or a
 * user, what belongs to that team, or to the user and the user's teams.
 */
import { z } from 'zod'
import type { Principal } from '../../identity/principal.ts'
import type { Database } from '../../store/open.ts'
import type { Row, Statement } from '../../store/statement.ts'
import { visibleTokens } from '../../tokens/visibility.ts'

export interface LimitVisibility {
  teams: ReadonlySet<string>
  users: ReadonlySet<string>
  /** A condition on the ledger's `tokens`. */
  tokens: Statement
}

/** Null where the caller sees everything. */
export async function limitVisibilityOf(ledger: Database, principal: Principal): Promise<LimitVisibility | null> {
  const { kind, teamId, userId } = principal
  if (kind === 'session' || (teamId === null && userId === null)) return null
  const teams = await ledger.read<{ id: string }>(
    'select ?1 as id where ?1 is not null union select team_id from memberships where ?1 is null and user_id = ?2',
    [teamId, userId],
  )
  const ids = teams.map(({ id }) => id)
  const users = await ledger.read<{ id: string }>(
    `select user_id as id from memberships where team_id in (select value from json_each(?1))
     union select ?2 where ?2 is not null`,
    [JSON.stringify(ids), teamId === null ? userId : null],
  )
  return { teams: new Set(ids), users: new Set(users.map(({ id }) => id)), tokens: visibleTokens(principal) }
}

/** Of rows of the state's `budgets` those that bound the spend of what is seen. */
export async function visibleBudgets(rows: readonly Row[], sight: LimitVisibility, ledger: Database): Promise<Row[]> {
  const named = await ledger.read<{ id: string }>(
    `select distinct budget_id as id from tokens where budget_id is not null and ${sight.tokens.sql}`,
    sight.tokens.args,
  )
  const seen: Readonly<Record<string, ReadonlySet<string>>> = { team: sight.teams, user: sight.users }
  const ofTokens = new Set(named.map(({ id }) => id))
  return rows.filter(
    ({ id, scope_kind, scope_id }) =>
      seen[String(scope_kind)]?.has(String(scope_id)) === true || (scope_kind === 'token' && ofTokens.has(String(id))),
  )
}

const membersSchema = z.object({ teams: z.array(z.string()), users: z.array(z.string()), tokens: z.array(z.string()) })

/** Of rows of the state's `consumer_groups` those with members that are seen, and of their members only those. */
export async function visibleGroups(rows: readonly Row[], sight: LimitVisibility, ledger: Database): Promise<Row[]> {
  const groups = rows.map((row) => ({ row, members: membersSchema.parse(JSON.parse(String(row.members))) }))
  const found = await ledger.read<{ id: string }>(
    `select id from tokens where id in (select value from json_each(?)) and ${sight.tokens.sql}`,
    [JSON.stringify(groups.flatMap(({ members }) => members.tokens)), ...sight.tokens.args],
  )
  const tokens = new Set(found.map(({ id }) => id))
  return groups.flatMap(({ row, members }) => {
    const seen = {
      teams: members.teams.filter((id) => sight.teams.has(id)),
      users: members.users.filter((id) => sight.users.has(id)),
      tokens: members.tokens.filter((id) => tokens.has(id)),
    }
    const none = Object.values(seen).every((ids) => ids.length === 0)
    return none ? [] : [{ ...row, members: JSON.stringify(seen) }]
  })
}

/** A condition on the accounts of a query that calls the ledger's `usage_cells` `c`. */
export async function visibleAccounts(
  { state, ledger }: { state: Database; ledger: Database },
  principal: Principal,
): Promise<Statement> {
  const sight = await limitVisibilityOf(ledger, principal)
  if (sight === null) return { sql: 'true', args: [] }
  const rows: Row[] = await state.read('select * from budgets where deleted = 0')
  const budgets = await visibleBudgets(rows, sight, ledger)
  // `token/<id>/…`, `budget/<id>@…`; an id has 36 characters.
  return {
    sql: `((c.account like 'token/%' and exists (
        select 1 from tokens where tokens.account_id = substr(c.account, 7, 36) and ${sight.tokens.sql}))
      or (c.account like 'budget/%' and substr(c.account, 8, 36) in (select value from json_each(?))))`,
    args: [...sight.tokens.args, JSON.stringify(budgets.map(({ id }) => id))],
  }
}
