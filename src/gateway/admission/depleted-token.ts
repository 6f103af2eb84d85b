/**
 * Refuses a disposable token whose limit is used up at authentication (gateway/README.md, Order of checks), as far as
 * the worker knows it. What the worker does not know is checked when the request reserves, or by `check-depletion.ts`
 * for a request that reserves nothing.
 */
import { asFailure, type Failure } from '../../failure.ts'
import { moneyAccount, requestsAccount, usageFailure } from '../../usage/demands.ts'
import { type AccountName, UsageRefused } from '../../usage/usage-limits.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { refusalContext } from './refusal-context.ts'

export function refuseDepleted(exchange: Exchange, gateway: Gateway): void {
  for (const account of depletableAccounts(exchange)) {
    if (!gateway.worker.usageLimits.exhausted(account)) continue
    throw depletionFailure(new UsageRefused(account, 'exhausted'), exchange, gateway)
  }
}

const none: readonly AccountName[] = []

/** The limits whose depletion ends a disposable token. */
export function depletableAccounts({ token }: Exchange): readonly AccountName[] {
  const { keyClass, accounts } = required(token)
  if (keyClass !== 'disposable') return none
  return accounts.flatMap(({ id, maxBudget, maxRequests }) => [
    ...(maxRequests === null ? [] : [requestsAccount(id)]),
    ...(maxBudget === null ? [] : [moneyAccount(id)]),
  ])
}

export function depletionFailure(thrown: unknown, { token }: Exchange, gateway: Gateway): Failure {
  if (!(thrown instanceof UsageRefused)) return asFailure(thrown)
  return usageFailure(thrown, refusalContext(required(token), gateway))
}
