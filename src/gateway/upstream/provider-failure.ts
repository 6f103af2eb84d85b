import { Failure } from '../../failure.ts'
import { endAttempt } from '../accounting/exchange-record.ts'
import type { Gateway } from '../context.ts'
import type { Exchange, ReasonCode } from '../exchange.ts'

/** Lets go of a provider's answer that cannot be used, so that it stops being sent, and says so. */
export function unusable(exchange: Exchange, gateway: Gateway, reason: ReasonCode, cause?: unknown): Failure {
  endAttempt(exchange, gateway, reason)
  exchange.abort.abort()
  return failureOfCall(exchange, reason, cause).failure
}

/**
 * What a call that broke off for a reason is to the caller. Where a deadline ended it that is the reason, whatever broke
 * by it: its answer may have been held for a policy, and what is left of it come here another way.
 */
export function failureOfCall({ attempts }: Exchange, reason: ReasonCode, cause?: unknown) {
  if (attempts.at(-1)?.reason !== late) return { reason, failure: new Failure('upstream_provider_error', { cause }) }
  return { reason: late, failure: unfinished(cause) }
}

const late = 'provider.timeout'

/** A deadline passed with the answer begun. */
export const unfinished = (cause?: unknown): Failure =>
  new Failure('provider_primary_path_error', { message: 'The provider did not finish its answer in time', cause })
