/**
 * Whether a secret belongs to a usable token, for programs that accept tokens of this installation
 * (handbook/tokens.md).
 */
import { z } from 'zod'
import type { Principal } from '../identity/principal.ts'
import { hashSecret, secretKind } from '../identity/secret.ts'
import type { TokenDependencies } from './dependencies.ts'
import { tokenStatus } from './governed-token.ts'
import { openToken } from './stored-token.ts'
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
  const [found] = await state.read<{ id: string }>('select id from tokens where hash = ? and deleted = 0', [
    hashSecret(secret),
  ])
  const visible = visibleTokens(principal)
  const [row] =
    found === undefined
      ? []
      : await ledger.read(`select * from tokens where id = ? and ${visible.sql}`, [found.id, ...visible.args])
  if (row === undefined) return { valid: false, reason: 'unknown' }
  const token = openToken(row)
  const byTime = tokenStatus(token, now)
  const status = byTime === 'active' ? ((await depletion.read([token])).get(token.id)?.status ?? byTime) : byTime
  return status === 'active' ? { valid: true, token_id: token.id } : { valid: false, reason: status }
}
