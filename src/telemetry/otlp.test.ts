import { afterEach, beforeEach, expect, test } from 'bun:test'
import { loadOtlpExporter } from './otlp.ts'
import type { Span } from './span.ts'
import { partialSuccess, startTestCollector, type TestCollector } from './testing/collector.ts'
import { SpansRefused } from './tracer.ts'

const span: Span = {
  name: 'chat gpt-4o',
  kind: 'client',
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  parentSpanId: '00f067aa0ba902b7',
  state: 'rojo=1,congo=2',
  startedAt: 1,
  endedAt: 2,
  attributes: { text: 'a', whole: 3, part: 0.5, truth: true, list: ['b', 'c'] },
  error: 'provider.error',
}
let collector: TestCollector
beforeEach(() => {
  collector = startTestCollector()
})
afterEach(() => collector.stop())

const load = () => loadOtlpExporter({ endpoint: collector.url, headers: undefined, environment: undefined })

test('exports a span with its attributes, status and error', async () => {
  await (await load())([span])
  const { name, kind, traceId, spanId, attributes } = span
  const arrived = { name, kind, traceId, spanId, parentSpanId: '00f067aa0ba902b7', attributes }
  expect(collector.spans).toEqual([{ ...arrived, traceState: 'rojo=1,congo=2', status: 'provider.error' }])
})

test('reports how many spans a collector rejected and why, and sends the next ones', async () => {
  const send = await load()
  collector.answer = () => partialSuccess(2, 'too old')
  const thrown = await send([span, span, span]).catch((refused: unknown) => refused)
  expect(thrown).toBeInstanceOf(SpansRefused)
  expect(thrown).toMatchObject({ count: 2, message: 'too old' })
  collector.answer = () => new Response(null, { headers: { 'content-type': 'application/x-protobuf' } })
  await send([span])
})
