/** Traces from a request to what the provider is told and the collector gets. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log/log.ts'
import { loadOtlpExporter } from '../../telemetry/otlp.ts'
import type { Span } from '../../telemetry/span.ts'
import { createTracer } from '../../telemetry/tracer.ts'
import { completion, question, startTestGateway, type TestGateway, waitUntil } from '../testing/gateway.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const callerSpan = 'b7ad6b7169203331'
let gateway: TestGateway
let kept: Span[]
let failures: number

beforeEach(async () => {
  kept = []
  failures = 0
  const tracer = createTracer({
    load: async () => async (spans) => void kept.push(...spans),
    samplePercent: 0,
    random: Math.random,
    clock: systemClock,
    log: silentLog,
    flushMilliseconds: 1,
  })
  const provider = () => {
    failures -= 1
    return failures >= 0 ? new Response('busy', { status: 503 }) : Response.json(completion)
  }
  gateway = await startTestGateway(provider, {}, tracer)
})
afterEach(() => gateway.stop())

const traceparent = (flags: string) => ({ traceparent: `00-${traceId}-${callerSpan}-${flags}` })

test('makes a span for the exchange and for each provider call, and sends the provider its own span', async () => {
  failures = 1
  expect((await gateway.chat(question, { headers: traceparent('01') })).status).toBe(200)
  await waitUntil(() => kept.length === 3)
  const [exchange, first, second] = kept
  expect(exchange).toMatchObject({
    name: 'chat gpt-test',
    kind: 'server',
    traceId,
    parentSpanId: callerSpan,
    error: null,
    attributes: {
      'gen_ai.operation.name': 'chat',
      'gen_ai.request.model': 'gpt-test',
      'gen_ai.usage.input_tokens': 11,
      'gen_ai.usage.output_tokens': 7,
      'http.response.status_code': 200,
      'gatehouse.verdict': 'allow',
    },
  })
  expect(first).toMatchObject({ kind: 'client', parentSpanId: exchange?.spanId ?? '', error: 'provider.error' })
  expect(second).toMatchObject({ kind: 'client', parentSpanId: exchange?.spanId ?? '', error: null })
  expect([first, second].map((call) => call?.attributes['http.request.resend_count'])).toEqual([undefined, 1])
  const told = gateway.seen.map(({ request }) => request.headers.get('traceparent'))
  expect(told).toEqual([first, second].map((span) => `00-${traceId}-${span?.spanId}-01`))
  expect(JSON.stringify(kept)).not.toContain('Good morning')
  const { journal } = gateway.worker
  expect([...journal.attempts(), ...journal.outcomes()].map(({ trace_id }) => trace_id)).toEqual([
    traceId,
    traceId,
    traceId,
  ])
})

test('names an unsampled trace of the caller in events and forwards it unchanged', async () => {
  await gateway.chat(question, { headers: traceparent('00') })
  expect(gateway.seen[0]?.request.headers.get('traceparent')).toBe(traceparent('00').traceparent)
  expect(gateway.worker.journal.outcomes().at(-1)?.trace_id).toBe(traceId)
  await gateway.chat(question)
  expect(gateway.seen[1]?.request.headers.get('traceparent')).toBeNull()
  expect(gateway.worker.journal.outcomes().at(-1)?.trace_id).toBeUndefined()
  expect(kept).toEqual([])
})

test('forwards tracestate only together with its trace', async () => {
  const told = async (headers: Record<string, string>) => {
    await gateway.chat(question, { headers: { tracestate: 'a=1, b=2', ...headers } })
    const sent = gateway.seen.at(-1)?.request.headers
    return [sent?.get('traceparent') ?? null, sent?.get('tracestate') ?? null]
  }
  expect(await told({})).toEqual([null, null])
  expect(await told({ traceparent: 'hello' })).toEqual([null, null])
  expect(await told(traceparent('00'))).toEqual([traceparent('00').traceparent, 'a=1,b=2'])
  expect(await told({ ...traceparent('00'), tracestate: 'a=1,hello' })).toEqual([traceparent('00').traceparent, null])
  expect(await told(traceparent('01'))).toEqual([expect.stringContaining(traceId), 'a=1,b=2'])
  await waitUntil(() => kept.length === 2)
  expect(kept.map(({ state }) => state)).toEqual(['a=1,b=2', 'a=1,b=2'])
})

test('exports spans by OTLP with the configured headers', async () => {
  const asked: { path: string; type: string | null; key: string | null; bytes: Buffer }[] = []
  const collector = Bun.serve({
    port: 0,
    async fetch(request) {
      const { headers } = request
      const bytes = Buffer.from(await request.arrayBuffer())
      asked.push({
        path: new URL(request.url).pathname,
        type: headers.get('content-type'),
        key: headers.get('x-key'),
        bytes,
      })
      return new Response(null, { headers: { 'content-type': 'application/x-protobuf' } })
    },
  })
  const send = await loadOtlpExporter({
    endpoint: `http://127.0.0.1:${collector.port}`,
    headers: 'x-key=secret',
    environment: 'staging',
  })
  await gateway.chat(question, { headers: traceparent('01') })
  await waitUntil(() => kept.length === 2)
  await send(kept)
  expect(asked).toMatchObject([{ path: '/v1/traces', type: 'application/x-protobuf', key: 'secret' }])
  expect(asked[0]?.bytes.includes(Buffer.from(traceId, 'hex'))).toBe(true)
  expect(asked[0]?.bytes.includes('gen_ai.request.model')).toBe(true)
  expect(asked[0]?.bytes.includes('staging')).toBe(true)
  await collector.stop(true)
})
