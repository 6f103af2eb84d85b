/** Refuses an alert about something that is not there, or has not what its condition looks at: it would never fire. */
import { and, eq } from 'drizzle-orm'
import { Failure } from '../failure.ts'
import { findTeam } from '../members/teams/stored-team.ts'
import { isKnownModel } from '../providers/catalog/known-model.ts'
import type { Database } from '../store/open.ts'
import { query } from '../store/query.ts'
import { gateways, providers } from '../store/schema/state/catalog.ts'
import { budgets } from '../store/schema/state/limits.ts'
import { findToken } from '../tokens/stored-token.ts'
import type { ScopeKind } from './conditions/condition-table.ts'
import type { Alert } from './stored-alert.ts'

interface Databases {
  state: Database
  ledger: Database
}

const isThere: Readonly<
  Record<Exclude<ScopeKind, 'organization'>, (databases: Databases, id: string) => Promise<boolean>>
> = {
  team: async ({ ledger }, id) => (await findTeam(ledger, id)) !== null,
  token: async ({ ledger }, id) => (await findToken(ledger, id)) !== null,
  gateway: ({ state }, id) => isInState(state, gateways, and(eq(gateways.id, id), eq(gateways.deleted, 0))),
  budget: ({ state }, id) => isInState(state, budgets, and(eq(budgets.id, id), eq(budgets.deleted, 0))),
  provider: ({ state }, name) => isInState(state, providers, and(eq(providers.name, name), eq(providers.deleted, 0))),
  model: isKnownModel,
}

const isInState = async (
  state: Database,
  table: typeof gateways | typeof budgets | typeof providers,
  where: ReturnType<typeof and>,
): Promise<boolean> => (await query(state).select({ id: table.id }).from(table).where(where).get()) !== undefined

/** Throws `invalid_parameter` that names `scope.id`. */
export async function requireScope(
  databases: Databases,
  { kind, id }: { kind: ScopeKind; id: string | null },
): Promise<void> {
  if (kind === 'organization' || (id !== null && (await isThere[kind](databases, id)))) return
  const how = kind === 'provider' || kind === 'model' ? `named "${id}"` : `with the id "${id}"`
  throw wrong('scope.id', `There is no ${kind} ${how}`)
}

const day = 86_400_000

/** Refuses an alert about a token that has no expiry or no budget to watch, or is too short-lived for its thresholds. */
export async function requireWatchable(
  ledger: Database,
  { condition, scope: { kind, id }, thresholds }: Pick<Alert, 'condition' | 'scope' | 'thresholds'>,
): Promise<void> {
  const token = kind === 'token' && id !== null ? await findToken(ledger, id) : null
  if (token === null) return
  const named = `The token "${token.name}"`
  if (condition === 'budget_share' && !token.maxBudget) {
    throw wrong('scope.id', `${named} has no budget: choose a token with one, or watch a budget`)
  }
  if (condition !== 'token_expiring') return
  if (token.expiresAt === null) throw wrong('scope.id', `${named} never expires: choose a token with an expiry`)
  const lifetime = (token.expiresAt - token.createdAt) / day
  const beyond = thresholds.findIndex((threshold) => threshold >= lifetime)
  if (beyond < 0) return
  const days = Math.floor(lifetime * 10) / 10
  throw wrong(`thresholds.${beyond}`, `${named} was made for ${days} days: write fewer days than that`)
}

const wrong = (param: string, message: string): Failure => new Failure('invalid_parameter', { param, message })
