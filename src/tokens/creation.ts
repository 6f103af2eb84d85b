/**
 * The rules of making a token (contract section 3, Creation rules), apart from where the rows go: what a body means,
 * what a profile needs, which ids must exist, and that nobody gives what they do not hold. A creator's own expiry does
 * not bound what it makes; its role, team, limits, policies and bindings do.
 */
import { Failure } from '../failure.ts'
import { toNano } from '../lib/money.ts'
import type { Database, Statement } from '../store/open.ts'
import { type ScopeField, widenedField } from './narrowing.ts'
import { type Role, rolesWithin } from './permissions.ts'
import type { Principal } from './principal.ts'
import type { TokenProfile, TokenScope } from './scope.ts'
import { findToken } from './stored-token.ts'
import { type CreateTokenBody, expiryOf, limitOf } from './token-body.ts'

/** Reads a body: both placements of limits, either form of expiry, the roles a purpose has when none are named. */
export function scopeOf(body: CreateTokenBody, now: number): TokenScope {
  const bindings = body.bindings ?? {}
  const budget = limitOf(body, 'max_budget') ?? null
  return {
    gatewayId: bindings.gateway_id ?? null,
    teamId: bindings.team_id ?? null,
    userId: bindings.user_id ?? null,
    provider: bindings.provider ?? null,
    modelFilter: bindings.model_filter ?? null,
    budgetId: bindings.budget_id ?? null,
    roles: [...new Set(body.roles ?? [defaultRole(body)])],
    policyIds: [...new Set(body.policy_ids)],
    accessPolicyIds: [...new Set(body.access_policy_ids)],
    metadataTrust: body.metadata_trust,
    maxBudget: budget === null ? null : toNano(budget),
    maxRequests: limitOf(body, 'max_requests') ?? null,
    rateLimitRpm: limitOf(body, 'rate_limit_rpm') ?? null,
    rateLimitTpm: limitOf(body, 'rate_limit_tpm') ?? null,
    expiresAt: expiryOf(body, now) ?? null,
  }
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
  /** What the token that this one comes from names: it stays, even where it has been deleted since. */
  known: Pick<TokenScope, 'policyIds' | 'provider'> = { policyIds: [], provider: null },
) {
  const exists = async (database: Database, rows: string, id: string) =>
    (await database.read(`select 1 from ${rows} where id = ?`, [id])).length > 0
  if (scope.teamId !== null && !(await exists(ledger, 'teams', scope.teamId))) {
    throw invalid('bindings.team_id', 'There is no such team')
  }
  if (scope.userId !== null && !(await exists(ledger, 'users', scope.userId))) {
    throw invalid('bindings.user_id', 'There is no such user')
  }
  if (
    scope.gatewayId !== null &&
    !(await exists(state, '(select id from gateways where deleted = 0)', scope.gatewayId))
  ) {
    throw invalid('bindings.gateway_id', 'There is no such gateway')
  }
  if (scope.teamId !== null && scope.userId !== null && !(await belongs(ledger, scope.userId, scope.teamId))) {
    throw invalid('bindings.user_id', 'The user of bindings.user_id does not belong to the team of bindings.team_id')
  }
  const named = `(select name as id from providers where deleted = 0
    union all select name from mcp_servers where deleted = 0)`
  if (scope.provider !== null && scope.provider !== known.provider && !(await exists(state, named, scope.provider))) {
    throw invalid('bindings.provider', 'There is no provider or MCP server of this name')
  }
  const limit = (table: 'budgets' | 'access_policies') => `(select id from ${table} where deleted = 0)`
  if (scope.budgetId !== null && !(await exists(state, limit('budgets'), scope.budgetId))) {
    throw invalid('bindings.budget_id', 'There is no such budget')
  }
  for (const id of scope.accessPolicyIds) {
    if (!(await exists(state, limit('access_policies'), id))) {
      throw invalid('access_policy_ids', 'There is no such access policy')
    }
  }
  for (const id of scope.policyIds) {
    if (known.policyIds.includes(id) || (await exists(state, '(select id from policies where deleted = 0)', id)))
      continue
    throw invalid('policy_ids', 'There is no such policy')
  }
}

