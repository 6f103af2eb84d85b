/**
 * MCP, `POST /mcp`: JSON-RPC messages between a caller and the servers behind the gateway (contract section 6). What
 * policies are shown of a message is made from it, not the message itself:
 *
 *   request   `{method, params, tools: [{name}]}`, where `tools` names what is called as callers know it:
 *             `<server>__<tool>`, a prompt's name alike, a resource by its address. `model.id` is the same name,
 *             `model.provider` the server's.
 *   answer    the result, or `{message, data}` of an error; what a server asks of the caller is an answer too, and what
 *             the caller says to that a request.
 *
 * Objects whose members a server makes up (arguments, structured results, schemas) are one text each, their JSON. Errors
 * are JSON-RPC errors in answers that succeed, but those of the credential, which HTTP says. There are no streams of
 * text: what SSE carries here are whole messages.
 */
import type { Failure, Verdictan } from '../failure.ts'
import type { Dialect, RequestFacts, TextSlot } from './dialect.ts'
import { eventReader } from './event-reader.ts'
import { isObject, type JsonObject, textOf } from './json-value.ts'
import { requestOnly } from './request-only.ts'
import { slotsOf, textsIn } from './texts.ts'

/** JSON-RPC 2.0 section 5.1; from -32000 on the codes are a server's own. */
export const rpcCodes = {
  parseError: -32_700,
  invalidRequest: -32_600,
  methodNotFound: -32_601,
  invalidParams: -32_602,
  internalError: -32_603,
  refused: -32_000,
} as const

export type RpcId = string | number

export const mcp: Dialect = {
  ...requestOnly,
  family: 'mcp',
  route: 'POST /mcp',
  policyStages: ['pre_request', 'post_request', 'pre_response'],
  read: factsOf,
  requestText: (body) => (isObject(body.params) ? memberSlots(body.params, 'params', 'assistant') : []),
  readAnswer: () => ({ usage: null, textLength: 0 }),
  answerText: (body) => (isObject(body) ? memberSlots(body, null, 'tool') : []),
  reader: () => eventReader({ read: () => ({}), endsWithDone: false }),
  errorBody: (failure, requestId) => rpcFailure(null, failure, requestId),
  errorStatus: statusOf,
}

/** The language of the answer to one request: errors carry its id, and a call that waits for a person is a result. */
export const answering = (id: RpcId, method: string): Dialect => ({
  ...mcp,
  errorBody: (failure, requestId) => rpcFailure(id, failure, requestId),
  escalation: (_facts, verdictan) =>
    method === 'tools/call' ? { jsonrpc: '2.0', id, result: waitingResult(verdictan) } : null,
})

function factsOf(body: Readonly<JsonObject>): RequestFacts {
  const [called] = Array.isArray(body.tools) ? body.tools : []
  return {
    model: (isObject(called) ? textOf(called.name) : null) ?? textOf(body.method) ?? '',
    stream: false,
    inputEstimate: 0,
    outputLimit: 0,
    choices: 1,
    beyondBody: false,
    unbounded: null,
    sessionId: null,
  }
}

/** A refused credential, and a scope that is missing, are HTTP's to say (RFC 6750): clients act on that. */
function statusOf({ code, status }: Failure): number {
  return status === 401 || code === 'insufficient_scope' ? status : 200
}

/** A failure as JSON-RPC says it; what a program can act on stands in `data`. `id` is null where no request is answered. */
export function rpcFailure(id: RpcId | null, failure: Failure, requestId: string): JsonObject {
  const { code, type, status, message, param, retryAfter, extra, verdictan } = failure
  const data = {
    ...extra,
    code,
    type,
    status,
    request_id: requestId,
    ...(param === null ? {} : { param }),
    ...(retryAfter === null ? {} : { retry_after: retryAfter }),
    ...(verdictan === null ? {} : { verdictan }),
  }
  return { jsonrpc: '2.0', ...(id === null ? {} : { id }), error: { code: codeOf(failure), message, data } }
}

function codeOf({ code, status }: Failure): number {
  if (code === 'mcp.unknown_name' || code === 'invalid_parameter') return rpcCodes.invalidParams
  return status >= 500 ? rpcCodes.internalError : rpcCodes.refused
}

/** What a model reads where a person has to decide (contract section 6, Escalation). */
const waitingResult = (verdictan: Verdictan): JsonObject => ({
  content: [{ type: 'text', text: 'A person has to decide about this call before it is made. It was not made.' }],
  isError: true,
  verdictan,
})

/** Members whose shape the protocol says: their strings are texts, each by itself. */
const shaped: ReadonlySet<string> = new Set(['content', 'contents', 'messages', 'roots'])

/** The texts of an object's members. `member` is the outermost member it stands in; null where it is the body itself. */
function memberSlots(holder: JsonObject, member: string | null, role: string): TextSlot[] {
  return Object.entries(holder).flatMap(([name, value]): TextSlot[] => {
    const place = member ?? name
    if (typeof value === 'string') {
      const kind = name === 'name' || name === 'role' || name === 'action' ? 'name' : 'content'
      return [{ member: place, kind, role, text: value, replace: (text) => put(holder, name, text) }]
    }
    if (typeof value !== 'object' || value === null) return []
    if (shaped.has(name) && (Array.isArray(value) || typeof Reflect.get(value, 'type') === 'string')) {
      const kind = name !== 'messages' && role === 'tool' ? 'tool_result' : 'content'
      return slotsOf(textsIn({ [name]: value }, { kind }), { member: place, role })
    }
    const text = JSON.stringify(value)
    return [
      { member: place, kind: 'tool_arguments', role, text, replace: (changed) => put(holder, name, parsed(changed)) },
    ]
  })
}

function put(holder: JsonObject, name: string, value: unknown): void {
  holder[name] = value
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // What a policy made of it is no JSON any more: a text that is refused is better than the object as it was.
    return text
  }
}
