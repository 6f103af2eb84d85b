/**
 * A text frame of a WebSocket as the request that it is, and answers to it as frames (contract section 6, WebSocket).
 *
 * In: the frame's text is the request's body, every byte of it, but for what only a connection can mean: on responses
 * the `type` of the event is left out, and both families are streamed, whether the frame says so or not. Out: the
 * provider's frames pass as they came; what the gateway itself has to say becomes `{type:"error", status, error,
 * request_id, verdictan?}`, and that always ends the answer.
 */
import type { Dialect, StreamReader } from '../dialects/dialect.ts'
import { envelope, Failure } from '../failure.ts'
import { type JsonMembers, jsonMembers, replaceValue } from '../lib/json-members.ts'
import { type Exchange, given } from './exchange.ts'

const maxDepth = 64
const createEvent = 'response.create'
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** The stage that makes a request of a frame. Throws `invalid_json`, `json_too_deep` and `invalid_parameter`. */
export function readFrame(exchange: Exchange): void {
  const text = decoder.decode(given(exchange.body))
  const event = parseObject(text)
  if (membersOf(text).repeated) {
    throw new Failure('invalid_json', { message: 'The frame names one of its members twice' })
  }
  const fields = exchange.dialect.family === 'responses' ? fieldsOfEvent(text, event) : text
  exchange.body = encoder.encode(streamed(fields))
  exchange.contentType = 'application/json'
}

function parseObject(text: string): Record<string, unknown> {
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch (thrown) {
    throw new Failure('invalid_json', { message: 'The frame is not valid JSON', cause: thrown })
  }
  if (!isObject(value)) throw new Failure('invalid_json', { message: 'The frame is not a JSON object' })
  return value
}

function membersOf(text: string): JsonMembers {
  try {
    return jsonMembers(text, maxDepth)
  } catch (thrown) {
    throw new Failure('json_too_deep', { cause: thrown })
  }
}

/** The fields of a `response.create` event, which are those of `POST /v1/responses`. */
function fieldsOfEvent(text: string, { type, stream_id: lane }: Record<string, unknown>): string {
  if (type !== createEvent) {
    throw new Failure('invalid_parameter', { message: `The only event this accepts is ${createEvent}`, param: 'type' })
  }
  if (lane !== undefined) {
    throw new Failure('invalid_parameter', {
      message: 'Requests of one connection run in order and have no lanes: leave stream_id out',
      param: 'stream_id',
    })
  }
  return withoutMember(text, 'type')
}

function streamed(text: string): string {
  const { names, spans } = membersOf(text)
  const span = spans[names.indexOf('stream')]
  if (span !== undefined) {
    return text.slice(...span).trim() === 'true' ? text : replaceValue(text, span, 'true')
  }
  const last = spans.at(-1)
  const end = last === undefined ? text.indexOf('{') + 1 : text.slice(0, last[1]).trimEnd().length
  return `${text.slice(0, end)}${last === undefined ? '' : ','}"stream":true${text.slice(end)}`
}

/** The text of an object without one of its members and the comma that belonged to it. */
function withoutMember(text: string, name: string): string {
  const { names, spans } = membersOf(text)
  const index = names.indexOf(name)
  const span = spans[index]
  if (span === undefined) return text
  const before = spans[index - 1]
  const start = before === undefined ? text.indexOf('{') + 1 : before[1]
  const isFirstOfMany = before === undefined && names.length > 1
  return text.slice(0, start) + text.slice(isFirstOfMany ? span[1] + 1 : span[1])
}

/** A dialect as it is spoken over a WebSocket: the same but for the gateway's own errors. */
export const overSocket = (dialect: Dialect): Dialect => ({
  ...dialect,
  errorBody: errorFrame,
  reader: () => framed(dialect.reader()),
})

const errorFrame = (failure: Failure, requestId: string) => ({
  type: 'error',
  status: failure.status,
  ...envelope(failure, requestId),
})

const framed = (reader: StreamReader): StreamReader => ({
  frame: (frame) => reader.frame(frame),
  open: (frame) => reader.open(frame),
  delta: (channel, text) => reader.delta(channel, text),
  endFrames: () => reader.endFrames(),
  escalationFrames: (verdictan, requestId) => reader.escalationFrames(verdictan, requestId),
  errorFrames: (failure, requestId) => encoder.encode(`data: ${JSON.stringify(errorFrame(failure, requestId))}\n\n`),
})

/** The provider's own refusal as an error frame: its error object where its body has one. */
export function providerErrorFrame(status: number, body: string, requestId: string): string {
  const { code, type, message } = new Failure('upstream_provider_error', {
    message: `The provider refused the request with status ${status}`,
  })
  const error = errorOf(body) ?? { message, type, param: null, code }
  return JSON.stringify({ type: 'error', status, error, request_id: requestId })
}

function errorOf(body: string): unknown {
  try {
    const said: unknown = JSON.parse(body)
    return isObject(said) && isObject(said.error) ? said.error : null
  } catch {
    // Not every provider's refusal is JSON; then there is nothing of it that an error frame could carry.
    return null
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value)
