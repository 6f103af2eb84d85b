/**
 * Turns a text frame into a request and answers into frames (gateway/README.md, WebSocket).
 *
 * In: the text of the frame is the request body, byte for byte, except what only a connection can mean. On responses
 * the members of the event (`type`, `generate`) are removed, and a frame that continues the connection's last response
 * is completed with it (`conversation.ts`). Both families are always streamed. Out: frames of the provider pass
 * unchanged; errors of the gateway become `{type:"error", status, error, request_id, verdictan?}`, which ends the
 * answer.
 */

import { envelope, Failure } from '../../failure.ts'
import type { Dialect, StreamReader } from '../../languages/dialect.ts'
import { isGiven, isObject, type JsonObject, parseObject } from '../../languages/reading/json-value.ts'
import { editMembers, type JsonMembers, memberText } from '../../lib/json/json-members.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { membersOf } from '../request/read-request.ts'
import type { Conversation } from './conversation.ts'

const createEvent = 'response.create'
const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { ignoreBOM: true })

/** Admits the frame's bytes, with those of the conversation that it may continue. */
export const admitFrame = ({ body, memory }: Exchange, conversation: Conversation | null): Promise<void> | void =>
  memory.admit(required(body).length + (conversation?.length ?? 0))

/**
 * The stage that turns a frame into a request. Throws `invalid_json`, `json_too_deep`, `invalid_parameter`,
 * `previous_response_not_found` and `request_too_large`.
 */
export function readFrame(exchange: Exchange, { settings }: Gateway, conversation: Conversation | null): void {
  const text = decoder.decode(required(exchange.body))
  const event = parseObject(text)
  if (event === null) throw new Failure('invalid_json', { message: 'The frame is not a JSON object' })
  const members = membersOf(text)
  if (members.repeated) {
    throw new Failure('invalid_json', { message: 'The frame names one of its members twice' })
  }
  const edits = new Map<string, string | null>()
  if (event.stream !== true) edits.set('stream', 'true')
  if (conversation !== null) {
    checkEvent(event)
    edits.set('type', null)
    edits.set('generate', null)
    const whole = conversation.begin(event, itemsOf(event.input, text, members))
    if (whole !== null) {
      checkLength(whole, settings.body_limit_bytes)
      edits.set('previous_response_id', null)
      edits.set('input', `[${whole}]`)
    }
  }
  const body = edits.size === 0 ? required(exchange.body) : encoder.encode(editMembers(text, members, edits))
  exchange.body = body
  exchange.memory.shrink(body.length)
  exchange.contentType = 'application/json'
}

/** Refuses all but a `response.create` event, whose fields are those of `POST /v1/responses`. */
function checkEvent({ type, stream_id: streamId, generate, background }: Readonly<JsonObject>): void {
  if (type !== createEvent) {
    throw new Failure('invalid_parameter', { message: `The only event this accepts is ${createEvent}`, param: 'type' })
  }
  if (streamId !== undefined) {
    throw new Failure('invalid_parameter', {
      message: 'A connection runs one response at a time: leave stream_id out, or open another connection',
      param: 'stream_id',
    })
  }
  if (background === true) {
    const message = 'A connection answers its frames itself: send a response in the background with POST /v1/responses'
    throw new Failure('invalid_parameter', { message, param: 'background' })
  }
  if (isGiven(generate) && typeof generate !== 'boolean') {
    throw new Failure('invalid_parameter', { message: 'generate must be true or false', param: 'generate' })
  }
}

function checkLength(items: string, limit: number): void {
  if (Buffer.byteLength(items) <= limit) return
  throw new Failure('request_too_large', { message: `The conversation is larger than the limit of ${limit} bytes` })
}

/** The items of the input as the elements of a JSON array; a text stands for one message of the user. */
function itemsOf(input: unknown, text: string, members: JsonMembers): string {
  if (!isGiven(input)) return ''
  const json = memberText(text, members, 'input')
  if (Array.isArray(input)) return json.slice(1, -1).trim()
  if (typeof input === 'string') return `{"type":"message","role":"user","content":${json}}`
  throw new Failure('invalid_parameter', { message: 'input must be a text or a list of items', param: 'input' })
}

/** A dialect as it is spoken over a WebSocket: the same but for the gateway's own errors. */
export const socketFrames = (dialect: Dialect): Dialect => ({
  ...dialect,
  errorBody: errorFrame,
  reader: (start) => framed(dialect.reader(start)),
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
  isWhole: (choices) => reader.isWhole?.(choices) === true,
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

/** Null where the refusal is no JSON: then there is nothing of it that an error frame could carry. */
function errorOf(body: string): JsonObject | null {
  const error = parseObject(body)?.error
  return isObject(error) ? error : null
}
