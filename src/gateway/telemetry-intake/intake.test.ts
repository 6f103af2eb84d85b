import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { gzipSync } from 'node:zlib'
import protobuf from 'protobufjs'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { intakeBytes, signalUrl } from './intake.ts'
import { mostExports } from './intake-limits.ts'

/** The outer messages of opentelemetry/proto, with the part of metrics that stands for what is not read. */
const { root } = protobuf.parse(`
  syntax = "proto3";
  message AnyValue { oneof value { string string_value = 1; int64 int_value = 3; } }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
  message Scope { string name = 1; fixed64 time = 2; double rate = 3; fixed32 flags = 4; uint64 count = 5; }
  message ResourceMetrics { Resource resource = 1; repeated Scope scope_metrics = 2; string schema_url = 3; }
  message Export { repeated ResourceMetrics resource_metrics = 1; }
`)
const message = root.lookupType('Export')
const attribute = (key: string, stringValue: string) => ({ key, value: { stringValue } })
const sent = (attributes: object[]) => ({
  resourceMetrics: [
    {
      resource: { attributes, droppedAttributesCount: 7 },
      scopeMetrics: [
        { name: 'claude_code', time: '1763890000123456789', rate: 0.5, flags: 3, count: '18446744073709551615' },
      ],
      schemaUrl: 'https://opentelemetry.io/schemas/1.30.0',
    },
  ],
})
const encode = (body: object): Uint8Array => message.encode(message.fromObject(body)).finish()
const decode = (bytes: Uint8Array) => message.toObject(message.decode(bytes), { longs: String, defaults: false })

let collector: Bun.Server<undefined>
const collected: { path: string; headers: Headers; bytes: Uint8Array }[] = []
let answer = (): Response => new Response(null)
let running: TestGateway

beforeAll(() => {
  collector = Bun.serve({
    port: 0,
    async fetch(request) {
      collected.push({ path: new URL(request.url).pathname, headers: request.headers, bytes: await request.bytes() })
      return answer()
    },
  })
})
beforeEach(async () => {
  await running?.stop()
  collected.length = 0
  answer = () => new Response(null, { headers: { 'content-type': 'application/x-protobuf' } })
  running = await startTestGateway(() => new Response('no'), {
    drain_seconds: 0,
    otlp_endpoint: `http://127.0.0.1:${collector.port}`,
    otlp_headers: 'x-key=collector-secret',
  })
})
afterAll(async () => {
  await running.stop()
  await collector.stop(true)
})

type Body = Uint8Array | string
const post = (signal: string, body: Body, headers: Record<string, string> = {}) =>
  fetch(`${running.url}/v1/${signal}`, {
    method: 'POST',
    body,
    headers: {
      authorization: `Bearer ${running.secret}`,
      'content-type': typeof body === 'string' ? 'application/json' : 'application/x-protobuf',
      ...headers,
    },
  })
const attributesOf = (bytes: Uint8Array) => {
  const { resourceMetrics } = decode(bytes)
  return Object.fromEntries(
    resourceMetrics[0].resource.attributes.map(({ key, value }: ReturnType<typeof attribute>) => [
      key,
      value.stringValue,
    ]),
  )
}

test('an export in protobuf reaches the collector as it was, with whose token it was', async () => {
  const body = sent([attribute('service.name', 'claude-code')])
  const { status, headers } = await post('metrics', encode(body))
  expect([status, headers.get('content-type')]).toEqual([200, 'application/x-protobuf'])
  const [got] = collected
  expect(got?.path).toBe('/v1/metrics')
  expect([got?.headers.get('x-key'), got?.headers.get('authorization')]).toEqual(['collector-secret', null])
  const [token] = running.worker.tokens.values()
  const { resourceMetrics } = decode(got?.bytes ?? new Uint8Array())
  expect(resourceMetrics[0].scopeMetrics).toEqual(body.resourceMetrics[0]?.scopeMetrics)
  expect(resourceMetrics[0]).toMatchObject({ schemaUrl: body.resourceMetrics[0]?.schemaUrl })
  expect(resourceMetrics[0].resource.droppedAttributesCount).toBe(7)
  expect(attributesOf(got?.bytes ?? new Uint8Array())).toMatchObject({
    'service.name': 'claude-code',
    'gatehouse.token.id': token?.id,
    'gatehouse.gateway.id': running.worker.status.gatewayId,
  })
})

