/** The limits a minute that a request draws on, the error of a refusal, and what an access policy lets a token use. */

import { Failure } from '../../failure.ts'
import type { RequestFacts } from '../../languages/dialect.ts'
import { type GovernedToken, globMatches } from '../../tokens/governed-token.ts'
import { type Attributed, digestFor } from '../attribution/dimension.ts'
import type { AccessPolicy, AccessRule, ConsumerGroup, LimitSet, RateLimit, SharedRateLimit } from '../limits.ts'
import { asSentence, dimensionOf, limitWords, rateOwner, refusedRate } from '../refused-limit.ts'
import type { RateDemand, RateRefused } from './rates.ts'

type Member = Pick<GovernedToken, 'id' | 'teamId' | 'userId' | 'ownerKind' | 'ownerId' | 'accessPolicyIds' | 'accounts'>

/** The access policies that a token is attached to. */
export const accessPoliciesOf = ({ accessPolicyIds }: Member, { accessPolicies }: LimitSet): AccessPolicy[] =>
  accessPolicyIds.flatMap((id) => accessPolicies.get(id) ?? [])

/** The field by which an access policy forbids a model; null where it does not. */
export function forbiddenBy(
  { models, providers }: AccessRule,
  model: { id: string; provider: { name: string } },
): 'model' | 'provider' | null {
  if (models !== null && !models.some((pattern) => globMatches(pattern, model.id))) return 'model'
  return providers === null || providers.includes(model.provider.name) ? null : 'provider'
}

/** Whether a token may have limits a minute at all. Most have none and skip the rest. */
export function mayHaveRates({ accessPolicyIds, accounts }: Member, { groupsOf: groups }: LimitSet): boolean {
  if (groups.size > 0 || accessPolicyIds.length > 0) return true
  for (let index = 0; index < accounts.length; index++) {
    const account = accounts[index]
    if (account !== undefined && (account.rateLimitRpm !== null || account.rateLimitTpm !== null)) return true
  }
  return false
}

/**
 * The limits of consumer groups, access policies, the token itself and the tokens it was cloned from, in this order. A
 * token's own limits are counted by the account it was made with, so a rotation refills nothing.
 */
export function rateDemands(
  token: Member,
  limits: LimitSet,
  tokens: RequestTokens,
  values: Attributed | null,
): RateDemand[] {
  const demands: RateDemand[] = []
  for (const group of groupsOf(token, limits)) {
    addDemands(demands, forValue(`group/${group.id}`, group, values), group, tokens)
  }
  for (const id of token.accessPolicyIds) {
    const policy = limits.accessPolicies.get(id)
    if (policy === undefined) continue
    for (const name of policyNames(policy, token)) addDemands(demands, forValue(name, policy, values), policy, tokens)
  }
  for (const { id, rateLimitRpm, rateLimitTpm } of token.accounts) {
    if (rateLimitRpm === null && rateLimitTpm === null) continue
    const limit = { id, name: '', requestsPerMinute: rateLimitRpm, tokensPerMinute: rateLimitTpm }
    addDemands(demands, `token/${id}`, limit, tokens)
  }
  return demands
}

/** With rates for each value of a dimension, the name of the request's value follows that of the limit. */
const forValue = (name: string, { per }: SharedRateLimit, values: Attributed | null): string =>
  per === null ? name : `${name}/${digestFor(per, values)}`

/** With rates for each token, a clone also draws on its source's rates, and a rotation refills nothing. */
function policyNames({ id, scope }: AccessPolicy, token: Member): string[] {
  if (scope === 'shared') return [`access/${id}`]
  const accounts = token.accounts.length === 0 ? [token] : token.accounts
  return accounts.map((account) => `access/${id}/${account.id}`)
}

/** The tokens that a request counts as until its answer reports the real number. */
export interface RequestTokens {
  /** The input and one output token. */
  least: number
  /** The input and the longest possible output. */
  most: number
  /** Whether the caller limited the output. Such a request is admitted with all that it may use, or refused. */
  isBounded: boolean
}

/** `modelOutput` is the model's default output limit. */
export function tokensOf({ inputEstimate, outputLimit, choices }: RequestFacts, modelOutput: number): RequestTokens {
  const output = (outputLimit ?? modelOutput) * Math.max(1, choices)
  const least = Math.max(1, inputEstimate + Math.min(1, output))
  return { least, most: Math.max(1, inputEstimate + output), isBounded: outputLimit !== null }
}

/** Throws `request_exceeds_rate_limit` if the request is larger than the whole limit. */
function addDemands(demands: RateDemand[], name: string, limit: RateLimit, tokens: RequestTokens): void {
  const { requestsPerMinute, tokensPerMinute } = limit
  if (requestsPerMinute !== null) {
    demands.push({ account: `${name}/requests`, slots: 1, least: 1, limit: requestsPerMinute })
  }
  if (tokensPerMinute === null) return
  const { least, most, isBounded } = tokens
  if (least > tokensPerMinute) {
    const message = `The request takes about ${least} tokens, and ${limitWords(rateOwner(name, limit.name))} allows ${tokensPerMinute} a minute: shorten it, or have the limit raised`
    throw new Failure('request_exceeds_rate_limit', { message })
  }
  const mustHaveAll = isBounded && most <= tokensPerMinute
  demands.push({
    account: `${name}/tokens`,
    slots: most,
    least: mustHaveAll ? most : least,
    limit: tokensPerMinute,
  })
}

const noGroups: ReadonlySet<ConsumerGroup> = new Set()

/** The groups that contain the token, its source, its user or its team, each once. */
function groupsOf(
  { id, accounts, teamId, userId, ownerKind, ownerId }: Member,
  { groupsOf: groups }: LimitSet,
): ReadonlySet<ConsumerGroup> {
  if (groups.size === 0) return noGroups
  const found = new Set<ConsumerGroup>()
  const names = [`token:${id}`, ...accounts.map((account) => `token:${account.id}`), `${ownerKind}:${ownerId}`]
  if (userId !== null) names.push(`user:${userId}`)
  if (teamId !== null) names.push(`team:${teamId}`)
  for (const name of names) for (const group of groups.get(name) ?? []) found.add(group)
  return found
}

/** The error for a refused rate limit (usage/README.md). `resource` names the token, at the end of each message. */
export function rateFailure(
  { account, reason, retryAfter, absent }: RateRefused,
  limits: LimitSet,
  resource: string,
): Failure {
  const limit = refusedRate(account, limits)
  const words = limitWords(limit, dimensionOf(limit, limits))
  if (reason === 'unknown') {
    const message = `The limits a minute cannot be checked at the moment: retry shortly. They are of ${resource}`
    return new Failure('usage_authority_unavailable', { message, limit, retryAfter })
  }
  const what = limit.limit === null ? limit.unit : `${limit.limit} ${limit.unit}`
  const why =
    absent === 0 ? '' : `; ${absent} of them are held by a gateway that does not answer, and come back within 91 s`
  if (limit.kind === 'mcp_server') {
    const message = `The MCP server or the tool has had its calls of this minute${why}. The token is ${resource}`
    return new Failure('mcp.rate_limited', { message, limit, retryAfter })
  }
  if (limit.kind === 'consumer_group') {
    const message = `${asSentence(words)} has used its ${what} of this minute${why}. The token in it is ${resource}`
    return new Failure('consumer_group_rate_limit_exceeded', { message, limit, retryAfter })
  }
  const message = `The token has used its ${what} of this minute: ${words} allows no more${why}. The token is ${resource}`
  return new Failure('usage_authorization_rate_limited', { message, limit, retryAfter })
}
