/**
 * Turns a bearer credential into a principal, for the control plane. API tokens and OAuth access tokens are found by
 * hash with one indexed read of the state database, and their status is that of this instant. Runtime sessions
 * (`gths_`) are found in the ledger. A database error says nothing about the caller: it becomes 503, never 401.
 */
import { and, eq, sql } from 'drizzle-orm'
import { Failure } from '../failure.ts'
import { requireAudience } from '../identity/delegation.ts'
import { type Permission, permissionsOf, type Role, rolesWithin } from '../identity/permissions.ts'
import { anonymous, type Principal } from '../identity/principal.ts'
import { bearerSecret, hashSecret, secretKind } from '../identity/secret.ts'
import type { Clock } from '../lib/clock.ts'
import type { Database } from '../store/open.ts'
import { condition, prepared } from '../store/query.ts'
import { runtimeSessions } from '../store/schema/ledger/fleet.ts'
import { users } from '../store/schema/ledger/people.ts'
import { oauthTokens, tokens } from '../store/schema/state/tokens.ts'
import { tokenStatus } from './governed-token.ts'
import type { LastUse } from './limits/last-use.ts'
import { isNamed } from './named-token.ts'
import { organizationId, tokenResourceName } from './organization.ts'

export interface AuthenticatorOptions {
  state: Database
  ledger: Database
  clock: Clock
  /** This API as a resource of OAuth access tokens (RFC 8707). */
  baseUrl(): string
  /** Called with every accepted token. */
  lastUse?: LastUse
}

/**
 * Identifies the caller. Without an Authorization header it is the anonymous principal. An unusable credential throws
 * `invalid_api_token`, `tokens.expired` or `session_expired`.
 */
export function createAuthenticator(options: AuthenticatorOptions): (request: Request) => Promise<Principal> {
  return async (request) => {
    const header = request.headers.get('authorization')
    if (header === null || header.trim() === '') return anonymous
    const secret = bearerSecret(header) ?? ''
    const kind = secretKind(secret)
    if (kind === 'token') return tokenPrincipal(options, hashSecret(secret))
    if (kind === 'oauthAccess') return delegatedPrincipal(options, hashSecret(secret))
    if (kind === 'session') return sessionPrincipal(options, hashSecret(secret))
    throw new Failure('invalid_api_token')
  }
}

// Prepared: every call of the API and every heartbeat begins with one of them.
const tokenByHash = prepared((query) =>
  query
    .select()
    .from(tokens)
    .where(and(eq(tokens.hash, sql.placeholder('hash')), eq(tokens.deleted, 0)))
    .prepare(),
)
const tokenById = prepared((query) =>
  query
    .select()
    .from(tokens)
    .where(and(eq(tokens.id, sql.placeholder('id')), eq(tokens.deleted, 0)))
    .prepare(),
)
const accessTokenByHash = prepared((query) =>
  query
    .select()
    .from(oauthTokens)
    .where(and(eq(oauthTokens.hash, sql.placeholder('hash')), eq(oauthTokens.deleted, 0)))
    .prepare(),
)
const sessionByHash = prepared((query) =>
  query
    .select()
    .from(runtimeSessions)
    .where(eq(runtimeSessions.hash, sql.placeholder('hash')))
    .prepare(),
)
const userById = prepared((query) =>
  query
    .select({ role: users.role, status: users.status })
    .from(users)
    .where(eq(users.id, sql.placeholder('id')))
    .prepare(),
)

async function tokenPrincipal(options: AuthenticatorOptions, hash: string): Promise<Principal> {
  const { state, clock, lastUse } = options
  const token = await tokenByHash(state).get({ hash })
  if (token === undefined) throw new Failure('invalid_api_token')
  const now = clock.now()
  const status = tokenStatus(token, now)
  if (status !== 'active') await refuse(options, token.id, status)
  lastUse?.used(token.id, now)
  const { roles, permissions } = await limitedToUser(options, token, token.roles)
  const limited = hasLimits(token) || (await isNamedByOthers(state, token.id))
  return {
    kind: 'token',
    name: `token:${token.id}`,
    tokenId: token.id,
    userId: token.userId,
    teamId: token.teamId,
    eventTeamId: token.eventTeamId,
    keyClass: token.keyClass,
    restricted: limited || isTemporaryOrOwned(token),
    limited,
    gatewayId: token.gatewayId,
    instanceId: null,
    roles,
    permissions,
  }
}

const hasLimits = (token: typeof tokens.$inferSelect): boolean =>
  [
    ...[token.gatewayId, token.provider, token.modelFilter, token.budgetId],
    ...[token.maxBudget, token.maxRequests, token.rateLimitRpm, token.rateLimitTpm],
  ].some((limit) => limit !== null) ||
  token.policyIds.length > 0 ||
  token.accessPolicyIds.length > 0

