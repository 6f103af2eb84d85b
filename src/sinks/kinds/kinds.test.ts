import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createServer, type TLSSocket } from 'node:tls'
import { authority, certificate, key } from '../../lib/testing/certificate.ts'
import type { SinkConfig } from '../sink-resource.ts'
import { SinkFixture } from '../testing/sink-fixture.ts'
import { brokersOf } from './kafka.ts'

let sinks: SinkFixture
beforeEach(async () => {
  sinks = await SinkFixture.start()
})
afterEach(() => sinks.remove())

const details = { model: 'gpt', provider: 'openai', status: 200, latency_ms: 12.5 }

/** Two events and what was sent of them. */
async function sent(change: Parameters<SinkFixture['add']>[0], config: SinkConfig = {}) {
  const events = [sinks.proof.gatewayEvent(1, { details }), sinks.proof.gatewayEvent(1, { verdict: 'deny' })]
  await sinks.proof.ship(
    1,
    events.map((event) => JSON.stringify(event)),
  )
  await sinks.add({ format: 'events', ...change }, config)
  await sinks.deliver()
  const [received] = sinks.received
  if (received === undefined) throw new Error('Nothing was sent')
  return { events, received }
}

test('sends lines of JSON with a bearer token, compressed', async () => {
  const { events, received } = await sent({ kind: 'http', credentials: { token: 'abc', headers: { 'X-More': 'yes' } } })
  expect(received.text).toBe(events.map((event) => `${JSON.stringify(event)}\n`).join(''))
  expect(Object.fromEntries(received.headers)).toMatchObject({
    ...{ authorization: 'Bearer abc', 'x-more': 'yes' },
    ...{ 'content-type': 'application/x-ndjson', 'content-encoding': 'gzip' },
  })
})

test("sends events in the form of Splunk's HTTP Event Collector", async () => {
  const { events, received } = await sent(
    { kind: 'splunk', credentials: { token: 'abc' } },
    { splunk: { index: 'audit', source: 'gw', sourcetype: 'st' } },
  )
  expect(received.headers.get('authorization')).toBe('Splunk abc')
  const objects = received.text.split('\n').map((line) => JSON.parse(line))
  expect(objects).toEqual(
    events.map((event) => ({
      ...{ time: Date.parse(event.timestamp) / 1000, source: 'gw', sourcetype: 'st', index: 'audit', event },
    })),
  )
})

test("sends events in the form of Datadog's log intake", async () => {
  const { events, received } = await sent(
    { kind: 'datadog', credentials: { token: 'abc' } },
    { datadog: { service: 'ai', tags: 'env:prod,team:x' } },
  )
  expect(received.headers.get('dd-api-key')).toBe('abc')
  expect(JSON.parse(received.text)).toEqual(
    events.map((event, index) => ({
      ...{ ddsource: 'gatehouse', service: 'ai', ddtags: 'env:prod,team:x', timestamp: Date.parse(event.timestamp) },
      ...{ status: index === 0 ? 'info' : 'warn', message: JSON.stringify(event) },
    })),
  )
})

test('sends rows to ClickHouse, with a token that names the parcel', async () => {
  const { events, received } = await sent(
    { kind: 'clickhouse', url: 'https://ch.example.com:8443/', credentials: { username: 'me', password: 'word' } },
    { clickhouse: { database: 'audit', table: 'events' } },
  )
  const query = new URL(received.url).searchParams
  expect(query.get('query')).toBe('INSERT INTO "audit"."events" FORMAT JSONEachRow')
  expect(query.get('insert_deduplication_token')).toEndWith('-1-3-2')
  expect(received.headers.get('x-clickhouse-user')).toBe('me')
  const [row] = received.text.split('\n').map((line) => line && JSON.parse(line))
  expect(row).toMatchObject({ event_id: events[0]?.event_id, model: 'gpt', status: 200, latency_ms: 12.5, cost: null })
  expect(JSON.parse(row.event)).toEqual(events[0])
})

test('sends log records by OTLP, and takes a partial success for a refusal of content', async () => {
  let rejects = true
  sinks.answer = ({ text }) => {
    const { length } = JSON.parse(text).resourceLogs[0].scopeLogs[0].logRecords
    const rejected = rejects && length === 2 ? 1 : 0
    rejects &&= rejected === 0
    return Response.json(rejected === 0 ? {} : { partialSuccess: { rejectedLogRecords: '1', errorMessage: 'bad' } })
  }
  const { events } = await sent({ kind: 'otlp', url: 'https://collector.example.com' })
  const records = sinks.received.flatMap(({ text }) => JSON.parse(text).resourceLogs[0].scopeLogs[0].logRecords)
  expect(sinks.received[0]?.url).toBe('https://collector.example.com/v1/logs')
  expect(records[0]).toMatchObject({
    timeUnixNano: `${Date.parse(events[0]?.timestamp ?? '')}000000`,
    severityNumber: 9,
    body: { stringValue: JSON.stringify(events[0]) },
  })
  expect(records[0].attributes).toContainEqual({ key: 'status', value: { intValue: '200' } })
  expect(records[0].attributes).toContainEqual({ key: 'latency_ms', value: { doubleValue: 12.5 } })
  expect(new Set(records.map(({ body }: { body: { stringValue: string } }) => body.stringValue)).size).toBe(2)
})

