/**
 * `/mcp`, Streamable HTTP of MCP 2026-07-28 (`modern/`), 2025-11-25 and 2025-06-18 (gateway/README.md):
 *
 *   POST    one JSON-RPC message. A request is answered as JSON, or as SSE where something is said before its result or
 *           the caller takes nothing else; anything else is 202.
 *   GET     what is said beside answers, as SSE; with `Last-Event-ID` a stream that was broken off, whichever it was.
 *   DELETE  ends the session.
 *
 * GET, DELETE and sessions are of the older versions. Origin first (a page of another site must not reach it, whatever
 * it shows; one that may is let read), then the token, then the session. A session belongs to the owner that
 * `session-owner.ts` names. Another worker may serve it (`other-worker.ts`), and any worker can (`caller-session.ts`).
 * HTTP reports what is wrong with origin, credential, headers and session, and why a GET or DELETE is refused;
 * everything else is a JSON-RPC error in a 200. Each request runs through `gateway/pipeline.ts` like one over HTTP, and
 * its answer leaves here in the form that its caller reads.
 *
 * Longer than most: it is the one place that knows the order of these checks.
 */

import { asFailure, Failure } from '../../failure.ts'
import { answering, errorStatus, mcp as mcpDialect, withoutRequest } from '../../languages/mcp/dialect.ts'
import type { RpcId } from '../../lib/json/json-rpc.ts'
import { McpError } from '../../mcp/mcp-error.ts'
import { protocolVersions } from '../../mcp/protocol.ts'
import type { RpcRequest } from '../../mcp/surface/json-rpc.ts'
import type { AnswerForm } from '../../mcp/surface/running-call.ts'
import type { McpSession } from '../../mcp/surface/session.ts'
import { finishExchange } from '../accounting/exchange-record.ts'
import { authenticate } from '../admission/authenticate.ts'
import { admitToken } from '../admission/authorize.ts'
import { closeAfterAnswer } from '../connection-close.ts'
import type { Gateway } from '../context.ts'
import { answerFailure, failureResponse } from '../error-response.ts'
import { beginExchange, type Connection, type Exchange } from '../exchange.ts'
import { liftIdleTimeout, restoreIdleTimeout } from '../idle-timeout.ts'
import { mcpCallStages, mcpDiscoveryStages } from '../pipeline.ts'
import { type Arrival, type Arrived, answerCall, mcpPath, mcpRequest, progressTokenOf, run } from './answer-call.ts'
import { isRouted } from './call.ts'
import { findSession } from './caller-session.ts'
import { isDiscovery } from './discovery.ts'
import { sessionStatus } from './governor.ts'
import {
  accepts,
  addCorsHeaders,
  answerForm,
  checkMethod,
  checkOrigin,
  eventStream,
  HttpRefusal,
  isEventStream,
  methodUnknown,
  noSuchSession,
  pingAnswer,
  preflight,
  receiveMessage,
  refusalAnswer,
  refusalOutcome,
  requestIdOf,
} from './http.ts'
import { isModernHeader, readModernRequest } from './modern/request.ts'
import { answerModern } from './modern/surface.ts'
import { forwardToOwner } from './other-worker.ts'

export interface McpSurface {
  /** `isForwarded`: another worker has passed the request on. */
  fetch(request: Request, connection: Connection | null, requestId: string, isForwarded?: boolean): Promise<Response>
  /** Ends the sessions of these tokens; `gateway/in-flight.ts` cuts their running exchanges. */
  endOf(tokenHashes: readonly string[]): void
  close(): void
}

const sweepMilliseconds = 15_000
/** Accepted protocol version headers; without the header the version is 2025-03-26 (Protocol Version Header). */
const headerVersions: ReadonlySet<string> = new Set([...protocolVersions, '2025-03-26'])

