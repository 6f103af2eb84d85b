import { type Verdict, verdicts } from '../../events/event.ts'
import type { Failure } from '../../failure.ts'
import type { Exchange, Outcome, ReasonCode } from '../exchange.ts'

/**
 * The outcome of an exchange whose answer was passed on: the strongest verdict of its policies and that verdict's
 * reason.
 */
export const answeredOutcome = (exchange: Exchange, status: number): Outcome => ({
  verdict: exchange.verdict,
  reason: exchange.verdict === 'allow' ? 'ok' : decisiveReason(exchange),
  status,
})

const decisiveReason = ({ verdict, policyResults }: Exchange): ReasonCode =>
  policyResults.find((result) => result.verdict === verdict && result.mode === 'enforce')?.reason_code ?? 'ok'

const limited: ReadonlySet<string> = new Set([
  'policy_rate_limited',
  'consumer_group_rate_limit_exceeded',
  'usage_authorization_rate_limited',
  'mcp.rate_limited',
])

/** The verdict of an exchange that ended with a failure. */
export function verdictOf(failure: Failure): Verdict {
  const decided = failure.verdictan?.verdict.toLowerCase()
  const verdict = verdicts.find((known) => known === decided)
  if (verdict !== undefined) return verdict
  if (limited.has(failure.code)) return 'rate_limit'
  return failure.status >= 500 || failure.code === 'client_left' ? 'error' : 'deny'
}
