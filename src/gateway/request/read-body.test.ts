import { expect, test } from 'bun:test'
import type { Settings } from '../../config.ts'
import { systemClock } from '../../lib/clock.ts'
import { MemoryBudget } from '../admission/memory-budget.ts'
import { createInFlight } from '../in-flight.ts'
import { testListener } from '../testing/gateway.ts'
import { jsonHeaders, startMcpGateway } from '../testing/mcp.ts'
import { testMemory, testSettings } from '../testing/worker.ts'
import { readBodyWithin } from './read-body.ts'

/** A request whose body comes when it is told, and the limits that its connection was given, in seconds. */
function arriving({ url = 'http://localhost', headers = {} }: { url?: string; headers?: Record<string, string> } = {}) {
  const { limits, listener } = testListener()
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const request = new Request(`${url}/mcp`, { method: 'POST', headers, body: readable })
  const finish = async (sent: string | Uint8Array) => {
    const writer = writable.getWriter()
    await writer.write(typeof sent === 'string' ? new TextEncoder().encode(sent) : sent)
    await writer.close()
  }
  return { request, connection: listener, memory: testMemory().forBody(), limits, finish }
}

function within(change: Partial<Settings>) {
  const settings = testSettings(change)
  return { settings, running: createInFlight(settings, systemClock, () => undefined) }
}

test('applies the body timeout to a pausing body, not the idle timeout of the server', async () => {
  const { limits, finish, ...asked } = arriving()
  const reading = readBodyWithin(within({ body_timeout_seconds: 60 }), asked)
  expect(limits).toEqual([0])
  await finish('late')
  expect(new TextDecoder().decode(await reading)).toBe('late')
})

test('answers request_timeout for a body that does not arrive in time', async () => {
  expect(await readBodyWithin(within({ body_timeout_seconds: 0.001 }), arriving()).catch(({ code }) => code)).toBe(
    'request_timeout',
  )
})

test('waits in a drain for a body, and answers that it drains when the body is late', async () => {
  const { running, ...rest } = within({ body_timeout_seconds: 60 })
  const { finish, ...asked } = arriving()
  const reading = readBodyWithin({ running, ...rest }, asked)
  const draining = running.drain(60_000)
  await finish('in time')
  expect(new TextDecoder().decode(await reading)).toBe('in time')
  await draining
  const never = readBodyWithin({ running, ...rest }, arriving()).catch(({ code }) => code)
  await running.drain(0)
  expect(await never).toBe('draining')
})

test('stops a body that a drain cut while it was decompressed', async () => {
  const { running, ...rest } = within({ body_timeout_seconds: 60 })
  const { finish, ...asked } = arriving({ headers: { 'content-encoding': 'gzip' } })
  const reading = readBodyWithin({ running, ...rest }, asked).catch(({ code }) => code)
  await finish(Bun.gzipSync(new Uint8Array(8 * 1024 * 1024)))
  await running.drain(0)
  expect(await reading).toBe('draining')
})

test('applies the body rules to every MCP message, also one with a refused token', async () => {
  const running = await startMcpGateway([])
  const mayNot = running.worker.addToken({ purpose: 'gateway_runtime' })
  for (const secret of [running.secret, mayNot]) {
    const headers = { ...jsonHeaders, authorization: `Bearer ${secret}` }
    const { request, connection, limits, finish } = arriving({ url: running.url, headers })
    const answering = running.gateway.fetch(request, connection)
    expect(limits).toEqual([0])
    await finish('{"jsonrpc":"2.0","id":1,"method":"initialize"}')
    expect(await (await answering)?.json()).toMatchObject({ id: 1, error: {} })
    expect(limits.at(-1)).toBe(120)
  }
  await running.stop()
})

test('reserves no memory of large bodies for bodies that declare much and send nothing', async () => {
  const budget = new MemoryBudget({ bytes: 24 * 1024 * 1024, waitMilliseconds: 0 })
  const gateway = within({ body_timeout_seconds: 60, body_limit_bytes: 16 * 1024 * 1024 })
  const declaring = () =>
    Object.assign(arriving({ headers: { 'content-length': String(9 * 1024 * 1024) } }), { memory: budget.forBody() })
  const silent = Array.from({ length: 6 }, () => readBodyWithin(gateway, declaring()).catch(({ code }) => code))
  const { finish, ...asked } = declaring()
  const reading = readBodyWithin(gateway, asked)
  await finish(new Uint8Array(9 * 1024 * 1024))
  expect((await reading).length).toBe(9 * 1024 * 1024)
  await gateway.running.drain(0)
  expect(await Promise.all(silent)).toEqual(silent.map(() => 'draining'))
})
