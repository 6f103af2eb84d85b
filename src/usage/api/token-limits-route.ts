/**
 * `/v1/tokens/{id}/limits`: the limits that the requests of a token draw on, its own and those of its sources, its
 * team, its user and the organization, with what is used of each. A caller who may read the token may read them: a
 * refusal names them too. Budgets that depend on the request are not listed: those of MCP servers, and those of the
 * owner that a gateway names for its spend.
 */
import { eq } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { idParams } from '../../api/resource.ts'
import type { Principal } from '../../identity/principal.ts'
import { type Clock, timestamp } from '../../lib/clock.ts'
import { fromNano } from '../../lib/money.ts'
import type { Database } from '../../store/open.ts'
import { isOneOf, query } from '../../store/query.ts'
import { tokens } from '../../store/schema/ledger/tokens.ts'
import {
  accessPolicies,
  accounts,
  attributionDimensions,
  budgets,
  consumerGroups,
} from '../../store/schema/state/limits.ts'
import { findStateRow, type StoredToken } from '../../tokens/stored-token.ts'
import { requireToken } from '../../tokens/visibility.ts'
import { digestFor, plainValue } from '../attribution/dimension.ts'
import { budgetAccount, budgetOwnersOf, moneyAccount, requestsAccount } from '../demands.ts'
import { type NamedDimension, readRecordNames } from '../reports/names.ts'
import { bookedBudget } from '../window.ts'
import { windowSchema } from './budget-resource.ts'
import { readSettled } from './stored-limit.ts'
import { membersSchema } from './visible-limits.ts'

interface Dependencies {
  state: Database
  ledger: Database
  clock: Clock
}

const limitSchema = z.object({
  kind: z.enum(['max_budget', 'max_requests', 'rate_limit', 'budget', 'consumer_group', 'access_policy']),
  id: z.string().describe('Of the budget, group or policy; of the token whose own limit it is'),
  name: z.string().nullable().describe('Of the budget, group or policy'),
  scope: z
    .object({
      kind: z.enum(['token', 'team', 'user', 'organization']),
      id: z.string().nullable(),
      name: z.string().nullable(),
    })
    .nullable()
    .describe('Whose limit it is. Of a budget, token with no id: of the tokens that name it'),
  unit: z.enum(['usd', 'requests', 'tokens']),
  window: z.enum(['minute', ...windowSchema.options]),
  per: z
    .object({ dimension: z.string(), value: z.string().nullable() })
    .nullable()
    .describe('Each value has the limit for itself. value: that of the token; null where each request brings its own'),
  limit: z.number(),
  used: z.number().nullable().describe('Settled so far; null for limits a minute, and where requests bring the value'),
  left: z.number().nullable(),
  resets_at: z.iso.datetime().nullable().describe('Null where it does not start again, and for limits a minute'),
})
const tokenLimitsSchema = z.object({ limits: z.array(limitSchema) })
type TokenLimit = z.infer<typeof limitSchema>
export type TokenLimits = z.infer<typeof tokenLimitsSchema>

export const tokenLimitsRoute = (dependencies: Dependencies) =>
  new Elysia({ name: 'token-limits' })
    .use(conventions)
    .get('/v1/tokens/:id/limits', ({ principal, params: { id } }) => readTokenLimits(dependencies, id, principal), {
      access: 'tokens:read',
      failures: [404],
      params: idParams,
      query: z.strictObject({}),
      response: tokenLimitsSchema,
      detail: {
        tags: ['Tokens'],
        summary: 'Returns the limits of a token: its own, and those of its team, its user and all tokens',
      },
    })

async function readTokenLimits(deps: Dependencies, id: string, principal: Principal): Promise<TokenLimits> {
  const token = await requireToken(deps.ledger, principal, id)
  const known = await findStateRow(deps.state, id)
  // The token's own account is the first.
  const accountIds = known?.accountIds ?? [token.accountId ?? token.id]
  const limits = [
    ...(await ownLimits(deps, token, accountIds)),
    ...(await budgetLimits(deps, token)),
    ...(await sharedRates(deps, token, accountIds)),
  ]
  return { limits: await withNames(deps.ledger, limits) }
}

