/** What a collector gets of a request to a model, by the way in: the attributes of the GenAI conventions. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log/log.ts'
import { loadOtlpExporter } from '../../telemetry/otlp.ts'
import { type CollectedSpan, startTestCollector, type TestCollector } from '../../telemetry/testing/collector.ts'
import { createTracer } from '../../telemetry/tracer.ts'
import { completion, startTestGateway, type TestGateway } from '../testing/gateway.ts'

let collector: TestCollector
let gateway: TestGateway
let answer: () => Response

beforeAll(async () => {
  collector = startTestCollector()
  const tracer = createTracer({
    load: () => loadOtlpExporter({ endpoint: collector.url, headers: undefined, environment: undefined }),
    samplePercent: 100,
    random: () => 0,
    clock: systemClock,
    log: silentLog,
    flushMilliseconds: 1,
  })
  gateway = await startTestGateway(() => answer(), {}, tracer)
})
afterAll(async () => {
  await gateway.stop()
  await collector.stop()
})
beforeEach(() => {
  collector.spans.length = 0
})

const events = (...frames: unknown[]): Response =>
  new Response(
    frames
      .map((frame) =>
        frame === '[DONE]' ? 'data: [DONE]\n\n' : `event: ${eventOf(frame)}\ndata: ${JSON.stringify(frame)}\n\n`,
      )
      .join(''),
    { headers: { 'content-type': 'text/event-stream' } },
  )
const eventOf = (frame: unknown): string =>
  typeof frame === 'object' && frame !== null && 'type' in frame ? String(frame.type) : 'message'

async function spansOf(path: string, body: object): Promise<{ server: CollectedSpan; client: CollectedSpan }> {
  const response = await fetch(`${gateway.url}${path}`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gateway.secret}`, 'content-type': 'application/json' },
    body: JSON.stringify({ model: 'gpt-test', ...body }),
  })
  await response.text()
  await eventually(() => collector.spans.length === 2)
  const [server, client] = collector.spans
  if (server === undefined || client === undefined) throw new Error('There are no spans')
  expect([response.status, server.kind, client.kind, client.parentSpanId]).toEqual([
    200,
    'server',
    'client',
    server.spanId,
  ])
  return { server, client }
}

const messages = [{ role: 'user', content: 'Good morning' }]
const said = (id: string, reason: string) => ({
  'gen_ai.response.id': id,
  'gen_ai.response.model': 'gpt-test-0613',
  'gen_ai.response.finish_reasons': [reason],
})
const usage = (input: number, output: number, cached: number) => ({
  'gen_ai.usage.input_tokens': input,
  'gen_ai.usage.output_tokens': output,
  'gen_ai.usage.cache_read.input_tokens': cached,
})

test('records request, provider and result of a chat call as span attributes', async () => {
  answer = () => Response.json({ ...completion, model: 'gpt-test-0613' })
  const { server, client } = await spansOf('/v1/chat/completions', { messages, temperature: 0.5, max_tokens: 64 })
  const both = {
    'gen_ai.operation.name': 'chat',
    'gen_ai.provider.name': 'openai',
    'gen_ai.request.model': 'gpt-test',
    'gen_ai.request.max_tokens': 64,
    'gen_ai.request.temperature': 0.5,
    ...said('chatcmpl-1', 'stop'),
    'http.request.method': 'POST',
    'http.response.status_code': 200,
  }
  expect(server.attributes).toMatchObject({ ...both, ...usage(11, 7, 3), 'http.route': '/v1/chat/completions' })
  const port = Number(new URL(gateway.seen[0]?.request.url ?? '').port)
  expect(client.attributes).toMatchObject({ ...both, 'server.address': '127.0.0.1', 'server.port': port })
  expect([server.name, client.name]).toEqual(['chat gpt-test', 'chat gpt-test'])
})

test('records the attributes of a streamed chat call', async () => {
  const chunk = (choice: object) => ({
    id: 'c1',
    object: 'chat.completion.chunk',
    model: 'gpt-test-0613',
    choices: [{ index: 0, ...choice }],
  })
  answer = () =>
    events(
      chunk({ delta: { content: 'say "finish_reason":"no"' }, finish_reason: null }),
      chunk({ delta: { content: 'Hello' }, finish_reason: null }),
      chunk({ delta: {}, finish_reason: 'length' }),
      { ...chunk({}), choices: [], usage: completion.usage },
      '[DONE]',
    )
  const { server, client } = await spansOf('/v1/chat/completions', { messages, stream: true })
  expect(server.attributes).toMatchObject({ ...said('c1', 'length'), ...usage(11, 7, 3) })
  expect(client.attributes).toMatchObject(said('c1', 'length'))
})

const response = {
  id: 'resp_1',
  object: 'response',
  model: 'gpt-test-0613',
  status: 'incomplete',
  incomplete_details: { reason: 'max_output_tokens' },
  output: [],
  usage: { input_tokens: 9, output_tokens: 4, total_tokens: 13, input_tokens_details: { cached_tokens: 2 } },
}

test('records the attributes of whole and streamed responses', async () => {
  answer = () => Response.json(response)
  const whole = await spansOf('/v1/responses', { input: 'Good morning', store: false, max_output_tokens: 32 })
  const expected = { 'gen_ai.operation.name': 'chat', ...said('resp_1', 'max_output_tokens'), ...usage(9, 4, 2) }
  expect(whole.server.attributes).toMatchObject({ ...expected, 'gen_ai.request.max_tokens': 32 })
  collector.spans.length = 0
  answer = () =>
    events(
      {
        type: 'response.created',
        sequence_number: 0,
        response: { ...response, status: 'in_progress', incomplete_details: null },
      },
      { type: 'response.incomplete', sequence_number: 1, response },
    )
  const streamed = await spansOf('/v1/responses', { input: 'Good morning', store: false, stream: true })
  expect(streamed.server.attributes).toMatchObject(expected)
})

test('records the attributes of messages that are translated for the provider', async () => {
  answer = () => Response.json({ ...completion, model: 'gpt-test-0613' })
  const { server, client } = await spansOf('/v1/messages', { messages, max_tokens: 16 })
  expect(server.attributes).toMatchObject({ 'gen_ai.operation.name': 'chat', 'gen_ai.request.max_tokens': 16 })
  expect(server.attributes).toMatchObject(usage(11, 7, 3))
  expect(client.attributes).toMatchObject({
    'gen_ai.provider.name': 'openai',
    'gen_ai.response.model': 'gpt-test-0613',
    'gen_ai.response.finish_reasons': ['end_turn'],
  })
})

test('records a model and no finish reasons for embeddings', async () => {
  const vector = { object: 'embedding', index: 0, embedding: [0.1] }
  const counts = { prompt_tokens: 5, total_tokens: 5 }
  answer = () => Response.json({ object: 'list', model: 'gpt-test-0613', data: [vector], usage: counts })
  const { server, client } = await spansOf('/v1/embeddings', { input: 'Good morning' })
  expect(server.attributes).toMatchObject({ 'gen_ai.operation.name': 'embeddings', 'gen_ai.usage.input_tokens': 5 })
  expect(client.attributes).toMatchObject({ 'gen_ai.response.model': 'gpt-test-0613' })
  for (const name of ['gen_ai.response.finish_reasons', 'gen_ai.request.max_tokens', 'gen_ai.request.temperature']) {
    expect(client.attributes[name]).toBeUndefined()
  }
})
