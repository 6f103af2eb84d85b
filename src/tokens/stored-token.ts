/**
 * A token's complete row of the ledger, and the mapping to its two rows: the ledger's and the state's. The hash is in
 * the state database only.
 */
import { Failure } from '../failure.ts'
import type { KeyClass } from '../identity/key-class.ts'
import type { Role } from '../identity/permissions.ts'
import { placeholderHint } from '../identity/secret.ts'
import type { Database } from '../store/open.ts'
import { fromRow, insertRow, newStateVersion, updateRow } from '../store/rows.ts'
import { tokens as ledgerTokens } from '../store/schema/ledger/tokens.ts'
import { accounts as stateAccounts } from '../store/schema/state/limits.ts'
import { tokens as stateTokens } from '../store/schema/state/tokens.ts'
import type { Row, Statement } from '../store/statement.ts'
import type { PrincipalType, Purpose } from './governed-token.ts'
import type { TokenProfile, TokenScope } from './scope.ts'

export interface Revocation {
  by: string | null
  emergency: boolean
  explanation: string | null
}

export interface StoredToken extends TokenScope, TokenProfile {
  id: string
  name: string
  tokenPrefix: string
  metadata: Record<string, string>
  ownerKind: 'user' | 'team'
  ownerId: string
  /** From when on a rotated token is refused. */
  rotatedAt: number | null
  revokedAt: number | null
  revocation: Revocation | null
  rotatedFrom: string | null
  rotatedToId: string | null
  sourceTokenId: string | null
  createdAt: number
  createdBy: string | null
  lastUsedAt: number | null
  /** The usage account it was made with, or that of the token it was rotated from. */
  accountId: string | null
  version: number
}

/** What only the state row holds. */
export interface StateOnly {
  /** SHA-256 of the secret. */
  hash: string
  eventTeamId: string | null
  /** The usage accounts that a request of this token draws on (usage/lease/README.md rule 1). */
  accountIds: readonly string[]
}

/**
 * What the state row adds, and what it knows before the ledger does: whether the token is revoked, and since which
 * version.
 */
export interface StateRow extends StateOnly {
  revokedAt: number | null
  version: number
}

/** Opens a row of the ledger's `tokens`. The columns were written by `insertToken`, which took checked values. */
export function openToken(row: Row): StoredToken {
  const stored = fromRow(ledgerTokens, row)
  return {
    ...stored,
    purpose: stored.purpose as Purpose,
    principalType: stored.principalType as PrincipalType,
    keyClass: stored.keyClass as KeyClass,
    ownerKind: stored.ownerKind as 'user' | 'team',
    metadataTrust: stored.metadataTrust as 'none' | 'caller',
    roles: JSON.parse(stored.roles) as Role[],
    modelFilter: stored.modelFilter === null ? null : (JSON.parse(stored.modelFilter) as string[]),
    policyIds: JSON.parse(stored.policyIds) as string[],
    accessPolicyIds: JSON.parse(stored.accessPolicyIds) as string[],
    metadata: JSON.parse(stored.metadata) as Record<string, string>,
    revocation: stored.revocation === null ? null : (JSON.parse(stored.revocation) as Revocation),
  }
}

/** A token by its id, or null. */
export async function findToken(ledger: Database, id: string): Promise<StoredToken | null> {
  const [row] = await ledger.read('select * from tokens where id = ?', [id])
  return row === undefined ? null : openToken(row)
}

/** The state's knowledge of a token. Throws `conflict` if it does not know it. */
export async function requireStateRow(state: Database, id: string): Promise<StateRow> {
  const row = await findStateRow(state, id)
  if (row === null) throw new Failure('conflict')
  return row
}

export async function findStateRow(state: Database, id: string): Promise<StateRow | null> {
  const [row] = await state.read('select * from tokens where id = ?', [id])
  if (row === undefined) return null
  const { hash, eventTeamId, accountIds, revokedAt, version } = fromRow(stateTokens, row)
  return { hash, eventTeamId, accountIds: JSON.parse(accountIds) as string[], revokedAt, version }
}

/** A token from its row in the state. The rest is filled as for one that the ledger has lost. */
export function openStateToken(row: Row): { token: StoredToken; only: StateOnly } {
  const { id, hash, eventTeamId, accountIds } = fromRow(stateTokens, row)
  const only = { hash, eventTeamId, accountIds: JSON.parse(accountIds) as string[] }
  const unrecorded = {
    name: `restored ${id}`,
    token_prefix: placeholderHint,
    metadata: '{}',
    created_at: Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16),
    account_id: only.accountIds[0] ?? null,
  }
  return { token: openToken({ ...row, ...unrecorded }), only }
}

