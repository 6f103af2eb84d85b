/** Charts, exports in the background, metrics and traces of the real executable. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { api } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'

setDefaultTimeout(120_000)

const traceId = '0af7651916cd43dd8448eb211c80319c'
const collected: { path: string; key: string | null; bytes: Buffer }[] = []
let collector: Bun.Server<undefined>
let gatehouse: Gatehouse

beforeAll(async () => {
  await executable()
  collector = Bun.serve({
    port: 0,
    async fetch(request) {
      const bytes = Buffer.from(await request.arrayBuffer())
      collected.push({ path: new URL(request.url).pathname, key: request.headers.get('x-key'), bytes })
      return new Response(null, { headers: { 'content-type': 'application/x-protobuf' } })
    },
  })
  gatehouse = await startGatehouse({
    env: {
      SERVICE_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
      SERVICE_OTLP_HEADERS: 'x-key=collector-secret',
      SERVICE_TRACE_SAMPLE_PERCENT: '0',
      SERVICE_LOG_LEVEL: 'debug',
    },
  })
}, 240_000)
afterAll(async () => {
  await gatehouse.stop()
  await collector.stop(true)
})

const ask = (text: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, {
    method: 'POST',
    headers: { authorization: `Bearer ${gatehouse.adminToken}`, 'content-type': 'application/json', ...headers },
    body: JSON.stringify({ model: 'simulator/echo', messages: [{ role: 'user', content: text }] }),
  })

const series = z.looseObject({
  totals: z.array(z.looseObject({ key: z.string().nullable(), requests: z.number(), cost: z.number() })),
})

test('a trace reaches its collector without message text, and the event names the trace', async () => {
  const traceparent = `00-${traceId}-b7ad6b7169203331-01`
  expect((await ask('a very private question', { traceparent })).status).toBe(200)
  await eventually(() => expect(collected.length).toBeGreaterThan(0))
  const [first] = collected
  expect(first).toMatchObject({ path: '/v1/traces', key: 'collector-secret' })
  expect(first?.bytes.includes(Buffer.from(traceId, 'hex'))).toBe(true)
  expect(first?.bytes.includes('simulator/echo')).toBe(true)
  expect(first?.bytes.includes('private question')).toBe(false)
  await eventually(async () => {
    const answer = await api(gatehouse, '/v1/events?since=5m&model=simulator/echo')
    expect(JSON.stringify(answer.body)).toContain(`"trace_id":"${traceId}"`)
  })
  expect(gatehouse.stdout() + gatehouse.stderr()).not.toContain('collector-secret')
})

test('a chart and the metrics count an answer a moment later', async () => {
  const before = await chart()
  for (let asked = 0; asked < 3; asked += 1) expect((await ask('again')).status).toBe(200)
  await eventually(async () => expect(await chart()).toBe(before + 3))
  const told = await (await fetch(`${gatehouse.gatewayUrl}/metrics`)).text()
  expect(told).toMatch(/gatehouse_tokens_total\{direction="output"\} [1-9]/)
  const control = await (await fetch(`${gatehouse.baseUrl}/metrics`)).text()
  expect(control).toMatch(/gatehouse_events_ingested_total\{type="gateway.request.outcome"\} [1-9]/)
  expect(control).toContain('gatehouse_connected_workers 1')
})

async function chart(): Promise<number> {
  const answer = await api(gatehouse, '/v1/events/series?since=1h&by=model')
  const { totals } = series.parse(answer.body)
  return totals.find(({ key }) => key === 'simulator/echo')?.requests ?? 0
}

test('the log has one JSON object a line and no request text at any level', async () => {
  const text = 'a question that no log repeats'
  expect((await ask(text)).status).toBe(200)
  expect((await ask(text, { 'content-type': 'text/plain' })).status).toBe(415)
  const lines = (gatehouse.stdout() + gatehouse.stderr()).split('\n').filter((line) => line !== '')
  expect(lines.length).toBeGreaterThan(1)
  for (const line of lines) expect(() => JSON.parse(line)).not.toThrow()
  expect(lines.filter((line) => line.includes(text) || line.includes('private question'))).toEqual([])
})

test('a background export is downloaded once complete', async () => {
  const made = await api(gatehouse, '/v1/exports/jobs', { method: 'POST', body: { since: '1h', format: 'csv' } })
  expect(made.status).toBe(202)
  const { id } = z.looseObject({ id: z.string() }).parse(made.body)
  await eventually(async () => {
    const job = await api(gatehouse, `/v1/exports/jobs/${id}`)
    expect(job.body).toMatchObject({ status: 'completed', progress: 1 })
  })
  const { body: text } = await api(gatehouse, `/v1/exports/jobs/${id}/download`)
  expect(String(text)).toStartWith('event_id,timestamp,event_type')
  expect(String(text)).toContain('gateway.request.outcome')
})
