import { expect, test } from 'bun:test'
import { until } from '../../test/support/eventually.ts'
import { systemClock } from '../lib/clock.ts'
import { silentLog } from '../lib/log/log.ts'
import { parseHeaders, tracesUrl } from './otlp.ts'
import type { Span } from './span.ts'
import { createTracer, noTracer, type SpanExporter, SpansRefused } from './tracer.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const caller = (flags: string) =>
  new Headers({ traceparent: `00-${traceId}-b7ad6b7169203331-${flags}`, tracestate: 'a=1' })

const span: Span = {
  name: 'chat gpt-4o',
  kind: 'server',
  traceId,
  spanId: 'b7ad6b7169203331',
  parentSpanId: null,
  state: null,
  startedAt: 0,
  endedAt: 1,
  attributes: {},
  error: null,
}
const spans = (count: number): Span[] => Array.from({ length: count }, () => span)

const tracer = (load: () => Promise<SpanExporter>, change: { samplePercent?: number; random?: () => number } = {}) =>
  createTracer({
    load,
    samplePercent: 100,
    random: () => 0.5,
    clock: systemClock,
    log: silentLog,
    flushMilliseconds: 5,
    ...change,
  })
const never = () => Promise.reject(new Error('not to be loaded'))

test('without a collector it passes a trace on and never begins one', () => {
  expect(noTracer.begin(new Headers())).toBeNull()
  expect(noTracer.begin(caller('01'))).toMatchObject({ traceId, spanId: null, state: 'a=1' })
})

test('samples a request with a traceparent by its flag, others by the configured share', async () => {
  const half = tracer(never, { samplePercent: 50, random: () => 0.7 })
  expect(half.begin(new Headers())).toBeNull()
  expect(half.begin(caller('01'))).toMatchObject({
    traceId,
    parentSpanId: 'b7ad6b7169203331',
    spanId: expect.any(String),
  })
  expect(half.begin(caller('00'))).toMatchObject({ traceId, spanId: null })
  const all = tracer(never, { samplePercent: 100 })
  expect(all.begin(new Headers())?.traceId).toMatch(/^[0-9a-f]{32}$/)
  expect(tracer(never, { samplePercent: 0, random: () => 0 }).begin(new Headers())).toBeNull()
})

test('loads the exporter with the first span, and sends spans in batches', async () => {
  let loaded = 0
  const batches: number[] = []
  const sending = tracer(async () => {
    loaded += 1
    return async (batch) => {
      batches.push(batch.length)
    }
  })
  expect(loaded).toBe(0)
  sending.ended(spans(600))
  await sending.close(1000)
  expect(loaded).toBe(1)
  expect(batches).toEqual([512, 88])
  expect(sending.counters).toEqual({ exported: 600, dropped: 0 })
})

test('drops and counts spans while the collector does not answer', async () => {
  const failing = tracer(async () => () => Promise.reject(new Error('refused')))
  failing.ended(spans(10))
  await failing.close(1000)
  expect(failing.counters).toEqual({ exported: 0, dropped: 10 })
})

test('loads the exporter again after loading failed', async () => {
  let loaded = 0
  const failing = tracer(async () => {
    loaded += 1
    if (loaded === 1) throw new Error('no memory')
    return async () => undefined
  })
  failing.ended(spans(600))
  await failing.close(1000)
  expect(failing.counters).toEqual({ exported: 88, dropped: 512 })
})

test('drops spans that do not fit into the queue of a slow collector', async () => {
  const slow = tracer(async () => () => new Promise(() => undefined))
  for (let round = 0; round < 10; round += 1) slow.ended(spans(1000))
  // The first batch is under way, and the queue is full.
  expect(slow.counters.dropped).toBe(10_000 - 512 - 4096)
  await slow.close(5)
})

test('reads headers and the address of a collector', () => {
  expect(parseHeaders('api-key=a%20b, x=1=2')).toEqual({ 'api-key': 'a b', x: '1=2' })
  expect(tracesUrl('http://collector:4318')).toBe('http://collector:4318/v1/traces')
  expect(tracesUrl('https://host/otlp/v1/traces')).toBe('https://host/otlp/v1/traces')
})

test('counts and logs the spans that a collector refused of a batch', async () => {
  const said: unknown[] = []
  let now = 0
  const partly = createTracer({
    load: async () => () => Promise.reject(new SpansRefused(3, 'too old')),
    samplePercent: 100,
    random: () => 0,
    clock: { monotonic: () => now },
    log: { ...silentLog, warn: (fields) => void said.push(fields) },
  })
  for (const [round, instant] of [0, 1000, 3_600_000].entries()) {
    now = instant
    partly.ended(spans(512))
    await until('the batch was sent', () => partly.counters.exported === 509 * (round + 1))
  }
  expect(partly.counters).toEqual({ exported: 3 * 509, dropped: 9 })
  expect(said).toEqual([
    { spans: 3, error: 'too old' },
    { spans: 3, error: 'too old' },
  ])
  await partly.close(5)
})
