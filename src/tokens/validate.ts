/**
 * Whether a secret belongs to a usable token, for programs that accept tokens of this installation
 * (handbook/tokens.md).
 */
import { and, eq } from 'drizzle-orm'
import { z } from 'zod'
import type { Principal } from '../identity/principal.ts'
import { hashSecret, secretKind } from '../identity/secret.ts'
import { query } from '../store/query.ts'
import { tokens as ledgerTokens } from '../store/schema/ledger/tokens.ts'
import { tokens as stateTokens } from '../store/schema/state/tokens.ts'
import type { TokenDependencies } from './dependencies.ts'
import { tokenStatus } from './governed-token.ts'
import { visibleTokens } from './visibility.ts'

export const validationSchema = z.union([
  z.object({ valid: z.literal(true), token_id: z.uuid() }),
  z.object({
    valid: z.literal(false),
    reason: z.enum(['malformed', 'unknown', 'revoked', 'rotated', 'expired', 'budget_exhausted', 'request_exhausted']),
  }),
])
export type Validation = z.infer<typeof validationSchema>

/** A token that the principal may not see counts as unknown. */
export async function validateToken(
  { state, ledger, depletion }: Pick<TokenDependencies, 'state' | 'ledger' | 'depletion'>,
  principal: Principal,
  secret: string,
  now: number,
): Promise<Validation> {
  if (secretKind(secret) !== 'token') return { valid: false, reason: 'malformed' }
  const known = and(eq(stateTokens.hash, hashSecret(secret)), eq(stateTokens.deleted, 0))
  const found = await query(state).select({ id: stateTokens.id }).from(stateTokens).where(known).get()
  const seen = and(eq(ledgerTokens.id, found?.id ?? ''), visibleTokens(principal))
  const token = found && (await query(ledger).select().from(ledgerTokens).where(seen).get())
  if (token === undefined) return { valid: false, reason: 'unknown' }
  const byTime = tokenStatus(token, now)
  const status = byTime === 'active' ? ((await depletion.read([token])).get(token.id)?.status ?? byTime) : byTime
  return status === 'active' ? { valid: true, token_id: token.id } : { valid: false, reason: status }
}