export function createMcpSurface(gateway: Gateway): McpSurface {
  const { sessions, servers } = gateway.mcp
  const stopWatching = servers.onChange(() => sessions.recordsChanged())
  let sweeping: ReturnType<typeof setInterval> | null = null
  const sweep = () => {
    sessions.sweep(gateway.clock.monotonic(), (session) => sessionStatus(session, gateway))
    if (sessions.size === 0 && sweeping !== null) {
      clearInterval(sweeping)
      sweeping = null
    }
  }
  return {
    async fetch(request, connection, requestId, isForwarded = false) {
      try {
        checkOrigin(request, gateway)
      } catch (thrown) {
        return named(refusalAnswer(thrown, requestId), requestId)
      }
      const memory = gateway.memory.forBody()
      const arrival = { request, connection, requestId, memory, isForwarded }
      const answering = answerOrRefuse(gateway, arrival).finally(() => memory.release())
      // A drain waits for a POST from its body on. A listening stream ends with its session.
      if (request.method === 'POST') gateway.running.waitFor(answering)
      const answer = await answering
      if (!isEventStream(answer)) restoreIdleTimeout(arrival)
      if (sessions.size > 0) sweeping ??= startSweeping(sweep)
      const sent = gateway.draining ? await closeAfterAnswer(request, answer) : answer
      return named(addCorsHeaders(request, sent), requestId)
    },
    endOf: (tokenHashes) => sessions.endOf(tokenHashes),
    close() {
      stopWatching()
      if (sweeping !== null) clearInterval(sweeping)
      sessions.close()
    },
  }
}

/** Every answer carries the request id (handbook/reference/http.md). */
function named(answer: Response, requestId: string): Response {
  answer.headers.set('x-request-id', requestId)
  return answer
}

async function answerOrRefuse(gateway: Gateway, arrival: Arrival): Promise<Response> {
  try {
    const ahead = preflight(arrival.request)
    if (ahead !== null) return ahead
    checkMethod(arrival.request)
    const entered = enter(gateway, arrival)
    return await (entered instanceof Promise ? entered : answerEntered(gateway, arrival, entered))
  } catch (thrown) {
    return refusalAnswer(thrown, arrival.requestId)
  }
}

/** The refusal of a known caller is recorded, as on other routes. A running request is recorded by its own exchange. */
async function answerEntered(gateway: Gateway, arrival: Arrival, entered: Exchange): Promise<Response> {
  try {
    const here = (request: Request) => answer(gateway, { ...arrival, request, entered })
    return await (forwardToOwner(gateway, arrival, here) ?? here(arrival.request))
  } catch (thrown) {
    if (!(thrown instanceof HttpRefusal || thrown instanceof McpError || thrown instanceof Failure)) {
      gateway.log.error({ request_id: arrival.requestId, error: String(thrown) }, 'A request to /mcp failed')
    }
    const refusal = refusalAnswer(thrown, arrival.requestId)
    // A caller that disconnected has its outcome at the worker that was called.
    if (asFailure(thrown).code !== 'client_left')
      await finishExchange(entered, gateway, refusalOutcome(thrown, refusal.status))
    return refusal
  }
}

function startSweeping(sweep: () => void): ReturnType<typeof setInterval> {
  const timer = setInterval(sweep, sweepMilliseconds)
  timer.unref()
  return timer
}

/** Authenticates the caller: an exchange, or the answer that refuses it. */
function enter(gateway: Gateway, arrival: Arrival): Exchange | Promise<Response> {
  const { request, requestId } = arrival
  if (gateway.worker.status.gatewayId === '') {
    return Promise.resolve(failureResponse(mcpDialect, new Failure('not_ready'), requestId, 'error'))
  }
  const route = `${request.method} ${mcpPath}`
  const asked: { id: RpcId | null; method: string; sent: boolean } = { id: null, method: '', sent: false }
  const dialect = request.method === 'POST' ? answering(asked) : withoutRequest
  const exchange = beginExchange({ ...arrival, route, family: 'mcp', dialect }, gateway)
  try {
    authenticate(exchange, gateway)
    admitToken(exchange, gateway)
    return exchange
  } catch (thrown) {
    if (request.method !== 'POST' || errorStatus(asFailure(thrown)) !== 200)
      return answerFailure(exchange, gateway, thrown)
    // The caller matches an answer to its request by the JSON-RPC id.
    return requestIdOf(gateway, arrival).then((id) => {
      asked.id = id
      return answerFailure(exchange, gateway, thrown)
    })
  }
}

