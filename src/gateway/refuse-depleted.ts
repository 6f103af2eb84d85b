/**
 * A disposable token whose limit is used up is refused where it is shown (contract section 6, order of checks), as far
 * as the lane already knows it; what it has yet to ask for is asked when the request reserves.
 */
import { UsageRefused } from '../usage/allowance.ts'
import { moneyAccount, requestsAccount, usageFailure } from '../usage/demands.ts'
import { type Exchange, type Gateway, given } from './exchange.ts'
import { resourceName } from './resource-name.ts'

export function refuseDepleted(exchange: Exchange, { lane }: Gateway): void {
  const token = given(exchange.token)
  if (token.keyClass !== 'disposable') return
  for (const { id, maxBudget, maxRequests } of token.accounts) {
    const limits = [maxRequests === null ? null : requestsAccount(id), maxBudget === null ? null : moneyAccount(id)]
    const spent = limits.find((account) => account !== null && lane.allowances.exhausted(account))
    if (typeof spent !== 'string') continue
    const refused = new UsageRefused(spent, 'exhausted')
    throw usageFailure(refused, token.keyClass, resourceName(token.id, lane.standing))
  }
}
