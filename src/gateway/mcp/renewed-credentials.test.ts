/** MCP sessions of the official client whose credential is renewed: it goes on with its session and begins no other. */
import { afterEach, expect, test } from 'bun:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CreateMessageRequestSchema, ToolListChangedNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { eventually } from '../../../test/support/eventually.ts'
import { hashSecret } from '../../identity/secret.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'
import { jsonHeaders, startMcpGateway, testMcpServer } from '../testing/mcp.ts'

type McpGateway = Awaited<ReturnType<typeof startMcpGateway>>
let gateway: McpGateway
afterEach(() => gateway.stop())

const account = (id: string) => ({ id, maxRequests: null, maxBudget: null, rateLimitRpm: null, rateLimitTpm: null })
const granted = (grantId: string): Partial<GovernedToken> => {
  const scope = ['mcp:invoke'] as const
  return {
    userId: 'ann',
    delegation: { clientId: 'c', grantId, scope, permissions: scope, resources: [], teamIds: [] },
  }
}

/** Tokens of one owner, the next in turn, and of others. */
const owners: Record<string, { own: Partial<GovernedToken>; others: Partial<GovernedToken>[] }> = {
  'a rotation': { own: { accounts: [account('a')] }, others: [{}, { accounts: [account('b'), account('a')] }] },
  'a refresh': { own: granted('g'), others: [granted('h'), { userId: 'ann' }] },
}

async function start() {
  const files = testMcpServer('files', {
    'tools/list': () => ({ tools: [{ name: 'read', inputSchema: { type: 'object' } }] }),
    async 'tools/call'({ ask }) {
      const message = { role: 'user', content: { type: 'text', text: 'a' } }
      await ask('sampling/createMessage', { messages: [message], maxTokens: 5 })
      return { content: [{ type: 'text', text: 'done' }] }
    },
  })
  gateway = await startMcpGateway([files])
  return files
}

const post = (secret: string, session: string) =>
  fetch(`${gateway.url}/mcp`, {
    method: 'POST',
    headers: { ...jsonHeaders, authorization: `Bearer ${secret}`, 'mcp-session-id': session },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/list' }),
  })

for (const [renewal, { own, others }] of Object.entries(owners)) {
  test(`keeps the session of the official client after ${renewal}`, async () => {
    const files = await start()
    const first = gateway.worker.addToken(own)
    let secret = first
    const client = new Client({ name: 'test', version: '1' }, { capabilities: { sampling: {} } })
    client.setRequestHandler(CreateMessageRequestSchema, async () => ({
      model: 'm',
      role: 'assistant',
      content: { type: 'text', text: 'b' },
    }))
    let changes = 0
    client.setNotificationHandler(ToolListChangedNotificationSchema, () => {
      changes += 1
    })
    const transport = new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), {
      fetch: (url, init) => {
        const headers = new Headers(init?.headers)
        headers.set('authorization', `Bearer ${secret}`)
        return fetch(url, { ...init, headers })
      },
    })
    await client.connect(transport)
    await client.callTool({ name: 'files__read' })
    const session = transport.sessionId ?? ''
    secret = gateway.worker.addToken(own)
    const former = gateway.worker.tokens.get(hashSecret(first))
    Object.assign(former ?? {}, { rotatedAt: Date.now() - 1, expiresAt: Date.now() - 1 })
    expect((await post(first, session)).status).toBe(401)
    expect(await client.callTool({ name: 'files__read' })).toMatchObject({ content: [{ text: 'done' }] })
    expect(transport.sessionId).toBe(session)
    expect(files.connections).toBe(1)
    gateway.servers.changed()
    await eventually(() => changes > 0)
    for (const other of others) expect((await post(gateway.worker.addToken(other), session)).status).toBe(404)
    await client.close()
  })
}
