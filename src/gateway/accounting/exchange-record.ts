/**
 * Writes the record of an exchange: exactly one `gateway.request.outcome`, with an attempt for each call and the
 * decisions of policies inside (events/log/record.ts). Only `finishExchange` writes it, and only its first call does.
 * Every path that can end an exchange calls it; later calls get the promise of the first.
 */
import { type Attribution, type Event, noAttribution } from '../../events/event.ts'
import type { InnerEvent, LogRecord } from '../../events/log/record.ts'
import type { JsonOf } from '../../fleet/protocol/worker.ts'
import { isFree } from '../../languages/dialect.ts'
import { timestamp } from '../../lib/clock.ts'
import { wellFormedJson } from '../../lib/json/well-formed-json.ts'
import { fromNano } from '../../lib/money.ts'
import { everyStage } from '../../policies/kinds/kind.ts'
import type { RecordedUse } from '../../usage/rate/rate.ts'
import { bookGrant, bookInterruptedGrant } from '../admission/review-grant.ts'
import { keepAnswer } from '../cache/keep-answer.ts'
import type { Gateway } from '../context.ts'
import { type Attempt, type Exchange, type Outcome, type ReasonCode, requestedModel } from '../exchange.ts'
import { mcpResult, mcpTarget } from '../mcp/recorded-request.ts'
import { decisionEvents } from '../policy/decisions.ts'
import { promptHashOf } from '../policy/request-digest.ts'
import { capturePrompt } from './prompt-capture.ts'
import { recordedOrNull, recordedResults, recordedText } from './recorded-text.ts'
import { maskSecrets, maskSecretsOrNull, overlongText } from './redaction.ts'
import { bookLimits, bookRates, callSpend, costAttribution, reservedSpend, type Spent, spentOf } from './settlement.ts'
import { traceExchange } from './spans.ts'

/** Writes the record of the exchange. Resolves when it is committed; rejects when the journal cannot take it. */
export function finishExchange(exchange: Exchange, gateway: Gateway, outcome: Outcome): Promise<void> {
  if (exchange.outcomeCommitted !== null) return exchange.outcomeCommitted
  // A policy's decision on the answer is not a failure of the call that brought it.
  endAttempt(exchange, gateway, outcome.verdict === 'error' ? outcome.reason : 'ok')
  exchange.call.silentSince = null
  if (exchange.cache !== null) keepAnswer(exchange, gateway, outcome)
  exchange.promptRedacted ??= capturePrompt(exchange, gateway)
  // Some policies decide while the answer streams, and others, also of earlier stages, at its end.
  if (exchange.policyResults.length > 1) {
    exchange.policyResults.sort((one, other) => everyStage.indexOf(one.stage) - everyStage.indexOf(other.stage))
  }
  const end = recordEnd(exchange, gateway, outcome)
  const uses = bookEnd(exchange, gateway, outcome, end)
  const innerEvents = addInnerEvents(exchange, gateway, end)
  const record = recordJson(exchange, gateway, end)
  const { journal } = gateway.worker
  exchange.outcomeCommitted = exchange.opened
    ? journal.close(exchange.id, record, innerEvents, uses)
    : journal.refuse(JSON.parse(record))
  const cost = end.members.event_cost_attribution
  if (exchange.shadowed === null) gateway.meter.finished(exchange, outcome, gateway.clock.monotonic(), cost)
  else gateway.meter.shadowed(exchange.opened && outcome.verdict !== 'error' ? 'answered' : 'failed', cost)
  traceExchange(exchange, gateway, outcome, cost)
  if (exchange.shadow !== null) exchange.shadow.ended(outcome, cost)
  return exchange.outcomeCommitted
}

/**
 * Books what was used on each limit, in the tick in which the record is written. An exchange that was never opened
 * releases its reservations. Returns the corrections of limits a minute.
 */
function bookEnd(exchange: Exchange, gateway: Gateway, outcome: Outcome, end: RecordEnd): readonly RecordedUse[] {
  const spent = spentOf(exchange, gateway, outcome.reason)
  if (spent !== null) end.members.event_cost_attribution = costAttribution(exchange, spent)
  if (spent?.saved !== undefined) end.details.cache_saved = fromNano(spent.saved)
  bookLimits(exchange, end, spent)
  bookGrant(exchange, end.members)
  return bookRates(exchange, spent)
}

