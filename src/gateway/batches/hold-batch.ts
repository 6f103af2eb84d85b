/**
 * Reserves the most that a batch can cost, on every limit, all or none (usage/batches/README.md): its lines as
 * requests, and the money that all of them can cost together.
 */
import { asFailure, Failure } from '../../failure.ts'
import { fromNano } from '../../lib/money.ts'
import { countsMoney } from '../../usage/account-name.ts'
import { moneyAccountsFor, spendAccountsOf, usageFailure } from '../../usage/demands.ts'
import { maxRequestedAmount } from '../../usage/lease/lease.ts'
import { UsageRefused } from '../../usage/usage-limits.ts'
import { refusalContext } from '../admission/refusal-context.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'

export async function holdBatch(exchange: Exchange, gateway: Gateway): Promise<void> {
  const { view, usageLimits } = gateway.worker
  const token = required(exchange.token)
  const { lines, bound } = required(required(exchange.stored).batch)
  const accounts = spendAccountsOf(token, view.limits, view.gateway.spendOwner)
  const { owner, requests } = accounts
  const money = moneyAccountsFor(accounts, exchange.attributed)
  exchange.spendOwner = owner
  if (money.length > 0 && bound === null) {
    const message = 'What the lines of this file can cost was not known when it was uploaded: upload it again'
    throw new Failure('tokens.cost_unbounded', { message, param: 'input_file_id' })
  }
  const cost = Math.max(1, bound ?? 1)
  const detail = `the ${lines} lines of the batch may cost $${fromNano(cost)} together`
  if (money.length > 0 && cost > maxRequestedAmount) {
    throw new Failure('usage_authorization_budget_exceeded', { message: `No budget pays for this batch: ${detail}` })
  }
  const demands = [
    ...requests.map(({ account }) => ({ account, want: lines, min: lines })),
    ...money.map(({ account }) => ({ account, want: cost, min: cost })),
  ]
  if (demands.length === 0) return
  try {
    exchange.reservation = await usageLimits.reserve(demands, exchange.call.abort.signal)
  } catch (thrown) {
    if (!(thrown instanceof UsageRefused)) throw asFailure(thrown)
    const many = `the ${lines} lines of the batch are one request each`
    throw usageFailure(thrown, {
      ...refusalContext(token, gateway),
      detail: countsMoney(thrown.account) ? detail : many,
    })
  }
}
