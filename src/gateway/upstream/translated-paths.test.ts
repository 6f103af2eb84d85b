/**
 * Embeddings of another provider, the language that a provider is asked in, and conversations and fallbacks that go from
 * one language to another.
 */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type Anthropic from '@anthropic-ai/sdk'
import type OpenAI from 'openai'
import { messagesAnswer } from '../../../test/fakes/messages.ts'
import { compilePrice } from '../../providers/prices/price-record.ts'
import { InMemoryLimits } from '../../usage/testing/in-memory-limits.ts'
import { completion, type TestGateway } from '../testing/gateway.ts'
import { price, sentBody, startTranslating, type TranslatingGateway } from '../testing/translating.ts'
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

describe('embeddings of Gemini', () => {
  const path = '/v1beta/models/up-gemini:batchEmbedContents'

  test('are read by the official client as numbers and in its default form, and booked by usage', async () => {
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
    expect(sentBody(running)).toEqual({
      requests: ['a', 'b'].map((text) => ({
        model: 'models/up-gemini',
        content: { parts: [{ text }] },
        outputDimensionality: 2,
      })),
    })
    expect(running.worker.journal.outcomes()).toMatchObject([
      { event_cost_attribution: { input_tokens: 3, estimated: false } },
      { verdict: 'allow' },
    ])
  })

  test('are refused for tokenized input and unsupported fields, with errors in the caller’s form', async () => {
    const refusal = (more: object): Promise<unknown> =>
      openai.embeddings.create({ model: 'gemini', input: 'a', ...more }).catch((error: unknown) => error)
    expect(await refusal({ input: [1, 2] })).toMatchObject({ status: 400, param: 'input' })
    expect(await refusal({ task: 'search' })).toMatchObject({ status: 400, param: 'task' })
    for (const dimensions of [0, -1, 1.5])
      expect(await refusal({ dimensions })).toMatchObject({ status: 422, param: 'dimensions' })
    expect(running.seen).toEqual([])
    expect(running.worker.journal.opened.size).toBe(0)
    answers[path] = () =>
      Response.json({ error: { code: 400, status: 'INVALID_ARGUMENT', message: 'No.' } }, { status: 400 })
    expect(await refusal({})).toMatchObject({ status: 400, code: 'invalid_argument' })
    answers[path] = () => Response.json({ embeddings: [] })
    expect(await refusal({})).toMatchObject({ status: 502 })
  })

  test('are requested in calls of the largest allowed size and joined in order', async () => {
    answers[path] = () => {
      const { requests } = sentBody(running)
      const given = Array.isArray(requests) ? requests : []
      const embeddings = given.map(({ content }) => ({ values: [Number(content.parts[0].text)] }))
      return Response.json({ embeddings, usageMetadata: { promptTokenCount: given.length } })
    }
    const input = Array.from({ length: 250 }, (_, index) => String(index))
    const { data, usage } = await openai.embeddings.create({ model: 'gemini', input })
    expect(data.map(({ embedding }) => embedding[0])).toEqual(input.map(Number))
    expect([usage.prompt_tokens, running.seen.length]).toEqual([250, 3])
  })

  test('are refused by model name for a provider without embeddings', async () => {
    const thrown: unknown = await openai.embeddings.create({ model: 'bedrock', input: 'a' }).catch((error) => error)
    expect(thrown).toMatchObject({ status: 400, code: 'model_family_unsupported', param: 'model' })
  })
})

