/** Parses the scope of a create, clone or update. Whether the caller may have it is checked elsewhere. */

import type { Role } from '../../identity/permissions.ts'
import { toNano } from '../../lib/money.ts'
import type { TokenScope } from '../scope.ts'
import { expiryOf, limitOf, type NarrowingBody } from '../token-body.ts'

/** What the body leaves out is inherited from `source`. Null removes a limit, which is wider. */
export function scopeAsked(
  source: TokenScope,
  body: NarrowingBody & { roles?: readonly Role[] | null | undefined },
  now: number,
): TokenScope {
  const bindings = body.bindings ?? {}
  const budget = limitOf(body, 'max_budget')
  return {
    roles: distinct(body.roles ?? source.roles),
    gatewayId: or(bindings.gateway_id, source.gatewayId),
    teamId: or(bindings.team_id, source.teamId),
    userId: or(bindings.user_id, source.userId),
    provider: or(bindings.provider, source.provider),
    modelFilter: or(bindings.model_filter, source.modelFilter),
    budgetId: or(bindings.budget_id, source.budgetId),
    policyIds: distinct(body.policy_ids ?? source.policyIds),
    accessPolicyIds: distinct(body.access_policy_ids ?? source.accessPolicyIds),
    metadataTrust: body.metadata_trust ?? source.metadataTrust,
    mcpTools: body.mcp_tools ?? source.mcpTools,
    maxBudget: or(typeof budget === 'number' ? toNano(budget) : budget, source.maxBudget),
    maxRequests: or(limitOf(body, 'max_requests'), source.maxRequests),
    rateLimitRpm: or(limitOf(body, 'rate_limit_rpm'), source.rateLimitRpm),
    rateLimitTpm: or(limitOf(body, 'rate_limit_tpm'), source.rateLimitTpm),
    expiresAt: or(expiryOf(body, now), source.expiresAt),
  }
}

const or = <Value>(asked: Value | undefined, inherited: Value): Value => (asked === undefined ? inherited : asked)

const distinct = <Value>(values: readonly Value[]): Value[] => [...new Set(values)]
