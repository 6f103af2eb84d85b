/**
 * A token's complete row of the ledger, and the mapping to its two rows: the ledger's and the state's. The hash is in
 * the state database only.
 */
import { eq, type SQL, sql } from 'drizzle-orm'
import type { AnySQLiteColumn } from 'drizzle-orm/sqlite-core'
import { Failure } from '../failure.ts'
import { placeholderHint } from '../identity/secret.ts'
import type { Database } from '../store/open.ts'
import { insert, newStateVersion, query, statement, update } from '../store/query.ts'
import { tokens as ledgerTokens, sourceAccounts } from '../store/schema/ledger/tokens.ts'
import { accounts as stateAccounts } from '../store/schema/state/limits.ts'
import { tokens as stateTokens } from '../store/schema/state/tokens.ts'
import { keptMetadata } from '../store/schema/token-metadata.ts'
import type { Statement } from '../store/statement.ts'
import type { TokenScope } from './scope.ts'

export type StoredToken = typeof ledgerTokens.$inferSelect

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

/** A token by its id, or null. */
export async function findToken(ledger: Database, id: string): Promise<StoredToken | null> {
  return (await query(ledger).select().from(ledgerTokens).where(eq(ledgerTokens.id, id)).get()) ?? null
}

/** The state's knowledge of a token. Throws `conflict` if it does not know it. */
export async function requireStateRow(state: Database, id: string): Promise<StateRow> {
  const row = await findStateRow(state, id)
  if (row === null) throw new Failure('conflict')
  return row
}

export async function findStateRow(state: Database, id: string): Promise<StateRow | null> {
  const { hash, eventTeamId, accountIds, revokedAt, version } = stateTokens
  const columns = { hash, eventTeamId, accountIds, revokedAt, version }
  return (await query(state).select(columns).from(stateTokens).where(eq(stateTokens.id, id)).get()) ?? null
}

/** A token from its row in the state. The rest is filled as for one that the ledger has lost. */
export function openStateToken(row: typeof stateTokens.$inferSelect): { token: StoredToken; only: StateOnly } {
  const { hash, eventTeamId, accountIds, deleted: _, ...shared } = row
  const unrecorded = {
    name: `restored ${row.id}`,
    tokenPrefix: placeholderHint,
    createdAt: Number.parseInt(row.id.replaceAll('-', '').slice(0, 12), 16),
    createdBy: null,
    lastUsedAt: null,
    revocation: null,
    rotatedFrom: null,
    rotatedToId: null,
    sourceTokenId: null,
    accountId: accountIds[0] ?? null,
  }
  return { token: { ...shared, ...unrecorded }, only: { hash, eventTeamId, accountIds } }
}

/** The columns of a scope as both databases write them. */
export const scopeColumns = (scope: TokenScope) => ({
  gatewayId: scope.gatewayId,
  teamId: scope.teamId,
  userId: scope.userId,
  provider: scope.provider,
  modelFilter: scope.modelFilter,
  budgetId: scope.budgetId,
  roles: scope.roles,
  policyIds: scope.policyIds,
  accessPolicyIds: scope.accessPolicyIds,
  metadataTrust: scope.metadataTrust,
  mcpTools: scope.mcpTools,
  maxBudget: scope.maxBudget,
  maxRequests: scope.maxRequests,
  rateLimitRpm: scope.rateLimitRpm,
  rateLimitTpm: scope.rateLimitTpm,
  expiresAt: scope.expiresAt,
})

/** The statements that make a token in both databases; the ledger's version is filled in when the state has one. */
export function insertToken(token: Omit<StoredToken, 'version'>, only: StateOnly, ledgerVersion: number | SQL<number>) {
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
  const metadata = keptMetadata(token.metadata)
  const state = statement(insert(stateTokens).values({ ...shared, ...only, metadata, version: newStateVersion }))
  const row = statement(insert(ledgerTokens).values({ ...token, version: ledgerVersion }))
  return { state, ledger: [row, ...drawOnSources(token.id, only.accountIds)] }
}

/** Copies all that the state knows to a token's row of the ledger. */
export const followState = (token: StoredToken): Statement =>
  statement(
    update(ledgerTokens)
      .set({
        ...scopeColumns(token),
        ownerKind: token.ownerKind,
        ownerId: token.ownerId,
        rotatedAt: token.rotatedAt,
        revokedAt: token.revokedAt,
        version: token.version,
      })
      .where(eq(ledgerTokens.id, token.id)),
  )

/** The accounts that a token draws on besides its own, as the ledger stores them. */
function drawOnSources(tokenId: string, [, ...sources]: readonly string[]): Statement[] {
  if (sources.length === 0) return []
  return [statement(insert(sourceAccounts).values(sources.map((accountId) => ({ tokenId, accountId }))))]
}

/**
 * The limits of a token on its account, in the state; nothing without limits. An account that tokens share keeps the
 * strictest limit that any of them was given.
 */
export function limitAccount(accountId: string | null, scope: TokenScope): Statement[] {
  const limits = accountLimits(scope)
  if (accountId === null || Object.values(limits).every((limit) => limit === null)) return []
  const stricter = (column: AnySQLiteColumn) => {
    const given = sql.raw(`excluded.${column.name}`)
    return sql`min(coalesce(${column}, ${given}), coalesce(${given}, ${column}))`
  }
  const strictest = {
    maxRequests: stricter(stateAccounts.maxRequests),
    maxBudget: stricter(stateAccounts.maxBudget),
    rateLimitRpm: stricter(stateAccounts.rateLimitRpm),
    rateLimitTpm: stricter(stateAccounts.rateLimitTpm),
    version: newStateVersion,
  }
  return [
    statement(
      insert(stateAccounts)
        .values({ id: accountId, ...limits, version: newStateVersion })
        .onConflictDoUpdate({ target: stateAccounts.id, set: strictest }),
    ),
  ]
}

/** The limits of a scope that are an account's. */
export const accountLimits = ({ maxRequests, maxBudget, rateLimitRpm, rateLimitTpm }: TokenScope) => ({
  maxRequests,
  maxBudget,
  rateLimitRpm,
  rateLimitTpm,
})
