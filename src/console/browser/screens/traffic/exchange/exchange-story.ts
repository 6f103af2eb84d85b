/** What an event says, in words: why a request was refused, who asked, what a change was. */
import type { Event } from '../../../api/routes.ts'
import { fullTime, humanize, money } from '../../../formats.ts'
import { isObject } from '../../../json-object.ts'
import { detail, type PolicyResult, policyResults } from './event-details.ts'

/** Why, for the reason codes that the gateway itself gives; others are a policy's own. */
export const gatewayReasons: Readonly<Record<string, string>> = {
  missing_api_key: 'it carried no token',
  invalid_api_token: 'its token is unknown, was revoked or was rotated',
  'tokens.expired': 'its token has expired',
  'tokens.budget_exhausted': 'its token has spent its budget',
  'tokens.request_limit_exhausted': 'its token has used all its requests',
  'tokens.model_unpriced': 'its token has a budget, but the model has no price',
  'tokens.cost_unbounded': 'its token has a budget, but the cost of the request has no limit',
  'tokens.gateway_not_allowed': 'its token is bound to another gateway',
  'tokens.provider_not_allowed': 'its token is bound to another provider',
  'tokens.model_not_allowed': 'its token may not use this model',
  'tokens.purpose_not_allowed': 'a token of this purpose may not call models',
  permission_denied: 'its token lacks the permission',
  model_not_found: 'no provider has this model',
  usage_authorization_budget_exceeded: 'a budget is spent or reserved by running requests',
  usage_authorization_request_limit_exceeded: 'its token has used all its requests',
  usage_authorization_rate_limited: 'its token or access policy has used its rate for this minute',
  request_exceeds_rate_limit: 'it takes more tokens than a limit allows in a minute',
  consumer_group_rate_limit_exceeded: 'its consumer group has used its rate for this minute',
  usage_authority_unavailable: 'the control plane, which keeps the limits, could not be reached',
  token_state_stale: 'the gateway’s copy of the state was too old',
  event_outbox_full: 'the gateway’s event outbox was full',
  'policy.incompatible_active_chain': 'a policy has a stage that this route does not support',
  upstream_provider_error: 'the provider’s answer could not be used',
  provider_primary_path_error: 'no provider could be reached',
  upstream_error: 'the provider could not be reached',
  invalid_json: 'its body is not JSON',
  request_too_large: 'its body is too large',
  session_id_mismatch: 'its two session ids differ',
}

/** The first line of an exchange's story. */
export function verdictSummary(event: Event, nameOf: (policyId: string) => string | null): string {
  const { verdict, reason_code: reason } = event
  const decided = policyResults(event).findLast((result) => result.verdict === verdict && result.mode === 'enforce')
  const why =
    decided === undefined
      ? (limitSentence(event) ?? because(reason))
      : policySentence(decided, nameOf(decided.policy_id))
  if (verdict === 'allow') return 'This request was allowed by every policy and limit.'
  if (verdict === 'redact') return `This request was allowed with redacted text: ${why}.`
  if (verdict === 'rewrite') return `This request was allowed with changes: ${why}.`
  if (verdict === 'escalate') return `This request waits for a review: ${why}.`
  if (verdict === 'rate_limit') return `This request was rate limited: ${why}.`
  if (verdict === 'error') return `This request failed: ${why}.`
  if (verdict === 'approval_required' || verdict === 'pending') return `This request was sent to review: ${why}.`
  return `This request was refused: ${why}.`
}

const limitKinds: Readonly<Record<string, string>> = {
  max_budget: 'the budget of its token',
  max_requests: 'the number of requests of its token',
  budget: 'the budget',
  consumer_group: 'the consumer group',
  access_policy: 'the access policy',
  mcp_server: 'the MCP server or the tool',
  rate_limit: 'the limit of its token',
}

const isRate = (kind: string) =>
  kind === 'consumer_group' || kind === 'access_policy' || kind === 'mcp_server' || kind === 'rate_limit'

/** Which limit refused: `the budget “growth” had $0.12 of $500.00 left until 1 Dec 2026`. */
function limitSentence(event: Event): string | null {
  const limit = event.details?.limit
  if (!isObject(limit) || typeof limit.kind !== 'string') return null
  const kind = limitKinds[limit.kind] ?? 'a limit'
  const name = typeof limit.name === 'string' ? `${kind} “${limit.name}”` : kind
  const amount = (value: unknown) =>
    typeof value !== 'number' ? null : limit.unit === 'usd' ? money(value) : `${value} ${String(limit.unit)}`
  const [left, most] = [amount(limit.left), amount(limit.limit)]
  if (isRate(limit.kind)) return `${name} has used ${most === null ? 'all' : `its ${most}`} of this minute`
  const until = typeof limit.resets_at === 'string' ? ` until ${fullTime(limit.resets_at)}` : ''
  return `${name} had ${left ?? 'too little'}${most === null ? '' : ` of ${most}`} left${until}`
}

const because = (reason: string): string => gatewayReasons[reason] ?? `the reason is ${reason}`

/** A reason code in words: the gateway's own as a clause, a policy's as what it found. */
export function reasonWords(reason: string): string {
  const own = gatewayReasons[reason]
  if (own !== undefined) return own
  return reason.startsWith('policy.') ? `a policy found ${humanize(reason.slice(7))}` : humanize(reason)
}

const stages: Readonly<Record<string, string>> = {
  pre_request: 'in the request',
  post_request: 'in the provider’s answer',
  pre_response: 'in the answer',
}

function policySentence({ kind, stage, reason_code, targets }: PolicyResult, name: string | null): string {
  const where = stages[stage] ?? stage
  const policy = name === null ? `a policy of the kind ${kind}` : `the policy “${name}”`
  const found = targets.length === 0 ? `applies ${where}` : `matched ${where} (${targets.join('; ')})`
  return `${policy} ${found}, ${reason_code}`
}

/** What an event is about, in few words, for lists. */
export function eventTitle(event: Event): string {
  if (event.event_type === 'gateway.request.outcome') return detail(event, 'model') ?? 'No model'
  const name = detail(event, 'name') ?? detail(event, 'kind')
  return name === null ? humanize(event.event_type) : `${humanize(event.event_type)}: ${name}`
}
