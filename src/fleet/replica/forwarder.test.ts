import { afterEach, beforeEach, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { systemClock } from '../../lib/clock.ts'
import { type Forwarder, type Primary, startForwarder } from './forwarder.ts'

const log = '92f4ca70-385c-4a91-9ca0-9b54b8fceca3'
const grpc = { 'content-type': 'application/grpc-web+proto' }

let primary: Bun.Server<unknown>
let answer: (request: Request) => Response | Promise<Response>
let named: Primary | null
let forwarder: Forwarder
let secret: string
let isHandshakeSent: string[]
let refused: number
const seen: { path: string; headers: Headers; body: string }[] = []

beforeEach(() => {
  seen.length = 0
  isHandshakeSent = []
  refused = 0
  answer = () => new Response('frames', { headers: grpc })
  primary = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    idleTimeout: 0,
    development: false,
    async fetch(request) {
      seen.push({ path: new URL(request.url).pathname, headers: request.headers, body: await request.text() })
      return await answer(request)
    },
  })
  named = { url: `http://127.0.0.1:${primary.port}`, token: 'read-credential' }
  forwarder = startForwarder({
    fetch,
    clock: systemClock,
    randomBytes,
    primary: () => named,
    onHello(found) {
      isHandshakeSent.push(found)
      return found === log
    },
    onRefused: () => refused++,
  })
  secret = forwarder.newSecret()
})
afterEach(async () => {
  await forwarder.stop()
  await primary.stop(true)
})

const call = (name: string, headers: Record<string, string> = { 'x-authorization': `Bearer ${secret}` }) =>
  fetch(`${forwarder.url}/wal_log.ReplicationLog/${name}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/grpc-web', 'x-session-token': 'session' },
    body: 'request',
  })

async function ending(called: Promise<Response>): Promise<string> {
  try {
    return await (await called).text()
  } catch {
    // The connection was closed before the body's end.
    return 'failed'
  }
}

/** A gRPC-Web frame with field 3 in it. */
function handshake(of: string): Buffer<ArrayBuffer> {
  const message = Buffer.concat([Buffer.from([0x1a, of.length]), Buffer.from(of)])
  const head = Buffer.alloc(5)
  head.writeUInt32BE(message.length, 1)
  return Buffer.concat([head, message])
}

test('forwards a call unchanged, with the credential that only this process has', async () => {
  const answered = await call('BatchLogEntries')
  expect([answered.status, await answered.text()]).toEqual([200, 'frames'])
  const [forwarded] = seen
  expect(forwarded?.body).toBe('request')
  expect(forwarded?.headers.get('x-authorization')).toBe('Bearer read-credential')
  expect(forwarded?.headers.get('x-session-token')).toBe('session')
  expect(Buffer.from(forwarded?.headers.get('x-namespace-bin') ?? '', 'base64').toString()).toBe('127')
  expect(forwarder.bytes).toBe(6)
})

test('reads the namespace from the first label of a host with several', async () => {
  named = { url: `http://state.localhost:${primary.port}`, token: 'read-credential' }
  await call('BatchLogEntries')
  expect(Buffer.from(seen[0]?.headers.get('x-namespace-bin') ?? '', 'base64').toString()).toBe('state')
})

test('accepts only the replicator of this start, and replication calls only', async () => {
  const former = secret
  expect((await call('Hello', {})).status).toBe(401)
  secret = forwarder.newSecret()
  expect((await call('Hello', { 'x-authorization': `Bearer ${former}` })).status).toBe(401)
  expect((await fetch(`${forwarder.url}/info`)).status).toBe(404)
  const headers = { 'x-authorization': `Bearer ${secret}` }
  for (const path of ['/proxy.Proxy/Execute', '/v2/pipeline', '/wal_log.ReplicationLog/Hello/../../x']) {
    expect((await fetch(forwarder.url + path, { method: 'POST', headers, body: 'x' })).status).toBe(404)
  }
  expect(seen).toEqual([])
})

test('forwards a handshake for the followed log and holds back any other', async () => {
  answer = () => new Response(handshake(log), { headers: grpc })
  const known = await call('Hello')
  expect(Buffer.from(await known.arrayBuffer())).toEqual(handshake(log))
  answer = () => new Response(handshake('00000000-385c-4a91-9ca0-9b54b8fceca3'), { headers: grpc })
  const other = await call('Hello')
  expect([other.status, await other.text()]).toEqual([503, ''])
  expect(isHandshakeSent).toHaveLength(2)
})

test('turns an invalid answer of the primary into a failed call', async () => {
  const lies: (() => Response)[] = [
    () => new Response('no', { status: 500, headers: grpc }),
    () => new Response('<html>', { headers: { 'content-type': 'text/html' } }),
    () => Response.redirect('http://127.0.0.1:1/elsewhere'),
    () => new Response(new Uint8Array(200_000), { headers: grpc }),
  ]
  for (const lie of lies) {
    answer = lie
    expect((await call('Hello')).status).toBe(502)
  }
  await primary.stop(true)
  expect((await call('Hello')).status).toBe(502)
  named = null
  expect((await call('Hello')).status).toBe(503)
  expect(isHandshakeSent).toEqual([])
})

test('never ends a truncated body as complete', async () => {
  answer = () =>
    new Response(
      new ReadableStream({
        async start(controller) {
          controller.enqueue(Buffer.from('half'))
          await Bun.sleep(20)
          controller.error(new Error('cut'))
        },
      }),
      { headers: grpc },
    )
  expect(await ending(call('Snapshot'))).toBe('failed')
})

test('waits a bounded time for a primary that hangs before or during its answer', async () => {
  answer = () => new Promise(() => undefined)
  const began = performance.now()
  expect((await call('Hello')).status).toBe(502)
  expect(performance.now() - began).toBeLessThan(25_000)
  answer = () =>
    new Response(new ReadableStream({ start: (controller) => controller.enqueue(Buffer.from('half')) }), {
      headers: grpc,
    })
  expect(await ending(call('BatchLogEntries'))).toBe('failed')
}, 20_000)

test('reports a credential that the primary refuses', async () => {
  answer = () => new Response('', { headers: { ...grpc, 'grpc-status': '16' } })
  await call('Hello')
  expect(refused).toBe(1)
})
