/**
 * Writes the record of an exchange: exactly one `gateway.request.outcome`, with an attempt for each call and the
 * decisions of policies inside (events/log/record.ts). Only `finishExchange` writes it, and only its first call does.
 * Every path that can end an exchange calls it; later calls get the promise of the first.
 */
import { type Attribution, type Event, noAttribution, type Verdict } from '../../events/event.ts'
import type { InnerEvent, LogRecord } from '../../events/log/record.ts'
import { isFree } from '../../languages/dialect.ts'
import { timestamp } from '../../lib/clock.ts'
import { everyStage } from '../../policies/kinds/kind.ts'
import type { RecordedUse } from '../../usage/rate/rate.ts'
import { bookGrant, bookInterruptedGrant } from '../admission/review-grant.ts'
import type { Gateway } from '../context.ts'
import { type Attempt, type Exchange, type Outcome, type ReasonCode, requestedModel } from '../exchange.ts'
import { mcpDetails } from '../mcp/recorded-request.ts'
import { decisionEvents } from '../policy/decisions.ts'
import { promptHashOf } from '../policy/request-digest.ts'
import { capturePrompt } from './prompt-capture.ts'
import { recordedOrNull, recordedResults, recordedText } from './recorded-text.ts'
import { maskSecrets, maskSecretsOrNull, overlongText } from './redaction.ts'
import { bookLimits, bookRates, costAttribution, reservedSpend, spentOf } from './settlement.ts'
import { traceExchange } from './spans.ts'

/** Writes the record of the exchange. Resolves when it is committed; rejects when the journal cannot take it. */
export function finishExchange(exchange: Exchange, gateway: Gateway, outcome: Outcome): Promise<void> {
  if (exchange.outcomeCommitted !== null) return exchange.outcomeCommitted
  // A policy's decision on the answer is not a failure of the call that brought it.
  endAttempt(exchange, gateway, outcome.verdict === 'error' ? outcome.reason : 'ok')
  exchange.silentSince = null
  exchange.promptRedacted ??= capturePrompt(exchange, gateway)
  // Some policies decide while the answer streams, and others, also of earlier stages, at its end.
  exchange.policyResults.sort((one, other) => everyStage.indexOf(one.stage) - everyStage.indexOf(other.stage))
  const { record, uses } = bookedOutcome(exchange, gateway, outcome)
  if (exchange.attempts.length > 0) record.attempts = exchange.attempts.map(attemptEvent)
  const decisions = decisionEvents(exchange, gateway)
  if (decisions.length > 0) record.decisions = decisions
  const { journal } = gateway.worker
  exchange.outcomeCommitted = exchange.opened ? journal.close(exchange.id, record, uses) : journal.refuse(record)
  gateway.meter.finished(exchange, outcome, gateway.clock.monotonic(), record.event_cost_attribution)
  traceExchange(exchange, gateway, outcome, record.event_cost_attribution)
  return exchange.outcomeCommitted
}

/**
 * The outcome event with what is booked on each limit, written in the same tick. An exchange that was never opened
 * releases its reservations.
 */
function bookedOutcome(
  exchange: Exchange,
  gateway: Gateway,
  outcome: Outcome,
): { record: LogRecord; uses: readonly RecordedUse[] } {
  const record: LogRecord = outcomeEvent(exchange, gateway, outcome)
  const spent = spentOf(exchange, gateway, outcome.reason)
  if (spent !== null) record.event_cost_attribution = costAttribution(exchange, spent)
  bookLimits(exchange, record, spent)
  bookGrant(exchange, record)
  return { record, uses: bookRates(exchange, spent) }
}

/** Finishes an exchange when nobody can be told that the journal failed. The failure is logged. */
export function finishInBackground(exchange: Exchange, gateway: Gateway, outcome: Outcome): void {
  finishExchange(exchange, gateway, outcome).catch((thrown) => logUnrecordedOutcome(exchange, gateway, thrown))
}

export function logUnrecordedOutcome({ id, requestId }: Exchange, { log }: Gateway, thrown: unknown): void {
  log.error({ request_id: requestId, exchange_id: id, error: String(thrown) }, 'An outcome could not be recorded')
}

/** Ends the running attempt, if there is one. An attempt that already has a reason keeps it. */
export function endAttempt(exchange: Exchange, { clock }: Pick<Gateway, 'clock'>, reason: ReasonCode): void {
  const attempt = exchange.attempts.at(-1)
  if (attempt === undefined || attempt.latencyMs !== null) return
  attempt.latencyMs = Math.round(clock.monotonic() - attempt.startedMonotonic)
  attempt.reason = reason
}

/**
 * The outcome that recovery writes when the process was killed before it wrote one. The whole reservation counts as
 * spent.
 */
