/** Makes the spans of a traced exchange: one for the exchange and one for each call to a provider or MCP server. */
import type { CostAttribution } from '../../events/event.ts'
import { attribute, attributes, hostAttributes, operationOf, type Span } from '../../telemetry/span.ts'
import { type TraceHeaders, traceparentOf } from '../../telemetry/trace-context.ts'
import type { ExchangeTrace } from '../../telemetry/tracer.ts'
import type { Gateway } from '../context.ts'
import type { Attempt, Exchange, Outcome } from '../exchange.ts'
import { mcpRequestSpan, mcpServerSpans } from './mcp-spans.ts'
import { recordedOrNull } from './recorded-text.ts'
import { maskSecrets, maskSecretsOrNull } from './redaction.ts'

/**
 * The trace headers for a call: with the span of the call as parent, or the caller's span when the call is not recorded
 * (null). Returns null when the exchange belongs to no trace; an invalid trace header of the caller is not forwarded.
 */
export function traceHeadersOf({ trace }: Pick<Exchange, 'trace'>, spanId: string | null): TraceHeaders | null {
  if (trace === null) return null
  const { traceId, caller, state } = trace
  const traceparent = spanId === null ? caller : traceparentOf(traceId, spanId)
  if (traceparent === null) return null
  return state === null ? { traceparent } : { traceparent, tracestate: state }
}

/** Exports the spans of a finished exchange. Does nothing when the trace is not recorded. */
export function traceExchange(
  exchange: Exchange,
  { tracer, clock }: Pick<Gateway, 'tracer' | 'clock'>,
  outcome: Outcome,
  cost: CostAttribution | undefined,
): void {
  const { trace, mcp } = exchange
  if (trace === null || trace.spanId === null) return
  const own = exchangeSpan(exchange, trace, trace.spanId, outcome, cost)
  own.endedAt = exchange.startedAt + (clock.monotonic() - exchange.startedMonotonic)
  const calls = mcp === null ? attemptSpans(exchange, own) : mcpServerSpans(exchange, mcp, own, outcome)
  tracer.ended([own, ...calls])
}

const attemptSpans = (exchange: Exchange, own: Span): Span[] =>
  exchange.attempts.flatMap((attempt, index) => attemptSpan(exchange, own, attempt, index))

function exchangeSpan(
  exchange: Exchange,
  trace: ExchangeTrace,
  spanId: string,
  outcome: Outcome,
  cost: CostAttribution | undefined,
): Span {
  const { token, mcp } = exchange
  const { verdict, reason, status } = outcome
  const [method = '', route = ''] = exchange.route.split(' ')
  const told = mcp === null ? modelRequestSpan(exchange, outcome, cost) : mcpRequestSpan(exchange, mcp, outcome)
  return {
    name: told.name,
    kind: 'server',
    traceId: trace.traceId,
    spanId,
    parentSpanId: trace.parentSpanId,
    state: trace.state,
    startedAt: exchange.startedAt,
    endedAt: exchange.startedAt,
    attributes: attributes({
      ...told.attributes,
      [attribute.method]: method,
      [attribute.route]: route,
      [attribute.status]: status,
      [attribute.exchangeId]: exchange.id,
      [attribute.requestId]: exchange.requestId,
      [attribute.verdict]: verdict,
      [attribute.reason]: reason,
      [attribute.tokenId]: token?.id,
      [attribute.teamId]: token?.eventTeamId,
    }),
    error: told.error,
  }
}

function modelRequestSpan(
  exchange: Exchange,
  { verdict, reason }: Outcome,
  cost: CostAttribution | undefined,
): Pick<Span, 'name' | 'attributes' | 'error'> {
  const { facts, model } = exchange
  const operation = operationOf(exchange.family)
  const asked = maskSecretsOrNull(facts?.model)
  const error = verdict === 'error' ? reason : null
  return {
    name: asked ? `${operation} ${asked}` : operation,
    attributes: attributes({
      [attribute.operation]: operation,
      [attribute.providerName]: model?.kind.telemetryName,
      [attribute.requestModel]: asked,
      ...requestAttributes(exchange),
      ...answerAttributes(exchange),
      [attribute.conversation]: recordedOrNull(exchange, exchange.sessionId),
      [attribute.inputTokens]: cost?.input_tokens,
      [attribute.outputTokens]: cost?.output_tokens,
      [attribute.cacheReadTokens]: cost?.cached_input_tokens,
      [attribute.cacheWriteTokens]: cost === undefined ? null : exchange.call.usage?.cacheWriteTokens,
      [attribute.estimated]: cost?.estimated,
      [attribute.stream]: facts?.stream,
      [attribute.firstToken]: exchange.firstTokenMs,
      [attribute.error]: error,
    }),
    error,
  }
}

/** The request attributes. A limit is given as it was sent, which may be lower than the caller's. */
function requestAttributes({ facts, parsed, maxOutputTokens }: Exchange): Record<string, number | null> {
  const { temperature } = parsed ?? {}
  return {
    [attribute.maxTokens]: maxOutputTokens ?? (facts?.outputLimit || null),
    [attribute.temperature]: typeof temperature === 'number' ? temperature : null,
  }
}

function answerAttributes({ call: { tracedAnswer } }: Exchange): Record<string, string | string[] | null> {
  if (tracedAnswer === null) return {}
  const { id, model, finishReasons } = tracedAnswer
  return {
    [attribute.responseId]: id,
    [attribute.responseModel]: model,
    [attribute.finishReasons]: finishReasons.length === 0 ? null : finishReasons,
  }
}

function attemptSpan(exchange: Exchange, parent: Span, attempt: Attempt, index: number): Span[] {
  if (attempt.spanId === null) return []
  const failed = attempt.reason === 'ok' ? null : attempt.reason
  const operation = operationOf(exchange.family)
  const model = maskSecrets(attempt.model)
  const path = exchange.paths.find(
    ({ provider, upstreamModel }) => provider.name === attempt.provider && upstreamModel === attempt.model,
  )
  const address = path?.kind.address?.(path.provider) ?? null
  const startedAt = exchange.startedAt + (attempt.startedMonotonic - exchange.startedMonotonic)
  return [
    {
      name: `${operation} ${model}`,
      kind: 'client',
      traceId: parent.traceId,
      spanId: attempt.spanId,
      parentSpanId: parent.spanId,
      state: parent.state,
      startedAt,
      endedAt: startedAt + (attempt.latencyMs ?? 0),
      attributes: attributes({
        [attribute.operation]: operation,
        [attribute.providerName]: path?.kind.telemetryName,
        [attribute.provider]: attempt.provider,
        [attribute.requestModel]: model,
        ...requestAttributes(exchange),
        // Answer attributes belong to the last call.
        ...(index === exchange.attempts.length - 1 && answerAttributes(exchange)),
        [attribute.method]: address === null ? null : 'POST',
        ...hostAttributes(address),
        [attribute.status]: attempt.status,
        [attribute.attempt]: index === 0 ? null : index,
        [attribute.error]: failed,
      }),
      error: failed,
    },
  ]
}
