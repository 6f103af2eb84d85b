/**
 * Budgets, consumer groups and access policies as their handlers see them: what differs between the three. Gateways read
 * the rows in `state`; names are the ledger's (src/README.md, The two databases).
 */
import type { SQL } from 'drizzle-orm'
import { and, eq, gt, isNull, or, sql } from 'drizzle-orm'
import type { z } from 'zod'
import { Failure } from '../../failure.ts'
import { timestamp } from '../../lib/clock.ts'
import { fromNano, toNano } from '../../lib/money.ts'
import type { Database } from '../../store/open.ts'
import { hasRow, isOneOf, newStateVersion, query, statement, update } from '../../store/query.ts'
import { teams, users } from '../../store/schema/ledger/people.ts'
import { tokens as ledgerTokens } from '../../store/schema/ledger/tokens.ts'
import { mcpServers } from '../../store/schema/state/catalog.ts'
import { accessPolicies, attributionDimensions, budgets, consumerGroups } from '../../store/schema/state/limits.ts'
import { tokens as stateTokens } from '../../store/schema/state/tokens.ts'
import type { Row, Statement } from '../../store/statement.ts'
import { mostDimensions } from '../attribution/dimension.ts'
import { type dimensionFields, dimensionResource } from '../attribution/dimension-resource.ts'
import { keepMetadataOf } from '../attribution/token-metadata.ts'
import type { SumsOfValues } from '../attribution/value-accounts.ts'
import { maxAmount } from '../lease/lease.ts'
import type { BudgetWindow } from '../limits.ts'
import { bookedBudget, windowAt } from '../window.ts'
import { accessPolicyResource, type policyFields } from './access-policy-resource.ts'
import { type budgetFields, budgetResource, windowSchema } from './budget-resource.ts'
import { consumerGroupResource, type groupFields } from './consumer-group-resource.ts'
import { type LimitVisibility, visibleBudgets, visibleGroups } from './visible-limits.ts'

export type Columns = Record<string, string | number | null>

/** The databases are asked first; the state has every token and limit, in the transaction of the change. */
interface InUse {
  /** What names it and what to do first, as a sentence; null where nothing does. */
  found(databases: { state: Database; ledger: Database }): Promise<string | null>
  ofState: SQL
}

/** What the record of every limit has. */
export interface Identified {
  id: string
  name: string
  version: number
  created_at: string
}

/** What is booked of a limit in its present window. */
export interface Booked {
  /** Nano-dollars. */
  used: number
  /** Of a budget for each value of a dimension. */
  values: SumsOfValues | null
}

export interface StoredKind {
  kind: 'budget' | 'consumer_group' | 'access_policy' | 'dimension'
  table: typeof budgets | typeof consumerGroups | typeof accessPolicies | typeof attributionDimensions
}

/** `Fields` are those of a body; `Shown` is the record. */
export interface LimitKind<Fields, Shown> extends StoredKind {
  /** `budget`, as messages name it. */
  word: string
  /** Columns of the fields that a body has; `undefined` leaves one as it is. */
  columns(body: Fields): Columns
  show(common: Identified, row: Row, booked: Booked, now: number): Shown
  /** The account that the ledger books by at an instant; null where nothing is booked. */
  account: ((row: Row, now: number) => string) | null
  /** Throws 422 naming the field where something the body names does not exist. */
  check(body: Fields & { name?: string | undefined }, databases: { state: Database; ledger: Database }): Promise<void>
  /** The rows as a caller sees them who does not see everything. */
  seen(rows: readonly Row[], sight: LimitVisibility, ledger: Database): Promise<readonly Row[]>
  /** Whether tokens in force name a record; null where none can. */
  inUse: ((id: string, now: number) => InUse) | null
  /** What else gateways and control planes must read again when a record changes. */
  touches?(id: string): Statement[]
  /** What a change writes besides: `after` are the fields of its body, null for a deletion; `before` null for a new one. */
  follows?(
    ledger: Database,
    before: Row | null,
    after: Fields | null,
  ): Promise<{ state: Statement[]; ledger: Statement[] }>
}

const given = (columns: Record<string, string | number | null | undefined>): Columns =>
  Object.fromEntries(Object.entries(columns).flatMap(([name, value]) => (value === undefined ? [] : [[name, value]])))

const json = (value: unknown): string | null | undefined =>
  value === undefined ? undefined : value === null ? null : JSON.stringify(value)

const namesOf = (value: Row[string] | undefined): string[] | null =>
  typeof value === 'string' ? JSON.parse(value) : null