test('nobody sends in the name of another, in either encoding', async () => {
  const forged = [attribute('gatehouse.user.id', 'somebody'), attribute('gatehouse.anything', 'x'), attribute('a', 'b')]
  const scope = ['gateway:invoke'] as const
  const delegation = { clientId: 'claude-code', grantId: 'g', scope, permissions: scope, resources: [], teamIds: [] }
  const headers = { authorization: `Bearer ${running.worker.addToken({ userId: 'ada', roles: [], delegation })}` }
  expect((await post('metrics', encode(sent(forged)), headers)).status).toBe(200)
  expect((await post('metrics', JSON.stringify(sent(forged)), headers)).status).toBe(200)
  const read = [
    attributesOf(collected[0]?.bytes ?? new Uint8Array()),
    Object.fromEntries(
      JSON.parse(Buffer.from(collected[1]?.bytes ?? []).toString()).resourceMetrics[0].resource.attributes.map(
        ({ key, value }: ReturnType<typeof attribute>) => [key, value.stringValue],
      ),
    ),
  ]
  for (const attributes of read) {
    expect(attributes).toMatchObject({ a: 'b', 'gatehouse.user.id': 'ada', 'gatehouse.oauth_client.id': 'claude-code' })
    expect(attributes['gatehouse.anything']).toBeUndefined()
  }
  // A resource in two parts, and a key that is written twice: a reader takes the last.
  const key = (text: string) => [0x0a, text.length, ...Buffer.from(text)]
  const keyValue = [...key('harmless'), ...key('gatehouse.user.id'), 0x12, 3, 0x0a, 1, 0x78]
  const part = [0x0a, keyValue.length + 2, 0x0a, keyValue.length, ...keyValue]
  const resource = [...part, ...part]
  await post('metrics', new Uint8Array([0x0a, resource.length, ...resource]), headers)
  const merged = decode(collected[2]?.bytes ?? new Uint8Array()).resourceMetrics[0].resource.attributes
  expect(merged.filter((each: { key: string }) => each.key === 'gatehouse.user.id')).toEqual([
    { key: 'gatehouse.user.id', value: { stringValue: 'ada' } },
  ])
})

test('each signal in JSON goes to its own path, and numbers keep their text', async () => {
  for (const [signal, member] of [
    ['metrics', 'resourceMetrics'],
    ['logs', 'resourceLogs'],
    ['traces', 'resource_spans'],
  ] as const) {
    const { status } = await post(signal, `{"${member}":[{"scope":{"time":1763890000123456789}},{"resource":null}]}`)
    expect(status).toBe(200)
    const [got] = collected.slice(-1)
    const text = Buffer.from(got?.bytes ?? []).toString()
    expect([got?.path, text.includes('1763890000123456789')]).toEqual([`/v1/${signal}`, true])
    const resources = JSON.parse(text)[member]
    expect(
      resources.map(({ resource }: { resource: { attributes: unknown[] } }) => resource.attributes.length),
    ).toEqual([3, 3])
  }
})

test('a compressed export is unpacked, and an empty one passes', async () => {
  const packed = gzipSync(encode(sent([attribute('a', 'b')])))
  expect((await post('metrics', packed, { 'content-encoding': 'gzip' })).status).toBe(200)
  expect(attributesOf(collected[0]?.bytes ?? new Uint8Array())).toMatchObject({ a: 'b' })
  expect((await post('logs', new Uint8Array())).status).toBe(200)
})

test('what the collector says of a part that it did not take reaches the client', async () => {
  answer = () => Response.json({ partialSuccess: { rejectedDataPoints: '3', errorMessage: 'too old' } })
  const got = await post('metrics', '{"resourceMetrics":[]}')
  expect(await got.json()).toEqual({ partialSuccess: { rejectedDataPoints: '3', errorMessage: 'too old' } })
})

const refused = async (asked: Promise<Response>) => {
  const { status, headers, ...got } = await asked.then(async (each) => ({
    ...{ status: each.status, headers: each.headers },
    body: Object(await each.json()),
  }))
  return [status, got.body.reason, got.body.code]
}

