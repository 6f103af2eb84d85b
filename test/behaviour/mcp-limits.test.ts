/** Limits and prices of MCP tools in a running installation: exact, whichever worker a call meets. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { McpError } from '@modelcontextprotocol/sdk/types.js'
import { z } from 'zod'
import { FakeMcpServer } from '../fakes/mcp-server.ts'
import { api, createToken, expectAnswer } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'

setDefaultTimeout(120_000)

const record = z.looseObject({ id: z.uuid() })
const server = new FakeMcpServer()
const called: string[] = []
server.behaviour = ({ id, method, params }) => {
  if (method === 'tools/list') {
    const tools = ['pay', 'slow', 'look'].map((name) => ({ name, inputSchema: { type: 'object' } }))
    return { jsonrpc: '2.0', id, result: { tools } }
  }
  if (method !== 'tools/call') return undefined
  called.push(z.object({ name: z.string() }).parse(params).name)
  return { jsonrpc: '2.0', id, result: { content: [{ type: 'text', text: 'done' }] } }
}

let gatehouse: Gatehouse
let serverId: string
const clients: Client[] = []
beforeAll(async () => {
  gatehouse = await startGatehouse({ env: { SERVICE_GATEWAY_WORKERS: '2' } })
  const limits = { pay: { price_per_call: 0.25 }, slow: { requests_per_minute: 5 } }
  const body = { name: 'shop', url: server.url, tool_limits: limits }
  serverId = expectAnswer(await api(gatehouse, '/v1/catalog/mcp-servers', { body }), 201, record).id
  const scope = { kind: 'mcp_server', id: serverId, tool: 'pay' }
  const budget = { name: 'payments', max_budget: 1.6, window: 'day', scope }
  expectAnswer(await api(gatehouse, '/v1/budgets', { body: budget }), 201, record)
  // Each client has a session of its own, at whichever worker answered it.
  for (let count = 0; count < 6; count++) {
    const { token_value } = await createToken(gatehouse)
    const client = new Client({ name: 'test', version: '1' })
    const requestInit = { headers: { authorization: `Bearer ${token_value}` } }
    await client.connect(new StreamableHTTPClientTransport(new URL(`${gatehouse.gatewayUrl}/mcp`), { requestInit }))
    clients.push(client)
    await until('the tools are there', async () => (await client.listTools()).tools.length === 3)
  }
})
afterAll(async () => {
  for (const client of clients) await client.close()
  await gatehouse.stop()
  await server.stop()
})

/** The codes of the answers to five calls of each client at once. */
async function codesOf(tool: string): Promise<string[]> {
  const calls = clients.flatMap((client) =>
    Array.from({ length: 5 }, async () => {
      try {
        await client.callTool({ name: `shop__${tool}`, arguments: {} })
        return 'ok'
      } catch (error) {
        if (!(error instanceof McpError)) throw error
        return z.object({ code: z.string() }).parse(error.data).code
      }
    }),
  )
  return await Promise.all(calls)
}

const countOf = (codes: readonly string[], code: string): number => codes.filter((each) => each === code).length

test('a budget of a tool pays for as many calls as its price allows, of all callers and workers together', async () => {
  const codes = await codesOf('pay')
  expect(countOf(codes, 'ok')).toBe(6)
  expect(countOf(codes, 'usage_authorization_budget_exceeded')).toBe(24)
  expect(called.filter((name) => name === 'pay')).toHaveLength(6)
  const spend = async () => {
    const { body } = await api(gatehouse, '/v1/budgets')
    return z.object({ budgets: z.array(z.object({ current_spend: z.number() })) }).parse(body).budgets[0]?.current_spend
  }
  await until('the calls are booked', async () => (await spend()) === 1.5)
})

test('a limit a minute of a tool lets through as many calls as it says, of all callers and workers together', async () => {
  const codes = await codesOf('slow')
  expect(countOf(codes, 'ok')).toBe(5)
  expect(countOf(codes, 'mcp.rate_limited')).toBe(25)
  expect(called.filter((name) => name === 'slow')).toHaveLength(5)
  expect(countOf(await codesOf('look'), 'ok')).toBe(30)
})

test('a server under quarantine is asked nothing until the quarantine is lifted', async () => {
  const change = (quarantined: boolean) =>
    api(gatehouse, `/v1/catalog/mcp-servers/${serverId}`, { method: 'PATCH', body: { quarantined } })
  expectAnswer(await change(true), 200, record)
  await until('all workers refuse', async () => countOf(await codesOf('look'), 'mcp.server_quarantined') === 30)
  const before = called.length
  expect(new Set(await codesOf('look'))).toEqual(new Set(['mcp.server_quarantined']))
  expect(called).toHaveLength(before)
  expectAnswer(await change(false), 200, record)
  await until('all workers call again', async () => countOf(await codesOf('look'), 'ok') === 30)
})
