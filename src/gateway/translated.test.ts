/** Each text family against providers of other languages, through the official clients: what arrives, and what is said. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import type OpenAI from 'openai'
import { messageFrames, messagesAnswer, messagesStream } from '../../test/fakes/messages.ts'
import { compilePolicySet } from '../policies/chain.ts'
import { TestAllowances } from '../usage/test-allowances.ts'
import { completion, type TestGateway } from './test-gateway.ts'
import { testModel } from './test-lane.ts'
import { policy } from './test-policies.ts'
import { price, sentBody, startTranslating } from './test-translating.ts'

let running: TestGateway
let openai: OpenAI
let anthropic: Anthropic
let answers: Record<string, () => Response>

beforeEach(async () => {
  ;({ running, openai, anthropic, answers } = await startTranslating())
})
afterEach(() => running.stop())

const words = 'Grüße aus 東京'
const hello = [{ role: 'user' as const, content: 'Hello' }]
const sse = (bytes: Uint8Array | string) => () => inPieces(Buffer.from(bytes), 'text/event-stream')

/** The bytes in pieces of three, so that frames and characters are cut. */
function inPieces(bytes: Buffer, type: string): Response {
  let at = 0
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      if (at >= bytes.length) return controller.close()
      controller.enqueue(new Uint8Array(bytes.subarray(at, at + 3)))
      at += 3
    },
  })
  return new Response(body, { headers: { 'content-type': type } })
}

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

const geminiFrames = (frames: readonly object[]): string =>
  frames.map((frame) => `data: ${JSON.stringify(frame)}\r\n\r\n`).join('')

