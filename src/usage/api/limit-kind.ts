/**
 * Budgets, consumer groups and access policies as their routes see them: what differs between the three. Gateways read
 * the rows in `state`; names are the ledger's (src/README.md, The two databases).
 */

import type { SQL } from 'drizzle-orm'
import { and, eq, gt, isNull, or, sql } from 'drizzle-orm'
import { z } from 'zod'
import { Failure } from '../../failure.ts'
import { nameText } from '../../identity/free-text.ts'
import { fromNano, isWholeNano, largestAmount, toNano } from '../../lib/money.ts'
import type { Database } from '../../store/open.ts'
import { hasRow, isOneOf, query } from '../../store/query.ts'
import { teams, users } from '../../store/schema/ledger/people.ts'
import { tokens as ledgerTokens } from '../../store/schema/ledger/tokens.ts'
import { accessPolicies, budgets, consumerGroups } from '../../store/schema/state/limits.ts'
import { tokens as stateTokens } from '../../store/schema/state/tokens.ts'
import type { Row } from '../../store/statement.ts'
import { bookedBudget } from '../window.ts'
import { type Sight, seenBudgets, seenGroups } from './visible-limits.ts'

export const limitName = nameText(100)

type Columns = Record<string, string | number | null>

/** The ledger is asked first; the state has every token, in the transaction of the change. */
interface InUse {
  ofLedger(ledger: Database): Promise<boolean>
  ofState: SQL
}

export interface LimitKind {
  kind: 'budget' | 'consumer_group' | 'access_policy'
  /** `/v1/budgets` */
  path: string
  plural: string
  /** `budget`, as summaries and messages name it. */
  word: string
  tag: string
  table: typeof budgets | typeof consumerGroups | typeof accessPolicies
  /** The body without its name. */
  create: z.ZodObject
  update: z.ZodObject
  record: z.ZodObject
  /** Columns of the fields that a body has; `undefined` leaves one as it is. */
  columns(body: Record<string, unknown>): Columns
  /** `settled`: nano-dollars booked on its account. */
  show(row: Row, settled: number): Record<string, unknown>
  /** The account that the ledger books by at an instant; null where nothing is booked. */
  account: ((row: Row, now: number) => string) | null
  /** Throws 422 naming the field where something the body names does not exist. */
  check(body: Record<string, unknown>, ledger: Database): Promise<void>
  /** The rows as a caller sees them who does not see everything. */
  seen(rows: readonly Row[], sight: Sight, ledger: Database): Promise<readonly Row[]>
  /** Whether tokens in force name a record; null where none can. */
  inUse: ((id: string, now: number) => InUse) | null
}

const rate = z.number().int().min(1).max(1_000_000_000).nullable()
const rateFields = { requests_per_minute: rate.optional(), tokens_per_minute: rate.optional() }
const rateRecord = { requests_per_minute: z.number().nullable(), tokens_per_minute: z.number().nullable() }
const ids = z.array(z.uuid()).max(1000).default([])
const membersSchema = z.strictObject({ teams: ids, users: ids, tokens: ids })
const names = z.array(z.string().min(1).max(200)).min(1).max(200).nullable()

const scopeSchema = z
  .strictObject({ kind: z.enum(['organization', 'team', 'user', 'token']), id: z.uuid().nullable().default(null) })
  .refine(({ kind, id }) => (kind === 'team' || kind === 'user') === (id !== null), {
    path: ['id'],
    message: 'is given for a team or a user, and for them only',
  })
  .describe('Whose spend it bounds; `token`: that of the tokens whose bindings.budget_id names it')

const amount = z
  .number()
  .positive()
  .max(largestAmount)
  .refine(isWholeNano, 'An amount has at most nine decimals: the least is a nano-dollar')
  .describe('US dollars in a window')

const windowSchema = z.enum(['day', 'week', 'month', 'total'])
const budgetBody = z.object({
  max_budget: amount,
  window: windowSchema,
  scope: scopeSchema,
})
const budgetUpdate = z.object({ max_budget: amount.optional() })
const groupBody = z.object({ ...rateFields, members: membersSchema })
const groupUpdate = z.object({ ...rateFields, members: membersSchema.optional() })
const policyBody = z.object({ ...rateFields, models: names.optional(), providers: names.optional() })
const policyScope = z
  .enum(['token', 'shared'])
  .describe('Whether each token that names it has these rates by itself, or all of them have them together')
const policyUpdate = policyBody.extend({ scope: policyScope.optional() })

const given = (columns: Record<string, string | number | null | undefined>): Columns =>
  Object.fromEntries(Object.entries(columns).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))

const json = (value: unknown): string | null | undefined =>
  value === undefined ? undefined : value === null ? null : JSON.stringify(value)

const parsed = (value: Row[string] | undefined): unknown => (typeof value === 'string' ? JSON.parse(value) : null)

const memberTables = { teams, users, tokens: ledgerTokens } as const

async function requireAll(
  ledger: Database,
  table: keyof typeof memberTables,
  wanted: readonly string[],
  param: string,
) {
  const of = memberTables[table]
  if ((await query(ledger).$count(of, isOneOf(of.id, wanted))) === new Set(wanted).size) return
  throw new Failure('invalid_parameter', { param, message: `One of ${param} does not exist` })
}