describe('embeddings of Bedrock', () => {
  const serve = (id: string, upstreamModel: string) =>
    running.worker.catalog.push(testModel({ id, providerId: 'bedrock', upstreamModel, price: price(1) }))
  const sent = () => running.seen.map(({ body }) => JSON.parse(body))

  test('of Titan are one call for each text, booked by the tokens of all', async () => {
    serve('titan', 'amazon.titan-embed-text-v2:0')
    answers['/model/amazon.titan-embed-text-v2:0/invoke'] = () => {
      const length = String(sentBody(running).inputText).length
      return Response.json({ embedding: [length, 0.5], inputTextTokenCount: length, embeddingsByType: {} })
    }
    const { data, usage } = await openai.embeddings.create({ model: 'titan', input: ['a', 'bb'], dimensions: 256 })
    expect(data.map(({ embedding }) => embedding)).toEqual([
      [1, 0.5],
      [2, 0.5],
    ])
    expect(usage).toEqual({ prompt_tokens: 3, total_tokens: 3 })
    // They are sent at once.
    const inOrder = sent().toSorted((left, right) => left.inputText.length - right.inputText.length)
    expect(inOrder).toEqual(['a', 'bb'].map((inputText) => ({ inputText, dimensions: 256 })))
    expect(running.seen[0]?.request.headers.get('authorization')).toStartWith('AWS4-HMAC-SHA256 ')
    expect(running.worker.journal.outcomes()).toMatchObject([
      { event_cost_attribution: { input_tokens: 3, estimated: false } },
    ])
  })

  test('of Cohere send the input type and are read in both answer versions', async () => {
    serve('cohere', 'us.cohere.embed-v4:0')
    serve('cohere-3', 'cohere.embed-english-v3')
    const headers = { 'x-amzn-bedrock-input-token-count': '4' }
    answers['/model/us.cohere.embed-v4:0/invoke'] = () =>
      Response.json({ embeddings: { float: [[1], [2]] }, response_type: 'embeddings_by_type' }, { headers })
    answers['/model/cohere.embed-english-v3/invoke'] = () => Response.json({ embeddings: [[3]] }, { headers })
    const four = await openai.embeddings.create({ model: 'cohere', input: ['a', 'b'], dimensions: 512 })
    expect(four).toMatchObject({ data: [{ embedding: [1] }, { embedding: [2] }], usage: { prompt_tokens: 4 } })
    const asked = { model: 'cohere-3', input: 'a', input_type: 'search_query' }
    expect(await openai.embeddings.create(asked)).toMatchObject({ data: [{ embedding: [3] }] })
    expect(sent()).toEqual([
      { texts: ['a', 'b'], input_type: 'search_document', embedding_types: ['float'], output_dimension: 512 },
      { texts: ['a'], input_type: 'search_query', embedding_types: ['float'] },
    ])
  })

  test('refuse fields that a model lacks, and an error states the cost of earlier calls', async () => {
    serve('titan', 'amazon.titan-embed-text-v1')
    const refusal = (more: object): Promise<unknown> =>
      openai.embeddings.create({ model: 'titan', input: 'a', ...more }).catch((error: unknown) => error)
    expect(await refusal({ dimensions: 2 })).toMatchObject({ status: 400, param: 'dimensions' })
    expect(await refusal({ input_type: 'clustering' })).toMatchObject({ status: 400, param: 'input_type' })
    for (const input of [[], Array(2049).fill('a')]) {
      expect(await refusal({ input })).toMatchObject({ status: 422, param: 'input' })
    }
    expect(running.seen).toEqual([])
    answers['/model/amazon.titan-embed-text-v1/invoke'] = () => {
      if (sentBody(running).inputText === 'a') return Response.json({ embedding: [1], inputTextTokenCount: 7 })
      const headers = { 'x-amzn-errortype': 'ThrottlingException:http://internal', 'retry-after': '3' }
      return Response.json({ message: 'Slow down' }, { status: 429, headers })
    }
    expect(await refusal({ input: ['a', 'b'] })).toMatchObject({ status: 429, code: 'ThrottlingException' })
    expect(running.worker.journal.outcomes().at(-1)).toMatchObject({
      verdict: 'error',
      event_cost_attribution: { input_tokens: 7, estimated: false },
    })
  })

  test('are charged for finished calls when the provider fails before the last', async () => {
    serve('titan', 'amazon.titan-embed-text-v1')
    answers['/model/amazon.titan-embed-text-v1/invoke'] = () => {
      if (sentBody(running).inputText === 'a') return Response.json({ embedding: [1], inputTextTokenCount: 7 })
      return new Response('This cannot be unpacked', { headers: { 'content-encoding': 'gzip' } })
    }
    const input = ['a', 'b']
    const thrown: unknown = await openai.embeddings.create({ model: 'titan', input }).catch((error) => error)
    expect(thrown).toMatchObject({ status: 502, code: 'provider_primary_path_error' })
    expect(running.worker.journal.outcomes().at(-1)).toMatchObject({
      verdict: 'error',
      event_cost_attribution: { input_tokens: 7, estimated: false },
    })
  })
})

