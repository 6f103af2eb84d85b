/** Numbers that no double holds pass `/mcp` as they were written, both ways, policies or none. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { gatewayServers, storedServer } from '../../mcp/testing/servers.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import { startTestGateway } from '../testing/gateway.ts'
import { openCaller, type TestCaller } from '../testing/mcp.ts'
import { testPolicy } from '../testing/worker.ts'

const big = '9007199254740993'
const odd = `{"id":12345678901234567890,"zero":-0,"far":1e400,"one":1.0,"big":1E5,"mail":"ann@example.com"}`
const redacted = odd.replace('ann@example.com', '[EMAIL]')

/** What the server was sent, to the letter. */
const sent: string[] = []
/** What it says and asks on the way to its next result, which it gives when it has been answered. */
let asides: string[] = []
let answered = Promise.withResolvers<void>()
const schema = `{"type":"object","properties":{"id":{"type":"integer","maximum":18446744073709551615}}}`
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  async fetch(request) {
    if (request.method !== 'POST') return new Response(null, { status: 405 })
    const text = await request.text()
    sent.push(text)
    const { id, method } = JSON.parse(text)
    if (method === undefined) answered.resolve()
    if (id === undefined || method === undefined) return new Response(null, { status: 202 })
    const results: Record<string, string> = {
      initialize: '{"protocolVersion":"2025-11-25","capabilities":{"tools":{}}}',
      'tools/list': `{"tools":[{"name":"echo","inputSchema":${schema}}]}`,
      'tools/call': `{"content":[{"type":"text","text":"ok","annotations":{"n":${big}}}],"structuredContent":${odd},"n":${big}}`,
    }
    const said = asides.splice(0)
    const write = (message: string) => `data: ${message}\n\n`
    const answer = async function* () {
      yield said.map(write).join('')
      if (said.length > 0) await answered.promise
      yield write(`{"jsonrpc":"2.0","id":${id},"result":${results[method]}}`)
    }
    return new Response(answer(), { headers: { 'content-type': 'text/event-stream' } })
  },
})

let gateway: Awaited<ReturnType<typeof startTestGateway>>
let caller: TestCaller
beforeAll(async () => {
  const { servers } = gatewayServers([storedServer({ name: 'raw', url: server.url.href })])
  gateway = await startTestGateway(() => Response.json({}), {}, undefined, servers)
  caller = await openCaller(gateway, { capabilities: { sampling: {} } })
  await caller.ask('tools/list')
})
afterAll(async () => {
  await gateway.stop()
  await server.stop(true)
})

const call = async (id: string, meta = '{}'): Promise<string> => {
  const params = `{"name":"raw__echo","arguments":${odd},"_meta":${meta}}`
  const answer = await caller.post(`{"jsonrpc":"2.0","id":${id},"method":"tools/call","params":${params}}`)
  return await answer.text()
}
const lastCall = () => sent.findLast((text) => text.includes('"tools/call"'))

test('keeps every number of arguments, results, definitions and ids exact', async () => {
  const answer = await call(big)
  expect(answer).toContain(`"id":${big},`)
  expect(answer).toContain(`"structuredContent":${odd},"n":${big}`)
  expect(answer).toContain(`"annotations":{"n":${big}}`)
  expect(lastCall()).toContain(`"arguments":${odd}`)
  const list = await (await caller.post('{"jsonrpc":"2.0","id":1,"method":"tools/list"}')).text()
  expect(list).toContain(schema)
  for (const id of ['5', '5.0']) expect(await call(id)).toContain(`"id":${id},`)
  const unknown = await (await caller.post(`{"jsonrpc":"2.0","id":-${big},"method":"nothing"}`)).text()
  expect(unknown).toContain(`"id":-${big},`)
})

test('keeps numbers exact when policies rewrite a neighbouring text', async () => {
  const pii = testPolicy({ id: 'pii', kind: 'pii', config: { types: ['email'], action: 'redact' } })
  const stages = ['pre_request', 'post_request', 'pre_response'] as const
  gateway.worker.policies = compilePolicySet([{ ...pii, stages: [...stages] }])
  const answer = await call('1')
  expect(answer).toContain(`"structuredContent":${redacted},"n":${big}`)
  expect(lastCall()).toContain(`"arguments":${redacted}`)
  gateway.worker.policies = compilePolicySet([])
})

test('checks exact numbers against a schema as numbers, so that length bounds do not apply', async () => {
  const bounded = { type: 'object', properties: { params: { properties: { arguments: { properties: { id: {} } } } } } }
  const limit = (id: object) => {
    Object.assign(bounded.properties.params.properties.arguments.properties, { id })
    const config = { schema: bounded, applies_to: 'body', action: 'block' }
    gateway.worker.policies = compilePolicySet([testPolicy({ id: 'schema', kind: 'json-schema', config })])
  }
  limit({ maximum: 100 })
  expect(await call('2')).toContain('content_policy_violation')
  limit({ type: 'number', minimum: 100 })
  expect(await call('3')).toContain('"result"')
  gateway.worker.policies = compilePolicySet([])
})

test('keeps numbers exact in progress tokens, progress notifications and server requests', async () => {
  // The server knows progress by the gateway's own token: the number of the request.
  const own = Number(JSON.parse(lastCall() ?? '{}').id) + 1
  asides = [
    `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${own},"progress":${big}}}`,
    `{"jsonrpc":"2.0","id":${big},"method":"sampling/createMessage","params":{"messages":[],"maxTokens":${big}}}`,
  ]
  answered = Promise.withResolvers()
  const params = `{"name":"raw__echo","arguments":{},"_meta":{"progressToken":${big}}}`
  const answer = await caller.post(`{"jsonrpc":"2.0","id":7,"method":"tools/call","params":${params}}`)
  let [text, isAnswered] = ['', false]
  for await (const chunk of answer.body ?? []) {
    text += Buffer.from(chunk).toString()
    const asked = /"id":("server-\d+")/.exec(text)
    if (asked === null || isAnswered) continue
    isAnswered = true
    await caller.post(`{"jsonrpc":"2.0","id":${asked[1]},"result":${odd}}`)
  }
  expect(text).toContain(`"progressToken":${big},"progress":${big}`)
  expect(text).toContain(`"maxTokens":${big}`)
  expect(sent.at(-1)).toContain(`"id":${big},"result":${odd}`)
})

test('does not redact a progress token that looks like redacted text', async () => {
  const pii = testPolicy({ id: 'pii', kind: 'pii', config: { types: ['email'], action: 'redact' } })
  gateway.worker.policies = compilePolicySet([{ ...pii, stages: ['pre_request', 'pre_response'] }])
  const own = Number(JSON.parse(lastCall() ?? '{}').id) + 1
  const mail = '"ann@example.com"'
  asides = [
    `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":${own},"progress":1,"message":${mail}}}`,
  ]
  answered = Promise.withResolvers()
  answered.resolve()
  const answer = await call('11', `{"progressToken":${mail}}`)
  gateway.worker.policies = compilePolicySet([])
  expect(answer).toContain('"message":"[EMAIL]"')
  expect(answer).toContain(`"progressToken":${mail}`)
})
