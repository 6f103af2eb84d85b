/**
 * Stages of a caller's request to one MCP server (gateway/README.md, MCP): it is read, routed by its published name,
 * admitted by the stages of every request, and sent. Policies inspect the result, and the outcome is recorded before
 * the answer leaves.
 *
 * A token's binding to a provider, and an access policy's list of providers, apply to MCP servers by name. Lists of
 * models apply to models only. The caller's token is sent to no server.
 */

import { Failure } from '../../failure.ts'
import { isObject, textOf } from '../../languages/reading/json-value.ts'
import type { RpcId } from '../../lib/json/json-rpc.ts'
import type { Json, McpServerRecord } from '../../mcp/connection.ts'
import { argumentHeaders } from '../../mcp/header-values.ts'
import { isInputRequired } from '../../mcp/input-required.ts'
import { McpError } from '../../mcp/mcp-error.ts'
import { requireResult } from '../../mcp/result-form.ts'
import { directCall } from '../../mcp/search/search-offers.ts'
import { heldNoLonger } from '../../mcp/surface/held-calls.ts'
import { errorText, resultText } from '../../mcp/surface/json-rpc.ts'
import { type OwnName, ownName, ownUri, publishedName, publishUris } from '../../mcp/surface/names.ts'
import type { TraceHeaders } from '../../telemetry/trace-context.ts'
import { accessPoliciesOf } from '../../usage/rate/rate-demands.ts'
import { finishExchange } from '../accounting/exchange-record.ts'
import { answeredOutcome } from '../accounting/outcome.ts'
import { traceHeadersOf } from '../accounting/spans.ts'
import { checkLive } from '../admission/authenticate.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { type RequestedOffer, requireApproved } from './approval.ts'
import { isHeldCall, type McpRequest, type RequestState } from './mcp-request.ts'
import { inputNeeded, modernError, modernErrorStatus, modernResult } from './modern/answer.ts'
import { checkArgumentHeaders, HeaderMismatch } from './modern/request.ts'
import { openState, sealState } from './modern/request-state.ts'
import { evaluateServerMessage } from './texts.ts'

/** How a method names its target and how its parameters are sent to the server. */
interface Routing {
  /** The kind of offer that must be approved. */
  kind(params: Json): RequestedOffer['kind']
  own(params: Json): OwnName | null
  /** The parameters with the server's own name of the target. */
  sent(params: Json, name: string): Json
}

const byName = (kind: 'tool' | 'prompt'): Routing => ({
  kind: () => kind,
  own: ({ name }) => (typeof name === 'string' ? ownName(name) : null),
  sent: (params, name) => ({ ...params, name }),
})
const byUri: Routing = {
  kind: () => 'resource',
  own: ({ uri }) => (typeof uri === 'string' ? ownUri(uri) : null),
  sent: (params, uri) => ({ ...params, uri }),
}
const byReference: Routing = {
  kind: ({ ref }) => (isObject(ref) && typeof ref.uri === 'string' ? 'resource' : 'prompt'),
  own({ ref }) {
    if (!isObject(ref)) return null
    if (typeof ref.uri === 'string') return ownUri(ref.uri)
    return typeof ref.name === 'string' ? ownName(ref.name) : null
  },
  sent(params, name) {
    const ref = isObject(params.ref) ? params.ref : {}
    return { ...params, ref: { ...ref, [typeof ref.uri === 'string' ? 'uri' : 'name']: name } }
  },
}

const routings: ReadonlyMap<string, Routing> = new Map([
  ['tools/call', byName('tool')],
  ['prompts/get', byName('prompt')],
  ['resources/read', byUri],
  ['resources/subscribe', byUri],
  ['resources/unsubscribe', byUri],
  ['completion/complete', byReference],
])

/** The methods that go to one server. */
export const routedMethods: readonly string[] = [...routings.keys()]

export const isRouted = (method: string): boolean => routings.has(method)

/** The same of 2026-07-28, where `subscriptions/listen` replaces subscribing. */
export const isModernRouted = (method: string): boolean => routings.has(method) && !method.endsWith('subscribe')

const encoder = new TextEncoder()
/** A longer name or address belongs to no offer, and no event records it. */
const longestName = 8192

const ownTarget = (method: string, params: Json): OwnName | null => routings.get(method)?.own(params) ?? null
const serverNamed = (target: OwnName | null, { mcp }: Gateway): McpServerRecord | null =>
  mcp.servers.list().find(({ name }) => name === target?.server) ?? null

/** The server that a request goes to; null for none. */
export const serverOf = (method: string, params: Json, gateway: Gateway): McpServerRecord | null =>
  serverNamed(ownTarget(method, params), gateway)

