/**
 * The limits of a call to an MCP server: those of its token, as for any request, and those of the server and the tool:
 * calls a minute, and budgets of the server or the tool, from which the price of the call is reserved. All are taken or
 * none. A request to a server without limits, by a token without limits, asks for nothing. The answers to a call that
 * waits at its server take nothing: the request that sent the call has taken it.
 */
import { asFailure } from '../../../failure.ts'
import { fromNano } from '../../../lib/money.ts'
import type { Attributed } from '../../../usage/attribution/dimension.ts'
import { budgetAccountFor, moneyAccountsFor, spendAccountsOf, usageFailure } from '../../../usage/demands.ts'
import type { LimitSet } from '../../../usage/limits.ts'
import { mayHaveRates, rateDemands, tokensOf } from '../../../usage/rate/rate-demands.ts'
import type { RateDemand } from '../../../usage/rate/rates.ts'
import { type Demand, type Reservation, UsageRefused } from '../../../usage/usage-limits.ts'
import { takeDemands } from '../../admission/rate-limit.ts'
import { refusalContext } from '../../admission/refusal-context.ts'
import type { Gateway } from '../../context.ts'
import { type Exchange, required } from '../../exchange.ts'
import { isHeldCall, type McpRequest } from '../mcp-request.ts'
import { calledTool, callPrice, callTerms } from './call-price.ts'

const noRates: readonly RateDemand[] = []

export function takeCallRates(exchange: Exchange, gateway: Gateway): Promise<void> | void {
  if (isHeldCall(required(exchange.mcp))) return
  const token = required(exchange.token)
  const { limits } = gateway.worker.view
  const ofCall = callTerms(required(exchange.mcp))?.rates ?? noRates
  const hasOwn = mayHaveRates(token, limits)
  if (ofCall.length === 0 && !hasOwn) return
  const own = hasOwn ? rateDemands(token, limits, tokensOf(required(exchange.facts), 0), exchange.attributed) : noRates
  const demands = [...own, ...ofCall]
  if (demands.length > 0) return takeDemands(exchange, gateway, demands)
}

export function reserveCall(exchange: Exchange, gateway: Gateway): Promise<void> | void {
  const { view } = gateway.worker
  const mcp = required(exchange.mcp)
  const accounts = spendAccountsOf(required(exchange.token), view.limits, view.gateway.spendOwner)
  const { owner, requests } = accounts
  const money = moneyAccountsFor(accounts, exchange.attributed)
  exchange.spendOwner = owner
  if (isHeldCall(mcp)) return
  const budgets = serverBudgets(mcp, view.limits, exchange.attributed)
  if (requests.length === 0 && money.length === 0 && budgets.length === 0) return
  const price = callPrice(mcp)
  // A free call asks for a nano-dollar, which is returned, so that a used-up limit refuses it too.
  const least = Math.max(1, price)
  const ofMoney = ({ account }: { account: string }): Demand => ({ account, want: least, min: least })
  return reserve(exchange, gateway, [...requests, ...money.map(ofMoney), ...budgets.map(ofMoney)], price)
}

const noBudgets: readonly { account: string }[] = []

/** The budgets of the server and of the tool. */
function serverBudgets(
  mcp: McpRequest,
  { budgetsOf }: LimitSet,
  values: Attributed | null,
): readonly { account: string }[] {
  if (mcp.server === null || budgetsOf.size === 0) return noBudgets
  const name = `mcp_server:${mcp.server.id}`
  const tool = calledTool(mcp)
  const found = [...(budgetsOf.get(name) ?? []), ...(tool === null ? [] : (budgetsOf.get(`${name}/${tool}`) ?? []))]
  return found.map((budget) => ({ account: budgetAccountFor(budget, values) }))
}

function reserve(
  exchange: Exchange,
  gateway: Gateway,
  demands: readonly Demand[],
  price: number,
): Promise<void> | void {
  const refuse = (thrown: unknown): never => {
    if (!(thrown instanceof UsageRefused)) throw asFailure(thrown)
    const detail = price === 0 ? undefined : `a call costs $${fromNano(price)}`
    throw usageFailure(thrown, { ...refusalContext(required(exchange.token), gateway), detail })
  }
  const take = (reservation: Reservation) => {
    exchange.reservation = reservation
  }
  let reserved: Reservation | Promise<Reservation>
  try {
    reserved = gateway.worker.usageLimits.reserve(demands, exchange.call.abort.signal)
  } catch (thrown) {
    return refuse(thrown)
  }
  return reserved instanceof Promise ? reserved.then(take, refuse) : take(reserved)
}
