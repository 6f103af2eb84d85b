/**
 * Runs one request of a caller through its stages and answers it: as JSON, or as a stream where something is said before
 * the result or the caller takes nothing else.
 *
 * What becomes of an answer whose connection breaks depends on the version. Before 2026-07-28 a stream goes on, because
 * the caller may come back for it and cancels by a notification (Streamable HTTP, Sending Messages); JSON cannot be come
 * back for, and is cut. From 2026-07-28 on, leaving is how a caller cancels.
 */
import { Failure } from '../../failure.ts'
import { answering } from '../../languages/mcp/dialect.ts'
import { isRpcId, type RpcId } from '../../lib/json/json-rpc.ts'
import { isJson } from '../../mcp/protocol.ts'
import type { RpcRequest } from '../../mcp/surface/json-rpc.ts'
import type { RunningCall } from '../../mcp/surface/running-call.ts'
import type { McpSession } from '../../mcp/surface/session.ts'
import type { BodyMemory } from '../admission/memory-budget.ts'
import { cancelForDisconnect } from '../client-disconnect.ts'
import type { Gateway } from '../context.ts'
import { type Connection, cutExchange, type Exchange, required } from '../exchange.ts'
import { govern } from '../govern.ts'
import { restoreIdleTimeout } from '../idle-timeout.ts'
import type { Stage } from '../pipeline.ts'
import { eventStream, sessionHeader } from './http.ts'
import type { McpRequest } from './mcp-request.ts'

export const mcpPath = '/mcp'

export interface Arrival {
  readonly request: Request
  /** The memory of the message's body until it is answered, or until the answer has become a stream. */
  readonly memory: BodyMemory
  readonly connection: Connection | null
  readonly requestId: string
  /** Another worker has passed it on. */
  readonly isForwarded: boolean
}

/** A request that passed authentication, with its exchange. */
export interface Arrived extends Arrival {
  readonly entered: Exchange
}

export const mcpRequest = (
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
  state: null,
  sent: false,
  requestBytes: 0,
  resultBytes: null,
  toolFailed: false,
  errorCode: null,
  calling: null,
  changes: null,
})

export const run = (
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

/** Runs a request that its session has begun, and answers it. */
export async function answerCall(
  gateway: Gateway,
  arrived: Arrived,
  message: RpcRequest,
  { session, call, stages }: { session: McpSession; call: RunningCall; stages: readonly Stage[] },
): Promise<Response> {
  const ended = run(gateway, arrived, mcpRequest(message, session, call), [watch, ...stages]).finally(() => {
    call.onCancel = null
  })
  const first = await Promise.race([ended, call.streaming])
  if (first instanceof Response) {
    session.end(call)
    // Cancellation: a cancelled request is not answered.
    if (call.cancelled) return eventStream(null, session)
    for (const [name, value] of Object.entries(sessionHeader(session))) first.headers.set(name, value)
    return first
  }
  // The last message leaves after the exchange has ended and before its session may end.
  gateway.running.waitFor(finishStream(ended, call, session, arrived))
  return eventStream(first.attach(), session, { 'x-service-verdict': 'ALLOW' })
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
    if (call.stream === null || exchange.mcp?.session?.modern === true) cancelForDisconnect(exchange, gateway)
  }
  if (signal.aborted) left()
  else signal.addEventListener('abort', left, { once: true })
}

export function progressTokenOf({ params: { _meta: meta } }: RpcRequest): RpcId | null {
  const token = isJson(meta) ? meta.progressToken : null
  return isRpcId(token) ? token : null
}
