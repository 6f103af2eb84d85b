/** Each text family against providers of other languages, through the official clients: what arrives, and what is said. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import Anthropic from '@anthropic-ai/sdk'
import { EventStreamCodec } from '@smithy/eventstream-codec'
import OpenAI from 'openai'
import { messageFrames, messagesAnswer, messagesStream } from '../../test/fakes/messages.ts'
import { parseObject } from '../dialects/json-value.ts'
import { compilePolicySet } from '../policies/chain.ts'
import { compilePrice } from '../providers/price-record.ts'
import { TestAllowances } from '../usage/test-allowances.ts'
import { completion, startTestGateway, type TestGateway } from './test-gateway.ts'
import { testModel, testProvider } from './test-lane.ts'
import { policy } from './test-policies.ts'

let running: TestGateway
let openai: OpenAI
let anthropic: Anthropic
/** What the upstream answers, by the path that was asked. */
let answers: Record<string, () => Response>

beforeEach(async () => {
  answers = {}
  running = await startTestGateway(
    (request) => {
      const path = decodeURIComponent(new URL(request.url).pathname)
      return answers[path]?.() ?? new Response(`Nothing at ${path}`, { status: 404 })
    },
    { path_retries: 0, drain_seconds: 0 },
  )
  const baseUrl = running.lane.upstreams[0]?.baseUrl ?? ''
  const kinds = ['openai', 'anthropic', 'gemini', 'bedrock'] as const
  running.lane.upstreams.length = 0
  for (const kind of kinds) {
    const headers: Record<string, string> = kind === 'bedrock' ? { region: 'eu-central-1' } : {}
    const apiKey = kind === 'bedrock' ? 'AKID:secret' : 'key'
    running.lane.upstreams.push(
      testProvider({ id: kind, name: kind, kind, baseUrl, headers, apiKey, allowUnlistedModels: false }),
    )
    const upstreamModel = kind === 'bedrock' ? 'anthropic.claude:0' : `up-${kind}`
    running.lane.catalog.push(testModel({ id: kind, providerId: kind, upstreamModel, price: price(1) }))
  }
  openai = new OpenAI({ apiKey: running.secret, baseURL: `${running.url}/v1`, maxRetries: 0 })
  anthropic = new Anthropic({ apiKey: running.secret, baseURL: running.url, maxRetries: 0 })
})
afterEach(() => running.stop())

const price = (perMillion: number) =>
  compilePrice({ input_per_million: perMillion, output_per_million: perMillion }, 'operator')

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

const sentBody = (): Record<string, unknown> => parseObject(running.seen.at(-1)?.body ?? '') ?? {}
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
    expect(sentBody()).toMatchObject({ model: 'up-openai', messages: [{ role: 'system' }, { role: 'user' }] })
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
    expect(sentBody().stream_options).toEqual({ include_usage: true })
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
    expect(sentBody().max_tokens).toBe(12_345)
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
    expect(JSON.stringify(sentBody())).not.toContain('cache_control')
    Object.assign(running.lane.view.gateway, { promptCaching: true })
    await ask()
    expect(sentBody().system).toEqual([
      { type: 'text', text: 'Rules', cache_control: { type: 'ephemeral', ttl: '1h' } },
    ])
    expect(running.lane.journal.outcomes().map(({ details }) => details?.notes)).toEqual([
      ['cache_control.removed'],
      ['cache_control.translated'],
    ])
  })
})

describe('a responses client', () => {
  test('reads a stream of messages', async () => {
    answers['/v1/messages'] = sse(messagesStream())
    const final = await openai.responses.stream({ model: 'anthropic', input: 'Hello' }).finalResponse()
    expect([final.status, final.output_text, final.usage?.total_tokens]).toEqual(['completed', words, 20])
  })
})

