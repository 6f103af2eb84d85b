/** What an event says, in words: why a request was refused, who asked, what a change was. */

import { knownReason, reasonWords } from '../../../../../reason-words.ts'
import type { Event } from '../../../api/routes.ts'
import { eventWords } from '../../../event-words.ts'
import { fullTime, money, number } from '../../../formats.ts'
import { findingWords } from '../../finding-words.ts'
import { detail, type PolicyResult, policyResults, type RefusedLimit, refusedLimit } from './event-details.ts'

/** What a record is called, by its id. */
type NameOf = (id: string) => string | null

/** The first line of an exchange's story. */
export function verdictSummary(event: Event, nameOf: NameOf): string {
  const { verdict, reason_code: reason } = event
  const decided = policyResults(event).findLast((result) => result.verdict === verdict && result.mode === 'enforce')
  const why =
    decided === undefined
      ? (limitSentence(event, nameOf) ?? reasonWords(reason))
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
  rate_limit: 'its token',
}

const isRate = (kind: string) =>
  kind === 'consumer_group' || kind === 'access_policy' || kind === 'mcp_server' || kind === 'rate_limit'

/** ` of the team “Checkout”`: whose limit it is, where that is not its token's. */
function ownerWords({ kind, id, scope }: RefusedLimit, event: Event, nameOf: NameOf): string {
  const named = (what: string, of: string | null) => {
    const name = of === null ? null : nameOf(of)
    return name === null ? ` of a ${what}` : ` of the ${what} “${name}”`
  }
  if (scope === null) {
    const isOfAnother = kind.startsWith('max_') && id !== event.event_attribution.token_id
    return isOfAnother && nameOf(id) !== null ? `, counted for “${nameOf(id)}”,` : ''
  }
  if (scope.kind === 'team') return named('team', scope.id)
  if (scope.kind === 'user') return named('person', scope.id)
  if (scope.kind === 'organization') return ' of the organization'
  return scope.kind === 'mcp_server' ? ' of the MCP server or the tool' : ''
}

/** Which limit refused: `the budget “growth” of the team “Blue” is used up: $500.00 of $500.00 used, resets 1 Dec 2026`. */
function limitSentence(event: Event, nameOf: NameOf): string | null {
  const limit = refusedLimit(event)
  if (limit === null) return null
  const kind = limitKinds[limit.kind] ?? 'a limit'
  const name = `${limit.name === null ? kind : `${kind} “${limit.name}”`}${ownerWords(limit, event, nameOf)}`
  const most = limit.limit === null ? null : limitAmount(limit.limit, limit.unit)
  if (isRate(limit.kind)) return `${name} has used ${most === null ? 'its rate' : `its ${most}`} of this minute`
  const state = limit.left === 0 ? 'is used up' : 'has too little left'
  const used = limit.used === null || most === null ? '' : `: ${limitAmount(limit.used, limit.unit)} of ${most} used`
  return `${name} ${state}${used}${limit.resets_at === null ? '' : `, resets ${fullTime(limit.resets_at)}`}`
}

export const limitAmount = (value: number, unit: string): string =>
  unit === 'usd' ? money(value) : `${number(value)} ${unit}`

const stages: Readonly<Record<string, string>> = {
  pre_request: 'in the request',
  post_request: 'in the provider’s answer',
  pre_response: 'in the answer',
}

function policySentence({ kind, stage, reason_code, targets }: PolicyResult, name: string | null): string {
  const policy = name === null ? `a policy of the kind ${kind}` : `the policy “${name}”`
  const places = targets.length === 0 ? '' : ` (${findingWords(targets)})`
  const why = knownReason(reason_code) ?? `its reason is “${reason_code}”`
  return `${policy} matched ${stages[stage] ?? stage}${places}: ${why}`
}

/** What an event is about, in few words, for lists. */
export function eventTitle(event: Event): string {
  if (event.event_type === 'gateway.request.outcome') return detail(event, 'model') ?? 'No model'
  if (event.event_type === 'gateway.provider.attempt')
    return targetName(detail(event, 'provider'), detail(event, 'model'))
  const name = detail(event, 'name') ?? detail(event, 'kind')
  return name === null ? eventWords(event.event_type) : `${eventWords(event.event_type)}: ${name}`
}

/** `openai/gpt-5`; a model whose name begins with its provider is not given it twice. */
const targetName = (provider: string | null, model: string | null): string =>
  provider !== null && model?.startsWith(`${provider}/`) === true
    ? model
    : [provider, model].filter((part) => part !== null).join('/')
