/**
 * `/mcp`, Streamable HTTP of MCP 2025-11-25 and 2025-06-18 (gateway/README.md):
 *
 *   POST    one JSON-RPC message. A request is answered as JSON, or as SSE where something is said before its result or
 *           the caller takes nothing else; anything else is 202.
 *   GET     what is said beside answers, as SSE; with `Last-Event-ID` a stream that was broken off, whichever it was.
 *   DELETE  ends the session.
 *
 * Origin first (a page of another site must not reach it, whatever it shows; one that may is let read), then the token,
 * then the session. A session belongs to the owner that `session-owner.ts` names, and may be another worker's
 * (`other-worker.ts`). HTTP reports what is wrong with origin, credential, headers and session, and why a GET or
 * DELETE is refused; everything else is a JSON-RPC error in a 200. Each request runs through `gateway/pipeline.ts`
 * like one over HTTP, and its answer leaves here in the form that its caller reads.
 *
 * Longer than most: it is the one place that knows the order of these checks.
 *
 * An answer that has become a stream goes on when its connection breaks (Streamable HTTP, Sending Messages): the caller
 * cancels by saying so. One that has not cannot be come back for, and is cut.
 */

import { asFailure, Failure } from '../../failure.ts'
import { answering, errorStatus, mcp as mcpDialect, withoutRequest } from '../../languages/mcp/dialect.ts'
import { isRpcId, type RpcId } from '../../lib/json/json-rpc.ts'
import { McpError } from '../../mcp/mcp-error.ts'
import { isJson, protocolVersions } from '../../mcp/protocol.ts'
import type { RpcRequest } from '../../mcp/surface/json-rpc.ts'
import type { AnswerForm, RunningCall } from '../../mcp/surface/running-call.ts'
import type { McpSession } from '../../mcp/surface/session.ts'
import { finishExchange } from '../accounting/exchange-record.ts'
import { authenticate } from '../admission/authenticate.ts'
import { admitToken } from '../admission/authorize.ts'
import type { BodyMemory } from '../admission/memory-budget.ts'
import { cancelForDisconnect } from '../client-disconnect.ts'
import { closeAfterAnswer } from '../connection-close.ts'
import type { Gateway } from '../context.ts'
import { answerFailure, failureResponse } from '../error-response.ts'
import { beginExchange, type Connection, cutExchange, type Exchange, required } from '../exchange.ts'
import { govern } from '../govern.ts'
import { liftIdleTimeout, restoreIdleTimeout } from '../idle-timeout.ts'
import { mcpCallStages, mcpDiscoveryStages, type Stage } from '../pipeline.ts'
import { isRouted } from './call.ts'
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
import type { McpRequest } from './mcp-request.ts'
import { forwardToOwner } from './other-worker.ts'
import { sessionOwner, sessionToken } from './session-owner.ts'

export const mcpPath = '/mcp'

export interface McpSurface {
  fetch(request: Request, connection: Connection | null, requestId: string): Promise<Response>
  /** Ends the sessions of these tokens; `gateway/in-flight.ts` cuts their running exchanges. */
  endOf(tokenHashes: readonly string[]): void
  close(): void
}

interface Arrival {
  readonly request: Request
  /** The memory of the message's body until it is answered, or until the answer has become a stream. */
  readonly memory: BodyMemory
  readonly connection: Connection | null
  readonly requestId: string
}

/** A request that passed authentication, with its exchange. */
interface Arrived extends Arrival {
  readonly entered: Exchange
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
    async fetch(request, connection, requestId) {
      try {
        checkOrigin(request, gateway)
      } catch (thrown) {
        return named(refusalAnswer(thrown, requestId), requestId)
      }
      const memory = gateway.memory.forBody()
      const arrival = { request, connection, requestId, memory }
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
    return await (forwardToOwner(gateway, arrival) ?? answer(gateway, { ...arrival, entered }))
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
  const session = sessionOf(gateway, arrived)
  if (request.method === 'GET') return listen(arrived, session)
  gateway.mcp.sessions.end(session)
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
  const session = gateway.mcp.sessions.find(id, sessionOwner(entered), gateway.clock.monotonic())
  if (session === null) throw noSuchSession()
  session.token = sessionToken(entered)
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
    return message.method === 'initialize'
      ? await initialize(gateway, arrived, message)
      : await answerRequest(gateway, arrived, message, form)
  }
  sessionOf(gateway, arrived).receive(message)
  return new Response(null, { status: 202 })
}

async function initialize(gateway: Gateway, arrived: Arrived, message: RpcRequest): Promise<Response> {
  const mcp = mcpRequest(message, null, null)
  const response = await run(gateway, arrived, mcp, mcpDiscoveryStages)
  if (mcp.session !== null) response.headers.set('mcp-session-id', mcp.session.id)
  return response
}

const mcpRequest = (
  { id, method, params }: RpcRequest,
  session: McpSession | null,
  call: RunningCall | null,
): McpRequest & { id: RpcId } => ({
  id,
  method,
  params,
  session,
  call,
  server: null,
  name: null,
  sent: false,
  requestBytes: 0,
  resultBytes: null,
  toolFailed: false,
  errorCode: null,
  calling: null,
})

const run = (
  gateway: Gateway,
  { request, connection, requestId }: Arrived,
  mcp: McpRequest & { id: RpcId },
  stages: readonly Stage[],
): Promise<Response> =>
  govern(
    gateway,
    { route: `POST ${mcpPath}`, family: 'mcp', dialect: answering(mcp), stages },
    { request, connection, requestId, mcp },
  )

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
  const ended = run(gateway, arrived, mcpRequest(message, session, call), [watch, ...stages]).finally(() => {
    call.onCancel = null
  })
  const first = await Promise.race([ended, call.streaming])
  if (first instanceof Response) {
    session.end(call)
    // Cancellation: a cancelled request is not answered.
    if (call.cancelled) return eventStream(null, session)
    first.headers.set('mcp-session-id', session.id)
    return first
  }
  // The last message leaves after the exchange has ended and before its session may end.
  gateway.running.waitFor(finishStream(ended, call, session, arrived))
  return eventStream(first.attach(), session, { 'x-service-verdict': 'ALLOW' })
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

/** Sends the answer as the last message of its stream. */
async function finishStream(
  ended: Promise<Response>,
  call: RunningCall,
  session: McpSession,
  arrived: Arrived,
): Promise<void> {
  const text = await (await ended).text()
  if (!call.cancelled) call.stream?.send(text)
  restoreIdleTimeout(arrived)
  session.end(call)
}

/**
 * Ties the exchange to its possible ends: cancellation, the end of the session, or a disconnect before there is a
 * stream to resume.
 */
function watch(exchange: Exchange, gateway: Gateway): void {
  const call = required(required(exchange.mcp).call)
  call.onCancel = () => {
    if (call.cancelled) cutExchange(exchange, 'client.cancelled', new Failure('client_left'))
    else cutExchange(exchange, 'mcp.session_ended', new Failure('mcp.session_ended'))
  }
  if (call.cancelled) call.onCancel()
  const { signal } = exchange.request
  const left = () => {
    if (call.stream === null) cancelForDisconnect(exchange, gateway)
  }
  if (signal.aborted) left()
  else signal.addEventListener('abort', left, { once: true })
}

function progressTokenOf({ params: { _meta: meta } }: RpcRequest): RpcId | null {
  const token = isJson(meta) ? meta.progressToken : null
  return isRpcId(token) ? token : null
}