const numberOf = (value: Row[string] | undefined): number | null => (typeof value === 'number' ? value : null)
const textOf = (value: Row[string] | undefined): string | null => (typeof value === 'string' ? value : null)

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
  (word: string, names: (table: typeof ledgerTokens | typeof stateTokens, id: string) => SQL) =>
  (id: string, now: number): InUse => {
    const inForce = (table: typeof ledgerTokens | typeof stateTokens) =>
      and(
        names(table, id),
        isNull(table.revokedAt),
        or(isNull(table.rotatedAt), gt(table.rotatedAt, now)),
        or(isNull(table.expiresAt), gt(table.expiresAt, now)),
      )
    return {
      async found({ ledger }) {
        const count = await query(ledger).$count(ledgerTokens, inForce(ledgerTokens))
        return count === 0 ? null : `Tokens in force still name the ${word}: revoke them first`
      },
      ofState: hasRow(stateTokens, inForce(stateTokens)),
    }
  }

/** The id of a tool's budget is that of its server, with the tool after a slash. */
const storedScopeId = ({ id, tool }: { id: string | null; tool: string | null }): string | null =>
  id === null || tool === null ? id : `${id}/${tool}`

function shownScopeId(stored: string | null): { id: string | null; tool: string | null } {
  const at = stored?.indexOf('/') ?? -1
  return stored === null || at < 0
    ? { id: stored, tool: null }
    : { id: stored.slice(0, at), tool: stored.slice(at + 1) }
}

async function requireDimension(state: Database, name: string): Promise<void> {
  const { name: column, deleted } = attributionDimensions
  if ((await query(state).$count(attributionDimensions, and(eq(column, name), eq(deleted, 0)))) > 0) return
  const message = `There is no dimension ${name}: declare it first (POST ${dimensionResource.path})`
  throw new Failure('invalid_parameter', { param: 'per', message })
}

async function requireServer(state: Database, id: string): Promise<void> {
  if ((await query(state).$count(mcpServers, and(eq(mcpServers.id, id), eq(mcpServers.deleted, 0)))) > 0) return
  throw new Failure('invalid_parameter', { param: 'scope.id', message: 'There is no MCP server of this id' })
}

/** The share of a window before which its pace says nothing. */
const paceFrom = 0.05

/** How the window ends at its pace so far. */
function forecastOf(window: BudgetWindow, settled: number, now: number) {
  const running = windowAt(window, now)
  if (running === null) return { resets_at: null, forecast: null }
  const { start, end } = running
  const elapsed = (now - start) / (end - start)
  if (elapsed < paceFrom) return { resets_at: timestamp(end), forecast: null }
  return { resets_at: timestamp(end), forecast: fromNano(Math.round(Math.min(settled / elapsed, maxAmount))) }
}

export const budgetKind: LimitKind<z.infer<typeof budgetFields>, z.infer<typeof budgetResource.record>> = {
  kind: 'budget',
  word: budgetResource.one,
  table: budgets,
  columns: ({ max_budget, window, scope, per }) =>
    given({
      per,
      maxBudget: max_budget === undefined ? undefined : toNano(max_budget),
      window,
      scopeKind: scope?.kind,
      scopeId: scope === undefined ? undefined : storedScopeId(scope),
    }),
  account: (row, now) => bookedBudget(String(row.id), windowSchema.parse(row.window), now).booked,
  show: ({ id, name, ...versioned }, row, { used: settled, values }, now) => ({
    id,
    name,
    currency: 'USD',
    max_budget: fromNano(Number(row.maxBudget)),
    current_spend: fromNano(settled),
    remaining: fromNano(Math.max(0, Number(row.maxBudget) - (row.per === null ? settled : 0))),
    window: String(row.window),
    ...forecastOf(windowSchema.parse(row.window), settled, now),
    scope: { kind: String(row.scopeKind), ...shownScopeId(textOf(row.scopeId)) },
    per: textOf(row.per),
    values: values && {
      count: values.values,
      exhausted: values.exhausted,
      nearly_exhausted: values.nearly_exhausted,
      most_spent: fromNano(values.most),
    },
    ...versioned,
  }),
  async check({ scope, per }, { state, ledger }) {
    if (per != null) await requireDimension(state, per)
    if (scope?.kind === 'mcp_server') await requireServer(state, scope.id ?? '')
    if (scope?.kind === 'team') await requireAll(ledger, 'teams', [scope.id ?? ''], 'scope.id')
    if (scope?.kind === 'user') await requireAll(ledger, 'users', [scope.id ?? ''], 'scope.id')
  },
  seen: visibleBudgets,
  inUse: tokensInForce(budgetResource.one, (table, id) => eq(table.budgetId, id)),
}

export const groupKind: LimitKind<z.infer<typeof groupFields>, z.infer<typeof consumerGroupResource.record>> = {
  kind: 'consumer_group',
  word: consumerGroupResource.one,
  table: consumerGroups,
  columns: ({ requests_per_minute, tokens_per_minute, members, per }) =>
    given({
      per,
      requestsPerMinute: requests_per_minute,
      tokensPerMinute: tokens_per_minute,
      members: json(members) ?? undefined,
    }),
  account: null,
  show: ({ id, name, ...versioned }, row) => ({
    id,
    name,
    requests_per_minute: numberOf(row.requestsPerMinute),
    tokens_per_minute: numberOf(row.tokensPerMinute),
    members: consumerGroupResource.record.shape.members.parse(JSON.parse(String(row.members))),
    per: textOf(row.per),
    ...versioned,
  }),
  async check({ members, per }, { state, ledger }) {
    if (per != null) await requireDimension(state, per)
    for (const table of ['teams', 'users', 'tokens'] as const) {
      if (members !== undefined) await requireAll(ledger, table, members[table], `members.${table}`)
    }
  },
  seen: visibleGroups,
  inUse: null,
}

