/**
 * What a caller sees of limits and of what is used of them: everything, or, with a token that is bound to a team or a
 * user, what belongs to that team, or to the user and the user's teams.
 */
import type { SQL } from 'drizzle-orm'
import { and, eq, isNotNull } from 'drizzle-orm'
import { z } from 'zod'
import { Failure } from '../../failure.ts'
import type { Principal } from '../../identity/principal.ts'
import type { Database } from '../../store/open.ts'
import { condition, isOneOf, query } from '../../store/query.ts'
import { memberships } from '../../store/schema/ledger/people.ts'
import { tokens } from '../../store/schema/ledger/tokens.ts'
import { budgets as budgetTable } from '../../store/schema/state/limits.ts'
import type { Row, Statement } from '../../store/statement.ts'
import { visibleTokens } from '../../tokens/visibility.ts'

export interface LimitVisibility {
  teams: ReadonlySet<string>
  users: ReadonlySet<string>
  /** A condition on the ledger's `tokens`. */
  tokens: SQL | undefined
}

/** Null where the caller sees everything. */
export async function limitVisibilityOf(ledger: Database, principal: Principal): Promise<LimitVisibility | null> {
  const { kind, teamId, userId } = principal
  if (kind === 'session' || (teamId === null && userId === null)) return null
  const teams =
    teamId !== null
      ? [{ id: teamId }]
      : await query(ledger)
          .select({ id: memberships.teamId })
          .from(memberships)
          .where(eq(memberships.userId, userId ?? ''))
  const ids = teams.map(({ id }) => id)
  const users = await query(ledger)
    .select({ id: memberships.userId })
    .from(memberships)
    .where(isOneOf(memberships.teamId, ids))
  if (teamId === null && userId !== null) users.push({ id: userId })
  return { teams: new Set(ids), users: new Set(users.map(({ id }) => id)), tokens: visibleTokens(principal) }
}

/** Of rows of the state's `budgets` those that bound the spend of what is seen. */
export async function visibleBudgets(rows: readonly Row[], sight: LimitVisibility, ledger: Database): Promise<Row[]> {
  const named = await query(ledger)
    .selectDistinct({ id: tokens.budgetId })
    .from(tokens)
    .where(and(isNotNull(tokens.budgetId), sight.tokens))
  const seen: Readonly<Record<string, ReadonlySet<string>>> = { team: sight.teams, user: sight.users }
  const ofTokens = new Set(named.map(({ id }) => id))
  return rows.filter(
    ({ id, scopeKind, scopeId }) =>
      seen[String(scopeKind)]?.has(String(scopeId)) === true || (scopeKind === 'token' && ofTokens.has(String(id))),
  )
}

/** The row of a budget that the caller sees. Throws `not_found`. */
export async function visibleBudget(
  { state, ledger }: { state: Database; ledger: Database },
  id: string,
  principal: Principal,
) {
  const row = await query(state)
    .select()
    .from(budgetTable)
    .where(and(eq(budgetTable.id, id), eq(budgetTable.deleted, 0)))
    .get()
  const sight = await limitVisibilityOf(ledger, principal)
  const isSeen = row !== undefined && (sight === null || (await visibleBudgets([row], sight, ledger)).length > 0)
  if (!isSeen) throw new Failure('not_found', { message: 'There is no such budget, or you may not see it' })
  return row
}

export const membersSchema = z.object({
  teams: z.array(z.string()),
  users: z.array(z.string()),
  tokens: z.array(z.string()),
})

/** Of rows of the state's `consumer_groups` those with members that are seen, and of their members only those. */
export async function visibleGroups(rows: readonly Row[], sight: LimitVisibility, ledger: Database): Promise<Row[]> {
  const groups = rows.map((row) => ({ row, members: membersSchema.parse(JSON.parse(String(row.members))) }))
  const named = groups.flatMap(({ members }) => members.tokens)
  const found = await query(ledger)
    .select({ id: tokens.id })
    .from(tokens)
    .where(and(isOneOf(tokens.id, named), sight.tokens))
  const seenTokens = new Set(found.map(({ id }) => id))
  return groups.flatMap(({ row, members }) => {
    const seen = {
      teams: members.teams.filter((id) => sight.teams.has(id)),
      users: members.users.filter((id) => sight.users.has(id)),
      tokens: members.tokens.filter((id) => seenTokens.has(id)),
    }
    const none = Object.values(seen).every((ids) => ids.length === 0)
    return none ? [] : [{ ...row, members: JSON.stringify(seen) }]
  })
}

/** A condition on the accounts of a query that calls the ledger's `lease_balances` `c`. */
export async function visibleAccounts(
  { state, ledger }: { state: Database; ledger: Database },
  principal: Principal,
): Promise<Statement> {
  const sight = await limitVisibilityOf(ledger, principal)
  if (sight === null) return { sql: 'true', args: [] }
  const rows = await query(state).select().from(budgetTable).where(eq(budgetTable.deleted, 0))
  const budgets = await visibleBudgets(rows, sight, ledger)
  const { sql, args } = condition(sight.tokens)
  // `token/<id>/…`, `budget/<id>@…`; an id has 36 characters.
  return {
    sql: `((c.account like 'token/%' and exists (
        select 1 from tokens where tokens.account_id = substr(c.account, 7, 36) and ${sql}))
      or (c.account like 'budget/%' and substr(c.account, 8, 36) in (select value from json_each(?))))`,
    args: [...args, JSON.stringify(budgets.map(({ id }) => id))],
  }
}