/** Sets what policies read of the request, and the server it goes to. Throws `mcp.unknown_name` or `invalid_parameter`. */
export function readCall(exchange: Exchange, gateway: Gateway): void {
  const mcp = required(exchange.mcp)
  if (mcp.method === 'tools/call') mcp.params = directCall(mcp.params)
  const own = ownTarget(mcp.method, mcp.params)
  const server = serverNamed(own, gateway)
  const isKnown = own !== null && server !== null && own.name.length <= longestName
  if (isKnown) {
    mcp.server = server
    mcp.name = publishedName(server.name, own.name)
  }
  setPolicyParameters(exchange, mcp.params)
  if (!isKnown) throw new Failure('mcp.unknown_name')
  const { session } = mcp
  if (session?.modern !== true) return
  mcp.state = openState(exchange, gateway, mcp)
  if (isHeldCall(mcp) && !session.holds(mcp.state?.text ?? null)) throw heldNoLonger()
}

/**
 * Gives policies the parameters, and makes the digest text that a reviewer's grant matches. The text leaves out
 * `_meta`, which differs in every request.
 */
export function setPolicyParameters(exchange: Exchange, { _meta: meta, ...given }: Json): void {
  const { method, name, session } = required(exchange.mcp)
  const { requestState: _sealed, ...stateless } = given
  const params = session?.modern === true ? stateless : given
  const { progressToken: _own, ...shown } = isObject(meta) ? meta : {}
  const parsed = {
    method,
    params: Object.keys(shown).length === 0 ? params : { ...params, _meta: shown },
    tools: name === null ? [] : [{ name }],
  }
  exchange.parsed = parsed
  exchange.facts = exchange.dialect.read(parsed)
  exchange.body = encoder.encode(JSON.stringify({ method, name, params }))
  exchange.sessionId = session?.label ?? null
  required(exchange.mcp).requestBytes = exchange.body.length
  // A stream outlives its connection, so a disconnect does not end the exchange. The MCP surface watches it instead.
  exchange.watched = true
}

/** Whether the token's bindings allow this server. */
export function mayUseServer(exchange: Exchange, { worker }: Gateway, { name }: McpServerRecord): boolean {
  const token = required(exchange.token)
  if (token.provider !== null && token.provider !== name) return false
  return accessPoliciesOf(token, worker.view.limits).every(
    ({ providers }) => providers === null || providers.includes(name),
  )
}

export function allowServer(exchange: Exchange, gateway: Gateway): void {
  const { server } = required(exchange.mcp)
  if (!mayUseServer(exchange, gateway, required(server))) {
    throw new Failure('tokens.provider_not_allowed', { message: 'The token may not use this MCP server' })
  }
  if (required(server).quarantined) throw new Failure('mcp.server_quarantined')
}

/**
 * Refuses a call when policies removed its tool or changed its target. Approval, bindings and policies were checked for
 * the target that the caller named, and the server must not receive what a policy removed.
 */
export function refuseChangedTarget(exchange: Exchange): void {
  const called = exchange.parsed?.tools
  if (!Array.isArray(called) || called.length === 0) {
    const verdictan = { verdict: 'DENY', reason_code: 'policy.tool_not_allowed' }
    throw new Failure('policy_denied', { message: 'A policy does not allow a tool of this message', verdictan })
  }
  const { server, name } = governedTarget(exchange) ?? { server: '', name: '' }
  if (publishedName(server, name) === required(exchange.mcp).name) return
  const verdictan = { verdict: 'DENY', reason_code: 'policy.target_changed' }
  const message = 'A policy redacts the requested name or address, so the request was not sent'
  throw new Failure('policy_denied', { message, verdictan })
}

/** The parameters as policies left them, which are the only ones sent to the server. */
export function governedParams({ parsed }: Exchange): Json {
  return isObject(parsed?.params) ? parsed.params : {}
}

/** The target that the governed parameters name. */
const governedTarget = (exchange: Exchange): OwnName | null =>
  routings.get(required(exchange.mcp).method)?.own(governedParams(exchange)) ?? null

export async function callServer(exchange: Exchange, gateway: Gateway): Promise<void> {
  const mcp = required(exchange.mcp)
  const id = required(mcp.id)
  let result: Json
  let state: NextState | null
  try {
    ;[result, state] = await orUntilCut(exchange, request(exchange, gateway, mcp))
  } catch (thrown) {
    if (exchange.cut !== null) throw exchange.cut.failure
    if (!(thrown instanceof McpError)) throw thrown
    return await passError(exchange, gateway, id, thrown)
  } finally {
    exchange.body = null
  }
  mcp.toolFailed = mcp.method === 'tools/call' && result.isError === true
  await evaluateServerMessage(exchange, gateway, result)
  publishUris(required(mcp.server).name, result)
  const sealed = state === null ? null : sealState(exchange, gateway, state)
  if (sealed !== null) result.requestState = sealed
  const text = resultText(id, required(mcp.session).modern ? modernResult(mcp.method, result) : result)
  mcp.resultBytes = Buffer.byteLength(text)
  await finishExchange(exchange, gateway, answeredOutcome(exchange, 200))
  exchange.answer = jsonAnswer(exchange, text)
}

