/** Turns a Failure into an answer in the caller's dialect and records it before its first byte. No other file does. */

import type { Verdict } from '../events/event.ts'
import { asFailure, Failure, type FailureCode, mustNotRetry } from '../failure.ts'
import { challengeOf } from '../identity/challenge.ts'
import type { Dialect } from '../languages/dialect.ts'
import { finishExchange } from './accounting/exchange-record.ts'
import { verdictOf } from './accounting/outcome.ts'
import type { Gateway } from './context.ts'
import type { Exchange } from './exchange.ts'
import { followResponse } from './stored/background.ts'
import { isUnseen } from './stored/stored-state.ts'

const defaultRetrySeconds = 1

/**
 * Answers what a stage threw: an error, or the dialect's form of an escalation. When not even the refusal can be
 * recorded, the answer is 503 `event_outbox_full`.
 */
export async function answerFailure(exchange: Exchange, gateway: Gateway, thrown: unknown): Promise<Response> {
  const failure = exchange.cut?.failure ?? asFailure(thrown)
  if (logged.has(failure.code)) logCause(exchange, gateway, failure)
  const { dialect, requestId } = exchange
  const verdict = verdictOf(failure)
  const { gatewayUrl } = gateway.worker.status
  const answer =
    escalationAnswer(exchange, failure) ?? failureResponse(dialect, failure, requestId, verdict, gatewayUrl)
  try {
    const { status } = answer
    if (failure.verdictan === null && isUnseen(exchange)) await followResponse(exchange, gateway, status)
    else
      await finishExchange(exchange, gateway, {
        ...{ verdict, status, limit: failure.limit },
        reason: reasonOf(exchange, failure),
      })
  } catch (unrecorded) {
    const full = asFailure(unrecorded)
    const answered = full.code === 'internal' ? new Failure('event_outbox_full', { cause: unrecorded }) : full
    if (answered.code !== failure.code) logCause(exchange, gateway, answered)
    return failureResponse(dialect, answered, requestId, 'error')
  }
  return answer
}

/** Faults of the gateway itself, which are logged with their cause. */
const logged: ReadonlySet<string> = new Set<FailureCode>([
  'internal',
  'dependency_unavailable',
  'event_outbox_full',
  'file_descriptors_exhausted',
])

/** Codes of a failed provider call. Whatever else ends an exchange between two attempts is not the call's failure. */
const providerFailures: ReadonlySet<string> = new Set(['provider_primary_path_error', 'upstream_provider_error'])

/** A policy decision or a provider failure is more precise than the code in the answer. */
function reasonOf(exchange: Exchange, failure: Failure): string {
  if (exchange.cut !== null) return exchange.cut.reason
  if (failure.code === 'client_left') return 'client.left'
  if (failure.verdictan !== null) return failure.verdictan.reason_code
  const attempt = exchange.attempts.at(-1)
  const ofProvider = providerFailures.has(failure.code) && attempt !== undefined && attempt.latencyMs !== null
  return ofProvider && attempt.reason !== 'ok' ? attempt.reason : failure.code
}

/**
 * The answer to an escalated request (gateway/README.md, Escalations): 200 in the form of the family, streamed when the
 * request was. Null when this is no escalation, or when the family has no such form and answers 403.
 */
function escalationAnswer({ id, dialect, facts, requestId, client }: Exchange, failure: Failure): Response | null {
  const { verdictan } = failure
  if (verdictan === null || facts === null || verdictOf(failure) !== 'escalate') return null
  const body = dialect.escalation(facts, verdictan, id, client !== null)
  if (body === null) return null
  const headers = answerHeaders(dialect, requestId, 'escalate')
  if (!facts.stream) return new Response(JSON.stringify(body), { headers })
  const reader = dialect.reader({ model: facts.model, exchangeId: id, usageAdded: false, textOnly: client !== null })
  headers['content-type'] = 'text/event-stream; charset=utf-8'
  headers['cache-control'] = 'no-cache'
  return new Response(reader.escalationFrames(verdictan, false), { headers })
}

function logCause(exchange: Exchange, { log }: Gateway, failure: Failure): void {
  const { cause: thrown } = failure
  const cause = thrown instanceof Error ? (thrown.stack ?? thrown.message) : thrown && String(thrown)
  log.error({ request_id: exchange.requestId, exchange_id: exchange.id, code: failure.code, cause }, failure.message)
}

/**
 * An error answer of the gateway. `verdict` is null on ungoverned routes. `gatewayUrl` is where a client learns how to
 * get a token; null when no token was required.
 */
export function failureResponse(
  dialect: Pick<Dialect, 'errorBody' | 'errorStatus' | 'family'>,
  failure: Failure,
  requestId: string,
  verdict: Verdict | null,
  gatewayUrl: string | null = null,
): Response {
  const headers = answerHeaders(dialect, requestId, verdict)
  headers['x-service-error-source'] = 'gateway'
  if (mustNotRetry(failure.status, failure.code)) headers['x-should-retry'] = 'false'
  const retryAfter = failure.retryAfter ?? (failure.status === 503 ? defaultRetrySeconds : null)
  if (retryAfter !== null) headers['retry-after'] = String(retryAfter)
  const challenge =
    dialect.family === 'mcp' ? challengeOf(failure, gatewayUrl, '/mcp', 'mcp:invoke') : challengeOf(failure, gatewayUrl)
  if (challenge !== null) headers['www-authenticate'] = challenge
  const status = dialect.errorStatus?.(failure) ?? failure.status
  return new Response(JSON.stringify(dialect.errorBody(failure, requestId)), { status, headers })
}

function answerHeaders(
  { family }: Pick<Dialect, 'family'>,
  requestId: string,
  verdict: Verdict | null,
): Record<string, string> {
  const headers: Record<string, string> = { 'content-type': 'application/json', 'x-request-id': requestId }
  // Clients of this dialect read the id here (handbook/reference/http.md).
  if (family === 'messages') headers['request-id'] = requestId
  if (verdict !== null) headers['x-service-verdict'] = verdict.toUpperCase()
  return headers
}