test('what is no export, has too many resources, or is too large is refused and not sent on', async () => {
  expect(await refused(post('metrics', '[]'))).toEqual([400, 'telemetry_refused', 3])
  expect(await refused(post('metrics', '{"resourceMetrics":{}}'))).toEqual([400, 'telemetry_refused', 3])
  expect(await refused(post('metrics', `{"a":${'['.repeat(100_000)}`))).toEqual([400, 'telemetry_refused', 3])
  for (const bytes of [[0x0a], [0x0a, 5, 1], [0x0b], [0x00, 0x00], [0x0a, 2, 0x0a, 9], Array(11).fill(0xff)]) {
    expect(await refused(post('metrics', new Uint8Array(bytes)))).toEqual([400, 'telemetry_refused', 3])
  }
  const many = new Uint8Array(2002).map((_, index) => (index % 2 === 0 ? 0x0a : 0))
  expect(await refused(post('metrics', many))).toEqual([400, 'telemetry_refused', 3])
  expect(await refused(post('metrics', 'x', { 'content-type': 'text/plain' }))).toEqual([
    415,
    'unsupported_media_type',
    3,
  ])
  expect(await refused(post('metrics', new Uint8Array(intakeBytes + 1)))).toEqual([413, 'request_too_large', 3])
  const bomb = gzipSync(new Uint8Array(intakeBytes + 1))
  expect(await refused(post('metrics', bomb, { 'content-encoding': 'gzip' }))).toEqual([413, 'request_too_large', 3])
  expect(collected).toEqual([])
})

test('a token without the permission, or none, sends nothing', async () => {
  expect(await refused(post('metrics', '{}', { authorization: 'Bearer gth_x' }))).toEqual([
    401,
    'invalid_api_token',
    16,
  ])
  const other = running.worker.addToken({ roles: [] })
  expect(await refused(post('logs', '{}', { authorization: `Bearer ${other}` }))).toEqual([403, 'permission_denied', 7])
  expect((await fetch(`${running.url}/v1/logs`)).status).toBe(405)
  expect(collected).toEqual([])
})

test('a token that sends too often is refused with the wait, and others are not', async () => {
  for (let index = 0; index < mostExports; index += 1) expect((await post('logs', '{}')).status).toBe(200)
  const limited = await post('logs', '{}')
  expect([limited.status, Number(limited.headers.get('retry-after')) > 0]).toEqual([429, true])
  const other = running.worker.addToken()
  expect((await post('logs', '{}', { authorization: `Bearer ${other}` })).status).toBe(200)
})

test('says what the collector answers in terms of the client', async () => {
  const expected: [number, number, string][] = [
    [400, 400, 'telemetry_refused'],
    [413, 400, 'telemetry_refused'],
    [401, 503, 'telemetry_unavailable'],
    [302, 503, 'telemetry_unavailable'],
    [500, 503, 'telemetry_unavailable'],
    [503, 503, 'telemetry_unavailable'],
  ]
  for (const [said, status, reason] of expected) {
    answer = () => new Response('secret words of the collector', { status: said })
    expect((await refused(post('logs', '{}'))).slice(0, 2)).toEqual([status, reason])
  }
})

test('an accepted export leaves no event and is counted, and a refusal leaves one', async () => {
  await post('logs', '{}')
  expect(running.worker.journal.outcomes()).toEqual([])
  expect(await (await fetch(`${running.url}/metrics`)).text()).toContain(
    'gatehouse_telemetry_bytes_total{signal="logs"} 2',
  )
  await post('logs', '[]')
  expect(running.worker.journal.outcomes().map(({ reason_code }) => reason_code)).toEqual(['telemetry_refused'])
})

test('without a collector it is refused with 501 and what to do, and a collector that is away is 503', async () => {
  await running.stop()
  running = await startTestGateway(() => new Response('no'), { drain_seconds: 0 })
  const none = await post('metrics', '{}')
  expect(none.status).toBe(501)
  expect(Object(await none.json()).message).toContain('SERVICE_OTLP_ENDPOINT')
  await running.stop()
  running = await startTestGateway(() => new Response('no'), { drain_seconds: 0, otlp_endpoint: 'http://127.0.0.1:9' })
  expect((await refused(post('metrics', '{}'))).slice(0, 2)).toEqual([503, 'telemetry_unavailable'])
})

test('a signal goes beside the traces', () => {
  expect(signalUrl('http://c:4318', 'metrics')).toBe('http://c:4318/v1/metrics')
  expect(signalUrl('https://c/otlp/v1/traces', 'logs')).toBe('https://c/otlp/v1/logs')
  expect(signalUrl('https://c/otlp/', 'traces')).toBe('https://c/otlp/v1/traces')
})
