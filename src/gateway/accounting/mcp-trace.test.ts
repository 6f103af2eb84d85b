/** What a collector gets of a request to `/mcp`, and what its MCP server is told of the trace. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { systemClock } from '../../lib/clock.ts'
import { silentLog } from '../../lib/log/log.ts'
import { McpError } from '../../mcp/mcp-error.ts'
import { loadOtlpExporter } from '../../telemetry/otlp.ts'
import { type CollectedSpan, startTestCollector, type TestCollector } from '../../telemetry/testing/collector.ts'
import { createTracer } from '../../telemetry/tracer.ts'
import { startTestGateway, type TestGateway } from '../testing/gateway.ts'
import { openCaller, type TestCaller, type TestMcpServer, testMcpServer, testMcpServers } from '../testing/mcp.ts'

const traceId = '0af7651916cd43dd8448eb211c80319c'
const traceparent = `00-${traceId}-b7ad6b7169203331-01`
let collector: TestCollector
let server: TestMcpServer
let gateway: TestGateway
let caller: TestCaller

beforeAll(async () => {
  collector = startTestCollector()
  const tracer = createTracer({
    load: () => loadOtlpExporter({ endpoint: collector.url, headers: undefined, environment: undefined }),
    samplePercent: 0,
    random: () => 0,
    clock: systemClock,
    log: silentLog,
    flushMilliseconds: 1,
  })
  server = testMcpServer('calc', {
    'tools/list': () => ({
      tools: ['add', 'fail', 'refuse'].map((name) => ({ name, inputSchema: { type: 'object' } })),
    }),
    'tools/call': ({ params: { name } }) => {
      if (name === 'refuse') throw new McpError(-32_050, 'No')
      return { content: [{ type: 'text', text: 'three' }], isError: name === 'fail' }
    },
    'prompts/list': () => ({ prompts: [{ name: 'greet' }] }),
    'prompts/get': () => ({ messages: [] }),
  })
  Object.assign(server.record, { origin: 'https://calc.example.com' })
  gateway = await startTestGateway(() => Response.json({}), {}, tracer, testMcpServers(server))
  caller = await openCaller(gateway)
})
afterAll(async () => {
  await gateway.stop()
  await collector.stop()
})
beforeEach(() => {
  collector.spans.length = 0
})

async function spansOf(method: string, params: object, count: number): Promise<CollectedSpan[]> {
  await (await caller.post({ jsonrpc: '2.0', id: 'q1', method, params }, { traceparent, tracestate: 'a=1' })).text()
  await eventually(() => collector.spans.length === count)
  return collector.spans
}
const callOf = (name: string) => spansOf('tools/call', { name: `calc__${name}`, arguments: { secret: 'quiet' } }, 2)

test('traces a tool call as execute_tool without a model and gives the server the span of the call', async () => {
  const [own, call] = await callOf('add')
  expect(own).toMatchObject({ name: 'tools/call calc__add', kind: 'server', traceId, status: '', traceState: 'a=1' })
  expect(own?.attributes).toMatchObject({
    'mcp.method.name': 'tools/call',
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'calc__add',
    'mcp.protocol.version': '2025-11-25',
    'jsonrpc.request.id': 'q1',
    'network.transport': 'tcp',
    'http.request.method': 'POST',
    'http.route': '/mcp',
  })
  expect(call).toMatchObject({ name: 'tools/call add', kind: 'client', parentSpanId: own?.spanId ?? '', status: '' })
  expect(call?.attributes).toEqual({
    'mcp.method.name': 'tools/call',
    'gen_ai.operation.name': 'execute_tool',
    'gen_ai.tool.name': 'add',
    'network.transport': 'tcp',
    'gatehouse.provider': 'calc',
    'server.address': 'calc.example.com',
    'server.port': 443,
  })
  expect(server.requests.at(-1)?.params._meta).toEqual({
    traceparent: `00-${traceId}-${call?.spanId}-01`,
    tracestate: 'a=1',
  })
  const all = JSON.stringify(collector.spans)
  for (const absent of ['request.model', 'quiet', 'three', caller.session]) expect(all).not.toContain(absent)
})

test.each([
  ['fail', 'tool_error'],
  ['refuse', '-32050'],
])('records the error on both spans for %p', async (name, error) => {
  for (const { status, attributes } of await callOf(name)) {
    expect([status, attributes['error.type']]).toEqual([error, error])
  }
})

test('sets no operation name for a method that calls no tool', async () => {
  const [list] = await spansOf('tools/list', {}, 1)
  expect(list).toMatchObject({ name: 'tools/list', attributes: { 'mcp.method.name': 'tools/list' } })
  expect(list?.attributes['gen_ai.operation.name']).toBeUndefined()
  collector.spans.length = 0
  const [prompt, call] = await spansOf('prompts/get', { name: 'calc__greet' }, 2)
  expect([prompt?.attributes['gen_ai.prompt.name'], call?.name]).toEqual(['calc__greet', 'prompts/get greet'])
  expect(prompt?.attributes['gen_ai.operation.name']).toBeUndefined()
})

test('joins the trace that the message itself names and passes a message without a trace unchanged', async () => {
  const own = `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`
  const [span] = await spansOf('tools/call', { name: 'calc__add', _meta: { traceparent: own, theirs: 1 } }, 2)
  expect([span?.traceId, span?.traceState]).toEqual(['1'.repeat(32), ''])
  expect(server.requests.at(-1)?.params._meta).toEqual({
    theirs: 1,
    traceparent: expect.stringContaining('1'.repeat(32)),
  })
  await caller.call('calc__add')
  expect(server.requests.at(-1)?.params._meta).toBeUndefined()
})
