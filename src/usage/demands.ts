/** The limits that a request draws on, and the error for a refusal (usage/lease/README.md rules 1, 8 and 12). */

import { Failure, type RefusedLimit } from '../failure.ts'
import type { GovernedToken } from '../tokens/governed-token.ts'
import { countsMoney } from './account-name.ts'
import { type Attributed, digestFor } from './attribution/dimension.ts'
import type { Budget, LimitSet } from './limits.ts'
import { asSentence, dimensionOf, type KnownLimits, limitWords, refusedAmount, usedWords } from './refused-limit.ts'
import type { AccountName, Demand, UsageRefused } from './usage-limits.ts'

/** `user:<id>`, `team:<id>` or `organization`. */
export type SpendOwner = string

type Spender = Pick<GovernedToken, 'accounts' | 'budgetId' | 'teamId' | 'userId' | 'ownerKind' | 'ownerId'>

/** Who pays (usage/README.md): the owner in the gateway's record, else the token's user, else its owner. */
export const spendOwnerOf = (
  token: Pick<GovernedToken, 'userId' | 'ownerKind' | 'ownerId'>,
  gatewayOwner: SpendOwner | null,
): SpendOwner =>
  gatewayOwner ?? (token.userId === null ? `${token.ownerKind}:${token.ownerId}` : `user:${token.userId}`)

export const requestsAccount = (id: string): AccountName => `token/${id}/requests`
export const moneyAccount = (id: string): AccountName => `token/${id}/money`
export const budgetAccount = (id: string): AccountName => `budget/${id}`

/** The account of a budget that a request with these values draws on. */
export const budgetAccountFor = ({ id, per }: Pick<Budget, 'id' | 'per'>, values: Attributed | null): AccountName =>
  per === null ? budgetAccount(id) : `${budgetAccount(id)}/${digestFor(per, values)}`

/** A money account with its limit. No request can get more. */
export interface MoneyAccount {
  account: AccountName
  /** Nano-dollars. */
  limit: number
}

/** The accounts that requests of a token draw on, and who pays. */
export interface SpendAccounts {
  readonly owner: SpendOwner
  readonly requests: readonly Demand[]
  readonly money: readonly MoneyAccount[]
  /** The budgets of which each value of a dimension has an account. */
  readonly perValue: readonly Budget[]
  /** The inputs of the cached result, besides the token. */
  readonly limits: LimitSet
  readonly gatewayOwner: SpendOwner | null
}

/** A changed token is a new object, and so are changed limits. */
const known = new WeakMap<Spender, SpendAccounts>()

/** Computed once for each token, set of limits and paying owner. */
export function spendAccountsOf(token: Spender, limits: LimitSet, gatewayOwner: SpendOwner | null): SpendAccounts {
  let draws = known.get(token)
  if (draws === undefined || draws.limits !== limits || draws.gatewayOwner !== gatewayOwner) {
    const requests = token.accounts
      .filter(({ maxRequests }) => maxRequests !== null)
      .map(({ id }) => ({ account: requestsAccount(id), want: 1, min: 1 }))
    const { money, perValue } = moneyAccounts(token, limits, gatewayOwner)
    draws = { owner: spendOwnerOf(token, gatewayOwner), requests, money, perValue, limits, gatewayOwner }
    known.set(token, draws)
  }
  return draws
}

/** The money accounts that a token draws on: its own limits and every budget that bounds its spend. */
function moneyAccounts(
  token: Spender,
  limits: LimitSet,
  gatewayOwner: SpendOwner | null,
): Pick<SpendAccounts, 'money' | 'perValue'> {
  const money: MoneyAccount[] = []
  const perValue: Budget[] = []
  for (const { id, maxBudget: limit } of token.accounts) {
    if (limit !== null) money.push({ account: moneyAccount(id), limit })
  }
  if (limits.budgets.size === 0) return { money, perValue }
  for (const budget of budgetsOf(token, limits, gatewayOwner)) {
    if (budget.per === null) money.push({ account: budgetAccount(budget.id), limit: budget.maxBudget })
    else perValue.push(budget)
  }
  return { money, perValue }
}

/** The money accounts of a request with these values. */
export function moneyAccountsFor(
  { money, perValue }: SpendAccounts,
  values: Attributed | null,
): readonly MoneyAccount[] {
  if (perValue.length === 0) return money
  return [
    ...money,
    ...perValue.map((budget) => ({ account: budgetAccountFor(budget, values), limit: budget.maxBudget })),
  ]
}

