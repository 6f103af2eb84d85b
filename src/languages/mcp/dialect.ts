/**
 * MCP, `POST /mcp`: JSON-RPC messages between a caller and the servers behind the gateway (gateway/README.md). What
 * policies are shown of a message is made from it, not the message itself:
 *
 *   request   `{method, params, tools: [{name}]}`, where `tools` names what is called as callers know it:
 *             `<server>__<tool>`, a prompt's name alike, a resource by its address. `model.id` is the same name,
 *             `model.provider` the server's.
 *   answer    the result, or `{message, data}` of an error; what a server asks of the caller is an answer too, and what
 *             the caller says to that a request.
 *
 * Objects whose members a server makes up (arguments, structured results, schemas) are one text each, their JSON.
 * What a result holds in base64 is a text where its media type says so, and otherwise not looked at. Errors are
 * JSON-RPC errors in answers that succeed, but those of the credential, which HTTP says. There are no streams of
 * text: what SSE carries here are whole messages.
 */
import { type Failure, type Verdictan, waitingWords } from '../../failure.ts'
import { type RpcId, rpcCodes } from '../../lib/json/json-rpc.ts'
import type { Dialect, RequestFacts } from '../dialect.ts'
import { eventReader } from '../reading/frames/event-reader.ts'
import { isObject, type JsonObject, textOf } from '../reading/json-value.ts'
import { requestOnly } from '../reading/request-only.ts'
import { base64OfText, isTextual, textOfBase64 } from '../reading/texts/encoded-text.ts'
import type { TextSlot } from '../reading/texts/text-slot.ts'
import { replacedArguments, slotsOf, textsIn } from '../reading/texts/texts.ts'

export const mcp: Dialect = {
  ...requestOnly,
  family: 'mcp',
  read: factsOf,
  requestText: ({ params }) =>
    isObject(params) ? [...memberSlots(params, 'params', 'assistant'), ...decodedAddress(params)] : [],
  readAnswer: () => ({ usage: null, textLength: 0 }),
  answerText: (body) => (isObject(body) ? memberSlots(body, null, 'tool') : []),
  reader: () => eventReader({ read: () => ({}), endsWithDone: false }),
  errorBody: (failure, requestId) => rpcFailure(null, failure, requestId),
  errorStatus,
}

/** For requests that are not JSON-RPC (GET, DELETE), the HTTP status reports the failure. */
export const withoutRequest: Dialect = { ...mcp, errorStatus: ({ status }) => status }

/** The request that is answered; `id` is null while it is unknown, or if nothing is answered. */
interface Asked {
  readonly id: RpcId | null
  readonly method: string
  readonly params?: Readonly<JsonObject>
  /** Whether the server was called: a person then decides about its answer. */
  readonly sent: boolean
  readonly session?: { readonly modern: boolean } | null
}

/**
 * The language of the answer to one request: errors carry its id. Failures that a model should read so that it can
 * continue are results, not errors: a call that waits for a person, and an unknown tool, as the official library's
 * servers report it.
 */
export const answering = (asked: Asked): Dialect =>
  // Created twice for each request, so the common members are not copied.
  Object.assign<Dialect, Pick<Dialect, 'errorBody' | 'escalation'>>(Object.create(mcp), {
    errorBody(failure, requestId) {
      const result =
        failure.code === 'mcp.unknown_tool' ? failedResult(failure.message, asked) : neededInput(failure, asked)
      return result === null
        ? rpcFailure(asked.id, failure, requestId, waitingMessage(failure, asked))
        : { jsonrpc: '2.0', id: asked.id, result }
    },
    escalation: (_facts, verdictan) =>
      asked.method === 'tools/call' ? { jsonrpc: '2.0', id: asked.id, result: waitingResult(asked, verdictan) } : null,
  })

const waitingMessage = ({ code, message, verdictan }: Failure, { sent }: Asked): string =>
  code === 'policy.escalated' && verdictan !== null ? waitingText(sent, verdictan) : message

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

/**
 * The HTTP status of an answer: a refused credential and a missing scope need an HTTP status (RFC 6750), because
 * clients act on it.
 */
export function errorStatus({ code, status }: Failure): number {
  return status === 401 || code === 'insufficient_scope' ? status : 200
}

/** A failure as a JSON-RPC error; data for programs is in `data`. `id` is null if no request is answered. */
export function rpcFailure(
  id: RpcId | null,
  failure: Failure,
  requestId: string,
  message: string = failure.message,
): JsonObject {
  const { code, type, status, param, retryAfter, extra, verdictan } = failure
  const { elicitation: _way, elicitation_id: _id, ...shown } = extra
  const data = {
    ...shown,
    code,
    type,
    status,
    request_id: requestId,
    ...(param === null ? {} : { param }),
    ...(retryAfter === null ? {} : { retry_after: retryAfter }),
    ...(verdictan === null ? {} : { verdictan }),
    ...elicitations(failure, message),
  }
  return { jsonrpc: '2.0', ...(id === null ? {} : { id }), error: { code: codeOf(failure), message, data } }
}

/** What the client shows its person (MCP 2025-11-25, Elicitation, URL Elicitation Required Error). */
const elicitations = ({ extra: { elicitation, elicitation_id, connect_url } }: Failure, message: string): JsonObject =>
  elicitation === 'error'
    ? { elicitations: [{ mode: 'url', elicitationId: elicitation_id, url: connect_url, message }] }
    : {}

/** Requests that may be answered by asking for input (MCP 2026-07-28, Multi Round-Trip Requests). */
const asksForInput: ReadonlySet<string> = new Set(['tools/call', 'prompts/get', 'resources/read'])

