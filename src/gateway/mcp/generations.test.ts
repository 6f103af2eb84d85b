/** The official clients of both generations of MCP before the official servers of both, by HTTP through a gateway. */
import { afterAll, afterEach, beforeAll, expect, test } from 'bun:test'
import { Client as ModernClient, StreamableHTTPClientTransport as ModernTransport } from '@modelcontextprotocol/client'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import {
  ElicitRequestSchema,
  LoggingMessageNotificationSchema,
  ResourceUpdatedNotificationSchema,
  ToolListChangedNotificationSchema,
} from '@modelcontextprotocol/sdk/types.js'
import { ModernMcpServer } from '../../../test/fakes/modern-mcp-server.ts'
import { OfficialMcpServer } from '../../../test/fakes/official-mcp-server.ts'
import { eventually, until } from '../../../test/support/eventually.ts'
import { gatewayServers, storedServer } from '../../mcp/testing/servers.ts'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'

const older = new OfficialMcpServer()
const newer = new ModernMcpServer()
const fakes = { older, newer }
let gateway: TestGateway

beforeAll(async () => {
  const { servers } = gatewayServers([
    storedServer({ name: 'older', url: older.url }),
    storedServer({ id: '01990000-0000-7000-8000-00000000000b', name: 'newer', url: newer.url }),
  ])
  gateway = await startTestGateway(() => Response.json({}), {}, undefined, servers)
})
afterAll(async () => {
  await gateway.stop()
  await older.stop()
  await newer.stop()
})

/** What both clients can do, in the same words. */
interface AnyClient {
  readonly heard: string[]
  tools(): Promise<string[]>
  call(
    name: string,
    options?: { signal?: AbortSignal; onprogress?: (told: { progress: number }) => void },
  ): Promise<string>
  /** Calls a tool and asks for a log. */
  callWithLog(name: string): Promise<string>
  watch(uri: string): Promise<void>
  close(): Promise<void>
}

const textOf = (result: object): string => JSON.stringify(Reflect.get(result, 'content'))
const requestInit = () => ({ headers: { authorization: `Bearer ${gateway.secret}` } })
const accepted = async () => ({ action: 'accept' as const, content: { city: 'Turin' } })

async function olderClient(): Promise<AnyClient> {
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { elicitation: {} } })
  const heard: string[] = []
  client.setRequestHandler(ElicitRequestSchema, accepted)
  client.setNotificationHandler(ToolListChangedNotificationSchema, () => void heard.push('tools'))
  client.setNotificationHandler(ResourceUpdatedNotificationSchema, ({ params }) => void heard.push(params.uri))
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void heard.push(String(params.data)))
  await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit: requestInit() }))
  const call: AnyClient['call'] = async (name, options) =>
    textOf(await client.callTool({ name, arguments: { say: 'hello' } }, undefined, options))
  return {
    heard,
    call,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    async callWithLog(name) {
      await client.setLoggingLevel('info')
      return await call(name)
    },
    watch: async (uri) => void (await client.subscribeResource({ uri })),
    close: () => client.close(),
  }
}

async function newerClient(): Promise<AnyClient> {
  const heard: string[] = []
  const client = new ModernClient(
    { name: 'test', version: '1' },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode: 'auto' } },
  )
  client.setRequestHandler('elicitation/create', accepted)
  client.setNotificationHandler('notifications/tools/list_changed', () => void heard.push('tools'))
  client.setNotificationHandler('notifications/resources/updated', ({ params }) => void heard.push(params.uri))
  client.setNotificationHandler('notifications/message', ({ params }) => void heard.push(String(params.data)))
  await client.connect(new ModernTransport(new URL(`${gateway.url}/mcp`), { requestInit: requestInit() }))
  expect(client.getProtocolEra()).toBe('modern')
  await client.listen({ toolsListChanged: true })
  const given = { say: 'hello' }
  return {
    heard,
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, options) => textOf(await client.callTool({ name, arguments: given }, options)),
    async callWithLog(name) {
      const _meta = { 'io.modelcontextprotocol/logLevel': 'info' }
      return textOf(await client.callTool({ name, arguments: given, _meta }))
    },
    watch: async (uri) => void (await client.listen({ resourceSubscriptions: [uri] })),
    close: () => client.close(),
  }
}

const clients = { older: olderClient, newer: newerClient }
const all = [
  ['older', 'older'],
  ['older', 'newer'],
  ['newer', 'older'],
  ['newer', 'newer'],
] as const

let client: AnyClient
afterEach(() => client.close())

test.each(all)('a client of the %s generation lists and calls tools of a server of the %s', async (from, to) => {
  client = await clients[from]()
  expect(await client.tools()).toContain(`${to}__echo`)
  expect(await client.call(`${to}__echo`)).toContain('{\\"say\\":\\"hello\\"}')
})

test.each(all)('a client of the %s generation answers what a server of the %s asks', async (from, to) => {
  client = await clients[from]()
  expect(await client.call(`${to}__elicit`)).toContain('Turin')
})

test.each(all)(
  'a client of the %s generation hears the progress and the log of a server of the %s',
  async (from, to) => {
    client = await clients[from]()
    const steps: number[] = []
    await client.call(`${to}__steps`, { onprogress: ({ progress }) => steps.push(progress) })
    expect(steps).toEqual([1, 2])
    await client.callWithLog(`${to}__say`)
    await until('the log is heard', () => client.heard.includes('working'))
  },
)

test.each(all)('a client of the %s generation cancels a call of a server of the %s', async (from, to) => {
  client = await clients[from]()
  const before = fakes[to].cancelled
  const asked = fakes[to].called.filter((name) => name === 'wait').length
  const giveUp = new AbortController()
  const calling = client.call(`${to}__wait`, { signal: giveUp.signal }).catch(() => 'given up')
  await until('it runs', () => fakes[to].called.filter((name) => name === 'wait').length > asked)
  giveUp.abort()
  expect(await calling).toBe('given up')
  await until('the server was told', () => fakes[to].cancelled > before)
})

test.each(all)('a client of the %s generation hears what changes at a server of the %s', async (from, to) => {
  client = await clients[from]()
  await client.tools()
  const uri = `mcp://${to}/file:///one`
  await client.watch(uri)
  await eventually(async () => {
    client.heard.length = 0
    await fakes[to].toolsChanged()
    if (to === 'newer') newer.resourceChanged('file:///one')
    else await client.call('older__touch')
    await until('both are heard', () => client.heard.includes('tools') && client.heard.includes(uri), {
      withinMs: 1000,
    })
  })
})
