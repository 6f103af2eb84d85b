/**
 * The rules for making a token (handbook/tokens.md), without the storage: what a body means, what a profile needs,
 * which ids must exist, and that nobody grants what they do not hold.
 */
import type { SQL } from 'drizzle-orm'
import { and, eq, sql } from 'drizzle-orm'
import type { SQLiteTable } from 'drizzle-orm/sqlite-core'
import { Failure } from '../../failure.ts'
import { type Role, rolesWithin } from '../../identity/permissions.ts'
import type { Principal } from '../../identity/principal.ts'
import type { Database } from '../../store/open.ts'
import { isOneOf, query } from '../../store/query.ts'
import { memberships, teams, users } from '../../store/schema/ledger/people.ts'
import { gateways, mcpServers, policies, providers } from '../../store/schema/state/catalog.ts'
import { accessPolicies, budgets } from '../../store/schema/state/limits.ts'
import type { TokenProfile, TokenScope } from '../scope.ts'
import type { StoredToken } from '../stored-token.ts'
import type { CreateTokenBody } from '../token-body.ts'
import { type Creator, withinCreator } from './creator.ts'
import { scopeAsked } from './narrow-scope.ts'
import { type ScopeField, widenedField } from './narrowing.ts'

/** Parses the body of a create. What it leaves out comes from its purpose and its creator. */
export const scopeOf = (body: CreateTokenBody, now: number, creator: Creator | null): TokenScope =>
  scopeAsked(withinCreator({ ...unlimited, roles: [defaultRole(body)] }, creator), body, now)

const unlimited: Omit<TokenScope, 'roles'> = {
  gatewayId: null,
  teamId: null,
  userId: null,
  provider: null,
  modelFilter: null,
  budgetId: null,
  policyIds: [],
  accessPolicyIds: [],
  metadataTrust: 'none',
  mcpTools: 'listed',
  maxBudget: null,
  maxRequests: null,
  rateLimitRpm: null,
  rateLimitTpm: null,
  expiresAt: null,
}

const defaultRole = ({ purpose }: Pick<TokenProfile, 'purpose'>): Role =>
  purpose === 'gateway_runtime' ? 'runtime' : 'member'

const invalid = (param: string, message: string): Failure => new Failure('invalid_parameter', { param, message })

/** Throws 422 where a profile lacks what it needs or holds what it must not. */
export function checkProfile(profile: TokenProfile, scope: TokenScope): void {
  const runtime = profile.purpose === 'gateway_runtime'
  if (runtime && scope.gatewayId === null) {
    throw invalid('bindings.gateway_id', 'A token of purpose gateway_runtime needs bindings.gateway_id')
  }
  if ((runtime || profile.purpose === 'integration') && scope.teamId === null) {
    throw invalid('bindings.team_id', `A token of purpose ${profile.purpose} needs bindings.team_id`)
  }
  if (profile.principalType === 'gateway_runtime' && scope.teamId === null) {
    throw invalid('bindings.team_id', 'A token of principal_type gateway_runtime needs bindings.team_id')
  }
  if (profile.keyClass === 'disposable' && scope.expiresAt === null) {
    throw invalid('expires_in_seconds', 'A disposable token needs expires_in_seconds or expires_at')
  }
  if (profile.keyClass === 'disposable' && scope.maxBudget === null && scope.maxRequests === null) {
    throw invalid('max_requests', 'A disposable token needs max_budget or max_requests')
  }
  if (scope.roles.some((role) => (role === 'runtime') !== runtime)) {
    throw invalid('roles', 'Tokens of purpose gateway_runtime have the role runtime, and no others have it')
  }
}

/** Throws 422, naming the field, where something that the scope names does not exist or does not belong together. */
export async function checkReferences(
  scope: TokenScope,
  { state, ledger }: { state: Database; ledger: Database },
  /** The tokens that this one inherits from. What they name is allowed, even if it was deleted since. */
  inherited: readonly Pick<TokenScope, 'policyIds' | 'provider'>[],
) {
  const { teamId, userId, gatewayId, provider, budgetId } = scope
  const exists = async (database: Database, table: SQLiteTable, which: SQL | undefined) =>
    (await query(database).$count(table, which)) > 0
  const kept = (table: Kept, id: string) => exists(state, table, and(eq(table.id, id), eq(table.deleted, 0)))
  if (teamId !== null && !(await exists(ledger, teams, eq(teams.id, teamId)))) {
    throw invalid('bindings.team_id', 'There is no such team')
  }
  if (userId !== null && !(await exists(ledger, users, eq(users.id, userId)))) {
    throw invalid('bindings.user_id', 'There is no such user')
  }
  if (gatewayId !== null && !(await kept(gateways, gatewayId))) {
    throw invalid('bindings.gateway_id', 'There is no such gateway')
  }
  if (teamId !== null && userId !== null && !(await belongs(ledger, userId, teamId))) {
    throw invalid('bindings.user_id', 'The user of bindings.user_id does not belong to the team of bindings.team_id')
  }
  const named = (table: typeof providers | typeof mcpServers, name: string) =>
    exists(state, table, and(eq(table.name, name), eq(table.deleted, 0)))
  const known = inherited.some((token) => token.provider === provider)
  if (provider !== null && !known && !(await named(providers, provider)) && !(await named(mcpServers, provider))) {
    throw invalid('bindings.provider', 'There is no provider or MCP server of this name')
  }
  if (budgetId !== null && !(await kept(budgets, budgetId))) {
    throw invalid('bindings.budget_id', 'There is no such budget')
  }
  for (const id of scope.accessPolicyIds) {
    if (!(await kept(accessPolicies, id))) throw invalid('access_policy_ids', 'There is no such access policy')
  }
  for (const id of scope.policyIds) {
    if (inherited.some(({ policyIds }) => policyIds.includes(id)) || (await kept(policies, id))) continue
    throw invalid('policy_ids', 'There is no such policy')
  }
}