describe('a conversation that changes its model', () => {
  const tools = [{ name: 'look', input_schema: { type: 'object' as const } }]
  const result = (id: string) => ({
    role: 'user' as const,
    content: [{ type: 'tool_result' as const, tool_use_id: id, content: 'seen' }],
  })

  test('keeps each provider’s signatures for that provider and shows them to no other', async () => {
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
    expect(sentBody(running).messages).toMatchObject([hello[0], { content: [{ type: 'tool_use' }] }, { role: 'user' }])
    messages.push({ role: 'user', content: 'And now?' })
    await ask('gemini')
    expect(sentBody(running).contents).toMatchObject([
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

  test('passes byte for byte while it stays with one provider', async () => {
    answers['/v1/messages'] = () => new Response(messagesAnswer(), { headers: { 'content-type': 'application/json' } })
    const body =
      '{"model":"up-anthropic", "max_tokens":5,"messages":[{"role":"user","content":"gatehouse. is a word"},' +
      '{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"}]} ]}'
    const plain = running.worker.upstreams.find(({ id }) => id === 'anthropic')
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
  test('answers and is charged at its own price', async () => {
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
    running.worker.catalog.push(main, testModel({ id: 'anthropic-dear', providerId: 'anthropic', price: dear }))
    const usageLimits = new InMemoryLimits({ 'token/t/money': 1_000_000_000 })
    Object.assign(running.worker, { usageLimits })
    const accounts = [{ id: 't', maxRequests: null, maxBudget: 1_000_000_000, rateLimitRpm: null, rateLimitTpm: null }]
    const secret = running.worker.addToken({ accounts })
    answers['/v1/chat/completions'] = () => new Response('busy', { status: 503 })
    answers['/v1/messages'] = () => new Response(messagesAnswer(), { headers: { 'content-type': 'application/json' } })
    const answer = await running.chat({ model: 'main', messages: hello, max_tokens: 100 }, { secret })
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: words } }] })
    expect(running.worker.journal.attempts()).toHaveLength(2)
    expect(running.worker.journal.outcomes()).toMatchObject([
      { event_cost_attribution: { provider: 'anthropic', input_tokens: 11, output_tokens: 9, estimated: false } },
    ])
    // 7 tokens of input and 9 of output, 3 read from the cache and 1 written to it, in nano-dollars.
    const cost = 16 * 5000 + 3 * 2000 + 7000
    expect(running.worker.journal.outcomes()[0]?.event_cost_attribution?.cost).toBe(cost / 1e9)
    expect(usageLimits.balances.get('token/t/money')).toBe(1_000_000_000 - cost)
  })

  test('is skipped when its language lacks a field of the request', async () => {
    running.worker.catalog.push(testModel({ id: 'main', providerId: 'openai', fallbacks: ['bedrock'] }))
    answers['/v1/chat/completions'] = () => new Response('busy', { status: 503 })
    const answer = await running.chat({ model: 'main', messages: hello, seed: 7 })
    expect([answer.status, running.seen.length]).toEqual([503, 1])
  })
})

describe('a provider that speaks chat and responses', () => {
  const hears = (families: ('chat' | 'responses' | 'messages')[]) =>
    running.worker.catalog.push(testModel({ id: 'both', providerId: 'openai', families }))
  const asked = () => running.seen.map(({ request }) => new URL(request.url).pathname)
  const responded = () =>
    Response.json({
      ...{ id: 'resp_1', object: 'response', status: 'completed', model: 'up' },
      output: [{ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: words }] }],
    })

  test('is called in the language that the model’s record lists', async () => {
    hears(['responses'])
    answers['/v1/responses'] = responded
    const answer = await running.chat({ model: 'both', messages: hello })
    expect(await answer.json()).toMatchObject({ choices: [{ message: { content: words } }] })
    expect(asked()).toEqual(['/v1/responses'])
  })

  test('is called in responses for fields that chat lacks when the record lists both', async () => {
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

  test('is called in chat when only chat is known, and fields that chat lacks are refused', async () => {
    const document = { type: 'document' as const, source: { type: 'url' as const, url: 'https://a.example/a.pdf' } }
    for (const families of [['chat'], ['messages'], null] as const) {
      running.worker.catalog.splice(
        0,
        running.worker.catalog.length,
        testModel({ id: 'both', providerId: 'openai', families }),
      )
      const asking = { model: 'both', max_tokens: 9, messages: [{ role: 'user' as const, content: [document] }] }
      const thrown: unknown = await anthropic.messages.create(asking).catch((failure: unknown) => failure)
      expect(thrown).toMatchObject({ status: 400 })
    }
    expect(asked()).toEqual([])
  })
})
