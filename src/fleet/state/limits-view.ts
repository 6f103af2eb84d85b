/** The limits besides tokens' own, compiled from the state's rows and kept in memory. */
import type { Database } from 'bun:sqlite'
import { z } from 'zod'
import { type Dimension, sourceKinds } from '../../usage/attribution/dimension.ts'
import {
  type AccessPolicy,
  type Budget,
  type ConsumerGroup,
  type LimitSet,
  noLimits,
  type SharedRateLimit,
} from '../../usage/limits.ts'
import { accountsOfTokens } from './token-accounts.ts'

interface BudgetRow {
  id: string
  name: string
  max_budget: number
  window: Budget['window']
  scope_kind: Budget['scope']['kind']
  scope_id: string | null
  per: string | null
}

interface RateRow {
  id: string
  name: string
  requests_per_minute: number | null
  tokens_per_minute: number | null
  per: string | null
}

const membersSchema = z.object({
  teams: z.array(z.string()),
  users: z.array(z.string()),
  tokens: z.array(z.string()),
})
const namesSchema = z.array(z.string()).nullable()

const newestVersions = `select (select max(version) from budgets) as budgets,
  (select max(version) from consumer_groups) as groups, (select max(version) from access_policies) as policies,
  (select max(version) from excesses) as excesses,
  (select max(version) from attribution_dimensions) as dimensions`

/** All limits, read again when one has changed: there are few compared to tokens. */
export class LimitsView {
  #newest = ''
  #limits: LimitSet = noLimits

  /** Call inside a read transaction. `anew`: the file or its history is another one. */
  read(database: Database, anew: boolean): LimitSet {
    const newest = JSON.stringify(database.query(newestVersions).get())
    if (anew || newest !== this.#newest) this.#limits = readLimits(database)
    this.#newest = newest
    return this.#limits
  }
}

function readLimits(database: Database): LimitSet {
  const budgets = database
    .query<BudgetRow, []>(
      'select id, name, max_budget, window, scope_kind, scope_id, per from budgets where deleted = 0 order by id',
    )
    .all()
    .map(compileBudget)
  return {
    budgets: new Map(budgets.map((budget) => [budget.id, budget])),
    budgetsOf: grouped(
      budgets.filter(({ scope }) => scope.kind !== 'token').map((budget) => [ownerOf(budget), budget] as const),
    ),
    groupsOf: readGroups(database),
    accessPolicies: readAccessPolicies(database),
    excesses: readExcesses(database),
    dimensions: readDimensions(database),
  }
}

const compileBudget = (row: BudgetRow): Budget => ({
  id: row.id,
  name: row.name,
  maxBudget: row.max_budget,
  window: row.window,
  scope: { kind: row.scope_kind, id: row.scope_id },
  per: row.per,
})

const ownerOf = ({ scope: { kind, id } }: Budget): string => (kind === 'organization' ? kind : `${kind}:${id}`)

function grouped<Value>(entries: readonly (readonly [string, Value])[]): Map<string, Value[]> {
  const groups = new Map<string, Value[]>()
  for (const [key, value] of entries) groups.set(key, [...(groups.get(key) ?? []), value])
  return groups
}

function readGroups(database: Database): Map<string, ConsumerGroup[]> {
  const rows = database
    .query<RateRow & { members: string }, []>('select * from consumer_groups where deleted = 0 order by id')
    .all()
  return grouped(
    rows.flatMap((row) => {
      const { teams, users, tokens } = membersSchema.parse(JSON.parse(row.members))
      const group = compileRate(row)
      return [
        ...teams.map((id) => [`team:${id}`, group] as const),
        ...users.map((id) => [`user:${id}`, group] as const),
        ...accountsOfTokens(database, tokens).map((id) => [`token:${id}`, group] as const),
      ]
    }),
  )
}

function readExcesses(database: Database): Map<string, number> {
  const rows = database
    .query<{ id: string; amount: number }, []>('select id, amount from excesses where deleted = 0')
    .all()
  return new Map(rows.map(({ id, amount }) => [id, amount]))
}

interface DimensionRow {
  name: string
  source_kind: string
  source_key: string
  allowed_values: string | null
  required: number
  max_values: number
}

function readDimensions(database: Database): Dimension[] {
  const rows = database
    .query<DimensionRow, []>('select * from attribution_dimensions where deleted = 0 order by name')
    .all()
  return rows.map((row) => {
    const values = namesSchema.parse(JSON.parse(row.allowed_values ?? 'null'))
    return {
      name: row.name,
      source: { kind: z.enum(sourceKinds).parse(row.source_kind), key: row.source_key },
      values: values === null ? null : new Set(values),
      required: row.required === 1,
      maxValues: row.max_values,
    }
  })
}

function readAccessPolicies(database: Database): Map<string, AccessPolicy> {
  const rows = database
    .query<RateRow & { scope: string; models: string | null; providers: string | null }, []>(
      'select * from access_policies where deleted = 0',
    )
    .all()
  return new Map(
    rows.map((row) => [
      row.id,
      {
        ...compileRate(row),
        scope: row.scope === 'token' ? 'token' : 'shared',
        models: namesSchema.parse(JSON.parse(row.models ?? 'null')),
        providers: namesSchema.parse(JSON.parse(row.providers ?? 'null')),
      },
    ]),
  )
}

const compileRate = (row: RateRow): SharedRateLimit => ({
  id: row.id,
  name: row.name,
  requestsPerMinute: row.requests_per_minute,
  tokensPerMinute: row.tokens_per_minute,
  per: row.per,
})
