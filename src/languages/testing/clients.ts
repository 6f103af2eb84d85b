/**
 * A streamed answer as its events tell it, and as the official client of each language that applications speak reads
 * it.
 */
import Anthropic from '@anthropic-ai/sdk'
import OpenAI from 'openai'
import type { Usage } from '../dialect.ts'
import type { NeutralEvent } from '../neutral.ts'
import type { CallerLanguage, ProviderLanguage } from '../translation-language.ts'
import { framesOf } from './streams.ts'

export const asked = { model: 'm', exchangeId: '0190a0c0-0000-7000-8000-000000000001', includeUsage: true }

const input = [{ role: 'user' as const, content: 'hello' }]
const answering = (stream: string) => ({
  apiKey: 'none',
  maxRetries: 0,
  fetch: async () => new Response(stream, { headers: { 'content-type': 'text/event-stream' } }),
})
export const openaiReading = (stream: string) => new OpenAI(answering(stream))
export const anthropicReading = (stream: string) => new Anthropic(answering(stream))

/** What an answer says, however its language says it. */
export interface Gathered {
  text: string
  refusal: string
  thoughts: string
  calls: { id: string; name: string; arguments: string }[]
  /** Input, of it cached, output, of it thought. */
  usage: (number | null | undefined)[]
  finish: string | null
  errors: string[]
}

export const figures = (usage: Usage | null) => [
  usage?.inputTokens,
  usage?.cachedInputTokens ?? 0,
  usage?.outputTokens,
  usage?.reasoningTokens ?? 0,
]

/** The events of a stream whose bytes come cut at these offsets. */
export function eventsOf(language: ProviderLanguage, bytes: Uint8Array, cuts: readonly number[] = []): NeutralEvent[] {
  const reader = language.streamReader()
  const events = framesOf(bytes, cuts).flatMap(({ event, data }) => (data === null ? [] : reader.frame(event, data)))
  return [...events, ...reader.end()]
}

export function written(language: CallerLanguage, events: readonly NeutralEvent[]): string {
  const writer = language.streamWriter(asked)
  return events.map((event) => writer.event(event)).join('')
}

/** The events of each part joined: which frames they came in makes no difference. */
export function gathered(events: readonly NeutralEvent[]): Gathered {
  const all: Gathered = { text: '', refusal: '', thoughts: '', calls: [], usage: [], finish: null, errors: [] }
  const calls = new Map<number, Gathered['calls'][number]>()
  const kinds = new Map<number, string>()
  for (const event of events) {
    if (event.type === 'part') {
      kinds.set(event.part, event.kind)
      if (event.kind === 'tool_call') calls.set(event.part, { id: event.id, name: event.name, arguments: '' })
    }
    if (event.type === 'text') {
      const kind = kinds.get(event.part)
      const call = calls.get(event.part)
      if (kind === 'text') all.text += event.text
      if (kind === 'refusal') all.refusal += event.text
      if (kind === 'thought') all.thoughts += event.text
      if (call !== undefined) call.arguments += event.text
    }
    if (event.type === 'usage') all.usage = figures(event.usage)
    if (event.type === 'finish') all.finish = event.finish
    if (event.type === 'error') all.errors.push(event.error.code ?? '')
  }
  return { ...all, calls: [...calls.values()] }
}

/** What the official client of chat makes of a stream. */
export async function readByChatClient(stream: string): Promise<Omit<Gathered, 'thoughts' | 'errors'>> {
  const completion = await openaiReading(stream)
    .chat.completions.stream({ model: 'm', messages: input })
    .finalChatCompletion()
  const [choice] = completion.choices
  const calls = (choice?.message.tool_calls ?? []).flatMap((call) =>
    call.type === 'function' ? [{ id: call.id, name: call.function.name, arguments: call.function.arguments }] : [],
  )
  const { usage } = completion
  return {
    text: choice?.message.content ?? '',
    refusal: choice?.message.refusal ?? '',
    calls,
    usage: [
      usage?.prompt_tokens,
      usage?.prompt_tokens_details?.cached_tokens ?? 0,
      usage?.completion_tokens,
      usage?.completion_tokens_details?.reasoning_tokens ?? 0,
    ],
    finish: choice?.finish_reason ?? null,
  }
}

/** What the official client of responses makes of a stream, which must be the whole response that ends it. */
export async function readByResponsesClient(stream: string): Promise<Omit<Gathered, 'errors'>> {
  const response = await openaiReading(stream).responses.stream({ model: 'm', input: 'hello' }).finalResponse()
  const items = response.output
  const spoken = items.flatMap((item) => (item.type === 'message' ? item.content : []))
  const { usage } = response
  return {
    text: response.output_text,
    refusal: spoken.map((part) => (part.type === 'refusal' ? part.refusal : '')).join(''),
    thoughts: items.flatMap((item) => (item.type === 'reasoning' ? item.summary.map(({ text }) => text) : [])).join(''),
    calls: items.flatMap((item) =>
      item.type === 'function_call' ? [{ id: item.call_id, name: item.name, arguments: item.arguments }] : [],
    ),
    usage: [
      usage?.input_tokens,
      usage?.input_tokens_details.cached_tokens,
      usage?.output_tokens,
      usage?.output_tokens_details.reasoning_tokens,
    ],
    finish: response.status ?? null,
  }
}

/** What the official client of messages makes of a stream; arguments are JSON written anew. */
export async function readByMessagesClient(stream: string): Promise<Omit<Gathered, 'errors'>> {
  const message = await anthropicReading(stream)
    .messages.stream({ model: 'm', max_tokens: 5, messages: input })
    .finalMessage()
  const { content, usage, stop_details: details } = message
  const cached = usage.cache_read_input_tokens ?? 0
  return {
    text: content.flatMap((block) => (block.type === 'text' ? block.text : [])).join(''),
    refusal: details?.explanation ?? '',
    thoughts: content.flatMap((block) => (block.type === 'thinking' ? block.thinking : [])).join(''),
    calls: content.flatMap((block) =>
      block.type === 'tool_use' ? { id: block.id, name: block.name, arguments: JSON.stringify(block.input) } : [],
    ),
    usage: [
      usage.input_tokens + cached + (usage.cache_creation_input_tokens ?? 0),
      cached,
      usage.output_tokens,
      usage.output_tokens_details?.thinking_tokens ?? 0,
    ],
    finish: message.stop_reason,
  }
}
