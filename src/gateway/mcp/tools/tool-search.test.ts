/** Tool search: `search_tools` and `call_tool` in place of all definitions. */
import { afterEach, expect, test } from 'bun:test'
import type { Json } from '../../../mcp/connection.ts'
import { compilePolicySet } from '../../../policies/chain.ts'
import type { TestGateway } from '../../testing/gateway.ts'
import { startMcpGateway, type TestMcpServer, testMcpServer } from '../../testing/mcp.ts'
import { testPolicy } from '../../testing/worker.ts'

let running: TestGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

const tools = {
  github: [
    ['create_issue', 'Opens a new issue in a repository'],
    ['list_issues', 'Lists the issues of a repository'],
    ['merge_pull_request', 'Merges a pull request'],
    ['delete_repository', 'Deletes a repository for ever'],
  ],
  mail: [['sendMail', 'Sends a message to a person']],
} as const

function serverOf(name: keyof typeof tools, searched = false): TestMcpServer {
  const server = testMcpServer(name, {
    'tools/list': ({ params }) => {
      // Two pages, so that a search sees them all.
      const all = tools[name].map(([tool, description]) => ({
        ...{ name: tool, description, inputSchema: { type: 'object', properties: {} } },
      }))
      return params.cursor === undefined ? { tools: all.slice(0, 2), nextCursor: 'more' } : { tools: all.slice(2) }
    },
    'tools/call': ({ params }) => ({ content: [{ type: 'text', text: JSON.stringify(params) }] }),
  })
  return searched ? { ...server, record: { ...server.record, tools: 'searched' } } : server
}

async function start(servers: readonly TestMcpServer[], { mcpTools = 'searched' as 'searched' | 'listed' } = {}) {
  const gateway = await startMcpGateway(servers)
  running = gateway
  const caller = await gateway.caller({ secret: gateway.worker.addToken({ mcpTools }) })
  const listed = async () => {
    const { result } = await caller.ask('tools/list')
    return namesOf((result as Json).tools)
  }
  const search = async (query: string, more: Json = {}) => {
    const { result, error } = await caller.call('search_tools', { query, ...more })
    if (error !== undefined) throw new Error(JSON.stringify(error))
    const [{ text }] = (result as { content: [{ text: string }] }).content
    return text.startsWith('[') ? (JSON.parse(text) as Json[]) : text
  }
  const found = async (query: string, more: Json = {}) => namesOf(await search(query, more))
  return { gateway, caller, listed, search, found }
}

const namesOf = (offers: unknown): unknown => (Array.isArray(offers) ? offers.map(({ name }: Json) => name) : offers)

test('shows a token that asks for it two tools instead of all, without asking a server', async () => {
  const servers = [serverOf('github'), serverOf('mail')]
  const { listed } = await start(servers)
  expect(await listed()).toEqual(['search_tools', 'call_tool'])
  expect(servers.flatMap(({ requests }) => requests)).toEqual([])
})

test('searches the tools of a server that asks for it, and lists those of others', async () => {
  const { listed, found } = await start([serverOf('github', true), serverOf('mail')], { mcpTools: 'listed' })
  expect(await listed()).toEqual(['search_tools', 'call_tool', 'mail__sendMail'])
  expect(await found('send a message')).toBe('No tool matches: try other words')
  expect(await found('issue')).toContain('github__create_issue')
})

test('lists all tools where nobody asks for a search', async () => {
  const { listed } = await start([serverOf('mail')], { mcpTools: 'listed' })
  expect(await listed()).toEqual(['mail__sendMail'])
})

test('finds tools by what they do, best first, and shows what is needed to call them', async () => {
  const { search, found } = await start([serverOf('github'), serverOf('mail')])
  expect(await found('open a new issue', { limit: 2 })).toEqual(['github__create_issue', 'github__list_issues'])
  expect(await found('merge pull requests', { limit: 1 })).toEqual(['github__merge_pull_request'])
  expect(await search('send mail', { limit: 1 })).toEqual([
    {
      name: 'mail__sendMail',
      description: 'Sends a message to a person',
      inputSchema: { type: 'object', properties: {} },
    },
  ])
})