const perMinute = { window: 'minute', per: null, used: null, left: null, resets_at: null } as const

async function ownLimits({ state, ledger }: Dependencies, token: StoredToken, ids: readonly string[]) {
  const rows = await query(state).select().from(accounts).where(isOneOf(accounts.id, ids))
  const used = await settledOf(
    ledger,
    rows.flatMap(({ id }) => [moneyAccount(id), requestsAccount(id)]),
  )
  return rows
    .filter(({ deleted }) => deleted === 0)
    .toSorted((one, other) => ids.indexOf(one.id) - ids.indexOf(other.id))
    .flatMap(({ id: account, maxBudget, maxRequests, rateLimitRpm, rateLimitTpm }): TokenLimit[] => {
      const id = account === ids[0] ? token.id : account
      const common = { id, name: null, scope: { kind: 'token' as const, id, name: null } }
      const total = { ...common, window: 'total' as const, per: null, resets_at: null }
      const rate = { ...common, kind: 'rate_limit' as const, ...perMinute }
      return [
        ...(maxBudget === null
          ? []
          : [{ ...total, kind: 'max_budget' as const, ...dollars(maxBudget, used(moneyAccount(account))) }]),
        ...(maxRequests === null
          ? []
          : [{ ...total, kind: 'max_requests' as const, ...requests(maxRequests, used(requestsAccount(account))) }]),
        ...(rateLimitRpm === null ? [] : [{ ...rate, unit: 'requests' as const, limit: rateLimitRpm }]),
        ...(rateLimitTpm === null ? [] : [{ ...rate, unit: 'tokens' as const, limit: rateLimitTpm }]),
      ]
    })
}

const dollars = (limit: number, used: number) => ({
  ...{ unit: 'usd' as const, limit: fromNano(limit), used: fromNano(used) },
  left: fromNano(Math.max(0, limit - used)),
})
const requests = (limit: number, used: number) => ({
  ...{ unit: 'requests' as const, limit, used, left: Math.max(0, limit - used) },
})

/** The budgets that bound the token's spend at a gateway whose record names no other owner of it. */
async function budgetLimits({ state, ledger, clock }: Dependencies, token: StoredToken): Promise<TokenLimit[]> {
  const owners = budgetOwnersOf(token, null)
  const all = await query(state).select().from(budgets).where(eq(budgets.deleted, 0))
  const rows = all.filter(
    ({ id, scopeKind, scopeId }) =>
      id === token.budgetId || owners.has(scopeId === null ? scopeKind : `${scopeKind}:${scopeId}`),
  )
  const values = await valuesOf(state, token)
  const booked = new Map(
    rows.map(({ id, window, per }) => {
      const name = per === null ? id : `${id}/${digestFor(per, values)}`
      return [id, bookedBudget(name, windowSchema.parse(window), clock.now())]
    }),
  )
  const used = await settledOf(
    ledger,
    [...booked.values()].map((each) => each.booked),
  )
  return rows.map(({ id, name, scopeKind, scopeId, window, maxBudget, per }) => {
    const { booked: account = budgetAccount(id), until = null } = booked.get(id) ?? {}
    const value = per === null ? null : (values[per] ?? null)
    const isKnown = per === null || value !== null
    const amounts = dollars(maxBudget, used(account))
    return {
      ...{ kind: 'budget', id, name: name || null, window: windowSchema.parse(window) },
      ...{ ...amounts, used: isKnown ? amounts.used : null, left: isKnown ? amounts.left : null },
      scope: { kind: limitSchema.shape.scope.unwrap().shape.kind.parse(scopeKind), id: scopeId, name: null },
      per: per === null ? null : { dimension: per, value },
      resets_at: until === null ? null : timestamp(until),
    }
  })
}

