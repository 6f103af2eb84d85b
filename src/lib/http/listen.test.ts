import { expect, test } from 'bun:test'
import { listenOn, localUrl, reserveAddress, splitAddress } from './listen.ts'

test('port 0 becomes a port that can be listened at', () => {
  const first = reserveAddress('127.0.0.1:0')
  const second = reserveAddress('127.0.0.1:0')
  expect(second.address).not.toBe(first.address)
  first.release()
  second.release()
  const { host, port } = splitAddress(first.address)
  expect(host).toBe('127.0.0.1')
  expect(port).toBeGreaterThan(0)
  const again = reserveAddress(first.address)
  again.release()
  expect(again.address).toBe(first.address)
})

test('reaches a wildcard address over loopback', () => {
  expect(localUrl('0.0.0.0:7070')).toBe('http://127.0.0.1:7070')
  expect(localUrl('[::]:7070')).toBe('http://[::1]:7070')
  expect(localUrl('localhost:7070')).toBe('http://localhost:7070')
})

test('a header block of 32 KiB is read, and a larger one is refused', async () => {
  const server = Bun.serve({ ...listenOn('127.0.0.1:0'), fetch: () => new Response('read') })
  const ask = async (size: number) => (await fetch(server.url, { headers: { 'x-long': 'a'.repeat(size) } })).status
  expect([await ask(31_000), await ask(33_000)]).toEqual([200, 431])
  await server.stop(true)
})
