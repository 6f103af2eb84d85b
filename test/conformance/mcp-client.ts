/**
 * The client that the conformance suite of MCP runs with the address of its server: a gateway with that server behind it,
 * and the official client of 2026-07-28 before it. It lists everything and uses it once, as the scenario needs.
 */
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { z } from 'zod'
import { startTestGateway } from '../../src/gateway/testing/gateway.ts'
import { gatewayServers, storedServer } from '../../src/mcp/testing/servers.ts'

const [url = ''] = process.argv.slice(-1)
const scenario = process.env.MCP_CONFORMANCE_SCENARIO ?? ''
const contextSchema = z.looseObject({
  toolCalls: z.array(z.object({ name: z.string(), arguments: z.record(z.string(), z.unknown()) })).default([]),
})
const { toolCalls } = contextSchema.parse(JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}'))

const { servers } = gatewayServers([storedServer({ name: 'suite', url })])
Object.assign(servers, { approved: (_record: unknown, _kind: unknown, offers: unknown[]) => [...offers] })
const gateway = await startTestGateway(() => Response.json({}), {}, undefined, servers)
const client = new Client(
  { name: 'test', version: '1' },
  {
    capabilities: { sampling: {}, elicitation: { form: { applyDefaults: true } }, roots: {} },
    versionNegotiation: { mode: 'auto' },
  },
)
client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { confirmed: true } }))
const requestInit = { headers: { authorization: `Bearer ${gateway.secret}` } }
await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit }))

/** What a scenario's server refuses is its own affair. */
const tried = (asked: Promise<unknown>): Promise<unknown> =>
  asked.catch((error: unknown) => console.error(String(error)))
const call = (name: string, given: Record<string, unknown>) => tried(client.callTool({ name, arguments: given }))

const { tools } = await client.listTools()
if (scenario === 'json-schema-2020-12-preservation') {
  const focal = tools.find(({ name }) => name === 'suite__json_schema_2020_12_tool')
  await call('suite__json_schema_echo', { schema: focal?.inputSchema })
} else if (toolCalls.length > 0) {
  for (const { name, arguments: given } of toolCalls) await call(`suite__${name}`, given)
} else if (scenario !== 'json-schema-ref-no-deref') {
  for (const { name } of tools) await call(name, { a: 2, b: 3 })
  for (const { uri } of (await client.listResources()).resources) await tried(client.readResource({ uri }))
  for (const { name } of (await client.listPrompts()).prompts) await tried(client.getPrompt({ name }))
}
await client.close()
process.exit(0)
