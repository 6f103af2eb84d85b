/** `/v1/budgets/{id}/usage`: how a budget is used, by day and by token, from the daily sums of requests in its scope. */
import { eq } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { idParams } from '../../api/resource.ts'
import { visibilityFor } from '../../events/query/visibility-filter.ts'
import { foldRollups } from '../../events/rollups/fold.ts'
import type { Principal } from '../../identity/principal.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import { fromNano } from '../../lib/money.ts'
import type { Database } from '../../store/open.ts'
import { query } from '../../store/query.ts'
import { tokens } from '../../store/schema/ledger/tokens.ts'
import { windowSchema } from '../api/budget-resource.ts'
import { visibleBudget } from '../api/visible-limits.ts'
import { windowAt } from '../window.ts'
import { dayMs } from './month-report.ts'
import { readRecordNames } from './names.ts'
import { type CostRow, readCosts } from './read-costs.ts'

interface Dependencies {
  state: Database
  ledger: Database
  clock: Clock
}

/** How many rounds of arrivals are added to the sums before they are read. */
const turnsBeforeReading = 20
/** How far a budget without windows looks back. */
const daysOfTotal = 30
const tokensShown = 20

const usageSchema = z.object({
  since: z.iso.datetime().describe('When the window began; of a total budget, 30 days ago'),
  days: z.array(z.object({ at: z.iso.datetime(), cost: z.number().describe('US dollars') })),
  rows: z
    .array(
      z.object({
        token_id: z.string().nullable(),
        name: z.string().nullable(),
        requests: z.number().int(),
        cost: z.number().describe('US dollars'),
      }),
    )
    .describe(`The ${tokensShown} that spent most. Empty for budgets of MCP servers, whose calls are not summed up`),
})
export type BudgetUsage = z.infer<typeof usageSchema>

export const budgetUsageRoute = (dependencies: Dependencies) =>
  new Elysia({ name: 'budget-usage' })
    .use(conventions)
    .get('/v1/budgets/:id/usage', ({ principal, params: { id } }) => readUsage(dependencies, id, principal), {
      access: 'catalog:read',
      failures: [404],
      params: idParams,
      query: z.strictObject({}),
      response: usageSchema,
      detail: {
        tags: ['Budgets'],
        summary: 'Returns what requests in the scope of a budget cost in its present window, by day and by token',
      },
    })

async function readUsage(
  { state, ledger, clock }: Dependencies,
  id: string,
  principal: Principal,
): Promise<BudgetUsage> {
  const budget = await visibleBudget({ state, ledger }, id, principal)
  const now = clock.now()
  const from = windowAt(windowSchema.parse(budget.window), now)?.start ?? now - (now % dayMs) - daysOfTotal * dayMs
  const isOf = await scopeOf(ledger, budget)
  await foldRollups(ledger, turnsBeforeReading)
  const days = new Map<number, number>()
  const spent = new Map<string, { requests: number; cost: number }>()
  const visibility = await visibilityFor(ledger, principal)
  for await (const rows of readCosts(ledger, { from, until: now + 1, visibility, withDimensions: false })) {
    for (const { at, token_id: token, requests, cost } of rows.filter(isOf)) {
      const known = spent.get(token) ?? { requests: 0, cost: 0 }
      spent.set(token, { requests: known.requests + requests, cost: known.cost + cost })
      days.set(at, (days.get(at) ?? 0) + cost)
    }
  }
  const most = [...spent].toSorted(([, left], [, right]) => right.cost - left.cost).slice(0, tokensShown)
  const nameOf = await readRecordNames(
    { ledger, seesPeople: principal.permissions.has('members:read') },
    'token',
    most.map(([token]) => token),
  )
  return {
    since: timestamp(from),
    days: [...days]
      .toSorted(([one], [other]) => one - other)
      .map(([at, cost]) => ({ at: timestamp(at), cost: fromNano(cost) })),
    rows: most.map(([token, { requests, cost }]) => ({
      ...{ token_id: token || null, name: token === '' ? null : nameOf(token) },
      ...{ requests, cost: fromNano(cost) },
    })),
  }
}

/** Which sums belong to a budget. */
async function scopeOf(
  ledger: Database,
  { id, scopeKind, scopeId }: { id: string; scopeKind: string; scopeId: string | null },
): Promise<(row: CostRow) => boolean> {
  if (scopeKind === 'organization') return () => true
  if (scopeKind === 'team') return ({ team_id }) => team_id === scopeId
  if (scopeKind === 'user') return ({ user_id }) => user_id === scopeId
  if (scopeKind === 'mcp_server') return () => false
  const named = await query(ledger).select({ id: tokens.id }).from(tokens).where(eq(tokens.budgetId, id))
  const ids = new Set(named.map((token) => token.id))
  return ({ token_id }) => ids.has(token_id)
}
