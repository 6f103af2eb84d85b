/** Conditions about limits and records that end: budgets, tokens that expire, requests that wait, charges of providers. */
import { and, eq, gt, gte, inArray, isNotNull, isNull, lte, min, or, sql } from 'drizzle-orm'
import { dollars, fromNano } from '../../lib/money.ts'
import { isOneOf, query } from '../../store/query.ts'
import { escalations } from '../../store/schema/ledger/policies.ts'
import { tokens } from '../../store/schema/ledger/tokens.ts'
import { limitNames, priceExcesses } from '../../store/schema/ledger/usage.ts'
import { providers } from '../../store/schema/state/catalog.ts'
import { budgets } from '../../store/schema/state/limits.ts'
import { readSettled } from '../../usage/api/stored-limit.ts'
import { countValuesOver, readValues, valuesOfAccounts } from '../../usage/attribution/value-accounts.ts'
import type { BudgetWindow } from '../../usage/limits.ts'
import { bookedBudget, windowOf } from '../../usage/window.ts'
import { type Measured, subjectsAtMost } from '../dependencies.ts'
import type { Alert } from '../stored-alert.ts'
import type { Round } from './round.ts'
import { scopePhrase } from './scope-name.ts'

const minute = 60_000
const day = 86_400_000

export async function budgetShare(alert: Alert, round: Round): Promise<Measured[]> {
  if (alert.scope.kind === 'token') return await tokenShare(alert, round)
  const { id, kind } = alert.scope
  const watched = (await budgetUse(round)).filter(
    (budget) => kind === 'organization' || (kind === 'budget' ? budget.id === id : budget.teamId === id),
  )
  const measured = await Promise.all(
    watched.map((budget) =>
      budget.per === null
        ? [shareMeasured(budget, { account: budget.booked, used: budget.used, of: '' })]
        : valueShares(budget, budget.per, alert, round),
    ),
  )
  return measured.flat()
}

/**
 * Of a budget for each value of a dimension: the values that used most, those with an open firing, and how many have
 * reached the lowest threshold, a percentage. A dimension may have 100 000 values; so many are never read in a round.
 */
async function valueShares(budget: BudgetUse, per: string, alert: Alert, round: Round): Promise<Measured[]> {
  const { id, booked, limit } = budget
  const { ledger } = round.dependencies
  const window = windowOf(booked)
  const percent = Math.min(...alert.thresholds)
  const [most, count] = await Promise.all([
    round.once(`values ${booked}`, () =>
      readValues(ledger, { budget: id, window, after: null, count: subjectsAtMost }),
    ),
    round.once(`values over ${booked} ${percent}`, () =>
      countValuesOver(ledger, { budget: id, window, limit, percent }),
    ),
  ])
  const found = new Set(most.map(({ account }) => account))
  const open = round.openSubjects(alert).filter((subject) => isValueOf(subject, id, window) && !found.has(subject))
  const group = {
    subject: booked,
    count,
    more: (further: number) =>
      `${further} more values of ${per} have used ${percent} % or more of the budget ${budget.name}; "gatehouse budget values ${id}" lists them.`,
  }
  return [...most, ...(await valuesOfAccounts(ledger, open))].map(({ account, value, settled }) => ({
    ...shareMeasured(budget, {
      account,
      used: settled,
      of: value === null ? ` of requests without a ${per}` : ` of the ${per} ${value}`,
    }),
    group,
  }))
}

const isValueOf = (subject: string, budget: string, window: string): boolean =>
  subject.startsWith(`budget/${budget}/`) && windowOf(subject) === window

const shareMeasured = (
  { name, window, limit }: BudgetUse,
  { account, used, of }: { account: string; used: number; of: string },
): Measured => ({
  subject: account,
  value: (100 * used) / limit,
  once: true,
  about: () => `${shareOf(used, limit)} of the budget ${name}${of} are used in this ${windowNames[window]}.`,
})

const windowNames = { day: 'day', week: 'week', month: 'month', total: 'installation' } as const satisfies Record<
  BudgetWindow,
  string
>
const windowNamed = (text: string): BudgetWindow =>
  text === 'day' || text === 'week' || text === 'month' ? text : 'total'

const shareOf = (used: number, limit: number): string =>
  `${Math.floor((100 * used) / limit)} % (${dollars(fromNano(used))} of ${dollars(fromNano(limit))})`

interface BudgetUse {
  id: string
  teamId: string | null
  name: string
  /** The dimension that it is for each value of; null: it is one amount. */
  per: string | null
  /** Its account in the present window. */
  booked: string
  window: BudgetWindow
  /** Nano-dollars, as `limit`. */
  used: number
  limit: number
}

