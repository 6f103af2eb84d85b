/** What the gateway reads of a response, and the responses it writes itself. */
import { type Verdictan, waitingWords } from '../../failure.ts'
import type { Usage } from '../dialect.ts'
import { countOf, isObject, type JsonObject, objectsOf, textOf } from '../reading/json-value.ts'
import { plainId, startedAt } from '../reading/request-fields.ts'
import { settingsEcho } from './settings-echo.ts'

/** Calls that are billed by the use. */
const billedCalls = new Set(['web_search_call', 'file_search_call'])

/**
 * What a response says it took; its output tells which tools were used. Realtime responses state the details under
 * other names.
 */
export function readUsage({ usage, output: items, service_tier: serviceTier }: JsonObject): Usage | null {
  if (!isObject(usage)) return null
  const input = usage.input_tokens_details ?? usage.input_token_details
  const output = usage.output_tokens_details ?? usage.output_token_details
  const read: Usage = {
    inputTokens: countOf(usage.input_tokens),
    outputTokens: countOf(usage.output_tokens),
    cachedInputTokens: isObject(input) ? countOf(input.cached_tokens) : null,
    cacheWriteTokens: isObject(input) ? countOf(input.cache_write_tokens) : null,
    reasoningTokens: isObject(output) ? countOf(output.reasoning_tokens) : null,
  }
  const kept = isObject(input) ? countOf(input.cache_write_1h_tokens) : null
  if (kept) read.cacheWriteHourTokens = kept
  const uses = objectsOf(items).filter(({ type }) => billedCalls.has(textOf(type) ?? '')).length
  if (uses > 0) read.toolUses = uses
  addAudio(read, input, output)
  const tier = textOf(serviceTier)
  if (tier) read.serviceTier = tier
  return read.inputTokens === null && read.outputTokens === null ? null : read
}

/** Audio tokens, if any are reported. Those that a cache gave are among the cached ones. */
function addAudio(read: Usage, input: unknown, output: unknown): void {
  const heard = isObject(input) ? countOf(input.audio_tokens) : null
  const spoken = isObject(output) ? countOf(output.audio_tokens) : null
  if (heard && isObject(input)) {
    const cached = isObject(input.cached_tokens_details) ? countOf(input.cached_tokens_details.audio_tokens) : null
    read.audioInputTokens = Math.max(0, heard - (cached ?? 0))
  }
  if (spoken) read.audioOutputTokens = spoken
}

/** Characters of the generated text in output items. */
export function generatedLength(output: unknown): number {
  let length = 0
  for (const item of objectsOf(output)) {
    for (const { text, refusal } of [...objectsOf(item.content), ...objectsOf(item.summary)]) {
      length += (textOf(text) ?? textOf(refusal) ?? '').length
    }
    length += (textOf(item.arguments) ?? textOf(item.input) ?? textOf(item.code) ?? '').length
  }
  return length
}

/** A response that the gateway writes, with every member that clients require. `request`: its settings are repeated. */
export const ownResponse = (model: string, exchangeId: string, request: Readonly<JsonObject> = {}): JsonObject => ({
  id: `resp_${plainId(exchangeId)}`,
  object: 'response',
  created_at: startedAt(exchangeId),
  completed_at: null,
  status: 'in_progress',
  error: null,
  incomplete_details: null,
  model,
  output: [],
  ...settingsEcho(request),
  usage: null,
})

/** The events of a response without output, as `generate: false` asks for over a WebSocket. */
export function emptyResponse(model: string, exchangeId: string, request: Readonly<JsonObject>): readonly JsonObject[] {
  const begun = ownResponse(model, exchangeId, request)
  const none = { input_tokens: 0, output_tokens: 0, total_tokens: 0 }
  const usage = { ...none, input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } }
  const whole = { ...begun, status: 'completed', completed_at: begun.created_at, usage }
  return [
    { type: 'response.created', sequence_number: 0, response: begun },
    { type: 'response.in_progress', sequence_number: 1, response: begun },
    { type: 'response.completed', sequence_number: 2, response: whole },
  ]
}

/** What makes a response one that waits for a person (gateway/README.md, Escalations). */
export const waiting = (verdictan: Verdictan, exchangeId: string, textOnly = false): JsonObject => ({
  ...(textOnly
    ? { status: 'completed', completed_at: startedAt(exchangeId) }
    : { status: 'incomplete', incomplete_details: { reason: 'content_filter' } }),
  output: [waitingItem(verdictan, exchangeId)],
  verdictan,
})

/** Who decides, as a message of the assistant: clients show its text, and Codex no refusal. */
const waitingItem = (verdictan: Verdictan, exchangeId: string): JsonObject => ({
  ...{ type: 'message', id: `msg_${plainId(exchangeId)}`, status: 'completed', role: 'assistant' },
  content: [{ type: 'output_text', text: waitingWords(verdictan), annotations: [], logprobs: [] }],
})

/** The events that stream such a message as the first item. */
export function waitingItemEvents(verdictan: Verdictan, exchangeId: string): JsonObject[] {
  const item = waitingItem(verdictan, exchangeId)
  const text = waitingWords(verdictan)
  const [part = {}] = objectsOf(item.content)
  const place = { item_id: item.id, output_index: 0, content_index: 0 }
  return [
    { type: 'response.output_item.added', output_index: 0, item: { ...item, status: 'in_progress', content: [] } },
    { type: 'response.content_part.added', ...place, part: { ...part, text: '' } },
    { type: 'response.output_text.delta', ...place, delta: text, logprobs: [] },
    { type: 'response.output_text.done', ...place, text, logprobs: [] },
    { type: 'response.content_part.done', ...place, part },
    { type: 'response.output_item.done', output_index: 0, item },
  ]
}