export function interruptedEvent(exchange: Exchange, gateway: Gateway): Event {
  const event = outcomeEvent(exchange, gateway, { verdict: 'error', reason: 'gateway.interrupted', status: null })
  if (event.details !== undefined) event.details.dispatched = true
  if (exchange.mcp === null && !isFree(exchange.dialect))
    event.event_cost_attribution = costAttribution(exchange, reservedSpend(exchange, gateway))
  if (exchange.reservation !== null) event.settlements = [...exchange.reservation.held]
  bookInterruptedGrant(exchange, event)
  return event
}

function outcomeEvent(exchange: Exchange, gateway: Gateway, { verdict, reason, status }: Outcome): Event {
  const { facts, model, policyResults, notes, mcp, maxOutputTokens } = exchange
  const event = baseEvent(exchange, gateway, verdict, reason)
  const details: NonNullable<Event['details']> = {
    route: exchange.route,
    model: maskSecretsOrNull(requestedModel(exchange)),
    provider: model?.provider.name ?? null,
    status,
    latency_ms: Math.round(gateway.clock.monotonic() - exchange.startedMonotonic),
    first_token_ms: exchange.firstTokenMs,
    attempts: exchange.attempts.length,
    stream: facts?.stream ?? false,
  }
  if (policyResults.length > 0) details.policy_results = recordedResults(exchange, policyResults)
  if (notes.length > 0) details.notes = notes
  if (mcp !== null) Object.assign(details, mcpDetails(exchange, mcp))
  if (exchange.opened) details.dispatched = true
  if (maxOutputTokens !== null) details.max_output_tokens = maxOutputTokens
  event.details = details
  // The digest was not needed before if nothing was dispatched. The body of an unauthenticated caller is not read.
  if (exchange.body !== null && exchange.token !== null) promptHashOf(exchange, gateway)
  if (exchange.promptHash !== null) event.prompt_hash = exchange.promptHash
  if (exchange.promptRedacted !== null) event.prompt_redacted = exchange.promptRedacted
  const metadata = trustedMetadata(exchange)
  if (metadata !== null) event.metadata = metadata
  return event
}

/** The caller's own metadata, if its token may send it (handbook/tokens.md), in the amount that providers accept. */
function trustedMetadata(exchange: Exchange): Record<string, string> | null {
  const given = exchange.token?.metadataTrust === 'caller' ? exchange.parsed?.metadata : null
  return typeof given === 'object' && given !== null ? recordedMetadata(exchange, given) : null
}

function recordedMetadata(exchange: Exchange, given: object): Record<string, string> | null {
  // Masks before it cuts, so that no part of a secret remains at the cut.
  const recorded = (text: string, length: number) =>
    text.length > 2 * length ? overlongText : recordedText(exchange, text).slice(0, length).toWellFormed()
  const texts = Object.entries(given).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  if (texts.length === 0) return null
  return Object.fromEntries(texts.slice(0, 16).map(([name, text]) => [recorded(name, 64), recorded(text, 512)]))
}

const attemptEvent = (attempt: Attempt, index: number): InnerEvent => ({
  event_id: attempt.eventId,
  verdict: attempt.reason === 'ok' ? 'allow' : 'error',
  reason_code: attempt.reason,
  details: {
    provider: attempt.provider,
    model: maskSecrets(attempt.model),
    attempt: index + 1,
    status: attempt.status,
    latency_ms: attempt.latencyMs,
    first_byte_ms: attempt.firstByteMs,
  },
})

function baseEvent(
  exchange: Exchange,
  { worker, clock, settings }: Gateway,
  verdict: Verdict,
  reason: ReasonCode,
): Event {
  const event: Event = {
    event_id: exchange.outcomeEventId,
    event_type: 'gateway.request.outcome',
    request_id: exchange.requestId,
    timestamp: timestamp(clock.now()),
    verdict,
    reason_code: reason,
    config_version: worker.view.version,
    config_id: worker.view.head?.nonce,
    environment: settings.environment,
    event_attribution: attribution(exchange, worker.status.gatewayId),
    exchange_id: exchange.id,
  }
  if (exchange.trace !== null) event.trace_id = exchange.trace.traceId
  return event
}

function attribution(exchange: Exchange, gatewayId: string): Attribution {
  const { token, sessionId } = exchange
  if (token === null) return { ...noAttribution, gateway_id: gatewayId }
  return {
    token_id: token.id,
    team_id: token.eventTeamId,
    user_id: token.userId,
    gateway_id: gatewayId,
    oauth_client_id: token.delegation?.clientId ?? null,
    session_id: recordedOrNull(exchange, sessionId),
    key_class: token.delegation === undefined ? token.keyClass : null,
  }
}