/**
 * A condition on the state, to be held when a token is written: what its scope names is still there. A limit that is gone
 * would bound nothing, a policy that is gone would forbid nothing. `knownPolicies` as `checkReferences` has them.
 */
export const namedStand = (
  { budgetId, accessPolicyIds, policyIds }: TokenScope,
  knownPolicies: readonly string[] = [],
): Statement => ({
  sql: `(? is null or exists (select 1 from budgets where id = ? and deleted = 0))
    and ${allStand('access_policies')} and ${allStand('policies')}`,
  args: [
    ...[budgetId, budgetId, JSON.stringify(accessPolicyIds)],
    JSON.stringify(policyIds.filter((id) => !knownPolicies.includes(id))),
  ],
})

const allStand = (table: 'access_policies' | 'policies'): string => `not exists (select 1 from json_each(?) named
  where not exists (select 1 from ${table} where id = named.value and deleted = 0))`

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
]

/** Throws 403, naming the field, where the scope holds a role, a team or a limit beyond its creator's own. */
export async function checkGrant(principal: Principal, scope: TokenScope, ledger: Database): Promise<void> {
  const beyond = (param: string) =>
    new Failure('permission_denied', { param, message: `${param} goes beyond what the caller may give` })
  // A gateway's identity opens every provider key of that gateway, whatever team it is for.
  const bound = principal.kind === 'token' && (principal.teamId !== null || principal.userId !== null)
  if (bound && scope.roles.includes('runtime')) throw beyond('purpose')
  const roles = scope.roles.filter((role) => role !== 'runtime')
  if (!rolesWithin(principal.roles, roles)) throw beyond('roles')
  if (!(await mayActForTeam(principal, scope, ledger))) throw beyond('bindings.team_id')
  const own = principal.tokenId === null ? null : await findToken(ledger, principal.tokenId)
  const field = own === null ? null : widenedField(own, scope, boundsOfCreator)
  if (field !== null) throw beyond(field)
}

/**
 * A token of a team gives that team; a user's token or session gives the teams the user is in, and a user's token also
 * what is bound to that user alone. What is bound to neither reaches every team.
 */
async function mayActForTeam(principal: Principal, { teamId, userId }: TokenScope, ledger: Database): Promise<boolean> {
  if (principal.teamId !== null) return teamId === principal.teamId
  if (principal.userId === null) return true
  if (teamId !== null) return belongs(ledger, principal.userId, teamId)
  return principal.kind === 'session' || userId === principal.userId
}

async function belongs(ledger: Database, userId: string, teamId: string): Promise<boolean> {
  const rows = await ledger.read('select 1 from memberships where user_id = ? and team_id = ?', [userId, teamId])
  return rows.length > 0
}

export interface Ownership {
  ownerKind: 'user' | 'team'
  ownerId: string
  /** Whose readers see the token's events. */
  eventTeamId: string | null
}

/** The owner: the user if bound, else the team, else team `default`; events go to the token's team or its owner's. */
export async function ownershipOf({ teamId, userId }: TokenScope, ledger: Database): Promise<Ownership> {
  if (userId !== null) {
    const [first] = await ledger.read<{ team_id: string }>(
      'select team_id from memberships where user_id = ? order by created_at, team_id limit 1',
      [userId],
    )
    return { ownerKind: 'user', ownerId: userId, eventTeamId: teamId ?? first?.team_id ?? null }
  }
  const owner = teamId ?? (await defaultTeam(ledger))
  return { ownerKind: 'team', ownerId: owner, eventTeamId: owner }
}

async function defaultTeam(ledger: Database): Promise<string> {
  const [team] = await ledger.read<{ id: string }>("select id from teams where name = 'default'")
  if (team === undefined) throw new Failure('conflict', { message: 'There is no team named default to own this token' })
  return team.id
}
