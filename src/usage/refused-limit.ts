/** The limit that refused a request, as errors and events name it. */
import type { RefusedLimit } from '../failure.ts'
import { fromNano, toNano } from '../lib/money.ts'
import type { GovernedToken } from '../tokens/governed-token.ts'
import { countsMoney, readAccountName } from './account-name.ts'
import type { BudgetScopeKind, LimitSet, SharedRateLimit } from './limits.ts'
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
      ...{
        kind: 'budget',
        id,
        name: budget.name || null,
        scope: budget.scope,
        unit: 'usd',
        limit: fromNano(budget.maxBudget),
      },
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

/** Gateways know whose spend a budget bounds by its id only, which says nothing to a person. */
const scopeWords: Readonly<Record<BudgetScopeKind, string>> = {
  organization: ' of the organization',
  team: ' of the team',
  user: ' of the person',
  token: '',
  mcp_server: ' of the MCP server or the tool',
}

/** `the budget "growth" of the team`, with ` for this customer` where it is for each value of a dimension. */
export const limitWords = (
  { kind, id, name, scope }: Pick<RefusedLimit, 'kind' | 'id' | 'name' | 'scope'>,
  per: string | null = null,
): string => {
  const ofOne = `${scope === undefined ? '' : scopeWords[scope.kind]}${per === null ? '' : ` for this ${per}`}`
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

/** `$499.88 of $500 is used, and it resets at 2026-12-01T00:00:00.000Z`. */
export function usedWords({ limit, left, resets_at: resetsAt }: RefusedLimit): string {
  const used =
    left === null
      ? 'too little is left'
      : limit === null
        ? `$${left} is left`
        : `$${fromNano(Math.max(0, toNano(limit) - toNano(left)))} of $${limit} is used`
  return resetsAt === null ? used : `${used}, and it resets at ${resetsAt}`
}

export const asSentence = (text: string): string => `${text.charAt(0).toUpperCase()}${text.slice(1)}`
