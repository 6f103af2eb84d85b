import { expect, test } from 'bun:test'
import { readBodyWithin } from './read-body.ts'
import { testListener } from './test-gateway.ts'
import { jsonHeaders, startMcpGateway } from './test-mcp.ts'

/** A request whose body comes when it is told, and the limits that its connection was given, in seconds. */
function arriving({ url = 'http://localhost', headers = {} }: { url?: string; headers?: Record<string, string> } = {}) {
  const { limits, listener } = testListener()
  const { readable, writable } = new TransformStream<Uint8Array, Uint8Array>()
  const request = new Request(`${url}/mcp`, { method: 'POST', headers, body: readable })
  const finish = async (text: string) => {
    const writer = writable.getWriter()
    await writer.write(new TextEncoder().encode(text))
    await writer.close()
  }
  return { request, connection: listener, limits, finish }
}

test('a body that pauses is held to the limit it is given, not to the one that the server has for idle connections', async () => {
  const { limits, finish, ...asked } = arriving()
  const reading = readBodyWithin(60_000, asked, 1000)
  expect(limits).toEqual([0])
  await finish('late')
  expect(new TextDecoder().decode(await reading)).toBe('late')
})

test('a body that has not come by then is request_timeout', async () => {
  expect(await readBodyWithin(1, arriving(), 1000).catch(({ code }) => code)).toBe('request_timeout')
})

test('on the MCP surface that holds for every message, one that is refused for its token too', async () => {
  const running = await startMcpGateway([])
  const mayNot = running.lane.addToken({ purpose: 'gateway_runtime' })
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
