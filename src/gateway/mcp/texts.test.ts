import { afterEach, expect, test } from 'bun:test'
import { isScattered } from '../../languages/mcp/dialect.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import { openCaller, startMcpGateway, testMcpServer } from '../testing/mcp.ts'
import { testPolicy } from '../testing/worker.ts'

let stop: () => Promise<void> = async () => undefined
afterEach(() => stop())

test('refuses a message with too many texts in either direction, unless no policy inspects it', async () => {
  const block = (text: string) => ({ type: 'text', text })
  const server = testMcpServer('files', {
    'tools/list': () => ({ tools: [{ name: 'read', inputSchema: { type: 'object' } }] }),
    'tools/call': ({ params }) => {
      const { count } = params.arguments as { count: number }
      return { content: Array.from({ length: count }, (_, index) => block(`text ${index}`)) }
    },
  })
  const gateway = await startMcpGateway([server], { mcp_inspected_texts: 20 })
  stop = () => gateway.stop()
  const caller = await openCaller(gateway)
  const more = Object.fromEntries(Array.from({ length: 25 }, (_, index) => [`more${index}`, 'words']))
  const call = (count: number, members: object = {}) =>
    caller.ask('tools/call', { name: 'files__read', arguments: { count }, ...members })
  expect(await call(25, more)).toMatchObject({ result: { content: { length: 25 } } })
  const stages = ['pre_request', 'pre_response'] as const
  const config = { types: ['email'], action: 'redact' }
  gateway.worker.policies = compilePolicySet([testPolicy({ id: 'pii', kind: 'pii', config, stages: [...stages] })])
  expect(await call(20)).toMatchObject({ result: { content: { length: 20 } } })
  expect(await call(21)).toMatchObject({ error: { data: { code: 'mcp.server_error' } } })
  expect(await call(100_000)).toMatchObject({ error: { data: { code: 'mcp.server_error' } } })
  const asked = server.requests.length
  expect(await call(1, more)).toMatchObject({ error: { data: { code: 'request_too_large' } } })
  expect(await call(1, { _meta: { more } })).toMatchObject({ error: { data: { code: 'request_too_large' } } })
  expect(await call(1, { arguments: { count: 1, more } })).toMatchObject({
    error: { data: { code: 'request_too_large' } },
  })
  expect(server.requests).toHaveLength(asked)
})

test('counts each name, string and number of an object as one text', async () => {
  const server = testMcpServer('files', {
    'tools/list': () => ({ tools: [{ name: 'read', inputSchema: { type: 'object' } }] }),
    'tools/call': ({ params }) => ({ content: [], ...(params.arguments as object) }),
  })
  const gateway = await startMcpGateway([server], { mcp_inspected_texts: 20 })
  stop = () => gateway.stop()
  const config = { types: ['email'], action: 'redact' }
  gateway.worker.policies = compilePolicySet([testPolicy({ id: 'pii', kind: 'pii', config, stages: ['pre_response'] })])
  const caller = await openCaller(gateway)
  const call = (args: object) => caller.ask('tools/call', { name: 'files__read', arguments: args })
  const many = <Value>(count: number, value: (at: number) => Value) =>
    Array.from({ length: count }, (_, at) => value(at))
  const kinds: ((at: number) => unknown)[] = [(at) => `text ${at}`, (at) => at]
  for (const value of kinds) {
    expect(await call({ structuredContent: { rows: many(19, value) } })).toMatchObject({ result: {} })
    const tooMany = { error: { data: { code: 'mcp.server_error' } } }
    expect(await call({ structuredContent: { rows: many(20, value) } })).toMatchObject(tooMany)
    expect(await call({ _meta: Object.fromEntries(many(11, (at) => [`k${at}`, value(at)] as const)) })).toMatchObject(
      tooMany,
    )
  }
})

test('detects scattered texts by a few samples and does not count a single text', () => {
  let read = 0
  const parts = new Proxy(
    Array.from({ length: 100_000 }, () => ({ type: 'text', text: 'x' })),
    {
      get(target, name, receiver) {
        read += 1
        return Reflect.get(target, name, receiver)
      },
    },
  )
  expect(isScattered({ content: parts }, 10)).toBe(true)
  expect(read).toBeLessThan(200)
  expect(isScattered({ content: [{ type: 'text', text: 'x' }], structuredContent: { many: [...parts] } }, 1)).toBe(
    false,
  )
})
