/**
 * The stage that opens a stream of changes (2026-07-28, Subscriptions). A caller is told of lists when any server that
 * its token may use says so. A resource is watched at its server when the token may use that server and the resource is
 * approved, and the limit of the server has room; other addresses are left out of what the stream says first.
 */

import { isObject } from '../../../languages/reading/json-value.ts'
import { rpcCodes } from '../../../lib/json/json-rpc.ts'
import type { Json, McpServerRecord } from '../../../mcp/connection.ts'
import { McpError } from '../../../mcp/mcp-error.ts'
import { errorText, resultText } from '../../../mcp/surface/json-rpc.ts'
import { ownUri } from '../../../mcp/surface/names.ts'
import type { SubscriptionFilter } from '../../../mcp/surface/streams/subscriptions.ts'
import { finishExchange } from '../../accounting/exchange-record.ts'
import { answeredOutcome } from '../../accounting/outcome.ts'
import { checkLive } from '../../admission/authenticate.ts'
import type { Gateway } from '../../context.ts'
import { type Exchange, required } from '../../exchange.ts'
import { requireApproved } from '../approval.ts'
import { governedParams, jsonAnswer, mayUseServer, orUntilCut } from '../call.ts'
import { visibility } from '../tools/shown-lists.ts'

const mostAddresses = 1000

export async function openSubscription(exchange: Exchange, gateway: Gateway): Promise<void> {
  const mcp = required(exchange.mcp)
  const id = required(mcp.id)
  const session = required(mcp.session)
  let text = resultText(id, {})
  const leave = (unused: readonly string[]) => {
    // A server that is away watches nothing.
    for (const uri of unused) void watchResource(exchange, gateway, uri, 'resources/unsubscribe').catch(() => undefined)
  }
  const watching = honoured(exchange, gateway, governedParams(exchange))
  try {
    mcp.changes = session.subscriptions.add(id, await orUntilCut(exchange, watching), leave)
    // A server that says that its lists changed says so on a connection.
    for (const server of gateway.mcp.servers.list())
      if (mayUseServer(exchange, gateway, server)) void session.connection(server).catch(() => undefined)
  } catch (thrown) {
    // No stream will tell of these resources. Where they were never watched, there is nothing to stop.
    watching.then((filter) => leave(session.subscriptions.unused(filter))).catch(() => undefined)
    if (!(thrown instanceof McpError)) throw thrown
    mcp.errorCode = thrown.code
    text = errorText(id, thrown)
  }
  await finishExchange(exchange, gateway, answeredOutcome(exchange, 200))
  exchange.answer = jsonAnswer(exchange, text)
}

/** The part of the filter that the stream serves. Throws an McpError for a filter of another form. */
async function honoured(exchange: Exchange, gateway: Gateway, { notifications }: Json): Promise<SubscriptionFilter> {
  if (!isObject(notifications)) throw new McpError(rpcCodes.invalidParams, 'notifications must be an object')
  const { toolsListChanged, promptsListChanged, resourcesListChanged, resourceSubscriptions = [] } = notifications
  if (!Array.isArray(resourceSubscriptions) || resourceSubscriptions.length > mostAddresses)
    throw new McpError(rpcCodes.invalidParams, `resourceSubscriptions must be a list of at most ${mostAddresses}`)
  const asked = [...new Set(resourceSubscriptions.filter((uri) => typeof uri === 'string'))]
  const watched = await Promise.all(
    asked.map((uri) => watchResource(exchange, gateway, uri, 'resources/subscribe').catch(() => false)),
  )
  return {
    ...(toolsListChanged === true && { toolsListChanged }),
    ...(promptsListChanged === true && { promptsListChanged }),
    ...(resourcesListChanged === true && { resourcesListChanged }),
    ...(asked.length > 0 && { resourceSubscriptions: asked.filter((_, index) => watched[index] === true) }),
  }
}

/** Takes a slot of the limit of the server, which counts every request that goes to it. Throws a RateRefused. */
async function takeServerRate(exchange: Exchange, { worker }: Gateway, { callLimits }: McpServerRecord): Promise<void> {
  const rates = callLimits?.of(null).rates ?? []
  if (rates.length === 0) return
  const ticket = await worker.rates.take(rates, exchange.call.abort.signal)
  ticket.correct(0)
}

/** Whether the server was told; false for what the caller may not use. */
async function watchResource(exchange: Exchange, gateway: Gateway, uri: string, method: string): Promise<boolean> {
  const own = ownUri(uri)
  const server = gateway.mcp.servers.list().find(({ name }) => name === own?.server)
  if (own === null || server === undefined || server.quarantined) return false
  if (!mayUseServer(exchange, gateway, server) || !visibility(exchange, gateway, 'resource')(server, own.name))
    return false
  const connection = await required(required(exchange.mcp).session).connection(server)
  const { capabilities } = connection
  if (!isObject(capabilities.resources) || capabilities.resources.subscribe === undefined) return false
  const signal = AbortSignal.timeout(server.timeoutMilliseconds)
  if (method === 'resources/subscribe') {
    await requireApproved(exchange, gateway, connection, { kind: 'resource', name: own.name })
    await takeServerRate(exchange, gateway, server)
    // All of this may have taken long.
    checkLive(exchange, gateway)
  }
  await connection.request(method, { uri: own.name }, { signal })
  return true
}