describe('a messages client', () => {
  test('is answered by a chat provider, which is sent none of its headers', async () => {
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
    expect(running.lane.journal.outcomes()).toMatchObject([
      { event_cost_attribution: { input_tokens: 11, output_tokens: 7, cached_input_tokens: 3, provider: 'openai' } },
    ])
  })

  test('is told of tools that a streamed chat answer calls', async () => {
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
  test('reads a stream of messages, its usage only where it asked for it', async () => {
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
    expect(running.lane.journal.outcomes()).toMatchObject(
      Array.from({ length: 2 }, () => ({ event_cost_attribution: { input_tokens: 11, output_tokens: 9 } })),
    )
  })

  test('is told a provider’s error in its own form, with when to try again', async () => {
    answers['/v1/messages'] = () =>
      Response.json(
        { type: 'error', error: { type: 'rate_limit_error', message: 'Slow down' } },
        { status: 429, headers: { 'retry-after': '7' } },
      )
    const answer = await running.chat({ model: 'anthropic', messages: hello })
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([429, '7'])
    expect(await answer.json()).toMatchObject({ error: { message: 'Slow down', code: 'rate_limit_error' } })
  })

  test('is told when to try Gemini again, which says so in its body', async () => {
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

  test('has the catalog’s maximum as its limit where the provider needs one and it gave none', async () => {
    running.lane.catalog.push(testModel({ id: 'long', providerId: 'anthropic', maxOutputTokens: 12_345 }))
    answers['/v1/messages'] = () => new Response(messagesAnswer(), { headers: { 'content-type': 'application/json' } })
    await running.chat({ model: 'long', messages: hello })
    expect(sentBody(running).max_tokens).toBe(12_345)
  })

  test('is not asked to think with less than it can where a budget lowers its limit', async () => {
    Object.assign(running.lane, { allowances: new TestAllowances({ 'token/t/money': 1_500_000 }) })
    const accounts = [{ id: 't', maxRequests: null, maxBudget: 1e10, rateLimitRpm: null, rateLimitTpm: null }]
    const secret = running.lane.addToken({ accounts })
    const upstreamModel = 'claude-sonnet-4-5'
    const known = { id: 'claude', providerId: 'anthropic', upstreamModel, price: price(1), maxOutputTokens: 60_000 }
    running.lane.catalog.push(testModel(known))
    const answer = await running.chat({ model: 'claude', messages: hello, reasoning_effort: 'low' }, { secret })
    expect([answer.status, answer.headers.get('x-should-retry'), await answer.json()]).toMatchObject([
      402,
      'false',
      { error: { code: 'usage_authorization_budget_exceeded', param: 'reasoning_effort' } },
    ])
    expect(running.seen).toEqual([])
    expect(running.lane.journal.opened.size).toBe(0)
  })

  test('is refused what the provider’s language cannot say, before anything is sent', async () => {
    const answer = await running.chat({ model: 'bedrock', messages: hello, seed: 7 })
    expect([answer.status, await answer.json()]).toMatchObject([
      400,
      { error: { code: 'translation_unsupported', param: 'seed' } },
    ])
    expect(running.seen).toEqual([])
    expect(running.lane.journal.opened.size).toBe(0)
  })

  test('reads a stream of Converse, asked by its path and signed', async () => {
    const bytes = converseFrames([
      ['messageStart', { role: 'assistant' }],
      ['contentBlockDelta', { contentBlockIndex: 0, delta: { text: words } }],
      ['contentBlockStop', { contentBlockIndex: 0 }],
      ['messageStop', { stopReason: 'end_turn' }],
      ['metadata', { usage: { inputTokens: 4, outputTokens: 6 } }],
    ])
    answers['/model/anthropic.claude:0/converse-stream'] = () => inPieces(bytes, 'application/vnd.amazon.eventstream')
    const final = await openai.chat.completions.stream({ model: 'bedrock', messages: hello }).finalChatCompletion()
    expect(final.choices[0]?.message.content).toBe(words)
    expect(sentHeader('authorization')).toStartWith('AWS4-HMAC-SHA256 Credential=AKID/')
    expect(running.lane.journal.outcomes()).toMatchObject([
      { verdict: 'allow', event_cost_attribution: { input_tokens: 4, output_tokens: 6, estimated: false } },
    ])
  })

  test('reads a stream of Gemini', async () => {
    const part = (text: string) => ({ candidates: [{ content: { role: 'model', parts: [{ text }] } }] })
    const last = {
      candidates: [{ content: { role: 'model', parts: [{ text: ' 東京' }] }, finishReason: 'STOP' }],
      usageMetadata: { promptTokenCount: 4, candidatesTokenCount: 6, totalTokenCount: 10 },
    }
    answers['/v1beta/models/up-gemini:streamGenerateContent'] = sse(geminiFrames([part('Grüße'), part(' aus'), last]))
    const final = await openai.chat.completions.stream({ model: 'gemini', messages: hello }).finalChatCompletion()
    expect(final.choices[0]?.message.content).toBe(words)
    expect(running.lane.journal.outcomes()).toMatchObject([
      { event_cost_attribution: { input_tokens: 4, output_tokens: 6 } },
    ])
  })

  test('has its cache_control made a marker where the gateway’s record allows it', async () => {
    answers['/v1/messages'] = () => new Response(messagesAnswer(), { headers: { 'content-type': 'application/json' } })
    const ask = () =>
      running.chat({
        model: 'anthropic',
        messages: [{ role: 'system', content: 'Rules' }, ...hello],
        cache_control: { type: 'ephemeral', ttl: '1h' },
      })
    await ask()
    expect(JSON.stringify(sentBody(running))).not.toContain('cache_control')
    Object.assign(running.lane.view.gateway, { promptCaching: true })
    await ask()
    expect(sentBody(running).system).toEqual([
      { type: 'text', text: 'Rules', cache_control: { type: 'ephemeral', ttl: '1h' } },
    ])
    expect(running.lane.journal.outcomes().map(({ details }) => details?.notes)).toEqual([
      ['cache_control.removed'],
      ['cache_control.translated'],
    ])
  })

  test('has it at the end of the conversation where there is nothing before that', async () => {
    answers['/v1/messages'] = () => new Response(messagesAnswer(), { headers: { 'content-type': 'application/json' } })
    Object.assign(running.lane.view.gateway, { promptCaching: true })
    await running.chat({ model: 'anthropic', messages: hello, cache_control: { type: 'ephemeral' } })
    const content = [{ type: 'text', text: 'Hello', cache_control: { type: 'ephemeral' } }]
    expect(sentBody(running).messages).toEqual([{ role: 'user', content }])
  })

  test('has its numbers sent on as it wrote them', async () => {
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
})

describe('what goes wrong', () => {
  const usage = { input_tokens: 20, cache_read_input_tokens: 4, cache_creation_input_tokens: 6, output_tokens: 1 }
  const begun = [
    { type: 'message_start', message: { id: 'm', usage } },
    { type: 'content_block_start', index: 0, content_block: { type: 'text', text: '' } },
    { type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: words } },
  ]
  const overloaded = { type: 'error', error: { type: 'overloaded_error', message: 'Too busy' } }

  test('a stream that breaks off or fails is paid by what its provider had reported', async () => {
    answers['/v1beta/models/up-gemini:streamGenerateContent'] = sse(
      geminiFrames([
        {
          candidates: [{ content: { role: 'model', parts: [{ text: words }] } }],
          usageMetadata: { promptTokenCount: 5, candidatesTokenCount: 8 },
        },
      ]),
    )
    for (const frames of [begun, [...begun, overloaded]]) {
      answers['/v1/messages'] = sse(messageFrames(frames))
      await (await running.chat({ model: 'anthropic', messages: hello, stream: true })).text()
    }
    await (await running.chat({ model: 'gemini', messages: hello, stream: true })).text()
    const spent = { input_tokens: 30, cached_input_tokens: 4, output_tokens: 3, estimated: true }
    expect(running.lane.journal.outcomes()).toMatchObject([
      { reason_code: 'provider.interrupted', event_cost_attribution: spent },
      { reason_code: 'provider.error', event_cost_attribution: spent },
      { event_cost_attribution: { input_tokens: 5, output_tokens: 8, estimated: false } },
    ])
  })

  test('a stream that breaks off in its midst is seen as broken, with no end made up', async () => {
    answers['/v1/messages'] = sse(messagesStream({ stopped: false }))
    const answer = await running.chat({ model: 'anthropic', messages: hello, stream: true })
    const text = await answer.text()
    expect(text).toContain('upstream_provider_error')
    expect(running.lane.journal.outcomes()).toMatchObject([{ verdict: 'error', reason_code: 'provider.interrupted' }])
  })

  test('an error in the stream is the provider’s', async () => {
    answers['/v1/messages'] = sse(
      Buffer.concat([
        messageFrames([{ type: 'message_start', message: { id: 'm', usage: { input_tokens: 3, output_tokens: 1 } } }]),
        messageFrames([{ type: 'error', error: { type: 'overloaded_error', message: 'Too busy' } }]),
      ]),
    )
    const answer = await running.chat({ model: 'anthropic', messages: hello, stream: true })
    expect(await answer.text()).toContain('Too busy')
    expect(running.lane.journal.outcomes()).toMatchObject([{ verdict: 'error', reason_code: 'provider.error' }])
  })

  test('a stream that is an error from its beginning is answered by the next path, or refused', async () => {
    running.lane.catalog.push(
      testModel({ id: 'first', providerId: 'anthropic', upstreamModel: 'up-anthropic', fallbacks: ['openai'] }),
    )
    answers['/v1/messages'] = sse(messageFrames([overloaded]))
    const chunk = { id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm' }
    const said = { ...chunk, choices: [{ index: 0, delta: { content: words }, finish_reason: 'stop' }] }
    answers['/v1/chat/completions'] = sse(`data: ${JSON.stringify(said)}\n\ndata: [DONE]\n\n`)
    for (const path of ['/v1/messages', '/v1/chat/completions']) {
      const ask = (model: string) =>
        fetch(running.url + path, {
          method: 'POST',
          headers: { authorization: `Bearer ${running.secret}`, 'content-type': 'application/json' },
          body: JSON.stringify({ model, messages: hello, stream: true, max_tokens: 50 }),
        })
      expect(await (await ask('first')).text()).toContain(words)
      expect((await ask('anthropic')).status).toBe(502)
    }
    const outcomes = running.lane.journal.outcomes()
    expect(outcomes.map(({ verdict, reason_code }) => [verdict, reason_code])).toEqual([
      ['allow', 'ok'],
      ['error', 'provider.error'],
      ['allow', 'ok'],
      ['error', 'provider.error'],
    ])
  })

  test('an answer that is none in the provider’s language is a bad gateway', async () => {
    answers['/v1/messages'] = () => Response.json({ hello: 'world' })
    const answer = await running.chat({ model: 'anthropic', messages: hello })
    expect(answer.status).toBe(502)
    expect(running.lane.journal.outcomes()).toMatchObject([{ reason_code: 'provider.invalid_answer' }])
  })

  test('a policy’s block of a translated stream is said in the caller’s form', async () => {
    answers['/v1/chat/completions'] = sse(
      `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: { content: 'the forbidden word' } }] })}\n\n` +
        `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] })}\n\ndata: [DONE]\n\n`,
    )
    running.lane.policies = compilePolicySet([
      policy({
        id: 'p',
        kind: 'term-filter',
        stages: ['post_request'],
        config: { terms: ['forbidden'], action: 'block' },
      }),
    ])
    const stream = anthropic.messages.stream({ model: 'openai', max_tokens: 50, messages: hello })
    const thrown: unknown = await stream.finalMessage().catch((error: unknown) => error)
    expect(String(thrown)).toContain('content_policy_violation')
    expect(running.lane.journal.outcomes()).toMatchObject([{ verdict: 'block' }])
  })
})

describe('a provider that speaks chat and responses', () => {
  const hears = (families: ('chat' | 'responses' | 'messages')[]) =>
    running.lane.catalog.push(testModel({ id: 'both', providerId: 'openai', families }))
  const asked = () => running.seen.map(({ request }) => new URL(request.url).pathname)
  const responded = () =>
    Response.json({
      ...{ id: 'resp_1', object: 'response', status: 'completed', model: 'up' },
      output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: words }] }],
    })

  test('is asked in the one that the model’s record lists', async () => {
    hears(['responses'])
    answers['/v1/responses'] = responded
    const answer = await running.chat({ model: 'both', messages: hello })
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: words } }] })
    expect(asked()).toEqual(['/v1/responses'])
  })

  test('is asked in responses for what chat cannot say, where the record lists both', async () => {
    hears(['chat', 'responses'])
    answers['/v1/responses'] = responded
    answers['/v1/chat/completions'] = () => Response.json(completion)
    const document = { type: 'document' as const, source: { type: 'url' as const, url: 'https://a.example/a.pdf' } }
    const ask = (content: Anthropic.ContentBlockParam[]) =>
      anthropic.messages.create({ model: 'both', max_tokens: 9, messages: [{ role: 'user', content }] })
    expect((await ask([document])).content).toMatchObject([{ type: 'text', text: words }])
    await ask([{ type: 'text', text: 'Hello' }])
    expect(asked()).toEqual(['/v1/responses', '/v1/chat/completions'])
  })

  test('is asked in chat alone where only that is known, and what chat cannot say is refused', async () => {
    const document = { type: 'document' as const, source: { type: 'url' as const, url: 'https://a.example/a.pdf' } }
    for (const families of [['chat'], ['messages'], null] as const) {
      running.lane.catalog.splice(
        0,
        running.lane.catalog.length,
        testModel({ id: 'both', providerId: 'openai', families }),
      )
      const asking = { model: 'both', max_tokens: 9, messages: [{ role: 'user' as const, content: [document] }] }
      const thrown: unknown = await anthropic.messages.create(asking).catch((failure: unknown) => failure)
      expect(thrown).toMatchObject({ status: 400 })
    }
    expect(asked()).toEqual([])
  })
})
