/** Sessions of older versions at a gateway that did not begin them, as after a restart or on another host. */
import { afterEach, expect, test } from 'bun:test'
import type { Json } from '../../mcp/connection.ts'
import { eventsOf, jsonHeaders, messagesOf, startMcpGateway, testMcpServer } from '../testing/mcp.ts'

type Running = Awaited<ReturnType<typeof startMcpGateway>>

const running: Running[] = []
afterEach(async () => {
  for (const gateway of running.splice(0)) await gateway.stop()
})

async function start(): Promise<Running> {
  const files = testMcpServer('files', {
    'tools/list': ({ params }) => ({
      tools: Array.from({ length: 500 }, (_, index) => ({
        name: `${params.cursor ?? 'first'}-${index}`,
        inputSchema: { type: 'object' },
      })),
      ...(params.cursor === undefined && { nextCursor: 'second' }),
    }),
  })
  const gateway = await startMcpGateway([files])
  running.push(gateway)
  return gateway
}

/** Two gateways of one installation, and how to send a message of one session to either. */
async function startTwo() {
  const [one, other] = [await start(), await start()]
  for (const [hash, token] of one.worker.tokens) other.worker.tokens.set(hash, token)
  const { session } = await one.caller({ capabilities: { sampling: {} } })
  const headers = { ...jsonHeaders, 'mcp-session-id': session, authorization: `Bearer ${one.secret}` }
  const send = (gateway: Running, method: string, params: Json = {}, more: Record<string, string> = {}) =>
    fetch(`${gateway.url}/mcp`, {
      method: 'POST',
      headers: { ...headers, ...more },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }),
    })
  return { one, other, send, headers }
}

test('goes on at another gateway, also within a list', async () => {
  const { one, other, send } = await startTwo()
  const [page] = await messagesOf(await send(one, 'tools/list'))
  const { nextCursor } = (page?.result ?? {}) as Json
  const [rest] = await messagesOf(await send(other, 'tools/list', { cursor: nextCursor }))
  const { tools = [] } = (rest?.result ?? {}) as { tools?: Json[] }
  expect(tools[0]?.name).toBe('files__second-0')
})

test('tells the caller at another gateway to list again, also one that asks for what it missed', async () => {
  const { other, headers } = await startTwo()
  const listening = { ...headers, accept: 'text/event-stream', 'last-event-id': '0-40' }
  const stream = eventsOf(await fetch(`${other.url}/mcp`, { headers: listening }))
  expect((await stream.next()).method).toBe('notifications/tools/list_changed')
  await stream.close()
})

test('is not there for another owner, nor after a change of its id', async () => {
  const { other, send, headers } = await startTwo()
  const stranger = { authorization: `Bearer ${other.worker.addToken()}` }
  expect((await send(other, 'ping', {}, stranger)).status).toBe(404)
  expect((await send(other, 'ping', {}, { 'mcp-session-id': `${headers['mcp-session-id']}00` })).status).toBe(404)
  expect((await send(other, 'ping')).status).toBe(200)
})

test('has ended where its caller ended it', async () => {
  const { other, send, headers } = await startTwo()
  expect((await send(other, 'ping')).status).toBe(200)
  await fetch(`${other.url}/mcp`, { method: 'DELETE', headers })
  expect((await send(other, 'ping')).status).toBe(404)
})