const isTemporaryOrOwned = (token: typeof tokens.$inferSelect): boolean =>
  [token.expiresAt, token.rotatedAt, token.teamId, token.userId].some((bound) => bound !== null)

async function isNamedByOthers(state: Database, id: string): Promise<boolean> {
  const { sql, args } = condition(isNamed(id))
  return (await state.read(`select 1 where ${sql}`, args)).length > 0
}

/** An application that acts for a person, within its scope and the person's present rights. */
async function delegatedPrincipal(options: AuthenticatorOptions, hash: string): Promise<Principal> {
  const { state, ledger, clock, baseUrl } = options
  const token = await accessTokenByHash(state).get({ hash })
  if (token === undefined) throw new Failure('invalid_api_token')
  const status = tokenStatus({ ...token, rotatedAt: null }, clock.now())
  if (status !== 'active') await refuse(options, token.id, status)
  requireAudience(token, baseUrl())
  const user = await userById(ledger).get({ id: token.userId })
  if (user?.status !== 'active')
    throw new Failure('invalid_api_token', { message: 'The person may not sign in any more' })
  const { scope } = token
  return {
    ...anonymous,
    kind: 'token',
    // The same for every token of one approval, so that a refresh does not change the caller's identity.
    name: `oauth-grant:${token.grantId}`,
    tokenId: token.id,
    userId: token.userId,
    eventTeamId: token.teamIds[0] ?? null,
    restricted: true,
    limited: true,
    roles: [user.role],
    permissions: new Set([...permissionsOf([user.role])].filter((permission) => scope.includes(permission))),
    delegation: { clientId: token.clientId, scope },
  }
}

/**
 * A person's token may do at most what that person may do now: a role above the person's present one counts as the
 * person's, or as none if the person's would give the token more. A gateway's own token stands for the gateway,
 * whoever it is bound to.
 */
async function limitedToUser(
  { ledger }: AuthenticatorOptions,
  { purpose, userId }: { purpose: string; userId: string | null },
  given: readonly Role[],
): Promise<Pick<Principal, 'roles' | 'permissions'>> {
  const permissions = permissionsWithin(purpose, given)
  if (userId === null || purpose === 'gateway_runtime') return { roles: given, permissions }
  const user = await userById(ledger).get({ id: userId })
  if (user === undefined) return { roles: [], permissions: new Set() }
  return {
    roles: [...new Set(given.flatMap((role) => narrowerRole(role, user.role)))],
    permissions: permissions.intersection(permissionsOf([user.role])),
  }
}

const narrowerRole = (given: Role, own: Role): readonly Role[] => {
  if (rolesWithin([own], [given])) return [given]
  return rolesWithin([given], [own]) ? [own] : []
}

/** The purpose limits the roles (identity/README.md). */
function permissionsWithin(purpose: string, roles: readonly Role[]): ReadonlySet<Permission> {
  const runtime = purpose === 'gateway_runtime'
  return new Set([...permissionsOf(roles)].filter((permission) => (permission === 'runtime:connect') === runtime))
}

async function refuse({ ledger }: AuthenticatorOptions, id: string, status: 'revoked' | 'rotated' | 'expired') {
  const resource = tokenResourceName((await organizationId(ledger)) ?? '', id)
  if (status === 'expired') throw new Failure('tokens.expired', { message: `${resource} has expired` })
  throw new Failure('invalid_api_token', { message: `${resource} was ${status}` })
}

async function sessionPrincipal(options: AuthenticatorOptions, hash: string): Promise<Principal> {
  const { state, ledger, clock } = options
  const session = await sessionByHash(ledger).get({ hash })
  if (session === undefined) throw new Failure('invalid_api_token')
  if (clock.now() >= session.expiresAt) throw new Failure('session_expired')
  // A session ends with its runtime token (fleet/README.md, Trust).
  const token = await tokenById(state).get({ id: session.tokenId })
  if (token === undefined) throw new Failure('invalid_api_token')
  const status = tokenStatus(token, clock.now())
  if (status !== 'active') await refuse(options, session.tokenId, status)
  return runtimePrincipal(session)
}

export type RuntimeSessionRow = typeof runtimeSessions.$inferSelect

/** The gateway instance of a session. */
export const runtimePrincipal = ({
  gatewayId,
  instanceId,
  tokenId,
}: Pick<RuntimeSessionRow, 'gatewayId' | 'instanceId' | 'tokenId'>): Principal => ({
  ...anonymous,
  kind: 'runtime',
  name: `runtime:${gatewayId}/${instanceId}`,
  tokenId,
  gatewayId,
  instanceId,
  roles: ['runtime'],
})
