/** What an event says, in words: why a request was refused, who asked, what a change was. */

import { knownReason, reasonWords } from '../../../../../reason-words.ts'
import type { Event } from '../../../api/routes.ts'
import { eventWords } from '../../../event-words.ts'
import { fullTime, money } from '../../../formats.ts'
import { isObject } from '../../../json-object.ts'
import { findingWords } from '../../finding-words.ts'
import { detail, type PolicyResult, policyResults } from './event-details.ts'

/** The first line of an exchange's story. */
export function verdictSummary(event: Event, nameOf: (policyId: string) => string | null): string {
  const { verdict, reason_code: reason } = event
  const decided = policyResults(event).findLast((result) => result.verdict === verdict && result.mode === 'enforce')
  const why =
    decided === undefined
      ? (limitSentence(event) ?? reasonWords(reason))
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

const stages: Readonly<Record<string, string>> = {
  pre_request: 'in the request',
  post_request: 'in the provider’s answer',
  pre_response: 'in the answer',
}

function policySentence({ kind, stage, reason_code, targets }: PolicyResult, name: string | null): string {
  const policy = name === null ? `a policy of the kind ${kind}` : `the policy “${name}”`
  const places = targets.length === 0 ? '' : ` (${targets.map((target) => findingWords(target)).join('; ')})`
  const why = knownReason(reason_code) ?? `its reason is “${reason_code}”`
  return `${policy} matched ${stages[stage] ?? stage}${places}: ${why}`
}

/** What an event is about, in few words, for lists. */
export function eventTitle(event: Event): string {
  if (event.event_type === 'gateway.request.outcome') return detail(event, 'model') ?? 'No model'
  if (event.event_type === 'gateway.provider.attempt')
    return [detail(event, 'provider'), detail(event, 'model')].filter((part) => part !== null).join('/')
  const name = detail(event, 'name') ?? detail(event, 'kind')
  return name === null ? eventWords(event.event_type) : `${eventWords(event.event_type)}: ${name}`
}
