/**
 * Fields of a request that the gateway interprets and writes differently for the provider, each by an edit of that
 * field (gateway/README.md):
 *
 * - `cache_control` on chat and responses requests prompt caching. If the gateway's record allows it, it becomes
 *   `prompt_cache_key` for a provider that takes one, or a cache marker in a language that has them (`translate.ts`).
 *   Otherwise it is removed. The event notes each case.
 * - `response_format` on responses becomes `text.format`. The reader of the request checks that both agree.
 * - `stream_options.include_usage` is added to streams whose caller did not set it; the relay removes the usage frame.
 *
 * The cache key is an HMAC under the installation's key of the session, or without a session of the common prefix:
 * model, instructions and tools. It reveals neither to the provider.
 */

import { Failure } from '../../failure.ts'
import { memberWith } from '../../languages/families.ts'
import { isObject, type JsonObject } from '../../languages/reading/json-value.ts'
import { textFormatOf } from '../../languages/responses/dialect.ts'
import { parseExactObject } from '../../lib/json/exact-json.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { memberJson } from './member-json.ts'
import { hasCacheMarkers, languageOf } from './translate.ts'

export function translateFields(exchange: Exchange, gateway: Gateway): void {
  const body = required(exchange.parsed)
  const { family } = exchange.dialect
  if (memberWith(family, 'prompt cache') !== undefined) translateCaching(exchange, gateway, body)
  if (family === 'responses') translateFormat(exchange, body)
  const options = memberWith(family, 'usage frame')
  if (options !== undefined) askForUsage(exchange, body, options)
  const tokens = memberWith(family, 'tokens')
  if (tokens !== undefined) noteTokens(exchange, body[tokens])
}

/** No policy can read tokenized input, so the event notes it. */
function noteTokens({ notes }: Exchange, input: unknown): void {
  if (!Array.isArray(input)) return
  if (input.some((part) => typeof part === 'number' || Array.isArray(part))) notes.push('input.tokens_not_read')
}

const invalid = (param: string, message: string): Failure => new Failure('invalid_parameter', { message, param })

function translateCaching(exchange: Exchange, { worker }: Gateway, body: JsonObject): void {
  if (body.cache_control === undefined) return
  exchange.edits.set('cache_control', null)
  if (body.cache_control === null) return
  checkCaching(body.cache_control)
  const path = required(exchange.model)
  const byKey = path.kind.takesCacheKey
  const allowed = worker.view.gateway.promptCaching && (byKey || hasCacheMarkers(languageOf(exchange, path)))
  exchange.notes.push(allowed ? 'cache_control.translated' : 'cache_control.removed')
  if (!allowed || !byKey || body.prompt_cache_key !== undefined) return
  const key = worker.status.promptHash(new TextEncoder().encode(sharedPrefix(exchange, body)))
  exchange.edits.set('prompt_cache_key', JSON.stringify(key.slice(key.indexOf(':') + 1, key.indexOf(':') + 33)))
}

const lifetimes: readonly unknown[] = [undefined, '5m', '1h']

function checkCaching(value: unknown): void {
  if (isObject(value) && value.type === 'ephemeral' && lifetimes.includes(value.ttl)) return
  throw invalid(
    'cache_control',
    'cache_control must be {"type": "ephemeral"}, with a ttl of "5m" or "1h" where it has one',
  )
}

/** The common prefix of requests that share a cache, as text that nothing else is hashed with. */
function sharedPrefix({ sessionId, facts }: Exchange, body: JsonObject): string {
  if (sessionId !== null) return `prompt-cache/session\n${sessionId}`
  const messages = Array.isArray(body.messages) ? body.messages : []
  const firstTurn = messages.findIndex((message) => !isObject(message) || !isInstruction(message.role))
  const instructions = body.instructions ?? messages.slice(0, firstTurn < 0 ? undefined : firstTurn)
  return `prompt-cache/prefix\n${JSON.stringify([facts?.model, instructions, body.tools])}`
}

const isInstruction = (role: unknown): boolean => role === 'system' || role === 'developer'

function translateFormat(exchange: Exchange, body: JsonObject): void {
  const { edits } = exchange
  if (body.response_format === undefined) return
  edits.set('response_format', null)
  const text = isObject(body.text) ? body.text : {}
  if (!isObject(body.response_format) || isObject(text.format)) return
  const format = parseExactObject(memberJson(exchange, 'response_format', body.response_format))
  const rest = parseExactObject(memberJson(exchange, 'text', text))
  edits.set('text', JSON.stringify({ ...rest, format: textFormatOf(required(format)) }))
}

function askForUsage({ edits, facts }: Exchange, body: JsonObject, name: string): void {
  if (!required(facts).stream) return
  const options = body[name] ?? {}
  if (!isObject(options)) throw invalid(name, `${name} must be an object`)
  if (options.include_usage !== true) edits.set(name, JSON.stringify({ ...options, include_usage: true }))
}
