import { Failure } from '../../failure.ts'
import { endAttempt } from '../accounting/exchange-record.ts'
import type { Gateway } from '../context.ts'
import type { Exchange, ReasonCode } from '../exchange.ts'

/** Cancels an unusable answer of the provider, so that it stops being sent, and makes the failure. */
export function discardAnswer(exchange: Exchange, gateway: Gateway, reason: ReasonCode, cause?: unknown): Failure {
  endAttempt(exchange, gateway, reason)
  exchange.call.abort.abort()
  return failureOfCall(exchange, reason, cause).failure
}

/**
 * The failure of a call that broke for a reason. When a deadline ended the call, the deadline is the reason, whatever
 * broke because of it, since its answer may have been held for a policy.
 */
export function failureOfCall({ attempts }: Exchange, reason: ReasonCode, cause?: unknown) {
  if (attempts.at(-1)?.reason !== late) return { reason, failure: new Failure('upstream_provider_error', { cause }) }
  return { reason: late, failure: interruptedFailure(cause) }
}

const late = 'provider.timeout'

/** A deadline passed after the answer began. */
export const interruptedFailure = (cause?: unknown): Failure =>
  new Failure('provider_primary_path_error', { message: 'The provider did not finish its answer in time', cause })
