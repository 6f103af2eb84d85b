/**
 * How a token limits the tokens that it makes (handbook/tokens.md), by create, clone or rotate.
 *
 *  1. What the request leaves out is inherited from the creator if the creator is narrower (`withinCreator`).
 *  2. What the request asks for beyond the creator is refused (`checkGrant` in rules.ts).
 *  3. The new token also draws on the accounts of the creator's limits, so that many tokens share one limit.
 *
 * People have no such limits: a session makes tokens without limits.
 *
 * SQL text: the accounts of a creator are a JSON list within a row, for which the builder has no words.
 */
import { and, eq, type SQL } from 'drizzle-orm'
import type { Principal } from '../../identity/principal.ts'
import type { Database } from '../../store/open.ts'
import { condition, hasRow } from '../../store/query.ts'
import { tokens } from '../../store/schema/state/tokens.ts'
import { isNamed } from '../named-token.ts'
import type { TokenScope } from '../scope.ts'
import { findToken, type StoredToken } from '../stored-token.ts'

export interface Creator {
  /** Its `expiresAt` is when the creator really ends: its expiry, or the end of its grace period. */
  token: StoredToken
  /**
   * The accounts of its limits and of its sources' limits. An access policy may count by account, and consumer groups
   * and policies that name the token cover its tokens by account, so then all accounts count.
   */
  accountIds: readonly string[]
}

/** The calling token; null if a person calls. */
export async function findCreator(
  { state, ledger }: { state: Database; ledger: Database },
  { tokenId }: Pick<Principal, 'tokenId'>,
): Promise<Creator | null> {
  const token = tokenId === null ? null : await findToken(ledger, tokenId)
  if (token === null) return null
  const { sql: limits, args } = condition(isNamed(token.id))
  const limited = await state.read<{ id: string }>(
    `select each.value as id from tokens t, json_each(t.account_ids) each
     where t.id = ? and (t.access_policy_ids <> '[]' or ${limits}
       or exists (select 1 from accounts a where a.id = each.value and a.deleted = 0))
     order by each.key`,
    [token.id, ...args],
  )
  const accountIds = limited.map(({ id }) => id)
  return { token: { ...token, expiresAt: least(token.expiresAt, token.rotatedAt) }, accountIds }
}

/**
 * The scope with each narrower limit of the creator. If both name different things (two providers), the scope stays as
 * it is, and `checkGrant` refuses it.
 */
export function withinCreator(scope: TokenScope, creator: Creator | null): TokenScope {
  if (creator === null) return scope
  const bounds = creator.token
  return {
    ...scope,
    gatewayId: scope.gatewayId ?? bounds.gatewayId,
    provider: scope.provider ?? bounds.provider,
    modelFilter: scope.modelFilter ?? bounds.modelFilter,
    budgetId: scope.budgetId ?? bounds.budgetId,
    policyIds: union(scope.policyIds, bounds.policyIds),
    accessPolicyIds: union(scope.accessPolicyIds, bounds.accessPolicyIds),
    maxBudget: least(scope.maxBudget, bounds.maxBudget),
    maxRequests: least(scope.maxRequests, bounds.maxRequests),
    rateLimitRpm: least(scope.rateLimitRpm, bounds.rateLimitRpm),
    rateLimitTpm: least(scope.rateLimitTpm, bounds.rateLimitTpm),
    expiresAt: least(scope.expiresAt, bounds.expiresAt),
  }
}

/** The accounts that the new token draws on, given those of its source. */
export const accountsWith = (accountIds: readonly string[], creator: Creator | null): readonly string[] =>
  union(accountIds, creator?.accountIds ?? [])

/**
 * A condition on the state when the new token is written: nobody has revoked, rotated or narrowed the creator since it
 * was read.
 */
export const creatorStands = (creator: Creator | null): SQL | undefined =>
  creator === null
    ? undefined
    : hasRow(tokens, and(eq(tokens.id, creator.token.id), eq(tokens.version, creator.token.version)))

const union = (some: readonly string[], others: readonly string[]): string[] => [...new Set([...some, ...others])]

const least = (one: number | null, other: number | null): number | null =>
  one === null || other === null ? (one ?? other) : Math.min(one, other)