/**
 * The same as a result, after which the client sends its request again; null where it is an error. A client that was
 * asked already gets the error: it sends its request again at once, long before its person has connected.
 */
function neededInput({ extra, message }: Failure, { method, params }: Asked): JsonObject | null {
  const answers = params?.inputResponses
  const wasAsked = isObject(answers) && answers.connect !== undefined
  if (extra.elicitation !== 'input_required' || !asksForInput.has(method) || wasAsked) return null
  const connect = { method: 'elicitation/create', params: { mode: 'url', url: extra.connect_url, message } }
  return { resultType: 'input_required', inputRequests: { connect } }
}

function codeOf({ code, status, extra }: Failure): number {
  if (extra.elicitation === 'error') return rpcCodes.urlElicitationRequired
  if (code === 'mcp.unknown_name' || code === 'invalid_parameter') return rpcCodes.invalidParams
  return status >= 500 ? rpcCodes.internalError : rpcCodes.refused
}

/** `sent`: the server has done it, and its result waits. */
const waitingText = (sent: boolean, verdictan: Verdictan): string =>
  sent
    ? `This was done, and its result is held. ${waitingWords(verdictan)} That does it again.`
    : `It was not done. ${waitingWords(verdictan)}`

/** The text for the model if a person has to decide (gateway/README.md, Escalations). */
const waitingResult = (asked: Asked, verdictan: Verdictan): JsonObject => ({
  ...failedResult(waitingText(asked.sent, verdictan), asked),
  verdictan,
})

/** Clients of 2026-07-28 take no result without a type. */
const failedResult = (text: string, { session }: Asked): JsonObject => ({
  content: [{ type: 'text', text }],
  isError: true,
  ...(session?.modern === true && { resultType: 'complete' }),
})

/** Members whose shape the protocol defines: each of their strings is a text of its own. */
const shaped: ReadonlySet<string> = new Set(['content', 'contents', 'messages', 'roots'])

/** The texts of an object's members. `member` is the outermost member; null for the body itself. */
function memberSlots(holder: JsonObject, member: string | null, role: string): TextSlot[] {
  return Object.entries(holder).flatMap(([name, value]): TextSlot[] => {
    const place = member ?? name
    if (typeof value === 'string') {
      const kind = name === 'name' || name === 'role' || name === 'action' ? 'name' : 'content'
      return [{ member: place, kind, role, text: value, replace: (text) => put(holder, name, text) }]
    }
    if (typeof value !== 'object' || value === null || JSON.isRawJSON(value)) return []
    if (shaped.has(name) && (Array.isArray(value) || typeof Reflect.get(value, 'type') === 'string')) {
      const kind = name !== 'messages' && role === 'tool' ? 'tool_result' : 'content'
      return [
        ...slotsOf(textsIn({ [name]: value }, { kind }), { member: place, role }),
        ...blobSlots(value, place, role),
      ]
    }
    const text = JSON.stringify(value)
    return [
      {
        member: place,
        kind: 'tool_arguments',
        role,
        text,
        replace: (changed) => put(holder, name, replacedArguments(changed)),
      },
    ]
  })
}

/**
 * The address that a request names, decoded as a server decodes it, so that percent-encoding hides nothing from
 * policies. If a policy changes it, it is no longer the caller's address, and the call is refused.
 */
function decodedAddress(params: JsonObject): TextSlot[] {
  const { uri, ref } = params
  const address = textOf(uri) ?? (isObject(ref) ? textOf(ref.uri) : null)
  if (address === null) return []
  const text = percentDecoded(address)
  if (text === address) return []
  const replace = (changed: string) =>
    isObject(ref) && typeof uri !== 'string'
      ? put(params, 'ref', { ...ref, uri: changed })
      : put(params, 'uri', changed)
  return [{ member: 'params', kind: 'content', role: 'assistant', text, replace }]
}

/** Decoded once. Invalid UTF-8 does not hide the other bytes: each invalid byte becomes U+FFFD. */
const percentDecoded = (address: string): string =>
  address.replaceAll(/(?:%[0-9A-Fa-f]{2})+/g, (run) => Buffer.from(run.replaceAll('%', ''), 'hex').toString('utf8'))

/** The container of a text: its block, its labels. */
const mostAroundText = 8

/**
 * Whether a message, or its parameters, has so many parts that it must have more than `most` texts. It reads none of
 * them, because creating a million slots is the cost to avoid.
 */
export function isScattered(holder: JsonObject, most: number): boolean {
  let left = most * mostAroundText
  const visit = (value: unknown): void => {
    left -= 1
    if (left < 0 || typeof value !== 'object' || value === null) return
    for (const inner of Array.isArray(value) ? value : Object.values(value)) {
      visit(inner)
      if (left < 0) return
    }
  }
  for (const [name, value] of Object.entries(holder)) if (shaped.has(name)) visit(value)
  return left < 0
}

/** The text in base64 whose media type says that it is text; other media are not read. */
function blobSlots(value: unknown, member: string, role: string): TextSlot[] {
  if (Array.isArray(value)) return value.flatMap((element) => blobSlots(element, member, role))
  if (!isObject(value)) return []
  const isText = typeof value.mimeType === 'string' && isTextual(value.mimeType)
  return Object.entries(value).flatMap(([name, inner]): TextSlot[] => {
    if (typeof inner !== 'string') return blobSlots(inner, member, role)
    if (!isText || (name !== 'blob' && name !== 'data')) return []
    const text = textOfBase64(inner)
    const replace = (changed: string) => put(value, name, base64OfText(changed))
    return [{ member, kind: 'tool_result', role, text, replace }]
  })
}

function put(holder: JsonObject, name: string, value: unknown): void {
  holder[name] = value
}
