/** The limit that refused a request, as errors and events name it. */
import type { RefusedLimit } from '../failure.ts'
import { fromNano } from '../lib/money.ts'
import type { GovernedToken } from '../tokens/governed-token.ts'
import { countsMoney, readAccountName } from './account-name.ts'
import type { LimitSet, SharedRateLimit } from './limits.ts'
import { windowAt } from './window.ts'

export interface KnownLimits {
  limits: LimitSet
  accounts: GovernedToken['accounts']
  /** Milliseconds since the epoch. */
  now: number
}

/** `left`: nano-dollars or requests. */
export function refusedAmount(
  account: string,
  left: number | null,
  { limits, accounts, now }: KnownLimits,
): RefusedLimit {
  const { kind, id } = readAccountName(account) ?? { kind: 'grant', id: '' }
  const budget = kind === 'budget' ? limits.budgets.get(id) : undefined
  if (budget !== undefined) {
    const end = windowAt(budget.window, now)?.end
    return {
      ...{ kind: 'budget', id, name: budget.name || null, unit: 'usd', limit: fromNano(budget.maxBudget) },
      left: left === null ? null : fromNano(left),
      resets_at: end === undefined ? null : new Date(end).toISOString(),
    }
  }
  const of = accounts.find((each) => each.id === id)
  if (!countsMoney(account)) {
    const limit = of?.maxRequests ?? null
    return { kind: 'max_requests', id, name: null, unit: 'requests', limit, left, resets_at: null }
  }
  const limit = of === undefined || of.maxBudget === null ? null : fromNano(of.maxBudget)
  const rest = left === null ? null : fromNano(left)
  return {
    kind: kind === 'budget' ? 'budget' : 'max_budget',
    id,
    name: null,
    unit: 'usd',
    limit,
    left: rest,
    resets_at: null,
  }
}

/** A limit a minute, by the name of its slots: `group/<id>/requests`, `access/<id>/tokens`, `token/<id>/requests`. */
export function refusedRate(account: string, limits: LimitSet): RefusedLimit {
  const [owner = '', id = ''] = account.split('/')
  const unit = account.endsWith('/tokens') ? 'tokens' : 'requests'
  const found = owner === 'group' ? groupOf(limits, id) : limits.accessPolicies.get(id)
  const limit = (unit === 'tokens' ? found?.tokensPerMinute : found?.requestsPerMinute) ?? null
  return { ...rateOwner(account, found?.name ?? ''), unit, limit, left: null, resets_at: null }
}

/** Whose limit it is, by the name of its slots. `name` may be empty. */
export function rateOwner(account: string, name: string): Pick<RefusedLimit, 'kind' | 'id' | 'name'> {
  const [owner = '', id = ''] = account.split('/')
  return { kind: rateKinds[owner] ?? 'rate_limit', id, name: name || null }
}

const rateKinds: Readonly<Record<string, RefusedLimit['kind']>> = {
  group: 'consumer_group',
  access: 'access_policy',
  server: 'mcp_server',
}

function groupOf({ groupsOf }: LimitSet, id: string): SharedRateLimit | undefined {
  for (const groups of groupsOf.values()) {
    const group = groups.find((each) => each.id === id)
    if (group !== undefined) return group
  }
  return undefined
}

const words: Readonly<Record<RefusedLimit['kind'], string>> = {
  max_budget: 'the budget of the token (max_budget)',
  max_requests: 'the number of requests of the token (max_requests)',
  budget: 'the budget',
  consumer_group: 'the consumer group',
  access_policy: 'the access policy',
  mcp_server: 'the MCP server or the tool',
  rate_limit: 'the limit of the token, or of its source,',
}

/** `the budget "growth"`, or `the budget "growth" of this customer` where it is for each value of a dimension. */
export const limitWords = (
  { kind, id, name }: Pick<RefusedLimit, 'kind' | 'id' | 'name'>,
  per: string | null = null,
): string => {
  const ofOne = per === null ? '' : ` of this ${per}`
  if (name !== null) return `${words[kind]} "${name}"${ofOne}`
  return kind === 'budget' || kind === 'consumer_group' || kind === 'access_policy'
    ? `${words[kind]} ${id}${ofOne}`
    : words[kind]
}

/** The dimension of which each value has the limit for itself. */
export function dimensionOf({ kind, id }: Pick<RefusedLimit, 'kind' | 'id'>, limits: LimitSet): string | null {
  const limit =
    kind === 'budget'
      ? limits.budgets.get(id)
      : kind === 'consumer_group'
        ? groupOf(limits, id)
        : kind === 'access_policy'
          ? limits.accessPolicies.get(id)
          : undefined
  return limit?.per ?? null
}

/** `$0.12 of $500 is left until 2026-12-01T00:00:00.000Z`. */
export function leftWords({ limit, left, resets_at: resetsAt }: RefusedLimit): string {
  const rest = left === null ? 'too little is left' : `$${left}${limit === null ? '' : ` of $${limit}`} is left`
  return resetsAt === null ? rest : `${rest} until ${resetsAt}`
}

export const asSentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`
