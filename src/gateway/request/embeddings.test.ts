/** Embeddings that are several calls to their provider: what they cost however they end, and what is no answer. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import type OpenAI from 'openai'
import { type TestGateway, waitUntil } from '../testing/gateway.ts'
import { price, sentBody, startTranslating, type TranslatingGateway } from '../testing/translating.ts'
import { testModel } from '../testing/worker.ts'

const titanModel = 'amazon.titan-embed-text-v2:0'
const titanPath = `/model/${titanModel}/invoke`
const geminiPath = '/v1beta/models/up-gemini:batchEmbedContents'

let running: TestGateway
let openai: OpenAI
let answers: TranslatingGateway['answers']

beforeEach(async () => {
  ;({ running, openai, answers } = await startTranslating({ path_retries: 1, answer_limit_bytes: 4000 }))
  const bedrock = { providerId: 'bedrock', upstreamModel: titanModel, price: price(1) }
  running.worker.catalog.push(
    testModel({ id: 'titan', ...bedrock }),
    testModel({ id: 'titan-or-gemini', ...bedrock, fallbacks: ['gemini'] }),
  )
})
afterEach(() => running.stop())

const embed = (model: string, input: string[], more: object = {}) =>
  openai.embeddings.create({ model, input, ...more }).catch((error: unknown) => error)
const embedded = (tokens: number) => Response.json({ embedding: [1], inputTextTokenCount: tokens })
const text = () => String(sentBody(running).inputText)
const paths = () => running.seen.map(({ request }) => decodeURIComponent(new URL(request.url).pathname))

describe('embeddings in several calls', () => {
  test('charge a client that disconnects the reported usage plus an estimate of calls in flight', async () => {
    const held = Promise.withResolvers<void>()
    answers[titanPath] = () => (running.seen.length > 6 ? held.promise.then(() => embedded(50)) : embedded(50))
    const leaving = new AbortController()
    const asking = openai.embeddings
      .create({ model: 'titan', input: Array(500).fill('some words here') }, { signal: leaving.signal })
      // It leaves: that it has no answer is what is meant.
      .catch(() => null)
    await waitUntil(() => running.seen.length === 10)
    await Bun.sleep(20)
    leaving.abort()
    await asking
    await waitUntil(() => running.worker.journal.outcomes().length === 1)
    held.resolve()
    expect(running.worker.journal.outcomes()).toMatchObject([
      { reason_code: 'client.left', event_cost_attribution: { input_tokens: 6 * 50 + 4 * 4, estimated: true } },
    ])
  })

  test('charge the reported usage when one answer is invalid, and are not sent again', async () => {
    const others = [{ embedding: [1, 2], inputTextTokenCount: 4 }, {}, { embedding: 'x'.repeat(5000) }]
    for (const other of others) {
      running.seen.length = 0
      answers[titanPath] = () => (text() === 'a' ? embedded(500) : Response.json(other))
      expect(await embed('titan-or-gemini', ['a', 'b'])).toMatchObject({ status: 502, code: 'upstream_provider_error' })
      expect(running.seen).toHaveLength(2)
    }
    const outcomes = running.worker.journal.outcomes()
    expect(outcomes.map(({ reason_code }) => reason_code)).toEqual([
      'provider.invalid_answer',
      'provider.invalid_answer',
      'provider.answer_too_large',
    ])
    expect(outcomes.map((event) => event.event_cost_attribution?.input_tokens)).toEqual([504, 500, 500])
  })

  test('charge the usage reported before a part failed, in addition to the next path', async () => {
    const provider = running.worker.upstreams.find(({ id }) => id === 'bedrock')
    const timeouts = { connectSeconds: null, firstByteSeconds: 0.3, idleSeconds: null, totalSeconds: null }
    Object.assign(provider ?? {}, { timeouts })
    answers[geminiPath] = () =>
      Response.json({ embeddings: [{ values: [1] }, { values: [2] }], usageMetadata: { promptTokenCount: 7 } })
    const never = new Promise<Response>(() => {})
    const cut = () =>
      new Response(
        new ReadableStream({
          async pull(controller) {
            controller.enqueue(Buffer.from('{"embed'))
            await Bun.sleep(5)
            controller.error(new Error('cut'))
          },
        }),
      )
    for (const other of [() => never, cut]) {
      running.seen.length = 0
      answers[titanPath] = () => (text() === 'a' ? embedded(500) : other())
      expect(await embed('titan-or-gemini', ['a', 'b'])).toMatchObject({ usage: { prompt_tokens: 7 } })
      expect(paths().at(-1)).toBe(geminiPath)
    }
    const costs = running.worker.journal.outcomes().map((event) => event.event_cost_attribution?.cost)
    expect(costs).toEqual([507e-6, 1007e-6])
  })
})

describe('vectors', () => {
  test('are a provider failure when they are malformed or of different lengths', async () => {
    for (const vector of ['[]', '[1,null]', '["1"]', '[[1]]', '[true]', '[1e999]', '[1e300]', 'null', '"abc"']) {
      const json = `{"embedding":${vector},"inputTextTokenCount":1}`
      answers[titanPath] = () => new Response(json, { headers: { 'content-type': 'application/json' } })
      expect([vector, await embed('titan', ['a'], { encoding_format: 'float' })]).toMatchObject([
        vector,
        { status: 502 },
      ])
    }
    for (const embeddings of [
      [{ values: [1] }, {}],
      [{ values: [1] }, { values: [1, 2] }],
    ]) {
      answers[geminiPath] = () => Response.json({ embeddings, usageMetadata: { promptTokenCount: 4 } })
      expect(await embed('gemini', ['a', 'b'])).toMatchObject({ status: 502 })
    }
  })

  test('without a usage report have an estimated usage by what was sent', async () => {
    answers[titanPath] = () => Response.json({ embedding: [1] })
    expect(await embed('titan', ['some words here', 'and'])).toMatchObject({ usage: { prompt_tokens: 5 } })
    expect(running.worker.journal.outcomes()).toMatchObject([
      { verdict: 'allow', event_cost_attribution: { input_tokens: 5, estimated: true } },
    ])
  })
})
