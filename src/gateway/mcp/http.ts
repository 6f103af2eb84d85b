/**
 * The HTTP rules of `/mcp` that all versions share (Streamable HTTP, MCP 2025-11-25): allowed origins, forms of an answer, reading a message,
 * and the refusal of a message that breaks a rule: a status with a JSON-RPC error without an id.
 */

import { asFailure, Failure, mustNotRetry } from '../../failure.ts'
import { rpcFailure } from '../../languages/mcp/dialect.ts'
import { parseSpelt } from '../../lib/json/exact-json.ts'
import { type RpcId, rpcCodes } from '../../lib/json/json-rpc.ts'
import { McpError } from '../../mcp/mcp-error.ts'
import { errorText, type Message, type RpcRequest, readMessage, resultText } from '../../mcp/surface/json-rpc.ts'
import type { AnswerForm } from '../../mcp/surface/running-call.ts'
import type { McpSession } from '../../mcp/surface/session.ts'
import { verdictOf } from '../accounting/outcome.ts'
import type { Gateway } from '../context.ts'
import type { Exchange, Outcome, ReasonCode } from '../exchange.ts'
import { readBodyWithin } from '../request/read-body.ts'
import { membersOf } from '../request/read-request.ts'

const methods = 'GET, POST, DELETE'
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** What a refusal of a request whose body was read has beside its words. */
interface RefusedRequest {
  readonly id: RpcId
  readonly data?: unknown
}

/** A refusal by HTTP status with a JSON-RPC error, without an id where the body was not read. */
export class HttpRefusal extends Error {
  readonly status: number
  readonly code: number
  readonly request: RefusedRequest | null

  constructor(status: number, message: string, code: number = rpcCodes.refused, request: RefusedRequest | null = null) {
    super(message)
    this.status = status
    this.code = code
    this.request = request
  }
}

/** Session Management: on 404 callers begin a new session. */
export const noSuchSession = (): HttpRefusal => new HttpRefusal(404, 'Unknown session: send initialize', -32_001)

export function checkMethod({ method }: Request): void {
  if (!methods.split(', ').includes(method)) throw new HttpRefusal(405, 'Use POST, GET or DELETE')
}

/** Security warning of the transport: a wrong Origin is 403. Programs send none. */
export function checkOrigin({ headers }: Request, { worker, settings }: Gateway): void {
  const origin = headers.get('origin')
  if (origin === null || origin === worker.status.gatewayUrl) return
  if (settings.mcp_origins?.split(' ').includes(origin)) return
  throw new HttpRefusal(403, 'This origin is not allowed')
}

/** The headers that browser libraries send, and those that they read from an answer. */
const headersOfPages = [
  'authorization',
  'content-type',
  'last-event-id',
  'mcp-method',
  'mcp-name',
  'mcp-protocol-version',
  'mcp-session-id',
  'traceparent',
  'x-request-id',
]
const headersForPages = [
  'mcp-session-id',
  'retry-after',
  'www-authenticate',
  'x-request-id',
  'x-service-error-source',
  'x-service-verdict',
].join(', ')
const preflightSeconds = 600

/** WHATWG Fetch, CORS preflight of an allowed origin. */
export function preflight({ headers, method }: Request): Response | null {
  if (method !== 'OPTIONS' || !headers.has('origin') || !headers.has('access-control-request-method')) return null
  // A tool names the headers of its arguments (2026-07-28, Custom Headers).
  const asked = headers.get('access-control-request-headers')?.toLowerCase() ?? ''
  const named = asked.split(',').flatMap((header) => /^\s*(mcp-param-[\w-]{1,128})\s*$/.exec(header)?.[1] ?? [])
  return new Response(null, {
    status: 204,
    headers: {
      'access-control-allow-methods': methods,
      'access-control-allow-headers': [...headersOfPages, ...named].join(', '),
      'access-control-max-age': String(preflightSeconds),
    },
  })
}

/** Adds the CORS headers for a page of an allowed origin. Cookies are not used. */
export function addCorsHeaders({ headers }: Request, answer: Response): Response {
  const origin = headers.get('origin')
  if (origin === null) return answer
  answer.headers.set('access-control-allow-origin', origin)
  answer.headers.set('access-control-expose-headers', headersForPages)
  answer.headers.append('vary', 'origin')
  return answer
}

/** Sending Messages: callers list both forms. A caller that lists one, or the stream first, gets that one. */
export function answerForm(accept: string | null): AnswerForm {
  const json = accepts(accept, 'application/json')
  const stream = accepts(accept, 'text/event-stream')
  if (accept !== null && /^\s*text\/event-stream\b/i.test(accept)) return 'stream'
  if (json) return stream ? 'either' : 'json'
  if (stream) return 'stream'
  throw new HttpRefusal(406, 'Accept must list application/json and text/event-stream')
}

