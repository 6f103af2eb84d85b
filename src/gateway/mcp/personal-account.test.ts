/** The official client of 2026-07-28 at a server that is used with each person's own account. */
import { afterEach, expect, test } from 'bun:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { OfficialMcpServer } from '../../../test/fakes/official-mcp-server.ts'
import { gatewayServers, storedServer } from '../../mcp/testing/servers.ts'
import { startTestGateway } from '../testing/gateway.ts'

const stops: (() => unknown)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop()
})

/** A client of a person who has not connected an account, and the addresses that it was asked to open. */
async function start(capabilities: object) {
  const tracker = new OfficialMcpServer()
  const { servers, source } = gatewayServers([storedServer({ name: 'tracker', url: tracker.url }, { personal: {} })])
  const gateway = await startTestGateway(() => Response.json({}), {}, undefined, servers)
  const client = new Client({ name: 'test', version: '1' }, { capabilities, versionNegotiation: { mode: 'auto' } })
  const secret = gateway.worker.addToken({ userId: 'ann' })
  const requestInit = { headers: { authorization: `Bearer ${secret}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit }))
  stops.push(
    () => tracker.stop(),
    () => gateway.stop(),
    () => client.close(),
  )
  return { client, source, secret }
}

const call = { name: 'tracker__echo', arguments: {} }
const notConnected = {
  code: -32_000,
  message: expect.stringContaining('https://console.test/connections'),
  data: { code: 'mcp.not_connected', connect_url: 'https://console.test/connections' },
}

test('is asked once to open the address, and gets the error when it comes back without an account', async () => {
  const { client } = await start({ elicitation: { form: {}, url: {} } })
  const opened: unknown[] = []
  client.setRequestHandler('elicitation/create', async ({ params }) => {
    opened.push(Reflect.get(params, 'url'))
    return { action: 'accept' as const }
  })
  await expect(client.callTool(call)).rejects.toMatchObject(notConnected)
  expect(opened).toEqual(['https://console.test/connections'])
})

test('goes on with its call when its person has connected meanwhile', async () => {
  const { client, source, secret } = await start({ elicitation: { form: {}, url: {} } })
  client.setRequestHandler('elicitation/create', async () => {
    const connected = { user_id: 'ann', access_token: 'hers', connect_url: 'https://console.test/connections' }
    source.connections.set(secret, { status: 'connected', ...connected, expires_in: 60 })
    return { action: 'accept' as const }
  })
  expect(JSON.stringify(await client.callTool(call))).toContain('{}')
})

test('gets the error at once where nobody can open an address', async () => {
  const { client } = await start({})
  await expect(client.callTool(call)).rejects.toMatchObject(notConnected)
})
