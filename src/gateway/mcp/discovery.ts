/**
 * Answers the MCP requests that need no single server: `initialize`, the merged lists, the log level. There is no open
 * record, as with model discovery; the outcome is recorded.
 *
 * A list shows what its token may use: servers by the token's bindings, names by the `tool-access` policies that would
 * apply to a call. That is no decision about a request, so none is recorded. Other policies do not apply to
 * definitions: each is shown exactly as approved or not at all (`src/mcp/offers/offers.ts`). A rewritten definition
 * would be one that nobody approved, and a blocked one would block a whole list.
 */
import { randomBytes } from 'node:crypto'
import { Failure } from '../../failure.ts'
import { isObject } from '../../languages/reading/json-value.ts'
import type { Json, McpServerRecord } from '../../mcp/connection.ts'
import { McpError } from '../../mcp/mcp-error.ts'
import { protocolVersions } from '../../mcp/protocol.ts'
import { errorText, resultText } from '../../mcp/surface/json-rpc.ts'
import { listKinds, listPage } from '../../mcp/surface/lists.ts'
import { publishedName } from '../../mcp/surface/names.ts'
import { McpSession } from '../../mcp/surface/session.ts'
import type { ActivePolicy } from '../../policies/chain.ts'
import { ModelView, type PolicyContext, RequestView } from '../../policies/conditions/context.ts'
import { version } from '../../version.ts'
import { finishExchange } from '../accounting/exchange-record.ts'
import { answeredOutcome } from '../accounting/outcome.ts'
import { chainFor } from '../admission/policy-chain.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { requestContext } from '../policy/subject.ts'
import { jsonAnswer, mayUseServer, orUntilCut, setPolicyParameters } from './call.ts'
import { governorOf } from './governor.ts'
import { sessionOwner, sessionToken } from './session-owner.ts'
import { connectOffer, connectTool, isNobody, lacksAccount } from './unconnected.ts'

export const isDiscovery = (method: string): boolean =>
  method === 'initialize' || method === 'logging/setLevel' || listKinds.has(method)

export function readDiscovery(exchange: Exchange): void {
  setPolicyParameters(exchange, required(exchange.mcp).params)
}

export async function answerDiscovery(exchange: Exchange, gateway: Gateway): Promise<void> {
  const mcp = required(exchange.mcp)
  const id = required(mcp.id)
  let text: string
  try {
    const answer = answerOf(exchange, gateway, mcp.method)
    text = resultText(id, answer instanceof Promise ? await orUntilCut(exchange, answer) : answer)
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
  return method === 'logging/setLevel' ? setLevel(exchange) : list(exchange, gateway, method)
}

/** Lifecycle, version negotiation: the requested version if it is supported, otherwise the newest. */
function initialize(exchange: Exchange, gateway: Gateway): Json {
  const mcp = required(exchange.mcp)
  const { protocolVersion, capabilities } = mcp.params
  if (typeof protocolVersion !== 'string' || !isObject(capabilities)) {
    throw new Failure('invalid_parameter', { message: 'initialize needs protocolVersion and capabilities' })
  }
  const session = new McpSession({
    // Visible ASCII that cannot be guessed (Streamable HTTP, Session Management).
    id: `${gateway.mcp.siblings.sessionPrefix}${randomBytes(24).toString('base64url')}`,
    label: gateway.newId(),
    token: sessionToken(exchange),
    owner: sessionOwner(exchange),
    protocolVersion: protocolVersions.find((spoken) => spoken === protocolVersion) ?? protocolVersions[0],
    capabilities,
    servers: gateway.mcp.servers,
    governor: governorOf(gateway),
    evicted() {
      gateway.mcp.sessions.evicted += 1
    },
  })
  gateway.mcp.sessions.add(session, gateway.clock.monotonic())
  mcp.session = session
  exchange.sessionId = session.label
  return {
    protocolVersion: session.protocolVersion,
    capabilities: {
      tools: { listChanged: true },
      prompts: { listChanged: true },
      resources: { subscribe: true, listChanged: true },
      logging: {},
      completions: {},
    },
    serverInfo: { name: 'gatehouse', title: 'Gatehouse', version },
  }
}

const levels: ReadonlySet<unknown> = new Set([
  'debug',
  'info',
  'notice',
  'warning',
  'error',
  'critical',
  'alert',
  'emergency',
])

async function setLevel({ mcp }: Exchange): Promise<Json> {
  const { params, session } = required(mcp)
  const { level } = params
  if (typeof level !== 'string' || !levels.has(level)) {
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
  const unconnected: Json[] = []
  const page = await listPage({
    list: kind,
    session,
    servers: { list: () => usable, approved: (server, kind, offers) => servers.approved(server, kind, offers) },
    cursor: params.cursor,
    signal: exchange.call.abort.signal,
    mayUse: (server, offer) => visible(server, String(offer[kind.named])),
    missing(server, error) {
      if (lacksAccount(error)) {
        if (kind.kind === 'tool' && visible(server, connectTool)) unconnected.push(connectOffer(server, error))
        return
      }
      if (isNobody(error)) return
      exchange.notes.push(`mcp.server_missing:${server.name}`)
      const line = { request_id: exchange.requestId, server: server.name, error: shownError(error) }
      gateway.log.warn(line, 'An MCP server is missing from a list')
    },
    repeats(server) {
      const line = { request_id: exchange.requestId, server: server.name }
      gateway.log.warn(line, 'An MCP server offers something twice: the first was shown')
    },
  })
  if (unconnected.length === 0 || !Array.isArray(page.tools)) return page
  return { ...page, tools: [...page.tools, ...unconnected] }
}

/** A server's message may hold anything, so the log gets only its code. */
const shownError = (error: unknown): string => (error instanceof McpError ? `MCP error ${error.code}` : String(error))

/** Whether a call of this name would pass the tool-access policies. */
function visibility(exchange: Exchange, gateway: Gateway): (server: McpServerRecord, name: string) => boolean {
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