/** The values of dimensions that the token itself says; those of a request are not known here. */
async function valuesOf(state: Database, { metadata }: StoredToken): Promise<Record<string, string>> {
  const rows = await query(state).select().from(attributionDimensions).where(eq(attributionDimensions.deleted, 0))
  const said = rows.flatMap(({ name, sourceKind, sourceKey }) => {
    const value = sourceKind === 'token_metadata' ? plainValue(String(metadata[sourceKey] ?? '')) : ''
    return value === '' ? [] : [[name, value] as const]
  })
  return Object.fromEntries(said)
}

async function sharedRates({ state, ledger }: Dependencies, token: StoredToken, accountIds: readonly string[]) {
  const owners = budgetOwnersOf(token, null)
  const groups = await query(state).select().from(consumerGroups).where(eq(consumerGroups.deleted, 0))
  const withMembers = groups.map((group) => ({ group, members: membersSchema.parse(JSON.parse(group.members)) }))
  // A rotation and a clone count as the token that a group names.
  const named = await query(ledger)
    .select({ id: tokens.id, accountId: tokens.accountId })
    .from(tokens)
    .where(
      isOneOf(
        tokens.id,
        withMembers.flatMap(({ members }) => members.tokens),
      ),
    )
  const covered = new Set(named.filter(({ id, accountId }) => accountIds.includes(accountId ?? id)).map(({ id }) => id))
  const owner = `${token.ownerKind}:${token.ownerId}`
  const isMember = ({ teams, users, tokens: ids }: z.infer<typeof membersSchema>) =>
    [...teams.map((id) => `team:${id}`), ...users.map((id) => `user:${id}`)].some(
      (member) => member === owner || owners.has(member),
    ) || ids.some((id) => id === token.id || covered.has(id))
  const ofGroups = withMembers.filter(({ members }) => isMember(members)).map(({ group }) => group)
  const policies = await query(state)
    .select()
    .from(accessPolicies)
    .where(isOneOf(accessPolicies.id, token.accessPolicyIds))
  return [
    ...ofGroups.flatMap((row) => rateLimits('consumer_group', row)),
    ...policies.filter(({ deleted }) => deleted === 0).flatMap((row) => rateLimits('access_policy', row)),
  ]
}

interface RateRow {
  id: string
  name: string
  requestsPerMinute: number | null
  tokensPerMinute: number | null
  per: string | null
}

function rateLimits(kind: TokenLimit['kind'], row: RateRow): TokenLimit[] {
  const { id, name, requestsPerMinute, tokensPerMinute, per } = row
  const common = { kind, id, name: name || null, scope: null, ...perMinute }
  const ofValue = per === null ? null : { dimension: per, value: null }
  return [
    ...(requestsPerMinute === null
      ? []
      : [{ ...common, per: ofValue, unit: 'requests' as const, limit: requestsPerMinute }]),
    ...(tokensPerMinute === null ? [] : [{ ...common, per: ofValue, unit: 'tokens' as const, limit: tokensPerMinute }]),
  ]
}

async function settledOf(ledger: Database, names: readonly string[]): Promise<(account: string) => number> {
  const settled = new Map((await readSettled(ledger, names)).map((row) => [row.account, row.settled]))
  return (account) => settled.get(account) ?? 0
}

const namedScopes: readonly NamedDimension[] = ['token', 'team', 'user']

/** A caller who may read the token may know what its team and its person are called. */
async function withNames(ledger: Database, limits: readonly TokenLimit[]): Promise<TokenLimit[]> {
  const readers = await Promise.all(
    namedScopes.map(async (kind) => {
      const ids = limits.flatMap(({ scope }) => (scope?.kind === kind && scope.id !== null ? [scope.id] : []))
      return [kind, await readRecordNames({ ledger, seesPeople: true }, kind, ids)] as const
    }),
  )
  const nameOf = new Map<string, (id: string) => string>(readers)
  return limits.map((limit) => {
    if (limit.scope === null || limit.scope.id === null) return limit
    const { kind, id } = limit.scope
    return { ...limit, scope: { kind, id, name: nameOf.get(kind)?.(id) ?? null } }
  })
}