/** Whose budgets bound the spend of a token: `organization`, `team:<id>`, `user:<id>`. */
export function budgetOwnersOf(
  token: Pick<Spender, 'teamId' | 'userId' | 'ownerKind' | 'ownerId'>,
  gatewayOwner: SpendOwner | null,
): ReadonlySet<string> {
  const owners = new Set(['organization', spendOwnerOf(token, gatewayOwner)])
  if (gatewayOwner === null && token.teamId !== null) owners.add(`team:${token.teamId}`)
  return owners
}

/**
 * The budgets of the organization and of who pays, and the one the token is bound to. A team's budget also holds for
 * its tokens when their user pays, but not when the gateway's record names another owner.
 */
function budgetsOf(token: Spender, limits: LimitSet, gatewayOwner: SpendOwner | null): ReadonlySet<Budget> {
  const found = new Set<Budget>()
  for (const owner of budgetOwnersOf(token, gatewayOwner))
    for (const budget of limits.budgetsOf.get(owner) ?? []) found.add(budget)
  const bound = token.budgetId === null ? undefined : limits.budgets.get(token.budgetId)
  if (bound !== undefined) found.add(bound)
  return found
}

/** What the error of a refused reservation says beside the limit. */
export interface RefusalContext extends KnownLimits {
  keyClass: GovernedToken['keyClass']
  /** Names the token, and never contains its secret. */
  resource: string
  /** Says why the rest does not pay for the request, and what it would pay for. */
  detail?: string | undefined
}

/**
 * The error for a refused reservation. Each message says first what is wrong, and names the token at its end: as the
 * owner of its own limits only, since a budget may be of its team, its user or the organization.
 */
export function usageFailure(
  { account, reason, retryAfter, left }: UsageRefused,
  { keyClass, resource, detail, ...known }: RefusalContext,
): Failure {
  const limit = refusedAmount(account, left, known)
  const per = dimensionOf(limit, known.limits)
  const words = limitWords(limit, per)
  const ofToken = limit.kind === 'budget' ? `The token is ${resource}` : `The limit is of ${resource}`
  if (reason === 'unknown') {
    const message = `A part of ${words} cannot be reached: retry shortly. ${ofToken}`
    return new Failure('usage_authority_unavailable', { message, limit, retryAfter: retryAfter ?? 1 })
  }
  if (reason === 'too_many_values') {
    const most = known.limits.dimensions.find(({ name }) => name === per)?.maxValues
    const until = limit.resets_at === null ? '' : ` before ${limit.resets_at}`
    const message = `${asSentence(limitWords(limit))} is for each ${per}, and takes no more values of ${per}${until}: as many as the dimension allows have used it (max_values: ${most ?? 0}). Send one of those, or have max_values of the dimension ${per} raised. ${ofToken}`
    return new Failure('usage_authorization_too_many_values', { message, limit })
  }
  const requests = !countsMoney(account)
  if (reason === 'held') {
    const message = `What is left of ${words} is held by running requests: retry shortly. ${ofToken}`
    const code = requests ? 'usage_authorization_request_limit_exceeded' : 'usage_authorization_budget_exceeded'
    return new Failure(code, { message, limit, retryAfter: retryAfter ?? 1 })
  }
  const ownsIt = keyClass === 'disposable' && account.startsWith('token/')
  if (requests) {
    const code = ownsIt ? 'tokens.request_limit_exhausted' : 'usage_authorization_request_limit_exceeded'
    return new Failure(code, { message: requestsMessage(limit, resource, detail), limit })
  }
  if (reason === 'exhausted' && ownsIt) {
    const message = `The budget of the token (max_budget) is used up, and what is left pays for no request: ${resource}`
    return new Failure('tokens.budget_exhausted', { message, limit })
  }
  const what = limit.left === 0 ? 'is used up' : 'cannot pay for this request'
  const short = `${asSentence(words)} ${what}: ${usedWords(limit)}`
  const message = `${detail === undefined ? short : `${short}; ${detail}`}. ${ofToken}`
  return new Failure('usage_authorization_budget_exceeded', {
    ...{ message, limit },
    ...(retryAfter !== null && { retryAfter }),
  })
}

/** A batch may need more requests than are left, while one request still fits. */
function requestsMessage({ left, limit }: RefusedLimit, resource: string, detail: string | undefined): string {
  if (left === null || left === 0 || detail === undefined) {
    return `The requests of the token (max_requests) are used up: ${resource}`
  }
  const of = limit === null ? '' : ` of ${limit}`
  return `Too few requests of the token (max_requests) are left: ${left}${of}, and ${detail}. The limit is of ${resource}`
}
