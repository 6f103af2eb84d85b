/**
 * Runs one governed exchange from its start to its answer, for an HTTP request or a WebSocket frame. A frame brings its
 * body; everything else comes from the request of the handshake.
 */

import { Failure } from '../failure.ts'
import { isObject, textOf } from '../languages/reading/json-value.ts'
import type { TraceCarrier } from '../telemetry/tracer.ts'
import { checkLive } from './admission/authenticate.ts'
import { closeAfterAnswer } from './connection-close.ts'
import type { Gateway } from './context.ts'
import { answerFailure, failureResponse } from './error-response.ts'
import { beginExchange, type Exchange, type ExchangeStart } from './exchange.ts'
import type { Stage } from './pipeline.ts'

/** What all requests of one route share. */
export interface GovernedRoute extends Pick<ExchangeStart, 'route' | 'family' | 'dialect'> {
  readonly stages: Iterable<Stage>
}

export type Arrival = Pick<ExchangeStart, 'request' | 'connection' | 'requestId' | 'body' | 'mcp'>

/** Runs one request through its stages. Whatever a stage throws is answered and recorded; nothing escapes. */
export async function govern(
  gateway: Gateway,
  { route, family, dialect, stages }: GovernedRoute,
  arrival: Arrival,
): Promise<Response> {
  // Before its first bootstrap a gateway has no identity, and the control plane would refuse its events.
  if (gateway.worker.status.gatewayId === '') {
    return failureResponse(dialect, new Failure('not_ready'), arrival.requestId, 'error')
  }
  const exchange = beginExchange({ ...arrival, route, family, dialect }, gateway)
  exchange.trace = gateway.tracer.begin(traceCarrierOf(arrival))
  gateway.running.add(exchange)
  try {
    for (const stage of stages) {
      const pending = stage(exchange, gateway)
      if (pending === undefined) continue
      await pending
      if (exchange.answer === null) checkLive(exchange, gateway)
    }
    const answer = madeAnswer(exchange)
    return gateway.draining ? await closeAfterAnswer(arrival.request, answer) : answer
  } catch (thrown) {
    const refusal = await answerFailure(exchange, gateway, thrown)
    return gateway.draining ? await closeAfterAnswer(arrival.request, refusal) : refusal
  } finally {
    if (!exchange.streaming) gateway.running.remove(exchange)
  }
}

/** A trace in the MCP message itself takes precedence over the trace headers of the HTTP request. */
function traceCarrierOf({ request, mcp }: Arrival): TraceCarrier {
  const meta = mcp?.params._meta
  if (!isObject(meta) || typeof meta.traceparent !== 'string') return request.headers
  return { get: (name) => textOf(meta[name]) }
}

function madeAnswer({ answer, route }: Exchange): Response {
  if (answer !== null) return answer
  throw new Failure('internal', { cause: new Error(`The stages of ${route} returned no answer`) })
}
