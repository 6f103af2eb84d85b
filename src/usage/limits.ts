/** The limits besides a token's own: budgets with windows, consumer groups, access policies. */
import type { Dimension } from './attribution/dimension.ts'
import { type Excesses, noExcesses } from './excess.ts'

export type BudgetWindow = 'day' | 'week' | 'month' | 'total'

/**
 * Whose spend a budget bounds. A `token` budget bounds the tokens whose `bindings.budget_id` names it, an `mcp_server`
 * budget the calls of a server (`<id>`) or of one of its tools (`<id>/<tool>`).
 */
export type BudgetScopeKind = 'organization' | 'team' | 'user' | 'token' | 'mcp_server'

export interface Budget {
  id: string
  /** Empty for one that was made before gateways knew names. */
  name: string
  /** Nano-dollars. */
  maxBudget: number
  window: BudgetWindow
  scope: { kind: BudgetScopeKind; id: string | null }
  /** The dimension of which each value has the amount for itself; null for one amount. */
  per: string | null
}

/** A limit of requests or tokens a minute. */
export interface RateLimit {
  id: string
  /** Empty for the limit of a token, and for one that was made before gateways knew names. */
  name: string
  requestsPerMinute: number | null
  tokensPerMinute: number | null
}

/** A limit a minute that may be for each value of a dimension. */
export interface SharedRateLimit extends RateLimit {
  /** The dimension of which each value has the rates for itself; null for one rate. */
  per: string | null
}

/** Whose requests a group counts stands in `LimitSet.groupsOf`. */
export type ConsumerGroup = SharedRateLimit

/** What an access policy lets a token use. */
export interface AccessRule {
  /** Exact ids or `*` globs; null for all. */
  models: readonly string[] | null
  /** Names of providers; null for all. */
  providers: readonly string[] | null
}

export interface AccessPolicy extends SharedRateLimit, AccessRule {
  /** Whether each token with the policy has these rates for itself, or all of them together. */
  scope: 'token' | 'shared'
}

export interface LimitSet {
  readonly budgets: ReadonlyMap<string, Budget>
  /** By whose spend they bound: `organization`, `team:<id>`, `user:<id>`. */
  readonly budgetsOf: ReadonlyMap<string, readonly Budget[]>
  /** By member: `team:<id>`, `user:<id>`, `token:<id of the account the token was made with>`. */
  readonly groupsOf: ReadonlyMap<string, readonly ConsumerGroup[]>
  readonly accessPolicies: ReadonlyMap<string, AccessPolicy>
  /** Charges above the bounds of requests (excess.ts). */
  readonly excesses: Excesses
  readonly dimensions: readonly Dimension[]
}

export const noLimits: LimitSet = {
  budgets: new Map(),
  budgetsOf: new Map(),
  groupsOf: new Map(),
  accessPolicies: new Map(),
  excesses: noExcesses,
  dimensions: [],
}
