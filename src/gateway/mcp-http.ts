/**
 * What HTTP says on `/mcp` (Streamable HTTP, MCP 2025-11-25): where a page may call from, which forms an answer may have,
 * how a message is read, and how what is wrong with any of these is refused: by a status, with a JSON-RPC error that
 * answers no request.
 */
import { rpcCodes, rpcFailure } from '../dialects/mcp.ts'
import { asFailure, Failure } from '../failure.ts'
import { McpError } from '../mcp/mcp-error.ts'
import { errorText, type Message, readMessage } from '../mcp/surface/json-rpc.ts'
import type { AnswerForm } from '../mcp/surface/running-call.ts'
import type { Gateway } from './exchange.ts'
import { readBody } from './read-body.ts'
import { membersOf } from './read-request.ts'

export const methods = 'GET, POST, DELETE'
const strictUtf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** A refusal that HTTP says: a status, and a JSON-RPC error without an id. */
export class Unfit extends Error {
  readonly status: number
  readonly code: number

  constructor(status: number, message: string, code: number = rpcCodes.refused) {
    super(message)
    this.status = status
    this.code = code
  }
}

/** Security warning of the transport: a wrong Origin is 403. Programs send none. */
export function checkOrigin({ headers }: Request, { lane, settings }: Gateway): void {
  const origin = headers.get('origin')
  if (origin === null || origin === lane.standing.gatewayUrl) return
  if (settings.mcp_origins?.split(' ').includes(origin)) return
  throw new Unfit(403, 'Pages of this origin may not call this')
}

/** Sending Messages: callers list both forms; one that lists one is answered in that. */
export function answerForm(accept: string | null): AnswerForm {
  const json = accepts(accept, 'application/json')
  const stream = accepts(accept, 'text/event-stream')
  if (json) return stream ? 'either' : 'json'
  if (stream) return 'stream'
  throw new Unfit(406, 'Accept must list application/json and text/event-stream')
}

/** RFC 9110 section 12.5.1, without weights: a type that is refused is not listed. */
export function accepts(header: string | null, type: string): boolean {
  if (header === null) return true
  const [group = ''] = type.split('/')
  return header
    .split(',')
    .map((range) => range.split(';')[0]?.trim().toLowerCase())
    .some((range) => range === type || range === '*/*' || range === `${group}/*`)
}

export async function receive({ settings }: Gateway, request: Request): Promise<Message> {
  const [type = ''] = (request.headers.get('content-type') ?? '').split(';')
  if (type.trim().toLowerCase() !== 'application/json') throw new Unfit(415, 'Send the message as application/json')
  const bytes = await readBody(request, settings.body_limit_bytes, 1000 * settings.body_timeout_seconds)
  return readMessage(parsed(bytes))
}

function parsed(bytes: Uint8Array): unknown {
  try {
    const text = strictUtf8.decode(bytes)
    membersOf(text)
    return JSON.parse(text)
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.code === 'json_too_deep') throw thrown
    throw new McpError(rpcCodes.parseError, 'The body is not valid JSON')
  }
}

export function unfitAnswer(thrown: unknown, requestId: string): Response {
  const answerWith = (status: number, text: string) => {
    const headers: Record<string, string> = { 'content-type': 'application/json', 'x-request-id': requestId }
    headers['x-service-error-source'] = 'gateway'
    if (status === 405) headers.allow = methods
    return new Response(text, { status, headers })
  }
  if (thrown instanceof Unfit) {
    return answerWith(thrown.status, errorText(null, new McpError(thrown.code, thrown.message)))
  }
  if (thrown instanceof McpError) return answerWith(400, errorText(null, thrown))
  const failure = asFailure(thrown)
  return answerWith(failure.status, JSON.stringify(rpcFailure(null, failure, requestId)))
}
