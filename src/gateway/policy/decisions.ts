/**
 * Turns policy verdicts into failures for the caller and decisions in the record of the exchange: one for each verdict
 * other than allow (policies/README.md). The decision of an escalation says approval_required and carries what the
 * control plane queues (escalations/README.md); readers see it with the prompt of the outcome.
 */

import type { InnerEvent } from '../../events/log/record.ts'
import { Failure, type FailureCode, waitingWords } from '../../failure.ts'
import type { PolicyResult } from '../../policies/chain.ts'
import type { ResponseView } from '../../policies/conditions/context.ts'
import { everyStage } from '../../policies/kinds/kind.ts'
import { brokenReason, type PolicyEvaluation } from '../../policies/stages/run-stage.ts'
import { captureAnswer, captureArguments } from '../accounting/prompt-capture.ts'
import { recordedResult, recordedText } from '../accounting/recorded-text.ts'
import { maskSecretsOrNull } from '../accounting/redaction.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, requestedModel } from '../exchange.ts'
import type { McpRequest } from '../mcp/mcp-request.ts'
import { recordedName } from '../mcp/recorded-request.ts'
import type { EscalatedCall, EscalationNotice } from './escalation-notice.ts'
import { digestOf } from './request-digest.ts'

const codes = {
  block: 'content_policy_violation',
  deny: 'policy_denied',
  rate_limit: 'policy_rate_limited',
  escalate: 'policy.escalated',
} as const satisfies Record<string, FailureCode>

const isFailing = (verdict: string): verdict is keyof typeof codes => Object.hasOwn(codes, verdict)

/** The failure for a verdict on the request, or on the answer that is given; null when the exchange continues. */
export function failureOf(
  exchange: Exchange,
  gateway: Gateway,
  said: PolicyEvaluation,
  answer: ResponseView | null = null,
): Failure | null {
  const { verdict, reasonCode, message, retryAfter } = said.decision
  if (!isFailing(verdict)) return null
  const escalation =
    verdict === 'escalate' ? { id: queue(exchange, gateway, said, answer), status: 'queued' as const } : undefined
  const decided = { verdict: verdict.toUpperCase(), reason_code: reasonCode }
  const verdictan = escalation === undefined ? decided : { ...decided, escalation }
  const words = message ?? (escalation === undefined ? undefined : waitingWords(verdictan))
  return new Failure(codes[verdict], {
    verdictan,
    ...(words === undefined ? {} : { message: words }),
    ...(retryAfter === undefined ? {} : { retryAfter }),
  })
}

function queue(
  exchange: Exchange,
  gateway: Gateway,
  { policy }: PolicyEvaluation,
  answer: ResponseView | null,
): string {
  exchange.escalation = {
    id: gateway.newId(),
    policyId: policy.id,
    policyVersion: policy.version,
    digest: digestOf(exchange, gateway),
    captures: policy.capturesEscalated,
    calls: escalatedCalls(exchange, answer, policy.capturesEscalated),
    answer: policy.capturesEscalated && answer !== null ? captureAnswer(exchange, answer.slots()) : null,
  }
  return exchange.escalation.id
}

const mostCalls = 8

/** The tools whose call waits. Arguments are beside them where each tool has its own text. */
function escalatedCalls(exchange: Exchange, answer: ResponseView | null, captures: boolean): EscalatedCall[] {
  const { mcp } = exchange
  const names =
    mcp === null ? (answer?.tool_calls ?? []).map((tool) => recordedText(exchange, tool)) : calledBy(exchange, mcp)
  if (names.length === 0) return []
  const slots = mcp === null ? answer?.slots() : exchange.dialect.requestText(exchange.parsed ?? {})
  const texts = (slots ?? []).filter(({ kind }) => kind === 'tool_arguments')
  const captured =
    captures && texts.length === names.length
      ? captureArguments(exchange, texts.slice(0, mostCalls), mcp === null ? everyStage : ['pre_request'])
      : null
  return names.slice(0, mostCalls).map((tool, index) => ({ tool, arguments: captured?.[index] ?? null }))
}

function calledBy(exchange: Exchange, mcp: McpRequest): string[] {
  const name = mcp.method === 'tools/call' ? recordedName(exchange, mcp) : null
  return name === null ? [] : [name]
}

/** The decisions of an exchange. */
export function decisionEvents(exchange: Exchange, { newId }: Pick<Gateway, 'newId'>): InnerEvent[] {
  const events: InnerEvent[] = []
  for (const result of exchange.policyResults) {
    if (isNoted(result)) events.push(decisionEvent(exchange, newId(), result))
  }
  return events
}

function decisionEvent(exchange: Exchange, id: string, result: PolicyResult): InnerEvent {
  const { escalation } = exchange
  const escalated = escalation !== null && result.verdict === 'escalate' && result.policy_id === escalation.policyId
  const asked = result.verdict === 'escalate' && result.mode === 'enforce'
  return {
    event_id: id,
    verdict: asked ? 'approval_required' : result.verdict,
    reason_code: result.reason_code,
    details: {
      ...recordedResult(exchange, result),
      ...(escalated ? { escalation: noticeOf(exchange, escalation) } : {}),
    },
  }
}

/** Recorded results: every verdict but allow, and a broken policy even when it let the request pass. */
const isNoted = ({ verdict, reason_code }: PolicyResult): boolean => verdict !== 'allow' || reason_code === brokenReason

const noticeOf = (exchange: Exchange, { id, policyId, policyVersion, digest, calls, answer }: EscalationNotice) => {
  const { model, mcp, route, family, opened } = exchange
  return {
    id,
    policy_id: policyId,
    policy_version: policyVersion,
    digest,
    route,
    family,
    model: (mcp === null ? null : recordedName(exchange, mcp)) ?? maskSecretsOrNull(requestedModel(exchange)),
    provider: model?.provider.name ?? null,
    sent: opened,
    ...(calls.length > 0 && { calls }),
    ...(answer !== null && { answer }),
  }
}