/** Tables of the state whose deleted rows stay, marked. */
type Kept = typeof gateways | typeof budgets | typeof accessPolicies | typeof policies

/**
 * A condition on the state when a token is written: everything that its scope names still exists. A deleted limit
 * would limit nothing, and a deleted policy would forbid nothing. `inherited` as in `checkReferences`.
 */
export function namedStand(
  { budgetId, accessPolicyIds, policyIds }: TokenScope,
  inherited: readonly Pick<TokenScope, 'policyIds'>[],
): SQL | undefined {
  const own = policyIds.filter((id) => !inherited.some((token) => token.policyIds.includes(id)))
  return and(
    allStand(budgets, budgetId === null ? [] : [budgetId]),
    allStand(accessPolicies, accessPolicyIds),
    allStand(policies, own),
  )
}

const allStand = (table: Kept, ids: readonly string[]): SQL | undefined =>
  ids.length === 0
    ? undefined
    : sql`(select count(*) from ${table} where ${and(isOneOf(table.id, ids), eq(table.deleted, 0))}) = ${new Set(ids).size}`

const boundsOfCreator: readonly ScopeField[] = [
  'bindings.provider',
  'bindings.model_filter',
  'bindings.gateway_id',
  'policy_ids',
  'access_policy_ids',
  'bindings.budget_id',
  'max_budget',
  'max_requests',
  'rate_limit_rpm',
  'rate_limit_tpm',
  'expires_at',
]

const boundsButExpiry = boundsOfCreator.filter((field) => field !== 'expires_at')

const beyond = (param: string, message: string): Failure => new Failure('permission_denied', { param, message })

/** Throws 403 with the field if a token of this scope would have a role, a team or a limit beyond its creator's. */
export async function checkGrant(
  principal: Principal,
  scope: TokenScope,
  ledger: Database,
  creator: Creator | null,
): Promise<void> {
  if (scope.roles.includes('runtime') && creator !== null && !mayMakeGatewayTokens(creator.token)) {
    throw beyond('purpose', 'A token that has bindings or limits makes no gateway tokens, which have none')
  }
  await checkRolesAndTeam(principal, scope, ledger)
  const field = creator === null ? null : widenedField(creator.token, scope, boundsOfCreator)
  if (field !== null) throw beyond(field, `${field} goes beyond that of the token that makes this one`)
}

/** A gateway token gives access to every provider key of its gateway, for any team, provider or amount. */
const mayMakeGatewayTokens = (creator: StoredToken): boolean =>
  creator.teamId === null &&
  creator.userId === null &&
  widenedField(creator, { ...unlimited, roles: [] }, boundsButExpiry) === null

/** Throws 403 with the field if the caller may not handle tokens of these roles or of this team. */
export async function checkRolesAndTeam(principal: Principal, scope: TokenScope, ledger: Database): Promise<void> {
  const roles = scope.roles.filter((role) => role !== 'runtime')
  if (!rolesWithin(principal.roles, roles)) {
    const message = `A caller of role ${principal.roles.join(', ')} cannot give the role ${roles.join(', ')}`
    throw beyond('roles', message)
  }
  await checkTeam(principal, scope, ledger)
}

/**
 * A person who may make tokens is owner or admin and may choose any team; so may a token that is bound to neither team
 * nor user. A token of a team gives that team alone; a user's token gives that user, or a team that the user is in.
 */
async function checkTeam(principal: Principal, { teamId, userId }: TokenScope, ledger: Database): Promise<void> {
  if (principal.kind === 'session') return
  if (principal.teamId !== null) {
    if (teamId === principal.teamId) return
    throw beyond('bindings.team_id', 'The calling token is bound to a team: name that team in bindings.team_id')
  }
  if (principal.userId === null) return
  if (teamId === null ? userId === principal.userId : await belongs(ledger, principal.userId, teamId)) return
  const message = 'The calling token is bound to a user: bind the new one to that user, or to a team the user is in'
  throw beyond('bindings.team_id', message)
}

async function belongs(ledger: Database, userId: string, teamId: string): Promise<boolean> {
  const membership = and(eq(memberships.userId, userId), eq(memberships.teamId, teamId))
  return (await query(ledger).$count(memberships, membership)) > 0
}

export interface Ownership {
  ownerKind: 'user' | 'team'
  ownerId: string
  /** The team whose readers see the token's events. */
  eventTeamId: string | null
}

/** The owner: the user if bound, else the team, else team `default`; events go to the token's team or its owner's. */
export async function ownershipOf({ teamId, userId }: TokenScope, ledger: Database): Promise<Ownership> {
  if (userId !== null) {
    const first = await query(ledger)
      .select()
      .from(memberships)
      .where(eq(memberships.userId, userId))
      .orderBy(memberships.createdAt, memberships.teamId)
      .get()
    return { ownerKind: 'user', ownerId: userId, eventTeamId: teamId ?? first?.teamId ?? null }
  }
  const owner = teamId ?? (await defaultTeam(ledger))
  return { ownerKind: 'team', ownerId: owner, eventTeamId: owner }
}

async function defaultTeam(ledger: Database): Promise<string> {
  const team = await query(ledger).select().from(teams).where(eq(teams.name, 'default')).get()
  if (team === undefined) throw new Failure('conflict', { message: 'There is no team named default to own this token' })
  return team.id
}
