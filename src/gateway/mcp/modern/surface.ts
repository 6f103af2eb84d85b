/**
 * Requests of MCP 2026-07-28 (Streamable HTTP): each stands for itself, so any worker answers it. Only the retry of a
 * call that a server with sessions works on belongs to the worker that waits for it (`request-state.ts`), and is passed
 * on to it while it runs on this host.
 */
import type { RpcRequest } from '../../../mcp/surface/json-rpc.ts'
import type { AnswerForm } from '../../../mcp/surface/running-call.ts'
import type { McpSession } from '../../../mcp/surface/session.ts'
import type { Gateway } from '../../context.ts'
import { liftIdleTimeout } from '../../idle-timeout.ts'
import { mcpCallStages, mcpDiscoveryStages, mcpSubscriptionStages, type Stage } from '../../pipeline.ts'
import { type Arrived, answerCall, mcpRequest, progressTokenOf, run } from '../answer-call.ts'
import { isModernRouted } from '../call.ts'
import { modernSession } from '../caller-session.ts'
import { isModernDiscovery } from '../discovery.ts'
import { eventStream, HttpRefusal } from '../http.ts'
import { forwardMessage } from '../other-worker.ts'
import { type ModernRequest, unknownMethod } from './request.ts'
import { openState } from './request-state.ts'

/** Throws an HttpRefusal or an McpError for what cannot be answered. */
export async function answerModern(
  gateway: Gateway,
  arrived: Arrived,
  { message, original, capabilities, logLevel }: ModernRequest,
  form: AnswerForm,
): Promise<Response> {
  const elsewhere = forwardToHolder(gateway, arrived, original)
  if (elsewhere !== null) return await elsewhere
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

/** The answer of the worker that holds the call; null when the request is no retry, or that worker is this one or gone. */
function forwardToHolder(gateway: Gateway, arrived: Arrived, message: RpcRequest): Promise<Response> | null {
  if (message.params.requestState === undefined) return null
  const { siblings } = gateway.mcp
  const holder = openState(arrived.entered, gateway, message)?.holder ?? null
  const owner = holder === null || holder === siblings.sessionPrefix ? null : siblings.ownerOf(holder)
  return owner === null ? null : forwardMessage(gateway, arrived, owner, message)
}
