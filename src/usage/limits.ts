/** The limits beside a token's own, as a gateway finds them: budgets with windows, consumer groups, access policies. */

export type BudgetWindow = 'day' | 'week' | 'month' | 'total'

export interface Budget {
  id: string
  /** Nano-dollars. */
  maxBudget: number
  window: BudgetWindow
  scope: { kind: 'organization' | 'team' | 'user' | 'token'; id: string | null }
}

/** A limit of requests or tokens a minute. */
export interface RateLimit {
  id: string
  name: string
  requestsPerMinute: number | null
  tokensPerMinute: number | null
}

export interface ConsumerGroup extends RateLimit {
  teams: readonly string[]
  users: readonly string[]
  tokens: readonly string[]
}

export interface AccessPolicy extends RateLimit {
  /** Exact ids or `*` globs; null for all. */
  models: readonly string[] | null
  /** Names of providers; null for all. */
  providers: readonly string[] | null
}

export interface LimitSet {
  readonly budgets: readonly Budget[]
  readonly consumerGroups: readonly ConsumerGroup[]
  readonly accessPolicies: ReadonlyMap<string, AccessPolicy>
}

export const noLimits: LimitSet = { budgets: [], consumerGroups: [], accessPolicies: new Map() }