type NextState = Pick<RequestState, 'holder' | 'text'>

/** The result, and what the caller brings back where it is asked something. */
async function request(exchange: Exchange, gateway: Gateway, mcp: McpRequest): Promise<[Json, NextState | null]> {
  const server = required(mcp.server)
  const session = required(mcp.session)
  const call = required(mcp.call)
  const routing = required(routings.get(mcp.method) ?? null)
  const { signal } = exchange.call.abort
  const params = governedParams(exchange)
  const own = required(routing.own(params))
  const connection = await session.connection(server)
  const marks = await requireApproved(exchange, gateway, connection, { kind: routing.kind(params), name: own.name })
  if (session.modern) checkArgumentHeaders(marks, mcp, exchange.request)
  // Connecting and the approval may have taken long.
  checkLive(exchange, gateway)
  call.serverId = server.id
  mcp.sent = true
  const trace = beginCallSpan(exchange, gateway, own.name)
  const { inputResponses: answers, ...asked } = params
  try {
    const result = await session.send(connection, call, {
      ...{ method: mcp.method, signal },
      params: withTrace(routing.sent(session.modern ? asked : params, own.name), trace),
      ...(trace !== null && { trace }),
      ...(marks.length > 0 && { headers: argumentHeaders(marks, params.arguments) }),
      ...(session.modern && isObject(answers) && { answers }),
      ...(mcp.state?.text != null && { state: mcp.state.text }),
    })
    await session.told(server)
    requireResult(server, mcp.method, result)
    if (!session.modern || !isInputRequired(result)) return [result, null]
    const text = textOf(result.requestState)
    const holder = session.holds(text) ? gateway.mcp.siblings.sessionPrefix : null
    return [inputNeeded(mcp, result), { holder, text }]
  } finally {
    if (mcp.calling !== null) mcp.calling.endedMonotonic = gateway.clock.monotonic()
  }
}

/** Begins the span of the call when the exchange is traced; returns the headers that name it as the parent. */
function beginCallSpan(exchange: Exchange, { clock, tracer }: Gateway, name: string): TraceHeaders | null {
  if (exchange.trace === null) return null
  const spanId = exchange.trace.spanId === null ? null : tracer.newSpanId()
  if (spanId !== null) {
    required(exchange.mcp).calling = { spanId, name, startedMonotonic: clock.monotonic(), endedMonotonic: null }
  }
  return traceHeadersOf(exchange, spanId)
}

/** Adds the trace to the parameters (MCP conventions of OpenTelemetry, Context propagation). */
function withTrace(params: Json, trace: TraceHeaders | null): Json {
  if (trace === null) return params
  const { traceparent: _parent, tracestate: _state, ...meta } = isObject(params._meta) ? params._meta : {}
  return { ...params, _meta: { ...meta, ...trace } }
}

/** Waits for a promise, or until the exchange is cut. */
export function orUntilCut<Value>(exchange: Exchange, pending: Promise<Value>): Promise<Value> {
  const { promise, reject } = Promise.withResolvers<never>()
  const giveUp = () => {
    if (exchange.cut !== null) reject(exchange.cut.failure)
  }
  exchange.onCut = giveUp
  giveUp()
  return Promise.race([pending, promise]).finally(() => {
    exchange.onCut = null
  })
}

/** Passes a server's error with its code; policies inspect its message. */
async function passError(exchange: Exchange, gateway: Gateway, id: RpcId, error: McpError): Promise<void> {
  const body: Json = { message: error.message, ...(error.data === undefined ? {} : { data: error.data }) }
  await evaluateServerMessage(exchange, gateway, body)
  const said = new McpError(error.code, textOf(body.message) ?? '', body.data)
  const isModern = required(exchange.mcp).session?.modern === true
  const passed = isModern && !(error instanceof HeaderMismatch) ? modernError(said) : said
  const text = errorText(id, passed)
  required(exchange.mcp).resultBytes = Buffer.byteLength(text)
  required(exchange.mcp).errorCode = error.code
  await finishExchange(exchange, gateway, { verdict: 'error', reason: 'mcp.server_error', status: 200 })
  exchange.answer = jsonAnswer(exchange, text, isModern ? modernErrorStatus(passed) : 200)
}

export const jsonAnswer = ({ requestId, verdict }: Exchange, text: string, status = 200): Response =>
  new Response(text, {
    status,
    headers: {
      'content-type': 'application/json',
      'x-request-id': requestId,
      'x-service-verdict': verdict.toUpperCase(),
    },
  })