describe('embeddings of Gemini', () => {
  const path = '/v1beta/models/up-gemini:batchEmbedContents'

  test('are read by the official client, as numbers and as it asks by itself, and paid by their usage', async () => {
    answers[path] = () =>
      Response.json({
        embeddings: [{ values: [0.5, -1] }, { values: [2, 0.25] }],
        usageMetadata: { promptTokenCount: 3 },
      })
    for (const more of [{}, { encoding_format: 'float' as const, dimensions: 2 }]) {
      const { data, usage } = await openai.embeddings.create({ model: 'gemini', input: ['a', 'b'], ...more })
      expect(data.map(({ embedding }) => embedding)).toEqual([
        [0.5, -1],
        [2, 0.25],
      ])
      expect(usage.prompt_tokens).toBe(3)
    }
    expect(sentBody()).toEqual({
      requests: ['a', 'b'].map((text) => ({
        model: 'models/up-gemini',
        content: { parts: [{ text }] },
        outputDimensionality: 2,
      })),
    })
    expect(running.lane.journal.outcomes()).toMatchObject([
      { event_cost_attribution: { input_tokens: 3, estimated: false } },
      { verdict: 'allow' },
    ])
  })

  test('of tokens are refused, and so is whatever it has no member for; errors are said in the caller’s form', async () => {
    const refusal = (more: object): Promise<unknown> =>
      openai.embeddings.create({ model: 'gemini', input: 'a', ...more }).catch((error: unknown) => error)
    expect(await refusal({ input: [1, 2] })).toMatchObject({ status: 400, param: 'input' })
    expect(await refusal({ task: 'search' })).toMatchObject({ status: 400, param: 'task' })
    expect(running.seen).toEqual([])
    expect(running.lane.journal.opened.size).toBe(0)
    answers[path] = () =>
      Response.json({ error: { code: 400, status: 'INVALID_ARGUMENT', message: 'No.' } }, { status: 400 })
    expect(await refusal({})).toMatchObject({ status: 400, code: 'invalid_argument' })
    answers[path] = () => Response.json({ embeddings: [] })
    expect(await refusal({})).toMatchObject({ status: 502 })
  })

  test('of a provider that has none are refused by its model', async () => {
    const thrown: unknown = await openai.embeddings.create({ model: 'bedrock', input: 'a' }).catch((error) => error)
    expect(thrown).toMatchObject({ status: 400, code: 'model_family_unsupported', param: 'model' })
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

describe('a conversation that changes its model', () => {
  const tools = [{ name: 'look', input_schema: { type: 'object' as const } }]
  const result = (id: string) => ({
    role: 'user' as const,
    content: [{ type: 'tool_result' as const, tool_use_id: id, content: 'seen' }],
  })

  test('keeps what each provider signed for that provider, and shows it to no other', async () => {
    answers['/v1beta/models/up-gemini:generateContent'] = () =>
      Response.json({
        responseId: 'r',
        candidates: [
          {
            content: {
              parts: [
                { text: 'Hm', thought: true, thoughtSignature: 'of-the-thought' },
                { functionCall: { name: 'look', args: {} }, thoughtSignature: 'of-the-call' },
              ],
            },
            finishReason: 'STOP',
          },
        ],
      })
    const anthropics = [
      { type: 'thinking', thinking: 'So', signature: 'anthropics' },
      { type: 'text', text: 'Seen.' },
    ]
    answers['/v1/messages'] = () => Response.json({ ...JSON.parse(messagesAnswer().toString()), content: anthropics })
    const messages: Anthropic.MessageParam[] = [...hello]
    const ask = async (model: string) => {
      const { content } = await anthropic.messages.create({ model, max_tokens: 50, tools, messages })
      messages.push({ role: 'assistant', content })
      return content
    }
    const first = await ask('gemini')
    const call = first.find((block) => block.type === 'tool_use')
    messages.push(result(call?.id ?? ''))
    await ask('anthropic')
    const toAnthropic = running.seen.at(-1)?.body ?? ''
    expect(toAnthropic).not.toContain('gatehouse.')
    expect(sentBody().messages).toMatchObject([hello[0], { content: [{ type: 'tool_use' }] }, { role: 'user' }])
    messages.push({ role: 'user', content: 'And now?' })
    await ask('gemini')
    expect(sentBody().contents).toMatchObject([
      { role: 'user' },
      {
        role: 'model',
        parts: [
          { thought: true, thoughtSignature: 'of-the-thought' },
          { functionCall: { name: 'look' }, thoughtSignature: 'of-the-call' },
        ],
      },
      { role: 'user' },
      { role: 'model', parts: [{ text: 'Seen.' }] },
      { role: 'user' },
    ])
    messages.push({ role: 'user', content: 'And then?' })
    await ask('anthropic')
    expect(running.seen.at(-1)?.body).toContain('"signature":"anthropics"')
  })

  test('that never left its provider passes byte for byte', async () => {
    answers['/v1/messages'] = () => new Response(messagesAnswer(), { headers: { 'content-type': 'application/json' } })
    const body =
      '{"model":"up-anthropic", "max_tokens":5,"messages":[{"role":"user","content":"gatehouse. is a word"},' +
      '{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"}]} ]}'
    const plain = running.lane.upstreams.find(({ id }) => id === 'anthropic')
    Object.assign(plain ?? {}, { allowUnlistedModels: true })
    const answer = await fetch(`${running.url}/v1/messages`, {
      method: 'POST',
      headers: { 'x-api-key': running.secret, 'content-type': 'application/json' },
      body,
    })
    expect([answer.status, running.seen.at(-1)?.body]).toEqual([200, body])
  })
})

describe('a fallback of another dialect', () => {
  test('answers, and its price is the one that is paid', async () => {
    const dear = compilePrice(
      { input_per_million: 5, output_per_million: 5, cached_input_per_million: 2, cache_write_per_million: 7 },
      'operator',
    )
    const main = testModel({
      id: 'main',
      providerId: 'openai',
      price: price(1),
      fallbacks: ['anthropic-dear', 'bedrock'],
    })
    running.lane.catalog.push(main, testModel({ id: 'anthropic-dear', providerId: 'anthropic', price: dear }))
    const allowances = new TestAllowances({ 'token/t/money': 1_000_000_000 })
    Object.assign(running.lane, { allowances })
    const accounts = [{ id: 't', maxRequests: null, maxBudget: 1_000_000_000, rateLimitRpm: null, rateLimitTpm: null }]
    const secret = running.lane.addToken({ accounts })
    answers['/v1/chat/completions'] = () => new Response('busy', { status: 503 })
    answers['/v1/messages'] = () => new Response(messagesAnswer(), { headers: { 'content-type': 'application/json' } })
    const answer = await running.chat({ model: 'main', messages: hello, max_tokens: 100 }, { secret })
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: words } }] })
    expect(running.lane.journal.attempts()).toHaveLength(2)
    expect(running.lane.journal.outcomes()).toMatchObject([
      { event_cost_attribution: { provider: 'anthropic', input_tokens: 11, output_tokens: 9, estimated: false } },
    ])
    // 7 tokens of input and 9 of output, 3 read from the cache and 1 written to it, in nano-dollars.
    const cost = 16 * 5000 + 3 * 2000 + 7000
    expect(running.lane.journal.outcomes()[0]?.event_cost_attribution?.cost).toBe(cost / 1e9)
    expect(allowances.balances.get('token/t/money')).toBe(1_000_000_000 - cost)
  })

  test('that cannot be told the request is left out', async () => {
    running.lane.catalog.push(testModel({ id: 'main', providerId: 'openai', fallbacks: ['bedrock'] }))
    answers['/v1/chat/completions'] = () => new Response('busy', { status: 503 })
    const answer = await running.chat({ model: 'main', messages: hello, seed: 7 })
    expect([answer.status, running.seen.length]).toEqual([503, 1])
  })
})
