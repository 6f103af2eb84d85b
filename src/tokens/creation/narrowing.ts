/**
 * Decides whether one token's scope is equal to or narrower than another's (tokens/README.md): the narrower token must
 * never be allowed a request that the wider one is denied. Each limit has its own rule, and all rules are reflexive
 * and transitive. An absent limit is the widest. Attached policies only deny, so more of them is narrower. Metadata is
 * compared apart (`metadataWidened`), because keys may be added but not changed.
 *
 * Globs narrow by subset of the languages they describe, which is decided on the text: a glob lies within another if
 * the other matches it with each `*` of the narrower one standing for any text. For patterns whose only special
 * character is `*`, that is exact as long as the alphabet has a character that neither pattern contains.
 */
import { rolesWithin } from '../../identity/permissions.ts'
import type { TokenScope } from '../scope.ts'

/** The dimensions of a scope by the name of the API field, in the order in which the first wider one is reported. */
const rules = {
  'bindings.provider': (from, to) => same(from.provider, to.provider),
  'bindings.model_filter': (from, to) => filterWithin(from.modelFilter, to.modelFilter),
  'bindings.gateway_id': (from, to) => same(from.gatewayId, to.gatewayId),
  policy_ids: (from, to) => holdsAll(to.policyIds, from.policyIds),
  access_policy_ids: (from, to) => holdsAll(to.accessPolicyIds, from.accessPolicyIds),
  'bindings.budget_id': (from, to) => same(from.budgetId, to.budgetId),
  max_budget: (from, to) => atMost(from.maxBudget, to.maxBudget),
  max_requests: (from, to) => atMost(from.maxRequests, to.maxRequests),
  rate_limit_rpm: (from, to) => atMost(from.rateLimitRpm, to.rateLimitRpm),
  rate_limit_tpm: (from, to) => atMost(from.rateLimitTpm, to.rateLimitTpm),
  expires_at: (from, to) => atMost(from.expiresAt, to.expiresAt),
  'bindings.team_id': (from, to) => same(from.teamId, to.teamId),
  'bindings.user_id': (from, to) => same(from.userId, to.userId),
  metadata_trust: (from, to) => from.metadataTrust === 'caller' || to.metadataTrust === 'none',
  roles: (from, to) => rolesWithin(from.roles, to.roles),
} satisfies Record<string, (from: TokenScope, to: TokenScope) => boolean>

export type ScopeField = keyof typeof rules

const scopeFields = Object.keys(rules) as ScopeField[]

/** The first field in which `to` is wider than `from`, or null where it is equal or narrower in all of `fields`. */
export const widenedField = (
  from: TokenScope,
  to: TokenScope,
  fields: readonly ScopeField[] = scopeFields,
): ScopeField | null => fields.find((field) => !rules[field](from, to)) ?? null

/** True where a key of `from` is missing from `to` or has another value there. */
export const metadataWidened = (
  from: Readonly<Record<string, string>>,
  to: Readonly<Record<string, string>>,
): boolean => Object.entries(from).some(([key, value]) => !Object.hasOwn(to, key) || to[key] !== value)

const same = (from: string | null, to: string | null): boolean => from === null || from === to

const atMost = (from: number | null, to: number | null): boolean => from === null || (to !== null && to <= from)

const holdsAll = (held: readonly string[], wanted: readonly string[]): boolean =>
  wanted.every((value) => held.includes(value))

/** Every glob of `to` must lie within one of `from`; no filter is the glob `*`. */
const filterWithin = (from: readonly string[] | null, to: readonly string[] | null): boolean =>
  from === null || (to ?? ['*']).every((narrow) => from.some((wide) => globWithin(wide, narrow)))

/** Whether everything that `narrow` matches is matched by `wide`. Time is the product of their lengths. */
export function globWithin(wide: string, narrow: string): boolean {
  // reached[i]: the first i characters of `wide` can match the part of `narrow` that was read. A `*` of `narrow` is
  // read as one character that only a `*` can match; a `*` of `wide` matches any run of characters, `*` among them.
  const close = (reached: boolean[]) => {
    for (let i = 0; i < wide.length; i++) if (reached[i] && wide[i] === '*') reached[i + 1] = true
    return reached
  }
  let reached = close(Array.from({ length: wide.length + 1 }, (_, i) => i === 0))
  for (const character of Array.from({ length: narrow.length }, (_, i) => narrow[i])) {
    const next = reached.map(() => false)
    for (let i = 0; i < wide.length; i++) {
      if (!reached[i]) continue
      if (wide[i] === '*') next[i] = true
      else if (wide[i] === character && character !== '*') next[i + 1] = true
    }
    reached = close(next)
  }
  return reached[wide.length] === true
}