/** Adds an attempt for each call, and the decisions of policies. Returns how many there are. */
function addInnerEvents(exchange: Exchange, gateway: Gateway, { members }: RecordEnd): number {
  // A shadow is one event: nothing that it decided or called is acted on.
  if (exchange.shadowed !== null) return 0
  const { attempts } = exchange
  const decisions = decisionEvents(exchange, gateway)
  if (attempts.length > 0) {
    const { startedMonotonic } = exchange
    members.attempts = attempts.map((attempt, index) => attemptEvent(attempt, index, startedMonotonic))
  }
  if (decisions.length > 0) members.decisions = decisions
  return attempts.length + decisions.length
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
  attempt.target?.end(attempt, attempt.startedMonotonic + attempt.latencyMs, clock)
}

/**
 * The JSON of the outcome that recovery writes when the process was killed before it wrote one. The whole reservation
 * counts as spent.
 */
export function interruptedRecord(exchange: Exchange, gateway: Gateway): JsonOf<Event> {
  const end = recordEnd(exchange, gateway, { verdict: 'error', reason: 'gateway.interrupted', status: null })
  const { details, members } = end
  details.dispatched = true
  const spent = exchange.mcp === null ? interruptedSpend(exchange, gateway) : callSpend(exchange.mcp)
  if (spent !== null) members.event_cost_attribution = costAttribution(exchange, spent)
  if (exchange.reservation !== null) members.settlements = [...exchange.reservation.held]
  bookInterruptedGrant(exchange, members)
  return recordJson(exchange, gateway, end)
}

const interruptedSpend = (exchange: Exchange, gateway: Gateway): Spent | null =>
  isFree(exchange.dialect) ? null : reservedSpend(exchange, gateway)

/** The record of an exchange as JSON: what is known before dispatch, which is written once, and its end. */
function recordJson(exchange: Exchange, gateway: Gateway, { details, members }: RecordEnd): JsonOf<LogRecord> {
  exchange.recordStart ??= recordStart(exchange, gateway)
  return `${exchange.recordStart},${inside(details)}},${inside(members)}}`
}

/** The members of an object as JSON, without its braces. */
const inside = (object: object): string => wellFormedJson(object).slice(1, -1)

/** The members of a record that do not change after dispatch, as JSON that ends within `details`. */
function recordStart(exchange: Exchange, gateway: Gateway): string {
  const { worker, settings } = gateway
  const { facts, trace, mcp } = exchange
  // The digest was not needed before if nothing was dispatched. The body of an unauthenticated caller is not read.
  if (exchange.body !== null && exchange.token !== null) promptHashOf(exchange, gateway)
  const metadata = trustedMetadata(exchange)
  const start: Omit<Event, 'timestamp' | 'verdict' | 'reason_code'> = {
    event_id: exchange.outcomeEventId,
    event_type: exchange.shadowed === null ? 'gateway.request.outcome' : 'gateway.shadow.outcome',
    request_id: exchange.requestId,
    config_version: worker.view.version,
    config_id: worker.view.head?.nonce,
    environment: settings.environment,
    event_attribution: attribution(exchange, worker.status.gatewayId),
    exchange_id: exchange.id,
  }
  if (trace !== null) start.trace_id = trace.traceId
  if (exchange.promptHash !== null) start.prompt_hash = exchange.promptHash
  if (metadata !== null) start.metadata = metadata
  start.details = {
    route: exchange.route,
    ...(mcp === null ? { model: maskSecretsOrNull(requestedModel(exchange)) } : mcpTarget(exchange, mcp)),
    stream: facts?.stream ?? false,
  }
  if (exchange.calledTools !== null)
    start.details.called_tools = exchange.calledTools.map((name) => recordedText(exchange, name))
  return wellFormedJson(start).slice(0, -2)
}

/** The members of a record that its end decides; `details` adds to those of its start. */
export interface RecordEnd {
  readonly details: NonNullable<LogRecord['details']>
  readonly members: Pick<LogRecord, 'timestamp' | 'verdict' | 'reason_code'> & Partial<LogRecord>
}