/** Tokens in force that a condition holds for. */
const tokensInForce =
  (names: (table: typeof ledgerTokens | typeof stateTokens, id: string) => SQL) =>
  (id: string, now: number): InUse => {
    const inForce = (table: typeof ledgerTokens | typeof stateTokens) =>
      and(
        names(table, id),
        isNull(table.revokedAt),
        or(isNull(table.rotatedAt), gt(table.rotatedAt, now)),
        or(isNull(table.expiresAt), gt(table.expiresAt, now)),
      )
    return {
      ofLedger: async (ledger) => (await query(ledger).$count(ledgerTokens, inForce(ledgerTokens))) > 0,
      ofState: hasRow(stateTokens, inForce(stateTokens)),
    }
  }

const budgetKind: LimitKind = {
  kind: 'budget',
  path: '/v1/budgets',
  plural: 'budgets',
  word: 'budget',
  tag: 'Budgets',
  table: budgets,
  create: budgetBody,
  update: budgetUpdate,
  record: z.object({
    currency: z.literal('USD'),
    max_budget: z.number(),
    current_spend: z.number().describe('What was booked in the present window; requests still running are not yet'),
    remaining: z.number().describe('What of max_budget is left of the present window'),
    window: z.string(),
    scope: z.object({ kind: z.string(), id: z.string().nullable() }),
  }),
  columns(body) {
    const { max_budget, window, scope } = budgetBody.partial().parse(body)
    return given({
      maxBudget: max_budget === undefined ? undefined : toNano(max_budget),
      window,
      scopeKind: scope?.kind,
      scopeId: scope?.id,
    })
  },
  account: (row, now) => bookedBudget(String(row.id), windowSchema.parse(row.window), now).booked,
  show: (row, settled) => ({
    currency: 'USD',
    max_budget: fromNano(Number(row.maxBudget)),
    current_spend: fromNano(settled),
    remaining: fromNano(Math.max(0, Number(row.maxBudget) - settled)),
    window: row.window,
    scope: { kind: row.scopeKind, id: row.scopeId },
  }),
  async check(body, ledger) {
    const { scope } = budgetBody.partial().parse(body)
    if (scope?.kind === 'team') await requireAll(ledger, 'teams', [scope.id ?? ''], 'scope.id')
    if (scope?.kind === 'user') await requireAll(ledger, 'users', [scope.id ?? ''], 'scope.id')
  },
  seen: seenBudgets,
  inUse: tokensInForce((table, id) => eq(table.budgetId, id)),
}

const groupKind: LimitKind = {
  kind: 'consumer_group',
  path: '/v1/consumer-groups',
  plural: 'consumer_groups',
  word: 'consumer group',
  tag: 'Consumer groups',
  table: consumerGroups,
  create: groupBody,
  update: groupUpdate,
  record: z.object({
    ...rateRecord,
    members: z.object({ teams: z.array(z.string()), users: z.array(z.string()), tokens: z.array(z.string()) }),
  }),
  columns(body) {
    const { requests_per_minute, tokens_per_minute, members } = groupUpdate.parse(body)
    return given({
      requestsPerMinute: requests_per_minute,
      tokensPerMinute: tokens_per_minute,
      members: json(members) ?? undefined,
    })
  },
  account: null,
  show: (row) => ({
    requests_per_minute: row.requestsPerMinute,
    tokens_per_minute: row.tokensPerMinute,
    members: parsed(row.members),
  }),
  async check(body, ledger) {
    const { members } = groupUpdate.parse(body)
    for (const table of ['teams', 'users', 'tokens'] as const) {
      if (members !== undefined) await requireAll(ledger, table, members[table], `members.${table}`)
    }
  },
  seen: seenGroups,
  inUse: null,
}

const policyKind: LimitKind = {
  kind: 'access_policy',
  path: '/v1/access-policies',
  plural: 'access_policies',
  word: 'access policy',
  tag: 'Access policies',
  table: accessPolicies,
  create: policyBody.extend({ scope: policyScope.default('token') }),
  update: policyUpdate,
  record: z.object({
    ...rateRecord,
    scope: policyScope,
    models: z.array(z.string()).nullable(),
    providers: z.array(z.string()).nullable(),
  }),
  columns(body) {
    const { requests_per_minute, tokens_per_minute, scope, models, providers } = policyUpdate.parse(body)
    return given({
      requestsPerMinute: requests_per_minute,
      tokensPerMinute: tokens_per_minute,
      scope,
      models: json(models),
      providers: json(providers),
    })
  },
  account: null,
  show: (row) => ({
    requests_per_minute: row.requestsPerMinute,
    tokens_per_minute: row.tokensPerMinute,
    scope: row.scope,
    models: parsed(row.models),
    providers: parsed(row.providers),
  }),
  check: async () => undefined,
  // Whose requests it counts is said by tokens, not by the policy.
  seen: async (rows) => rows,
  inUse: tokensInForce(
    (table, id) => sql`exists (select 1 from json_each(${table.accessPolicyIds}) where value = ${id})`,
  ),
}

export const limitKinds: readonly LimitKind[] = [budgetKind, groupKind, policyKind]