/** Every budget with what is booked in its present window, read once for all alerts. */
const budgetUse = (round: Round): Promise<BudgetUse[]> =>
  round.once('budgets', async () => {
    const { state, ledger } = round.dependencies
    const rows = await query(state).select().from(budgets).where(eq(budgets.deleted, 0))
    const names = await query(ledger).select().from(limitNames).where(eq(limitNames.kind, 'budget'))
    const nameOf = new Map(names.map(({ id, name }) => [id, name]))
    const windows = rows.map((row) => ({ row, ...bookedBudget(row.id, windowNamed(row.window), round.now) }))
    const settled = await settledOf(
      round,
      windows.map(({ booked }) => booked),
    )
    return windows.map(({ row, booked }) => ({
      id: row.id,
      teamId: row.scopeKind === 'team' ? row.scopeId : null,
      name: nameOf.get(row.id) ?? row.id,
      per: row.per,
      booked,
      window: windowNamed(row.window),
      used: settled.get(booked) ?? 0,
      limit: row.maxBudget,
    }))
  })

async function settledOf({ dependencies: { ledger } }: Round, accounts: string[]): Promise<Map<string, number>> {
  return new Map((await readSettled(ledger, accounts)).map(({ account, settled }) => [account, settled]))
}

async function tokenShare({ scope: { id } }: Alert, round: Round): Promise<Measured[]> {
  const { ledger } = round.dependencies
  const token = await query(ledger)
    .select({ name: tokens.name, account: tokens.accountId, limit: tokens.maxBudget })
    .from(tokens)
    .where(and(eq(tokens.id, id ?? ''), isNull(tokens.revokedAt)))
    .get()
  if (token === undefined || token.limit === null || token.account === null || token.limit === 0) return []
  const { name, limit } = token
  const account = `token/${token.account}/money`
  const used = (await settledOf(round, [account])).get(account) ?? 0
  const about = () => `${shareOf(used, limit)} of the budget of the token ${name} are used.`
  return [{ subject: account, value: (100 * used) / limit, once: true, about }]
}

/** The list of tokens shows more of them. */
const mostTokens = 200

/** Tokens that were made for a shorter time than the threshold expire as they are meant to. */
export async function tokenExpiring(alert: Alert, { now, dependencies: { ledger } }: Round): Promise<Measured[]> {
  const within = Math.max(...alert.thresholds) * day
  const { kind, id } = alert.scope
  const rows = await query(ledger)
    .select({ id: tokens.id, name: tokens.name, expiresAt: tokens.expiresAt })
    .from(tokens)
    .where(
      and(
        isNotNull(tokens.expiresAt),
        isNull(tokens.revokedAt),
        or(isNull(tokens.rotatedAt), gt(tokens.rotatedAt, now)),
        gt(tokens.expiresAt, now - day),
        lte(tokens.expiresAt, now + within),
        sql`${tokens.expiresAt} - ${tokens.createdAt} > ${within}`,
        kind === 'token' ? eq(tokens.id, id ?? '') : kind === 'team' ? eq(tokens.teamId, id ?? '') : undefined,
      ),
    )
    .orderBy(tokens.expiresAt)
    .limit(mostTokens)
  return rows.map(({ id: token, name, expiresAt }) => ({
    subject: token,
    value: ((expiresAt ?? now) - now) / day,
    about: () => `The token ${name} expires at ${new Date(expiresAt ?? now).toISOString()}.`,
  }))
}

export async function escalationWaiting(alert: Alert, { now, dependencies }: Round): Promise<Measured[]> {
  const { kind, id } = alert.scope
  const { ledger } = dependencies
  const waiting = await query(ledger)
    .select({ number: sql<number>`count(*)`, oldest: min(escalations.queuedAt) })
    .from(escalations)
    .where(
      and(
        inArray(escalations.state, ['queued', 'claimed']),
        gt(escalations.expiresAt, now),
        kind === 'team' ? eq(escalations.teamId, id ?? '') : undefined,
      ),
    )
    .get()
  if (waiting === undefined || waiting.oldest === null) return []
  const value = Math.max(0, now - waiting.oldest) / minute
  const { number } = waiting
  const about = async () => {
    const of = await scopePhrase('of', alert, dependencies)
    return `${number === 1 ? `A request${of} waits` : `${number} requests${of} wait`} for a person, the oldest for ${Math.floor(value)} minutes.`
  }
  return [{ subject: kind === 'team' ? `team ${id}` : 'queue', value, about }]
}

export async function boundViolated(alert: Alert, { now, dependencies }: Round): Promise<Measured[]> {
  const { state, ledger } = dependencies
  const rows = await query(ledger)
    .select()
    .from(priceExcesses)
    .where(gte(priceExcesses.at, now - alert.windowMinutes * minute))
  if (rows.length === 0) return []
  const ids = rows.map(({ providerId }) => providerId)
  const named = await query(state)
    .select({ id: providers.id, name: providers.name })
    .from(providers)
    .where(isOneOf(providers.id, ids))
  const nameOf = new Map(named.map(({ id, name }) => [id, name]))
  return rows.flatMap(({ providerId, model, amount }) => {
    const provider = nameOf.get(providerId) ?? providerId
    if (alert.scope.kind === 'provider' && alert.scope.id !== provider) return []
    const value = fromNano(amount)
    const about = () =>
      `${provider} charged $${value} more for a request to ${model} than the most that it could cost by its list price. The charge was booked in full, and later requests are bounded by it.`
    return [{ subject: `${provider}/${model}`, value, about }]
  })
}
