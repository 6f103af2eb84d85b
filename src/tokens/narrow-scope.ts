/** Reads what a clone or an update asks for as a scope, from the one it starts with; whether it is narrower is apart. */
import { toNano } from '../lib/money.ts'
import type { TokenScope } from './scope.ts'
import { expiryOf, limitOf, type NarrowingBody } from './token-body.ts'

/** The scope asked for: what the body leaves out is inherited, null takes the limit away (and so is wider). */
export function scopeAsked(source: TokenScope, body: NarrowingBody, now: number): TokenScope {
  const bindings = body.bindings ?? {}
  const budget = limitOf(body, 'max_budget')
  return {
    roles: source.roles,
    gatewayId: or(bindings.gateway_id, source.gatewayId),
    teamId: or(bindings.team_id, source.teamId),
    userId: or(bindings.user_id, source.userId),
    provider: or(bindings.provider, source.provider),
    modelFilter: or(bindings.model_filter, source.modelFilter),
    budgetId: or(bindings.budget_id, source.budgetId),
    policyIds: or(body.policy_ids, source.policyIds),
    accessPolicyIds: or(body.access_policy_ids, source.accessPolicyIds),
    metadataTrust: or(body.metadata_trust, source.metadataTrust),
    maxBudget: or(typeof budget === 'number' ? toNano(budget) : budget, source.maxBudget),
    maxRequests: or(limitOf(body, 'max_requests'), source.maxRequests),
    rateLimitRpm: or(limitOf(body, 'rate_limit_rpm'), source.rateLimitRpm),
    rateLimitTpm: or(limitOf(body, 'rate_limit_tpm'), source.rateLimitTpm),
    expiresAt: or(expiryOf(body, now), source.expiresAt),
  }
}

const or = <Value>(asked: Value | undefined, inherited: Value): Value => (asked === undefined ? inherited : asked)