export const policyKind: LimitKind<z.infer<typeof policyFields>, z.infer<typeof accessPolicyResource.record>> = {
  kind: 'access_policy',
  word: accessPolicyResource.one,
  table: accessPolicies,
  columns: ({ requests_per_minute, tokens_per_minute, scope, models, providers, per }) =>
    given({
      per,
      requestsPerMinute: requests_per_minute,
      tokensPerMinute: tokens_per_minute,
      scope,
      models: json(models),
      providers: json(providers),
    }),
  account: null,
  show: ({ id, name, ...versioned }, row) => ({
    id,
    name,
    requests_per_minute: numberOf(row.requestsPerMinute),
    tokens_per_minute: numberOf(row.tokensPerMinute),
    scope: accessPolicyResource.record.shape.scope.parse(row.scope),
    models: namesOf(row.models),
    providers: namesOf(row.providers),
    per: textOf(row.per),
    ...versioned,
  }),
  async check({ per }, { state }) {
    if (per != null) await requireDimension(state, per)
  },
  // Tokens, not the policy, say whose requests it counts.
  seen: async (rows) => rows,
  inUse: tokensInForce(
    accessPolicyResource.one,
    (table, id) => sql`exists (select 1 from json_each(${table.accessPolicyIds}) where value = ${id})`,
  ),
}

const limitsPer = [
  { table: budgets, word: budgetResource.one },
  { table: consumerGroups, word: consumerGroupResource.one },
  { table: accessPolicies, word: accessPolicyResource.one },
] as const

/** Limits that a message names; more are counted. */
const namedLimits = 3

/** Whether a limit of this table is for each value of the dimension with this id. */
const isPer = (table: (typeof limitsPer)[number]['table'], id: string): SQL =>
  sql`${table.deleted} = 0 and ${table.per} = (select ${attributionDimensions.name} from ${attributionDimensions} where ${attributionDimensions.id} = ${id})`

export const dimensionKind: LimitKind<z.infer<typeof dimensionFields>, z.infer<typeof dimensionResource.record>> = {
  kind: 'dimension',
  word: dimensionResource.one,
  table: attributionDimensions,
  columns: ({ source, values, max_values, required }) =>
    given({
      sourceKind: source?.kind,
      sourceKey: source?.key,
      allowedValues: json(values),
      maxValues: max_values,
      required: required === undefined ? undefined : Number(required),
    }),
  account: null,
  show: ({ id, name, ...versioned }, row) => ({
    id,
    name,
    source: dimensionResource.record.shape.source.parse({ kind: row.sourceKind, key: row.sourceKey }),
    values: namesOf(row.allowedValues),
    max_values: Number(row.maxValues),
    required: row.required === 1,
    ...versioned,
  }),
  async check({ name }, { state }) {
    if (name === undefined) return
    const count = await query(state).$count(attributionDimensions, eq(attributionDimensions.deleted, 0))
    if (count < mostDimensions) return
    throw new Failure('conflict', { message: `There are ${mostDimensions} dimensions, the most that there may be` })
  },
  seen: async (rows) => rows,
  inUse: (id) => ({
    async found({ state }) {
      const limits: string[] = []
      for (const { table, word } of limitsPer) {
        const rows = await query(state).select({ name: table.name }).from(table).where(isPer(table, id))
        limits.push(...rows.map(({ name }) => `the ${word} ${name}`))
      }
      if (limits.length === 0) return null
      const more = limits.length - namedLimits
      const named = limits.slice(0, namedLimits).join(', ')
      return `Limits are for each of its values (per): ${named}${more > 0 ? ` and ${more} more` : ''}. Delete them first`
    },
    ofState: or(...limitsPer.map(({ table }) => hasRow(table, isPer(table, id)))) ?? sql`false`,
  }),
  async follows(ledger, before, after) {
    const was = before?.sourceKind === 'token_metadata' ? String(before.sourceKey) : null
    const source = after?.source
    const left = source === undefined && after !== null ? was : source?.kind === 'token_metadata' ? source.key : null
    return await keepMetadataOf(ledger, was === left ? [] : [was, left].flatMap((key) => key ?? []))
  },
  // They are read with `max_values` of their dimension (store/limit-rows.ts).
  touches: (id) =>
    limitsPer.map(({ table }) => statement(update(table).set({ version: newStateVersion }).where(isPer(table, id)))),
}
