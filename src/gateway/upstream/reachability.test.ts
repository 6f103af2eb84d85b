import { expect, test } from 'bun:test'
import { createServer } from 'node:net'
import { dialTcp, Reachability, usesProxy } from './reachability.ts'

function dialling() {
  let now = 0
  const dialled: { at: number; milliseconds: number; settle: (connected: boolean) => Promise<void> }[] = []
  const reach = new Reachability({ now: () => now, monotonic: () => now }, (_origin, milliseconds) => {
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const settle = async (connected: boolean) => {
      if (connected) resolve()
      else reject(new Error('no connection'))
      await Promise.resolve()
    }
    dialled.push({ at: now, milliseconds, settle })
    return promise
  })
  const at = (time: number, since = 0) => {
    now = time
    return reach.unreachable('http://host', since, 10_000)
  }
  return { at, dialled }
}

test('dials a provider after half the deadline and reports it unreachable when no connection is made in the rest', async () => {
  const { at, dialled } = dialling()
  expect([at(4999), dialled.length]).toEqual([null, 0])
  expect([at(5000), at(6000), dialled.length]).toEqual([null, null, 1])
  expect(dialled[0]?.milliseconds).toBe(5000)
  await dialled[0]?.settle(false)
  expect(at(10_000)).toBe(true)
})

test('does not dial a connected provider again within the deadline', async () => {
  const { at, dialled } = dialling()
  at(5000)
  await dialled[0]?.settle(true)
  expect([at(5001), at(14_999), dialled.length]).toEqual([false, false, 1])
  at(15_000)
  expect(dialled.length).toBe(2)
})

test('ignores a failure from before the call began', async () => {
  const { at, dialled } = dialling()
  at(5000)
  await dialled[0]?.settle(false)
  expect(at(13_000, 6000)).toBeNull()
})

test('dialTcp() connects only to a listening port', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' ? address?.port : 0
  await dialTcp(`http://127.0.0.1:${port}/v1`, 1000)
  await new Promise((resolve) => server.close(resolve))
  await expect(dialTcp(`http://127.0.0.1:${port}`, 1000)).rejects.toThrow()
})

test('usesProxy() recognizes the proxy variables', () => {
  expect([usesProxy({}), usesProxy({ HTTPS_PROXY: '' }), usesProxy({ https_proxy: 'http://proxy' })]).toEqual([
    false,
    false,
    true,
  ])
})
