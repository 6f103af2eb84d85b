/**
 * Applies limits of requests and tokens a minute: of consumer groups, access policies and the token (usage/README.md).
 * Tokens are taken by an estimate and corrected by the usage of the answer. A request that is refused later returns
 * what it took.
 */

import { asFailure } from '../../failure.ts'
import { outputLimitMembers } from '../../languages/reading/output-limit.ts'
import { outputMaximum } from '../../usage/pricing/output-maximum.ts'
import { mayHaveRates, rateDemands, rateFailure, tokensOf } from '../../usage/rate/rate-demands.ts'
import type { RateTicket } from '../../usage/rate/rate-ticket.ts'
import { type RateDemand, RateRefused } from '../../usage/rate/rates.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { resourceName } from './resource-name.ts'

export function takeRates(exchange: Exchange, gateway: Gateway): Promise<void> | void {
  const token = required(exchange.token)
  const { limits } = gateway.worker.view
  if (!mayHaveRates(token, limits)) return
  const tokens = tokensOf(required(exchange.facts), modelOutput(exchange))
  const demands = rateDemands(token, limits, tokens, exchange.attributed)
  if (demands.length > 0) return takeDemands(exchange, gateway, demands)
}

/** The largest output of a path for a request without an output limit; 0 when the answer is no text. */
function modelOutput({ dialect, parsed, paths }: Exchange): number {
  if (parsed === null || outputLimitMembers(dialect.family, parsed).length === 0) return 0
  let most = 0
  for (const { listed, upstreamModel } of paths) {
    most = Math.max(most, listed?.maxOutputTokens ?? outputMaximum(upstreamModel))
  }
  return most
}

/** Takes slots of all these limits or of none. */
export function takeDemands(
  exchange: Exchange,
  gateway: Gateway,
  demands: readonly RateDemand[],
): Promise<void> | void {
  const refuse = (thrown: unknown): never => {
    if (!(thrown instanceof RateRefused)) throw asFailure(thrown)
    throw rateFailure(
      thrown,
      gateway.worker.view.limits,
      resourceName(required(exchange.token).id, gateway.worker.status),
    )
  }
  const took = (ticket: RateTicket) => {
    exchange.rates = ticket
  }
  let taken: RateTicket | Promise<RateTicket>
  try {
    taken = gateway.worker.rates.take(demands, exchange.call.abort.signal)
  } catch (thrown) {
    return refuse(thrown)
  }
  if (!(taken instanceof Promise)) return took(taken)
  return taken.then(took, refuse)
}
