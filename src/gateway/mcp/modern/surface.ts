/**
 * Requests of MCP 2026-07-28 (Streamable HTTP): each stands for itself, so any worker answers it. A server with sessions may
 * keep something of its caller, so what goes to one is passed on to the same worker of this host each time, and the
 * retry of a call to the worker that waits for it (`request-state.ts`). Where that worker does not run, any other answers.
 */
import { Failure } from '../../../failure.ts'
import type { Json } from '../../../mcp/connection.ts'
import { directCall } from '../../../mcp/search/search-offers.ts'
import type { RpcRequest } from '../../../mcp/surface/json-rpc.ts'
import type { AnswerForm } from '../../../mcp/surface/running-call.ts'
import type { McpSession } from '../../../mcp/surface/session.ts'
import type { Gateway } from '../../context.ts'
import type { Exchange } from '../../exchange.ts'
import { liftIdleTimeout } from '../../idle-timeout.ts'
import { mcpCallStages, mcpDiscoveryStages, mcpSubscriptionStages, type Stage } from '../../pipeline.ts'
import { type Arrived, answerCall, mcpRequest, progressTokenOf, run } from '../answer-call.ts'
import { isModernRouted, serverOf } from '../call.ts'
import { modernSession } from '../caller-session.ts'
import { isModernDiscovery } from '../discovery.ts'
import { eventStream, HttpRefusal } from '../http.ts'
import { forwardMessage } from '../other-worker.ts'
import { sessionOwner } from '../session-owner.ts'
import { noSiblings, type SiblingWorkers } from '../sibling-workers.ts'
import { type ModernRequest, unknownMethod } from './request.ts'
import { openState } from './request-state.ts'

/** Throws an HttpRefusal or an McpError for what cannot be answered. */
export async function answerModern(
  gateway: Gateway,
  arrived: Arrived,
  { message, original, capabilities, logLevel }: ModernRequest,
  form: AnswerForm,
): Promise<Response> {
  const other = arrived.isForwarded ? null : otherWorker(gateway, arrived, original)
  if (other !== null) {
    const answer = await forwardMessage(gateway, arrived, other, original)
    if (answer !== null) return answer
  }
  const session = modernSession(arrived.entered, gateway, capabilities)
  if (message.method === 'subscriptions/listen') return await subscribe(gateway, arrived, message, session, form)
  const stages = stagesOf(message)
  if (stages === null) throw unknownMethod(message.id)
  const call = session.begin(message.id, progressTokenOf(message), form, logLevel)
  return await answerCall(gateway, arrived, message, { session, call, stages })
}

const stagesOf = (message: RpcRequest): readonly Stage[] | null =>
  isModernDiscovery(message) ? mcpDiscoveryStages : isModernRouted(message.method) ? mcpCallStages : null

async function subscribe(
  gateway: Gateway,
  arrived: Arrived,
  message: RpcRequest,
  session: McpSession,
  form: AnswerForm,
): Promise<Response> {
  if (form === 'json') throw new HttpRefusal(406, 'Accept must list text/event-stream', undefined, { id: message.id })
  const call = session.begin(message.id, null, 'json')
  const mcp = mcpRequest(message, session, call)
  try {
    const answer = await run(gateway, arrived, mcp, mcpSubscriptionStages)
    if (mcp.changes === null) return answer
  } finally {
    session.end(call)
  }
  liftIdleTimeout(arrived)
  return eventStream(mcp.changes, session, { 'x-service-verdict': 'ALLOW' })
}

/** The worker that a request belongs to; null when that is this one, or does not matter. */
function otherWorker(
  gateway: Gateway,
  { entered }: Arrived,
  message: RpcRequest,
): ReturnType<SiblingWorkers['ownerOf']> {
  const { siblings, servers } = gateway.mcp
  if (siblings === noSiblings) return null
  const { method } = message
  const params = method === 'tools/call' ? calledParams(message.params) : message.params
  const holder = holderOf(gateway, entered, { method, params })
  if (holder !== null) return holder === siblings.sessionPrefix ? null : siblings.ownerOf(holder)
  const server = isModernRouted(method) ? serverOf(method, params, gateway) : null
  return server === null || servers.isModern(server) ? null : siblings.homeOf(sessionOwner(entered))
}

/** A call that does not say what it calls is refused with the request. */
function calledParams(params: Json): Json {
  try {
    return directCall(params)
  } catch (thrown) {
    if (thrown instanceof Failure) return params
    throw thrown
  }
}

/** A state that cannot be opened is refused with the request. */
function holderOf(gateway: Gateway, entered: Exchange, message: Pick<RpcRequest, 'method' | 'params'>): string | null {
  try {
    return openState(entered, gateway, message)?.holder ?? null
  } catch (thrown) {
    if (thrown instanceof Failure) return null
    throw thrown
  }
}