test('quotes a receiver without any credential, also where it repeats the header that it was sent', async () => {
  const credentials = { username: 'gatehouse', password: 'hunter2-of-the-siem', headers: { 'X-Key': 'header-secret' } }
  const partial = { partialSuccess: { rejectedLogRecords: 1, errorMessage: 'otlp-token is old' } }
  sinks.answer = ({ url, headers }) =>
    url.startsWith('https://otlp.')
      ? Response.json(partial)
      : new Response(JSON.stringify([...headers, credentials.password]), { status: 403 })
  const id = await sinks.add({ kind: 'http', credentials })
  const otlp = { kind: 'otlp', name: 'otlp', format: 'events', url: 'https://otlp.example.com' } as const
  const rejecting = await sinks.add({ ...otlp, credentials: { token: 'otlp-token' } })
  await sinks.proof.shipEvents(1, 1)
  await sinks.deliver(sinks.runner(), 2)
  const errors = [await sinks.delivery(id), await sinks.delivery(rejecting)].map(({ error }) => error ?? '')
  expect(errors[0]).toStartWith('The receiver answered 403: ')
  expect(errors[1]).toBe('The receiver rejected log records: • is old')
  for (const secret of [
    'hunter2',
    'header-secret',
    'otlp-token',
    Buffer.from('gatehouse:hunter2').toString('base64').slice(0, 20),
  ]) {
    expect(errors.join()).not.toContain(secret)
  }
})

/** A receiver of RFC 5425 that reads frames as RFC 5424 has them, and throws for anything else. */
function syslogServer() {
  const messages: string[] = []
  const sockets = new Set<TLSSocket>()
  let breaks = 0
  const server = createServer({ cert: certificate, key }, (socket) => {
    sockets.add(socket)
    let bytes = Buffer.alloc(0)
    socket.on('error', () => undefined)
    socket.on('data', (piece: Buffer) => {
      if (breaks > 0) {
        breaks -= 1
        return socket.destroy()
      }
      bytes = Buffer.concat([bytes, piece])
      for (;;) {
        const blank = bytes.indexOf(32)
        const length = Number(bytes.subarray(0, blank).toString())
        if (blank < 0 || bytes.length < blank + 1 + length) return
        messages.push(bytes.subarray(blank + 1, blank + 1 + length).toString())
        bytes = bytes.subarray(blank + 1 + length)
      }
    })
    socket.on('end', () => socket.end())
  })
  const { promise, resolve } = Promise.withResolvers<string>()
  server.listen(0, '127.0.0.1', () => {
    const address = server.address()
    resolve(`tls://localhost:${typeof address === 'object' && address !== null ? address.port : 0}`)
  })
  return {
    messages,
    url: promise,
    breakNext: (times: number) => {
      breaks = times
    },
    stop: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    },
  }
}

const rfc5424 =
  /^<(\d{1,3})>1 (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z) ([!-~]{1,255}) ([!-~]{1,48}) ([!-~]{1,128}) ([!-~]{1,32}) ((?:\[[^\]\\]*(?:\\.[^\]\\]*)*\])+) (.*)$/s

test('sends syslog over TLS, and sends a parcel again whose connection broke off', async () => {
  const server = syslogServer()
  const url = await server.url
  server.breakNext(1)
  const events = Array.from({ length: 300 }, () => sinks.proof.gatewayEvent(1, { verdict: 'deny' }))
  await sinks.proof.ship(
    1,
    events.map((event) => JSON.stringify(event)),
  )
  const id = await sinks.add(
    { kind: 'syslog', format: 'events', url },
    { ca_certificate: authority, syslog: { facility: 13, app_name: 'gate' } },
  )
  await sinks.deliver(sinks.runner(), 5)
  expect(await sinks.delivery(id)).toMatchObject({ position: 301, delivered: 300, error: null })
  const parsed = server.messages.map((message) => rfc5424.exec(message))
  expect(parsed.every((match) => match !== null)).toBe(true)
  const ids = parsed.map((match) => JSON.parse(match?.[8] ?? '').event_id)
  expect([...new Set(ids)]).toEqual(events.map(({ event_id }) => event_id))
  expect(parsed[0]?.[1]).toBe(String(13 * 8 + 4))
  expect(parsed[0]?.[4]).toBe('gate')
  server.stop()
})

test('does not trust a syslog receiver whose certificate is of another authority', async () => {
  const server = syslogServer()
  await sinks.proof.shipEvents(1, 1)
  const id = await sinks.add({ kind: 'syslog', format: 'events', url: await server.url })
  await sinks.deliver(sinks.runner(), 2)
  expect(await sinks.delivery(id)).toMatchObject({ position: 1, delivered: 0 })
  expect((await sinks.delivery(id)).error).toMatch(/certificate|call failed/)
  expect(server.messages).toEqual([])
  server.stop()
})

test('reads the brokers of an address', () => {
  expect(brokersOf('kafkas://one.example.com:9093,[::1]:9093/')).toEqual(['one.example.com:9093', '[::1]:9093'])
  for (const wrong of ['kafkas://one', 'https://one:9093', 'kafkas://one:9093,', 'kafkas://u:p@one:9093']) {
    expect([wrong, brokersOf(wrong)]).toEqual([wrong, null])
  }
})
