/** The merged surface over 100 servers with 1000 tools, of which one server never answers. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Json } from '../../mcp/connection.ts'
import type { TestGateway } from '../testing/gateway.ts'
import { eventsOf, startMcpGateway, type TestCaller, type TestMcpServer, testMcpServer } from '../testing/mcp.ts'

const serverCount = 100
const toolsEach = 10
const hanging = 41
/** A list waits 5 seconds for a server. */
const patienceMilliseconds = 5000

const serverName = (index: number) => `s${String(index).padStart(3, '0')}`
const notifiers = new Map<string, () => void>()

function serverAt(index: number): TestMcpServer {
  const name = serverName(index)
  const tool = (number: number) => ({
    ...{ name: `tool_${number}`, description: `Does thing ${number} of ${name}`, inputSchema: { type: 'object' } },
  })
  const never = ({ signal }: { signal: AbortSignal }) =>
    new Promise<Json>((_, reject) => signal.addEventListener('abort', () => reject(new Error('left')), { once: true }))
  if (index === hanging)
    return testMcpServer(name, { 'tools/list': never, 'resources/list': never, 'tools/call': never })
  return testMcpServer(name, {
    'tools/list': ({ params }) => {
      const from = Number(params.cursor ?? 0)
      const tools = Array.from({ length: toolsEach / 2 }, (_, offset) => tool(from + offset))
      return from === 0 ? { tools, nextCursor: String(toolsEach / 2) } : { tools }
    },
    'tools/call': async ({ params, ask, notify }) => {
      if (params.name !== 'tool_9') return { content: [{ type: 'text', text: name }] }
      const message = 'Sign in'
      const url = `https://${name}.example.com/sign-in`
      const said = await ask('elicitation/create', { mode: 'url', message, url, elicitationId: `of-${name}` })
      notify('notifications/elicitation/complete', { elicitationId: `of-${name}` })
      return { content: [{ type: 'text', text: JSON.stringify(said) }] }
    },
    'resources/list': () => ({ resources: [{ uri: `file:///${name}`, name }] }),
    'resources/templates/list': () => ({ resourceTemplates: [] }),
    'resources/subscribe': ({ params, notify }) => {
      notifiers.set(name, () => notify('notifications/resources/updated', { uri: params.uri as string }))
      return {}
    },
    'resources/unsubscribe': () => {
      notifiers.delete(name)
      return {}
    },
  })
}

const servers = Array.from({ length: serverCount }, (_, index) => serverAt(index))
let gateway: Awaited<ReturnType<typeof startMcpGateway>> & TestGateway
let caller: TestCaller
beforeAll(async () => {
  gateway = await startMcpGateway(servers)
  caller = await gateway.caller({ capabilities: { elicitation: { form: {}, url: {} } } })
})
afterAll(() => gateway.stop())

const resultOf = (answer: Json): Json => {
  if (answer.result === undefined) throw new Error(JSON.stringify(answer))
  return answer.result as Json
}

async function allOf(method: string, member: string): Promise<{ offers: Json[]; pages: number }> {
  const offers: Json[] = []
  let pages = 0
  let cursor: unknown
  do {
    const page = resultOf(await caller.ask(method, cursor === undefined ? {} : { cursor }))
    offers.push(...(page[member] as Json[]))
    pages += 1
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return { offers, pages }
}

test('lists and finds the tools of all servers that answer, and waits for the one that does not once a page', async () => {
  const searching = await gateway.caller({ secret: gateway.worker.addToken({ mcpTools: 'searched' }) })
  const began = performance.now()
  const [{ offers, pages }, found] = await Promise.all([
    allOf('tools/list', 'tools'),
    searching.call('search_tools', { query: 'thing 7 s063', limit: 1 }),
  ])
  const names = new Set(offers.map(({ name }) => name))
  expect(names.size).toBe((serverCount - 1) * toolsEach)
  expect(offers).toHaveLength(names.size)
  expect([...names].some((name) => String(name).startsWith(serverName(hanging)))).toBe(false)
  expect(pages).toBeGreaterThan(1)
  expect(performance.now() - began).toBeLessThan(pages * patienceMilliseconds + 10_000)
  expect(JSON.stringify(found)).toContain('s063__tool_7')
}, 60_000)

test('calls tools while a server hangs, and lets go of the call that hangs when its caller cancels it', async () => {
  const stuck = caller.ask('tools/call', { name: `${serverName(hanging)}__tool_1`, arguments: {} }, 'stuck')
  for (const index of [0, 40, 42, 99]) {
    expect(await caller.call(`${serverName(index)}__tool_1`)).toMatchObject({
      result: { content: [{ text: serverName(index) }] },
    })
  }
  await caller.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'stuck' } })
  expect(await stuck).toEqual({})
})

test('tells a caller of updates of the resources that it subscribed to, of each server by its own address', async () => {
  const stream = eventsOf(await caller.get())
  const addressed = [3, 64, 98].map((index) => [
    serverName(index),
    `mcp://${serverName(index)}/file:///${serverName(index)}`,
  ])
  for (const [, uri] of addressed) resultOf(await caller.ask('resources/subscribe', { uri }))
  const heard: unknown[] = []
  for (const [name] of addressed) {
    notifiers.get(name ?? '')?.()
    for (;;) {
      const { method, params } = await stream.next()
      if (method !== 'notifications/resources/updated') continue
      heard.push((params as Json).uri)
      break
    }
  }
  expect(heard).toEqual(addressed.map(([, uri]) => uri))
  for (const [, uri] of addressed) resultOf(await caller.ask('resources/unsubscribe', { uri }))
  expect(notifiers.size).toBe(0)
  await stream.close()
})

test('asks a caller to open an address for a server, and says when that is done', async () => {
  const name = serverName(77)
  const asking = caller.post({
    ...{ jsonrpc: '2.0', id: 'ask', method: 'tools/call' },
    params: { name: `${name}__tool_9`, arguments: {} },
  })
  const stream = eventsOf(await asking)
  const asked = await nextOf(stream, 'elicitation/create')
  expect(asked.params).toMatchObject({
    mode: 'url',
    url: `https://${name}.example.com/sign-in`,
    elicitationId: `of-${name}`,
  })
  await caller.post({ jsonrpc: '2.0', id: asked.id, result: { action: 'accept' } })
  const complete = await nextOf(stream, 'notifications/elicitation/complete')
  expect(complete.params).toMatchObject({ elicitationId: `of-${name}` })
  const answer = await stream.next()
  expect(answer).toMatchObject({ id: 'ask', result: { content: [{ text: '{"action":"accept"}' }] } })
  await stream.close()
})

async function nextOf(stream: ReturnType<typeof eventsOf>, method: string): Promise<Json> {
  for (;;) {
    const message = await stream.next()
    if (message.method === method) return message
  }
}
