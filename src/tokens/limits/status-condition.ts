/**
 * The statuses of tokens as conditions that an index can answer (store/schema/ledger/tokens.ts): a single `case` over
 * all of them would be evaluated for every token. A test compares them with `tokenStatus`.
 */
import { and, gt, isNotNull, isNull, lte, not, or, type SQL, sql } from 'drizzle-orm'
import { tokens } from '../../store/schema/ledger/tokens.ts'
import type { TokenStatus } from '../governed-token.ts'
import type { DepletionView } from './depletion.ts'

/** Tokens of the ledger that have this status at the instant `now`. */
export function statusCondition(
  status: TokenStatus,
  now: number,
  depletion: Pick<DepletionView, 'exhausted'>,
): SQL | undefined {
  const { revokedAt, rotatedAt, expiresAt } = tokens
  const unrevoked = isNull(revokedAt)
  const unrotated = or(isNull(rotatedAt), gt(rotatedAt, now))
  const usable = and(unrevoked, unrotated, or(isNull(expiresAt), gt(expiresAt, now)))
  const exhausted = (which: Parameters<typeof depletion.exhausted>[0]) => sql.raw(`(${depletion.exhausted(which)})`)
  switch (status) {
    case 'revoked':
      return isNotNull(revokedAt)
    case 'rotated':
      return and(unrevoked, lte(rotatedAt, now))
    case 'expired':
      return and(unrevoked, unrotated, lte(expiresAt, now))
    case 'active':
      return and(usable, not(exhausted('budget_exhausted')), not(exhausted('request_exhausted')))
    default:
      return and(usable, exhausted(status))
  }
}
