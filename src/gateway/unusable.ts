import { Failure } from '../failure.ts'
import type { Exchange, Gateway, ReasonCode } from './exchange.ts'
import { endAttempt } from './record.ts'

/** Lets go of a provider's answer that cannot be used, so that it stops being sent, and says so. */
export function unusable(exchange: Exchange, gateway: Gateway, reason: ReasonCode, cause?: unknown): Failure {
  endAttempt(exchange, gateway, reason)
  exchange.abort.abort()
  return new Failure('upstream_provider_error', { cause })
}