/** RFC 9110 section 12.5.1, without weights: a refused type counts as not listed. */
export function accepts(header: string | null, type: string): boolean {
  if (header === null) return true
  const [group = ''] = type.split('/')
  return header
    .split(',')
    .map((range) => range.split(';')[0]?.trim().toLowerCase())
    .some((range) => range === type || range === '*/*' || range === `${group}/*`)
}

export const isEventStream = ({ headers }: Response): boolean =>
  headers.get('content-type')?.startsWith('text/event-stream') === true

/** The id of a session, for a caller that has one. */
export const sessionHeader = ({ id, modern }: Session): Record<string, string> =>
  modern ? {} : { 'mcp-session-id': id }

/** Messages of a session as SSE; null when there will be none. */
export const eventStream = (
  stream: ReadableStream<Uint8Array> | null,
  session: Session,
  headers: Record<string, string> = {},
): Response =>
  new Response(stream, {
    headers: {
      'content-type': 'text/event-stream',
      'cache-control': 'no-cache, no-transform',
      'x-accel-buffering': 'no',
      ...sessionHeader(session),
      ...headers,
    },
  })

/** A request whose body has not arrived yet. */
type Arriving = Pick<Exchange, 'request' | 'connection' | 'memory'>

/** Also lifts the server's idle timeout, like `readBodyWithin`. */
export async function receiveMessage(gateway: Gateway, arriving: Arriving): Promise<Message> {
  const { request } = arriving
  const [type = ''] = (request.headers.get('content-type') ?? '').split(';')
  if (type.trim().toLowerCase() !== 'application/json')
    throw new HttpRefusal(415, 'Send the message as application/json')
  return readMessage(parsed(await readBodyWithin(gateway, arriving)))
}

/** Returns null when the body is no readable request. */
export async function requestIdOf(gateway: Gateway, arriving: Arriving): Promise<RpcId | null> {
  try {
    const message = await receiveMessage(gateway, arriving)
    return message.kind === 'request' ? message.id : null
  } catch {
    // The refusal of the caller matters more than a fault of its body.
    return null
  }
}

function parsed(bytes: Uint8Array): unknown {
  try {
    const text = strictUtf8.decode(bytes)
    membersOf(text)
    return parseSpelt(text)
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.code === 'json_too_deep') throw thrown
    throw new McpError(rpcCodes.parseError, 'The body is not valid JSON')
  }
}

type Session = Pick<McpSession, 'id' | 'modern'>

/** The answer to a ping, which needs no server, policy or record. */
export const pingAnswer = ({ id }: RpcRequest, session: Session): Response => selfAnswer(session, resultText(id, {}))

/** The refusal of a method that no supported protocol version has. */
export const methodUnknown = ({ id }: RpcRequest, session: Session): Response =>
  selfAnswer(session, errorText(id, new McpError(rpcCodes.methodNotFound, 'This method is not supported')), {
    'x-service-error-source': 'gateway',
    'x-service-verdict': 'DENY',
  })

const selfAnswer = (session: Session, text: string, headers: Record<string, string> = {}): Response =>
  new Response(text, { headers: { 'content-type': 'application/json', ...sessionHeader(session), ...headers } })

/** The outcome of a request that `refusalAnswer` refused, in the terms of the other routes. */
export function refusalOutcome(thrown: unknown, status: number): Outcome {
  if (thrown instanceof HttpRefusal && thrown.code === rpcCodes.methodNotFound)
    return { verdict: 'deny', reason: 'mcp.unknown_method', status }
  if (thrown instanceof HttpRefusal)
    return { verdict: 'deny', reason: refusalReasons.get(status) ?? 'bad_request', status }
  if (thrown instanceof McpError) {
    return { verdict: 'deny', reason: thrown.code === rpcCodes.parseError ? 'invalid_json' : 'bad_request', status }
  }
  const failure = asFailure(thrown)
  // The body did not arrive before the end of the drain.
  const reason = failure.code === 'draining' ? 'gateway.drained' : failure.code
  return { verdict: verdictOf(failure), reason, status }
}

const refusalReasons: ReadonlyMap<number, ReasonCode> = new Map([
  [404, 'mcp.session_unknown'],
  [406, 'not_acceptable'],
  [415, 'unsupported_media_type'],
])

export function refusalAnswer(thrown: unknown, requestId: string): Response {
  const answerWith = (status: number, text: string, code: string) => {
    const headers: Record<string, string> = { 'content-type': 'application/json', 'x-service-error-source': 'gateway' }
    if (mustNotRetry(status, code)) headers['x-should-retry'] = 'false'
    if (status === 405) headers.allow = methods
    return new Response(text, { status, headers })
  }
  if (thrown instanceof HttpRefusal) {
    const { status, code, message, request } = thrown
    return answerWith(status, errorText(request?.id ?? null, new McpError(code, message, request?.data)), 'bad_request')
  }
  if (thrown instanceof McpError) return answerWith(400, errorText(null, thrown), 'bad_request')
  const failure = asFailure(thrown)
  return answerWith(failure.status, JSON.stringify(rpcFailure(null, failure, requestId)), failure.code)
}
