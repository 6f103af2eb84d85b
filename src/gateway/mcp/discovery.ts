/**
 * Answers the MCP requests that need no single server: `initialize`, `server/discover`, the merged lists, searches of
 * tools, the log level. There is no open record, as with model discovery; the outcome is recorded.
 *
 * A list shows what its token may use: servers by the token's bindings, names by the `tool-access` policies that would
 * apply to a call. That is no decision about a request, so none is recorded. Other policies do not apply to
 * definitions: each is shown exactly as approved or not at all (`src/mcp/offers/offers.ts`). A rewritten definition
 * would be one that nobody approved, and a blocked one would block a whole list.
 */
import { Failure } from '../../failure.ts'
import { isObject } from '../../languages/reading/json-value.ts'
import type { Json } from '../../mcp/connection.ts'
import { McpError } from '../../mcp/mcp-error.ts'
import { logLevels } from '../../mcp/protocol.ts'
import { isSearch, searchOffers } from '../../mcp/search/search-offers.ts'
import { errorText, resultText } from '../../mcp/surface/json-rpc.ts'
import { listKinds } from '../../mcp/surface/lists.ts'
import { finishExchange } from '../accounting/exchange-record.ts'
import { answeredOutcome } from '../accounting/outcome.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { jsonAnswer, orUntilCut, setPolicyParameters } from './call.ts'
import { beginSession } from './caller-session.ts'
import type { McpRequest } from './mcp-request.ts'
import { discovery, modernResult, offeredCapabilities, serverInfo } from './modern/answer.ts'
import { shownPage, usableServers, visibility } from './tools/shown-lists.ts'
import { searchedServers, searchTools } from './tools/tool-search.ts'

/** Whether the gateway answers the request itself. */
export const isDiscovery = (request: { readonly method: string; readonly params: Json }): boolean =>
  request.method === 'initialize' ||
  request.method === 'logging/setLevel' ||
  listKinds.has(request.method) ||
  isSearch(request)

/** The same of 2026-07-28. */
export const isModernDiscovery = (request: { readonly method: string; readonly params: Json }): boolean =>
  request.method === 'server/discover' || listKinds.has(request.method) || isSearch(request)

export function readDiscovery(exchange: Exchange): void {
  setPolicyParameters(exchange, required(exchange.mcp).params)
}

export async function answerDiscovery(exchange: Exchange, gateway: Gateway): Promise<void> {
  const mcp = required(exchange.mcp)
  const id = required(mcp.id)
  let text: string
  try {
    const answer = answerOf(exchange, gateway, mcp)
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

function answerOf(exchange: Exchange, gateway: Gateway, { method }: McpRequest): Json | Promise<Json> {
  if (method === 'initialize') return initialize(exchange, gateway)
  if (method === 'tools/call') return searchTools(exchange, gateway)
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
  const usable = usableServers(exchange, gateway)
  const isFirst = params.cursor === undefined
  // A new list makes later calls check the offers again.
  if (isFirst) for (const server of usable) session.forgetSeen(server)
  const kind = required(listKinds.get(method) ?? null)
  const searched = kind.kind === 'tool' ? searchedServers(exchange, usable) : []
  const page = await shownPage(exchange, gateway, {
    kind,
    of: searched.length === 0 ? usable : usable.filter((server) => !searched.includes(server)),
    cursor: params.cursor,
    visible: visibility(exchange, gateway, kind.kind),
  })
  if (searched.length === 0 || !isFirst) return page
  const listed = Array.isArray(page.tools) ? page.tools : []
  return { ...page, tools: [...searchOffers(searched.map(({ name }) => name)), ...listed] }
}
