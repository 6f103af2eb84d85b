import { afterEach, expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { dialSocket, proxyOf } from './dial-socket.ts'

let server: Bun.Server<undefined> | null = null
afterEach(() => server?.stop(true))

const heard: string[] = []
const ends: string[] = []
const handlers = {
  received: (text: string) => void heard.push(text),
  closed: (reason: string) => void ends.push(reason),
}

function serve(open: (peer: Bun.ServerWebSocket<undefined>) => void, requests: Request[] = []): string {
  heard.length = 0
  ends.length = 0
  server = Bun.serve({
    port: 0,
    fetch(request, self) {
      requests.push(request)
      if (new URL(request.url).pathname === '/no') return new Response('no', { status: 403 })
      return self.upgrade(request) ? undefined : new Response(null, { status: 400 })
    },
    websocket: { open, message: (peer, text) => void peer.send(text), backpressureLimit: 2 ** 30 },
  })
  return `ws://localhost:${server.port}`
}

test('sends what came before the connection was open, and its own headers but for those of the handshake', async () => {
  const requests: Request[] = []
  const url = serve(() => undefined, requests)
  const socket = dialSocket(
    url,
    { authorization: 'Bearer key', 'accept-encoding': 'identity', host: 'elsewhere' },
    handlers,
  )
  socket.send('early')
  expect(socket.bufferedAmount).toBe(5)
  await eventually(() => heard.length === 1)
  expect(heard).toEqual(['early'])
  expect(requests[0]?.headers.get('authorization')).toBe('Bearer key')
  expect(requests[0]?.headers.get('host')).not.toBe('elsewhere')
  socket.close()
  await Bun.sleep(20)
  expect(ends).toEqual([])
})

test('reports a refused handshake with its status, a close with its code, and a binary frame, each once', async () => {
  dialSocket(`${serve(() => undefined)}/no`, {}, handlers)
  await eventually(() => ends.length === 1)
  expect(ends[0]).toContain('403')
  await server?.stop(true)
  dialSocket(
    serve((peer) => peer.close(4001, 'enough')),
    {},
    handlers,
  )
  await eventually(() => ends.length === 1)
  expect(ends[0]).toContain('4001: enough')
  await server?.stop(true)
  dialSocket(
    serve((peer) => void peer.send(new Uint8Array([1]))),
    {},
    handlers,
  )
  await eventually(() => ends.length === 1)
  await Bun.sleep(20)
  expect([heard, ends]).toEqual([[], ['it sent a binary frame']])
})

test('reports nothing while it is paused, and all of it afterwards', async () => {
  const socket = dialSocket(
    serve((peer) => {
      for (let count = 0; count < 100; count++) peer.send('x'.repeat(100_000))
    }),
    {},
    handlers,
  )
  await eventually(() => heard.length > 0)
  socket.pause()
  await Bun.sleep(50)
  const before = heard.length
  await Bun.sleep(100)
  expect(heard.length - before).toBeLessThan(3)
  socket.resume()
  await eventually(() => heard.length === 100)
  socket.close()
})

test('takes the proxy that the environment names, but for the excepted hosts', () => {
  const proxies = {
    https_proxy: 'http://proxy:1',
    HTTP_PROXY: 'http://proxy:2',
    no_proxy: 'localhost, .inner.org,own:81',
  }
  const of = (url: string) => proxyOf(new URL(url), proxies)
  expect(of('wss://api.openai.com/v1')).toBe('http://proxy:1')
  expect(of('ws://api.openai.com/v1')).toBe('http://proxy:2')
  for (const url of ['ws://localhost:80', 'wss://a.inner.org', 'wss://inner.org', 'ws://own:81'])
    expect(of(url)).toBeNull()
  expect(of('ws://own:82')).toBe('http://proxy:2')
  expect(proxyOf(new URL('wss://a'), {})).toBeNull()
  expect(proxyOf(new URL('wss://a'), { ...proxies, no_proxy: '*' })).toBeNull()
})

test('reaches its server through a proxy', async () => {
  const asked: string[] = []
  const proxy = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      data(socket, data) {
        asked.push(String(data).split('\r\n')[0] ?? '')
        socket.end()
      },
    },
  })
  heard.length = 0
  ends.length = 0
  const before = process.env.http_proxy
  process.env.http_proxy = `http://127.0.0.1:${proxy.port}`
  try {
    dialSocket('ws://somewhere.invalid:81/v1', {}, handlers)
    await eventually(() => asked.length === 1)
  } finally {
    if (before === undefined) delete process.env.http_proxy
    else process.env.http_proxy = before
    proxy.stop(true)
  }
  expect(asked[0]).toStartWith('CONNECT somewhere.invalid:81')
})