function recordEnd(exchange: Exchange, gateway: Gateway, { verdict, reason, status, limit }: Outcome): RecordEnd {
  const { model, policyResults, notes, mcp, maxOutputTokens } = exchange
  const details: RecordEnd['details'] = {
    provider: model?.provider.name ?? null,
    status,
    latency_ms: Math.round(gateway.clock.monotonic() - exchange.startedMonotonic),
    first_token_ms: exchange.firstTokenMs,
    attempts: exchange.attempts.length,
  }
  if (policyResults.length > 0) details.policy_results = recordedResults(exchange, policyResults)
  if (notes.length > 0) details.notes = notes
  if (mcp !== null) Object.assign(details, mcpResult(mcp))
  if (exchange.opened) details.dispatched = true
  if (exchange.cache !== null) details.cache = exchange.cache.result
  if (exchange.shadowed !== null) {
    details.answer_characters = exchange.relayedCharacters
    details.compared = exchange.shadowed
  }
  if (exchange.stored?.made) details.made = exchange.stored.made
  if (exchange.stored?.batch?.made) details.batch = exchange.stored.batch.made
  if (maxOutputTokens !== null) details.max_output_tokens = maxOutputTokens
  if (limit != null) details.limit = limit
  const members: RecordEnd['members'] = { timestamp: timestamp(gateway.clock.now()), verdict, reason_code: reason }
  if (exchange.promptRedacted !== null) members.prompt_redacted = exchange.promptRedacted
  return { details, members }
}

/**
 * The caller's own metadata, if its token may send it (handbook/tokens.md), in the amount that providers accept, and
 * claims of its JWT, which a member of the same name does not replace.
 */
function trustedMetadata(exchange: Exchange): Record<string, string> | null {
  const { token, parsed, workload } = exchange
  const given = token?.metadataTrust === 'caller' ? parsed?.metadata : null
  const claims = workload?.metadata ?? null
  if (typeof given !== 'object' || given === null) return claims === null ? null : recordedMetadata(exchange, claims)
  return recordedMetadata(exchange, { ...claims, ...given, ...claims })
}

function recordedMetadata(exchange: Exchange, given: object): Record<string, string> | null {
  // Masks before it cuts, so that no part of a secret remains at the cut.
  const recorded = (text: string, length: number) =>
    text.length > 2 * length ? overlongText : recordedText(exchange, text).slice(0, length).toWellFormed()
  const texts = Object.entries(given).filter((entry): entry is [string, string] => typeof entry[1] === 'string')
  if (texts.length === 0) return null
  return Object.fromEntries(texts.slice(0, 16).map(([name, text]) => [recorded(name, 64), recorded(text, 512)]))
}

function attemptEvent(attempt: Attempt, index: number, receivedMonotonic: number): InnerEvent {
  const event = eventOf(attempt, index, receivedMonotonic)
  if ((attempt.target?.keyCount ?? 1) > 1) event.details = { ...event.details, key: (attempt.key ?? 0) + 1 }
  return event
}

const eventOf = (attempt: Attempt, index: number, receivedMonotonic: number): InnerEvent => ({
  event_id: attempt.eventId,
  verdict: attempt.reason === 'ok' ? 'allow' : 'error',
  reason_code: attempt.reason,
  details: {
    provider: attempt.provider,
    model: maskSecrets(attempt.model),
    attempt: index + 1,
    status: attempt.status,
    start_ms: Math.round(attempt.startedMonotonic - receivedMonotonic),
    latency_ms: attempt.latencyMs,
    first_byte_ms: attempt.firstByteMs,
  },
})

function attribution(exchange: Exchange, gatewayId: string): Attribution {
  const { token, sessionId, workload, client, attributed } = exchange
  if (token === null) return { ...noAttribution, gateway_id: gatewayId }
  const known: Attribution = {
    token_id: token.id,
    team_id: token.eventTeamId,
    user_id: token.userId,
    gateway_id: gatewayId,
    oauth_client_id: token.delegation?.clientId ?? null,
    session_id: recordedOrNull(exchange, sessionId),
    key_class: token.delegation === undefined ? token.keyClass : null,
  }
  if (workload !== null) {
    known.workload_identity_id = workload.identity.id
    known.workload_subject = recordedText(exchange, workload.subject).slice(0, 512)
  }
  if (client !== null) known.client = client
  if (attributed !== null) {
    known.dimensions = Object.fromEntries(
      Object.entries(attributed).map(([name, value]) => [name, recordedText(exchange, value).toWellFormed()]),
    )
  }
  return known
}