test('calls a found tool under the policies, and records it as the call of that tool', async () => {
  const { gateway, caller, found } = await start([serverOf('github')])
  const config = { deny: ['github__delete_*'] }
  gateway.worker.policies = compilePolicySet([testPolicy({ id: 'p', kind: 'tool-access', config })])
  expect(await found('delete repository')).not.toContain('github__delete_repository')
  const call = (name: unknown, args?: unknown) => caller.call('call_tool', { name, arguments: args })
  expect(await call('github__create_issue', { title: 'a' })).toMatchObject({
    result: { content: [{ text: '{"name":"create_issue","arguments":{"title":"a"}}' }] },
  })
  expect(await call('github__delete_repository')).toMatchObject({ error: { data: { code: 'policy_denied' } } })
  expect(gateway.worker.journal.outcomes().map(({ verdict, details }) => [verdict, details?.tool])).toEqual(
    expect.arrayContaining([
      ['allow', 'search_tools'],
      ['allow', 'github__create_issue'],
      ['deny', 'github__delete_repository'],
    ]),
  )
})

test('refuses a search and a call that say too little, by the name of the field', async () => {
  const { caller } = await start([serverOf('github')])
  const paramOf = async (name: string, args: Json) => {
    const { error } = (await caller.call(name, args)) as { error: { code: number; data: { param: string } } }
    return [error.code, error.data.param]
  }
  expect(await paramOf('search_tools', {})).toEqual([-32602, 'arguments.query'])
  expect(await paramOf('search_tools', { query: 'x'.repeat(501) })).toEqual([-32602, 'arguments.query'])
  expect(await paramOf('search_tools', { query: 'x', limit: 0 })).toEqual([-32602, 'arguments.limit'])
  expect(await paramOf('call_tool', { arguments: {} })).toEqual([-32602, 'arguments.name'])
  expect(await paramOf('call_tool', { name: 'github__create_issue', arguments: 'a' })).toEqual([
    -32602,
    'arguments.arguments',
  ])
  for (const name of ['search_tools', 'call_tool', 'nothing']) {
    expect(await caller.call('call_tool', { name })).toMatchObject({ error: { data: { code: 'mcp.unknown_name' } } })
  }
})

test('lists the servers once for many searches, and again after a change of their lists', async () => {
  const github = serverOf('github')
  const { gateway, found } = await start([github])
  const lists = () => github.requests.filter(({ method }) => method === 'tools/list').length
  await found('issue')
  await found('repository')
  expect(lists()).toBe(2)
  github.unapproved.add('create_issue')
  gateway.servers.changed()
  expect(await found('open issue')).toEqual(['github__list_issues'])
  expect(lists()).toBe(4)
})

test('lists the tools for a search whose session had one that was cancelled while they were listed', async () => {
  const slow = serverOf('github')
  const listing = Promise.withResolvers<void>()
  const list = slow.handlers['tools/list']
  slow.handlers['tools/list'] = async (working) => {
    await listing.promise
    return (await list?.(working)) ?? {}
  }
  const { caller, found } = await start([slow])
  const first = caller.ask('tools/call', { name: 'search_tools', arguments: { query: 'issue' } }, 'first')
  const second = found('merge')
  await Bun.sleep(50)
  await caller.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'first' } })
  expect(await first).toEqual({})
  listing.resolve()
  expect(await second).toEqual(['github__merge_pull_request'])
})

test('finds nothing of a server that does not answer, and finds the tools of the others', async () => {
  const broken = testMcpServer('broken', {})
  broken.down = true
  const { found } = await start([broken, serverOf('mail')])
  expect(await found('send')).toEqual(['mail__sendMail'])
})