/** The columns of a scope as both databases write them. */
export const scopeColumns = (scope: TokenScope) => ({
  gatewayId: scope.gatewayId,
  teamId: scope.teamId,
  userId: scope.userId,
  provider: scope.provider,
  modelFilter: scope.modelFilter === null ? null : JSON.stringify(scope.modelFilter),
  budgetId: scope.budgetId,
  roles: JSON.stringify(scope.roles),
  policyIds: JSON.stringify(scope.policyIds),
  accessPolicyIds: JSON.stringify(scope.accessPolicyIds),
  metadataTrust: scope.metadataTrust,
  maxBudget: scope.maxBudget,
  maxRequests: scope.maxRequests,
  rateLimitRpm: scope.rateLimitRpm,
  rateLimitTpm: scope.rateLimitTpm,
  expiresAt: scope.expiresAt,
})

/** The statements that make a token in both databases; the ledger's version is filled in when the state has one. */
export function insertToken(token: Omit<StoredToken, 'version'>, only: StateOnly, ledgerVersion: string | number) {
  const shared = {
    id: token.id,
    purpose: token.purpose,
    principalType: token.principalType,
    keyClass: token.keyClass,
    ...scopeColumns(token),
    ownerKind: token.ownerKind,
    ownerId: token.ownerId,
    rotatedAt: token.rotatedAt,
    revokedAt: token.revokedAt,
  }
  const state: Statement = insertRow(
    stateTokens,
    { ...shared, hash: only.hash, eventTeamId: only.eventTeamId, accountIds: JSON.stringify(only.accountIds) },
    { version: newStateVersion },
  )
  const row: Statement = insertRow(ledgerTokens, {
    ...shared,
    name: token.name,
    tokenPrefix: token.tokenPrefix,
    metadata: JSON.stringify(token.metadata),
    revocation: token.revocation === null ? null : JSON.stringify(token.revocation),
    rotatedFrom: token.rotatedFrom,
    rotatedToId: token.rotatedToId,
    sourceTokenId: token.sourceTokenId,
    createdAt: token.createdAt,
    createdBy: token.createdBy,
    lastUsedAt: token.lastUsedAt,
    accountId: token.accountId,
    version: ledgerVersion,
  })
  return { state, ledger: [row, ...drawOnSources(token.id, only.accountIds)] }
}

/** Copies all that the state knows to a token's row of the ledger. */
export const followState = (token: StoredToken): Statement =>
  updateRow(ledgerTokens, token.id, {
    ...scopeColumns(token),
    ownerKind: token.ownerKind,
    ownerId: token.ownerId,
    rotatedAt: token.rotatedAt,
    revokedAt: token.revokedAt,
    version: token.version,
  })

/** The accounts that a token draws on besides its own, as the ledger stores them. */
function drawOnSources(tokenId: string, [, ...sources]: readonly string[]): Statement[] {
  if (sources.length === 0) return []
  const sql = 'insert into source_accounts (token_id, account_id) select ?, value from json_each(?)'
  return [{ sql, args: [tokenId, JSON.stringify(sources)] }]
}

/**
 * The limits of a token on its account, in the state; nothing without limits. An account that tokens share keeps the
 * strictest limit that any of them was given.
 */
export function limitAccount(accountId: string | null, scope: TokenScope): Statement[] {
  const limits = accountLimits(scope)
  if (accountId === null || Object.values(limits).every((limit) => limit === null)) return []
  const { sql, args } = insertRow(stateAccounts, { id: accountId, ...limits }, { version: newStateVersion })
  const stricter = (column: string) =>
    `${column} = min(coalesce(${column}, excluded.${column}), coalesce(excluded.${column}, ${column}))`
  const update = ['max_requests', 'max_budget', 'rate_limit_rpm', 'rate_limit_tpm'].map(stricter).join(', ')
  return [{ sql: `${sql} on conflict (id) do update set ${update}, version = excluded.version`, args }]
}

/** The limits of a scope that are an account's. */
export const accountLimits = ({ maxRequests, maxBudget, rateLimitRpm, rateLimitTpm }: TokenScope) => ({
  maxRequests,
  maxBudget,
  rateLimitRpm,
  rateLimitTpm,
})
