/**
 * Each text family against providers of other languages, through the official clients: what arrives, and what is said.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import type OpenAI from 'openai'
import { messagesAnswer, messagesStream } from '../../../test/fakes/messages.ts'
import { responseForm } from '../../languages/testing/response-form.ts'
import { InMemoryLimits } from '../../usage/testing/in-memory-limits.ts'
import { completion, type TestGateway } from '../testing/gateway.ts'
import {
  geminiFrames,
  price,
  sentBody,
  splitResponse,
  sse,
  startTranslating,
  type TranslatingGateway,
} from '../testing/translating.ts'
import { testModel } from '../testing/worker.ts'

let running: TestGateway
let openai: OpenAI
let anthropic: Anthropic
let answers: TranslatingGateway['answers']

beforeEach(async () => {
  ;({ running, openai, anthropic, answers } = await startTranslating())
})
afterEach(() => running.stop())

const words = 'Grüße aus 東京'
const hello = [{ role: 'user' as const, content: 'Hello' }]
const sentHeader = (name: string): string | null => running.seen.at(-1)?.request.headers.get(name) ?? null

const codec = new EventStreamCodec(
  (bytes) => Buffer.from(bytes).toString(),
  (text) => Buffer.from(text),
)
const converseFrames = (frames: readonly (readonly [string, object])[]): Buffer =>
  Buffer.concat(
    frames.map(([event, payload]) =>
      codec.encode({
        headers: {
          ':event-type': { type: 'string', value: event },
          ':message-type': { type: 'string', value: 'event' },
        },
        body: Buffer.from(JSON.stringify(payload)),
      }),
    ),
  )

describe('a messages client', () => {
  test('is answered by a chat provider, which receives none of its headers', async () => {
    answers['/v1/chat/completions'] = () => Response.json(completion)
    const answer = await anthropic.messages.create(
      { model: 'openai', max_tokens: 50, system: 'Be brief', messages: hello },
      { headers: { 'anthropic-beta': 'some' } },
    )
    expect(answer).toMatchObject({
      type: 'message',
      content: [{ type: 'text', text: 'Hello' }],
      stop_reason: 'end_turn',
      usage: { input_tokens: 8, cache_read_input_tokens: 3, output_tokens: 7 },
    })
    expect(sentBody(running)).toMatchObject({ model: 'up-openai', messages: [{ role: 'system' }, { role: 'user' }] })
    expect([sentHeader('anthropic-version'), sentHeader('anthropic-beta')]).toEqual([null, null])
    expect(running.worker.journal.outcomes()).toMatchObject([
      { event_cost_attribution: { input_tokens: 11, output_tokens: 7, cached_input_tokens: 3, provider: 'openai' } },
    ])
  })

  test('is answered although it sends what a chat provider lacks, and the outcome notes what was left out', async () => {
    answers['/v1/chat/completions'] = () => Response.json(completion)
    await anthropic.beta.messages.create({
      model: 'openai',
      max_tokens: 50,
      messages: hello,
      context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] },
      tools: [{ type: 'web_search_20250305', name: 'web_search', max_uses: 8 }],
    })
    expect(Object.keys(sentBody(running)).toSorted()).toEqual(['max_completion_tokens', 'messages', 'model'])
    const notes = ['translation.left_out:context_management', 'translation.left_out:tools.web_search_20250305']
    expect(running.worker.journal.outcomes()).toMatchObject([{ details: { notes } }])
  })

  test('is refused for what a chat provider lacks if the model is translated strictly', async () => {
    const strict = { upstreamModel: 'up-openai', price: price(1), isTranslatedStrictly: true }
    running.worker.catalog.push(testModel({ id: 'strict', providerId: 'openai', ...strict }))
    const ask = (more: object) =>
      anthropic.messages.create({ model: 'strict', max_tokens: 50, messages: hello, ...more }).catch((error) => error)
    const clears = { context_management: { edits: [{ type: 'clear_thinking_20251015', keep: 'all' }] } }
    expect(await ask(clears)).toMatchObject({ status: 400, message: expect.stringContaining('context_management') })
    expect(running.seen).toEqual([])
    answers['/v1/chat/completions'] = () => Response.json(completion)
    expect(await ask({})).toMatchObject({ type: 'message' })
  })

  test('receives the tool calls of a streamed chat answer', async () => {
    const chunk = (delta: object, finish: string | null = null) =>
      `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
    const call = (index: number, id: string, name: string) => ({
      tool_calls: [{ index, id, type: 'function', function: { name, arguments: '' } }],
    })
    const args = (index: number, text: string) => ({ tool_calls: [{ index, function: { arguments: text } }] })
    answers['/v1/chat/completions'] = sse(
      [
        chunk(call(0, 'call_1', 'look')),
        chunk(args(0, '{"at":')),
        chunk(args(0, '"sky"}')),
        chunk(call(1, 'call_2', 'hear')),
        chunk(args(1, '{}')),
        chunk({}, 'tool_calls'),
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', choices: [], usage: { prompt_tokens: 5, completion_tokens: 9, total_tokens: 14 } })}\n\n`,
        'data: [DONE]\n\n',
      ].join(''),
    )
    const tools = ['look', 'hear'].map((name) => ({ name, input_schema: { type: 'object' as const } }))
    const stream = anthropic.messages.stream({ model: 'openai', max_tokens: 50, messages: hello, tools })
    const final = await stream.finalMessage()
    expect(final.content).toMatchObject([
      { type: 'tool_use', id: 'call_1', name: 'look', input: { at: 'sky' } },
      { type: 'tool_use', id: 'call_2', name: 'hear', input: {} },
    ])
    expect([final.stop_reason, final.usage.input_tokens, final.usage.output_tokens]).toEqual(['tool_use', 5, 9])
    expect(sentBody(running).stream_options).toEqual({ include_usage: true })
  })
})

describe('a chat client', () => {
  test('reads a stream of messages, with usage only when it asked for it', async () => {
    answers['/v1/messages'] = sse(messagesStream())
    const ask = async (more: object) => {
      const stream = await openai.chat.completions.create({
        model: 'anthropic',
        messages: hello,
        stream: true,
        ...more,
      })
      const chunks = []
      for await (const chunk of stream) chunks.push(chunk)
      expect(chunks.map(({ choices }) => choices[0]?.delta.content ?? '').join('')).toBe(words)
      return chunks.flatMap(({ usage }) => (usage ? [usage] : []))
    }
    expect(await ask({})).toEqual([])
    expect(await ask({ stream_options: { include_usage: true } })).toMatchObject([
      { prompt_tokens: 11, completion_tokens: 9, prompt_tokens_details: { cached_tokens: 3 } },
    ])
    expect(sentHeader('anthropic-version')).toBe('2023-06-01')
    expect(running.worker.journal.outcomes()).toMatchObject(
      Array.from({ length: 2 }, () => ({ event_cost_attribution: { input_tokens: 11, output_tokens: 9 } })),
    )
  })

  test('receives a provider error in its own form, with Retry-After', async () => {
    answers['/v1/messages'] = () =>
      Response.json(
        { type: 'error', error: { type: 'rate_limit_error', message: 'Slow down' } },
        { status: 429, headers: { 'retry-after': '7' } },
      )
    const answer = await running.chat({ model: 'anthropic', messages: hello })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '7'])
    expect(await answer.json()).toMatchObject({ error: { message: 'Slow down', code: 'rate_limit_error' } })
  })

  test('receives the retry delay that Gemini states in its error body', async () => {
    const details = [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '34.07s' }]
    answers['/v1beta/models/up-gemini:generateContent'] = () =>
      Response.json(
        { error: { code: 429, status: 'RESOURCE_EXHAUSTED', message: 'Slow down', details } },
        { status: 429 },
      )
    const answer = await running.chat({ model: 'gemini', messages: hello })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '35'])
    expect(await answer.json()).toMatchObject({ error: { message: 'Slow down' } })
  })

  test('sends the maximum of the catalog as output limit when the provider requires one', async () => {
    running.worker.catalog.push(testModel({ id: 'long', providerId: 'anthropic', maxOutputTokens: 12_345 }))
    answers['/v1/messages'] = () => new Response(messagesAnswer(), { headers: { 'content-type': 'application/json' } })
    await running.chat({ model: 'long', messages: hello })
    expect(sentBody(running).max_tokens).toBe(12_345)
  })

  test('keeps thinking within a lowered output limit, or leaves it out below the minimum', async () => {
    Object.assign(running.worker, { usageLimits: new InMemoryLimits({ 'token/t/money': 1_500_000 }) })
    const accounts = [{ id: 't', maxRequests: null, maxBudget: 1e10, rateLimitRpm: null, rateLimitTpm: null }]
    const secret = running.worker.addToken({ accounts })
    const upstreamModel = 'claude-sonnet-4-5'
    const known = { id: 'claude', providerId: 'anthropic', upstreamModel, price: price(1), maxOutputTokens: 60_000 }
    running.worker.catalog.push(testModel(known))
    const answer = await running.chat({ model: 'claude', messages: hello, reasoning_effort: 'low' }, { secret })
    expect([answer.status, answer.headers.get('x-should-retry'), await answer.json()]).toMatchObject([
      402,
      'false',
      { error: { code: 'usage_authorization_budget_exceeded', param: 'reasoning_effort' } },
    ])
    expect(running.seen).toEqual([])
    expect(running.worker.journal.opened.size).toBe(0)
  })

  test('is refused before the call when the provider’s language lacks a field of its request', async () => {
    const answer = await running.chat({ model: 'bedrock', messages: hello, seed: 7 })
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      { error: { code: 'translation_unsupported', param: 'seed' } },
    ])
    expect(running.seen).toEqual([])
    expect(running.worker.journal.opened.size).toBe(0)
  })

  test('reads a Converse stream, requested by path and signed', async () => {
    const bytes = converseFrames([
      ['messageStart', { role: 'assistant' }],
      ['contentBlockDelta', { contentBlockIndex: 0, delta: { text: words } }],
      ['contentBlockStop', { contentBlockIndex: 0 }],
      ['messageStop', { stopReason: 'end_turn' }],
      ['metadata', { usage: { inputTokens: 4, outputTokens: 6 } }],
    ])
    answers['/model/anthropic.claude:0/converse-stream'] = () =>
      splitResponse(bytes, 'application/vnd.amazon.eventstream')
    const final = await openai.chat.completions.stream({ model: 'bedrock', messages: hello }).finalChatCompletion()
    expect(final.choices[0]?.message.content).toBe(words)
    expect(sentHeader('authorization')).toStartWith('AWS4-HMAC-SHA256 Credential=AKID/')
    expect(running.worker.journal.outcomes()).toMatchObject([
      { verdict: 'allow', event_cost_attribution: { input_tokens: 4, output_tokens: 6, estimated: false } },
    ])
  })

  test('reads a Gemini stream', async () => {
    const part = (text: string) => ({ candidates: [{ content: { role: 'model', parts: [{ text }] } }] })
    const last = {
      candidates: [{ content: { role: 'model', parts: [{ text: ' 東京' }] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 6, totalTokenCount: 10 },
    }
    answers['/v1beta/models/up-gemini:streamGenerateContent'] = sse(geminiFrames([part('Grüße'), part(' aus'), last]))
    const final = await openai.chat.completions.stream({ model: 'gemini', messages: hello }).finalChatCompletion()
    expect(final.choices[0]?.message.content).toBe(words)
    expect(running.worker.journal.outcomes()).toMatchObject([
      { event_cost_attribution: { input_tokens: 4, output_tokens: 6 } },
    ])
  })

  test('has its cache_control turned into a marker when the gateway’s record allows it', async () => {
    answers['/v1/messages'] = () => new Response(messagesAnswer(), { headers: { 'content-type': 'application/json' } })
    const ask = () =>
      running.chat({
        model: 'anthropic',
        messages: [{ role: 'system', content: 'Rules' }, ...hello],
        cache_control: { type: 'ephemeral', ttl: '1h' },
      })
    await ask()
    expect(JSON.stringify(sentBody(running))).not.toContain('cache_control')
    Object.assign(running.worker.view.gateway, { promptCaching: true })
    await ask()
    expect(sentBody(running).system).toEqual([
      { type: 'text', text: 'Rules', cache_control: { type: 'ephemeral', ttl: '1h' } },
    ])
    expect(running.worker.journal.outcomes().map(({ details }) => details?.notes)).toEqual([
      ['cache_control.removed'],
      ['cache_control.translated'],
    ])
  })

  test('has the marker at the end of the conversation when there is no earlier place', async () => {
    answers['/v1/messages'] = () => new Response(messagesAnswer(), { headers: { 'content-type': 'application/json' } })
    Object.assign(running.worker.view.gateway, { promptCaching: true })
    await running.chat({ model: 'anthropic', messages: hello, cache_control: { type: 'ephemeral' } })
    const content = [{ type: 'text', text: 'Hello', cache_control: { type: 'ephemeral' } }]
    expect(sentBody(running).messages).toEqual([{ role: 'user', content }])
  })

  test('has its numbers forwarded exactly', async () => {
    answers['/v1/messages'] = () => new Response(messagesAnswer(), { headers: { 'content-type': 'application/json' } })
    const schema = '{"type":"object","properties":{"id":{"maximum":12345678901234567890}}}'
    const tools = `[{"type":"function","function":{"name":"look","parameters":${schema}}}]`
    const body = `{"model":"anthropic","messages":[{"role":"user","content":"Hello"}],"tools":${tools}}`
    const headers = { authorization: `Bearer ${running.secret}`, 'content-type': 'application/json' }
    await fetch(`${running.url}/v1/chat/completions`, { method: 'POST', headers, body })
    expect(running.seen.at(-1)?.body).toContain('"maximum":12345678901234567890')
  })
})

describe('a responses client', () => {
  test('reads a stream of messages', async () => {
    answers['/v1/messages'] = sse(messagesStream())
    const final = await openai.responses.stream({ model: 'anthropic', input: 'Hello' }).finalResponse()
    expect([final.status, final.output_text, final.usage?.total_tokens]).toEqual(['completed', words, 20])
  })

  test('reads its own settings in the answer', async () => {
    answers['/v1/messages'] = () => new Response(messagesAnswer(), { headers: { 'content-type': 'application/json' } })
    const settings = { instructions: 'Be brief', max_output_tokens: 64, metadata: { team: 'a' }, temperature: 0.5 }
    const answer = await openai.responses.create({ model: 'anthropic', input: 'Hello', ...settings })
    expect(responseForm.parse(answer)).toMatchObject({ ...settings, tool_choice: 'auto', store: false })
  })
})
