import { afterEach, expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { dialSocket } from './dial-socket.ts'

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