function answer(gateway: Gateway, arrived: Arrived): Promise<Response> | Response {
  const { request } = arrived
  if (request.method === 'POST') return answerPost(gateway, arrived)
  if (isModernHeader(request)) throw new HttpRefusal(405, 'Use POST: this version of MCP has no sessions')
  const session = sessionOf(gateway, arrived)
  if (request.method === 'GET') return listen(arrived, session)
  gateway.mcp.sessions.endForGood(session)
  return new Response(null, { status: 200 })
}

/** Session Management: 400 without an id, 404 for an unknown session or one of another owner. */
function sessionOf(gateway: Gateway, { request: { headers }, entered }: Arrived): McpSession {
  const version = headers.get('mcp-protocol-version')
  if (version !== null && !headerVersions.has(version)) {
    throw new HttpRefusal(400, `Unsupported MCP-Protocol-Version: use ${protocolVersions.join(' or ')}`)
  }
  const id = headers.get('mcp-session-id')
  if (id === null) throw new HttpRefusal(400, 'Send the Mcp-Session-Id that initialize was answered with')
  const session = findSession(entered, gateway, id)
  if (session === null) throw noSuchSession()
  return session
}

function listen(arrived: Arrived, session: McpSession): Response {
  const { request } = arrived
  if (!accepts(request.headers.get('accept'), 'text/event-stream')) {
    throw new HttpRefusal(406, 'Accept must list text/event-stream')
  }
  const lastEventId = request.headers.get('last-event-id')
  const stream = lastEventId === null ? session.listen() : session.resume(lastEventId)
  if (stream === null) throw new HttpRefusal(400, 'Events after this Last-Event-ID are no longer stored')
  liftIdleTimeout(arrived)
  return eventStream(stream, session)
}

async function answerPost(gateway: Gateway, arrived: Arrived): Promise<Response> {
  const { request } = arrived
  const form = answerForm(request.headers.get('accept'))
  const message = await receiveMessage(gateway, arrived)
  if (message.kind === 'request') {
    const modern = readModernRequest(request, message)
    if (modern !== null) return await answerModern(gateway, arrived, modern, form)
    return message.method === 'initialize'
      ? await initialize(gateway, arrived, message)
      : await answerRequest(gateway, arrived, message, form)
  }
  // Streamable HTTP of 2026-07-28, Sending Messages: it has no notification that means something.
  if (!isModernHeader(request)) sessionOf(gateway, arrived).receive(message)
  return new Response(null, { status: 202 })
}

async function initialize(gateway: Gateway, arrived: Arrived, message: RpcRequest): Promise<Response> {
  const mcp = mcpRequest(message, null, null)
  const response = await run(gateway, arrived, mcp, mcpDiscoveryStages)
  if (mcp.session !== null) response.headers.set('mcp-session-id', mcp.session.id)
  return response
}

async function answerRequest(
  gateway: Gateway,
  arrived: Arrived,
  message: RpcRequest,
  form: AnswerForm,
): Promise<Response> {
  const session = sessionOf(gateway, arrived)
  if (message.method === 'ping') return pingAnswer(message, session)
  const stages = isDiscovery(message) ? mcpDiscoveryStages : isRouted(message.method) ? mcpCallStages : null
  if (stages === null) return await refuseMethod(gateway, arrived, message, session)
  const call = session.begin(message.id, progressTokenOf(message), form)
  return await answerCall(gateway, arrived, message, { session, call, stages })
}

/** An unknown method reaches no stage; its refusal is recorded like those by HTTP status. */
async function refuseMethod(
  gateway: Gateway,
  { entered }: Arrived,
  message: RpcRequest,
  session: McpSession,
): Promise<Response> {
  entered.sessionId = session.label
  await finishExchange(entered, gateway, { verdict: 'deny', reason: 'mcp.unknown_method', status: 200 })
  return methodUnknown(message, session)
}
