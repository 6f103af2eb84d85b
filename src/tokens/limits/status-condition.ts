/**
 * The statuses of tokens as SQL conditions that an index can answer (store/schema/ledger): a single `case` over all
 * of them would be evaluated for every token. A test compares them with `tokenStatus`.
 */
import type { Statement } from '../../store/statement.ts'
import type { TokenStatus } from '../governed-token.ts'
import type { DepletionView } from './depletion.ts'

const unrevoked = 'revoked_at is null'
const unrotated = '(rotated_at is null or rotated_at > ?)'
const unexpired = '(expires_at is null or expires_at > ?)'

/** Tokens of the ledger that have this status at the instant `now`. */
export function statusCondition(
  status: TokenStatus,
  now: number,
  depletion: Pick<DepletionView, 'exhausted'>,
): Statement {
  const usable = { sql: `${unrevoked} and ${unrotated} and ${unexpired}`, args: [now, now] }
  switch (status) {
    case 'revoked':
      return { sql: 'revoked_at is not null', args: [] }
    case 'rotated':
      return { sql: `${unrevoked} and rotated_at <= ?`, args: [now] }
    case 'expired':
      return { sql: `${unrevoked} and ${unrotated} and expires_at <= ?`, args: [now, now] }
    case 'active': {
      const used = `${depletion.exhausted('budget_exhausted')} or ${depletion.exhausted('request_exhausted')}`
      return { sql: `${usable.sql} and not (${used})`, args: usable.args }
    }
    default:
      return { sql: `${usable.sql} and ${depletion.exhausted(status)}`, args: usable.args }
  }
}
