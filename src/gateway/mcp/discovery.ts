/**
 * Answers the MCP requests that need no single server: `initialize`, `server/discover`, the merged lists, the log level. There is no open
 * record, as with model discovery; the outcome is recorded.
 *
 * A list shows what its token may use: servers by the token's bindings, names by the `tool-access` policies that would
 * apply to a call. That is no decision about a request, so none is recorded. Other policies do not apply to
 * definitions: each is shown exactly as approved or not at all (`src/mcp/offers/offers.ts`). A rewritten definition
 * would be one that nobody approved, and a blocked one would block a whole list.
 */
import { Failure } from '../../failure.ts'
import { isObject } from '../../languages/reading/json-value.ts'
import type { Json, McpServerRecord } from '../../mcp/connection.ts'
import { McpError } from '../../mcp/mcp-error.ts'
import { logLevels } from '../../mcp/protocol.ts'
import { errorText, resultText } from '../../mcp/surface/json-rpc.ts'
import { listKinds, listPage } from '../../mcp/surface/lists.ts'
import { publishedName } from '../../mcp/surface/names.ts'
import type { ActivePolicy } from '../../policies/chain.ts'
import { ModelView, type PolicyContext, RequestView } from '../../policies/conditions/context.ts'
import { finishExchange } from '../accounting/exchange-record.ts'
import { answeredOutcome } from '../accounting/outcome.ts'
import { chainFor } from '../admission/policy-chain.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { requestContext } from '../policy/subject.ts'
import { jsonAnswer, mayUseServer, orUntilCut, setPolicyParameters } from './call.ts'
import { beginSession } from './caller-session.ts'
import { discovery, modernResult, offeredCapabilities, serverInfo } from './modern/answer.ts'

export const isDiscovery = (method: string): boolean =>
  method === 'initialize' || method === 'logging/setLevel' || listKinds.has(method)

/** The same of 2026-07-28. */
export const isModernDiscovery = (method: string): boolean => method === 'server/discover' || listKinds.has(method)

export function readDiscovery(exchange: Exchange): void {
  setPolicyParameters(exchange, required(exchange.mcp).params)
}

export async function answerDiscovery(exchange: Exchange, gateway: Gateway): Promise<void> {
  const mcp = required(exchange.mcp)
  const id = required(mcp.id)
  let text: string
  try {
    const answer = answerOf(exchange, gateway, mcp.method)
    const result = answer instanceof Promise ? await orUntilCut(exchange, answer) : answer
    text = resultText(id, mcp.session?.modern === true ? modernResult(mcp.method, result) : result)
  } catch (thrown) {
    if (!(thrown instanceof McpError)) throw thrown
    mcp.errorCode = thrown.code
    text = errorText(id, thrown)
  }
  mcp.resultBytes = Buffer.byteLength(text)
  await finishExchange(exchange, gateway, answeredOutcome(exchange, 200))
  exchange.answer = jsonAnswer(exchange, text)
}

function answerOf(exchange: Exchange, gateway: Gateway, method: string): Json | Promise<Json> {
  if (method === 'initialize') return initialize(exchange, gateway)
  if (method === 'server/discover') return discovery()
  return method === 'logging/setLevel' ? setLevel(exchange) : list(exchange, gateway, method)
}

function initialize(exchange: Exchange, gateway: Gateway): Json {
  const mcp = required(exchange.mcp)
  const { protocolVersion, capabilities } = mcp.params
  if (typeof protocolVersion !== 'string' || !isObject(capabilities)) {
    throw new Failure('invalid_parameter', { message: 'initialize needs protocolVersion and capabilities' })
  }
  const session = beginSession(exchange, gateway, protocolVersion, capabilities)
  mcp.session = session
  exchange.sessionId = session.label
  return { protocolVersion: session.protocolVersion, capabilities: offeredCapabilities, serverInfo }
}

async function setLevel({ mcp }: Exchange): Promise<Json> {
  const { params, session } = required(mcp)
  const { level } = params
  if (typeof level !== 'string' || !logLevels.includes(level)) {
    throw new Failure('invalid_parameter', { message: 'level must be one of the levels of syslog', param: 'level' })
  }
  await required(session).setLevel(level)
  return {}
}

async function list(exchange: Exchange, gateway: Gateway, method: string): Promise<Json> {
  const { params, session: own } = required(exchange.mcp)
  const session = required(own)
  const { servers } = gateway.mcp
  const usable = servers.list().filter((server) => mayUseServer(exchange, gateway, server))
  // A new list makes later calls check the offers again.
  if (params.cursor === undefined) for (const server of usable) session.forgetSeen(server)
  const visible = visibility(exchange, gateway)
  const kind = required(listKinds.get(method) ?? null)
  return await listPage({
    list: kind,
    session,
    servers: { list: () => usable, approved: (server, kind, offers) => servers.approved(server, kind, offers) },
    cursor: params.cursor,
    cursorKey: gateway.worker.status.storedIdKey,
    signal: exchange.call.abort.signal,
    mayUse: (server, offer) => visible(server, String(offer[kind.named])),
    missing(server, error) {
      exchange.notes.push(`mcp.server_missing:${server.name}`)
      const line = { request_id: exchange.requestId, server: server.name, error: shownError(error) }
      gateway.log.warn(line, 'An MCP server is missing from a list')
    },
    repeats(server) {
      const line = { request_id: exchange.requestId, server: server.name }
      gateway.log.warn(line, 'An MCP server offers something twice: the first was shown')
    },
  })
}

/** A server's message may hold anything, so the log gets only its code. */
const shownError = (error: unknown): string => (error instanceof McpError ? `MCP error ${error.code}` : String(error))

/** Whether a call of this name would pass the tool-access policies. */
export function visibility(exchange: Exchange, gateway: Gateway): (server: McpServerRecord, name: string) => boolean {
  const context = requestContext(exchange, gateway)
  return (server, name) => {
    const published = publishedName(server.name, name)
    const chain = chainFor(exchange, gateway, { id: published, aliases: [] })
    if (chain.size === 0) return true
    const instead: PolicyContext = {
      ...context,
      model: new ModelView(published, server.name),
      request: new RequestView({
        family: exchange.dialect.family,
        model: published,
        stream: false,
        sessionId: exchange.sessionId,
        texts: () => [],
        body: { tools: [{ name: published }] },
        headers: exchange.request.headers,
      }),
    }
    return chain.at('pre_request').every((policy) => shows(policy, published, instead))
  }
}

function shows({ enforced, compiled, condition }: ActivePolicy, name: string, context: PolicyContext): boolean {
  if (!enforced || compiled instanceof Error || compiled.form !== 'whole') return true
  if (compiled.allowsTool?.(name) ?? true) return true
  try {
    return condition !== null && !condition(context)
  } catch {
    // A condition that cannot be evaluated hides the tool.
    return false
  }
}
