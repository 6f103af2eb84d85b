/**
 * Connections to MCP servers by HTTP: what is asked comes back as it was written, and a bad server harms nobody. Long
 * because each way in which a server may misbehave has its test here.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { answer, FakeMcpServer, frame, stream } from '../../../test/fakes/mcp-server.ts'
import { eventually, until } from '../../../test/support/eventually.ts'
import type { McpServerRecord } from '../connection.ts'
import { definitionOf, offerId } from '../offers/definition.ts'
import { gatewayServers, storedServer, TestCaller } from '../testing/servers.ts'
import type { ServerConnection } from './server-connection.ts'
import type { StoredMcpServer } from './server-source.ts'

let fake: FakeMcpServer
let close: () => Promise<void> = async () => undefined
beforeEach(() => {
  fake = new FakeMcpServer()
})
afterEach(async () => {
  await close()
  await fake.stop()
})

const only = (records: readonly McpServerRecord[]): McpServerRecord => {
  const [record] = records
  if (record === undefined) throw new Error('There is no server')
  return record
}

interface Setup {
  fields?: Partial<StoredMcpServer>
  credentials?: Parameters<typeof storedServer>[1]
  settings?: Record<string, unknown>
  caller?: TestCaller
}

async function connect({ fields = {}, credentials, settings, caller = new TestCaller() }: Setup = {}) {
  const stored = storedServer({ url: fake.url, ...fields }, credentials)
  const { servers, source } = gatewayServers([stored], settings)
  close = () => servers.close()
  const connection = await servers.connect(only(servers.list()), caller)
  return { connection, servers, source, stored, caller }
}

const tool = (name: string, more: object = {}) => ({ name, inputSchema: { type: 'object' }, ...more })
/** What the state holds once this tool of the stored server is approved. */
const approvalOf = (offer: ReturnType<typeof tool>) => ({
  approved: new Set([definitionOf('tool', offer)?.digest ?? '']),
  known: new Set([offerId(storedServer().id, 'tool', offer.name)]),
})
const forever = () => AbortSignal.timeout(10_000)
const call = (connection: ServerConnection, params: Record<string, unknown> = {}, signal = forever()) =>
  connection.request('tools/call', params, { signal })
const failing = (code: string) => expect.objectContaining({ code })

test('passes a request and its answer unchanged, including unknown members', async () => {
  const { connection } = await connect({ credentials: { headers: { 'X-Key': 'secret' } } })
  expect(connection.capabilities).toEqual({ tools: { listChanged: true }, unheardOf: { of: 1 } })
  expect(connection.instructions).toBe('Be kind')
  fake.behaviour = (message) => answer(message, { content: [], unheardOf: { deep: [1] } })
  const params = { name: 'a', arguments: { x: 1 }, unheardOf: true, _meta: { theirs: 1, progressToken: 'callers' } }
  expect(await call(connection, params)).toEqual({ content: [], unheardOf: { deep: [1] } })
  const { headers, body } = fake.last('tools/call') ?? {}
  expect(body.params).toEqual({ ...params, _meta: { theirs: 1 } })
  expect(headers?.get('x-key')).toBe('secret')
  expect(headers?.get('mcp-session-id')).toBe('session-1')
  expect(headers?.get('mcp-protocol-version')).toBe('2025-11-25')
  await connection.close()
  expect(fake.methods()).toContain('DELETE')
})

test('sends the trace of a request with that request only', async () => {
  const { connection } = await connect()
  fake.behaviour = (message) => answer(message, {})
  const trace = { traceparent: `00-${'1'.repeat(32)}-${'2'.repeat(16)}-01`, tracestate: 'a=1' }
  await connection.request('tools/call', {}, { signal: forever(), trace })
  const { headers } = fake.last('tools/call') ?? {}
  expect([headers?.get('traceparent'), headers?.get('tracestate')]).toEqual([trace.traceparent, 'a=1'])
  await connection.request('tools/call', {}, { signal: forever() })
  expect(fake.last('tools/call')?.headers.get('traceparent')).toBeNull()
})

test('requests the protocol version of the caller and refuses an unknown one from the server', async () => {
  const caller = new TestCaller({ sampling: {} }, '2025-06-18')
  await connect({ caller })
  expect(fake.last('initialize')?.body.params).toMatchObject({
    protocolVersion: '2025-06-18',
    capabilities: { sampling: {} },
  })
  fake.protocolVersion = '2024-11-05'
  await expect(connect()).rejects.toMatchObject({ code: 'mcp.server_error' })
})

test('passes an error of the server with its code and data', async () => {
  const { connection } = await connect()
  fake.behaviour = ({ id }) => ({ jsonrpc: '2.0', id, error: { code: -32002, message: 'None', data: { uri: 'x' } } })
  await expect(call(connection)).rejects.toMatchObject({ code: -32002, message: 'None', data: { uri: 'x' } })
  fake.behaviour = ({ id }) =>
    Response.json({ jsonrpc: '2.0', id, error: { code: -32600, message: 'No' } }, { status: 400 })
  await expect(call(connection)).rejects.toMatchObject({ code: -32600, message: 'No' })
})

test('passes notifications and requests of the server, but none that the caller did not declare', async () => {
  const caller = new TestCaller({ sampling: {} })
  const { connection } = await connect({ caller })
  caller.answer = (method, params) => ({ method, params })
  const asked: unknown[] = []
  fake.behaviour = (message) =>
    stream([
      frame({ jsonrpc: '2.0', method: 'notifications/message', params: { data: 'hello' } }),
      frame({ jsonrpc: '2.0', id: 'q', method: 'sampling/createMessage', params: { maxTokens: 1 } }),
      frame({ jsonrpc: '2.0', id: 'e', method: 'elicitation/create', params: {} }),
      frame({ jsonrpc: '2.0', id: 1, method: 'ping' }),
      frame({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: message.id, progress: 1 } }),
      frame(answer(message, { ok: true })),
    ])
  const result = await connection.request(
    'tools/call',
    {},
    { signal: forever(), onProgress: (told) => asked.push(told) },
  )
  expect(result).toEqual({ ok: true })
  expect(asked).toMatchObject([{ progress: 1 }])
  expect(caller.told).toEqual([['notifications/message', { data: 'hello' }]])
  await until('three answers', () => fake.received.filter(({ body }) => body !== null && !body.method).length === 3)
  const answers = fake.received.map(({ body }) => body).filter((body) => body !== null && !body.method)
  expect(answers).toContainEqual({
    jsonrpc: '2.0',
    id: 'q',
    result: { method: 'sampling/createMessage', params: { maxTokens: 1 } },
  })
  expect(answers).toContainEqual({ jsonrpc: '2.0', id: 'e', error: { code: -32601, message: 'Method not found' } })
  expect(answers).toContainEqual({ jsonrpc: '2.0', id: 1, result: {} })
})

const elicitation = (id: string, params: object = {}) =>
  frame({ jsonrpc: '2.0', id, method: 'elicitation/create', params })
const saidOf = (id: string) => fake.received.filter(({ body }) => body !== null && body.id === id && !body.method)

test('cancels pending server requests at the caller when their call ends, and frees their places', async () => {
  const caller = new TestCaller({ elicitation: {} })
  const { connection } = await connect({ caller })
  let [asked, open] = [0, 0]
  caller.answer = (_method, _params, signal) => {
    asked += 1
    open += 1
    return new Promise((_resolve, reject) =>
      signal.addEventListener('abort', () => {
        open -= 1
        reject(signal.reason)
      }),
    )
  }
  for (let round = 1; round <= 18; round += 1) {
    fake.behaviour = (message) => stream([elicitation(`q${round}`), frame(answer(message, {}))])
    await call(connection)
    await until('it was taken back', () => open === 0)
  }
  expect(asked).toBe(18)
  const left = new AbortController()
  fake.behaviour = () => stream([elicitation('last')], { ends: false })
  const given = call(connection, {}, left.signal)
  await until('it was asked', () => open === 1)
  left.abort(new Error('The caller left'))
  await expect(given).rejects.toThrow('The caller left')
  await until('it was taken back', () => open === 0)
})

test.each([
  ['leaves it', (_resolve: (result: Record<string, unknown>) => void, reject: () => void) => reject()],
  ['answers all the same', (resolve: (result: Record<string, unknown>) => void) => resolve({ action: 'accept' })],
])('a request that its server takes back is answered by nobody, where the caller %s', async (_does, end) => {
  const caller = new TestCaller({ elicitation: {} })
  const { connection } = await connect({ caller })
  caller.answer = (_method, _params, signal) =>
    new Promise((resolve, reject) => signal.addEventListener('abort', () => end(resolve, () => reject(signal.reason))))
  const cancelled = { jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'q' } }
  fake.behaviour = (message) =>
    stream([elicitation('q'), frame(cancelled), elicitation('r', { mode: 'other' }), frame(answer(message, {}))])
  await call(connection)
  await until('the answer after it', () => saidOf('r').length === 1)
  expect(saidOf('q')).toEqual([])
})

test.each([
  ['elicitation/create', { mode: 'url' }, { elicitation: { form: {} } }],
  ['elicitation/create', { mode: 'url' }, { elicitation: {} }],
  ['elicitation/create', {}, { elicitation: { url: {} } }],
  ['sampling/createMessage', { tools: [] }, { sampling: {} }],
])('refuses %s with %p for a caller that declared %p', async (method, params, capabilities) => {
  const caller = new TestCaller(capabilities)
  const { connection } = await connect({ caller })
  let asked = 0
  caller.answer = () => {
    asked += 1
    return {}
  }
  fake.behaviour = (message) => stream([frame({ jsonrpc: '2.0', id: 'q', method, params }), frame(answer(message, {}))])
  await call(connection)
  await until('the refusal', () => saidOf('q').length === 1)
  expect(saidOf('q')[0]?.body).toMatchObject({ error: { code: -32602 } })
  expect(asked).toBe(0)
})

test('passes notifications that a server sends on its own', async () => {
  fake.listening = () =>
    stream([frame({ jsonrpc: '2.0', method: 'notifications/tools/list_changed' })], { ends: false })
  const { caller } = await connect()
  await until('the change', () => caller.told.length > 0)
  expect(caller.told).toEqual([['notifications/tools/list_changed', undefined]])
})

test('resumes a stream that ends before the answer after its last event', async () => {
  const { connection } = await connect()
  fake.behaviour = (message) => {
    fake.listening = () => stream([frame(answer(message, { ok: 'later' }), '2')])
    return stream(['retry: 10\nid: 1\ndata:\n\n'])
  }
  expect(await call(connection)).toEqual({ ok: 'later' })
  const resumed = fake.received.findLast(({ method }) => method === 'GET')
  expect(resumed?.headers.get('last-event-id')).toBe('1')
  fake.behaviour = () => stream([': nothing\n\n'])
  await expect(call(connection)).rejects.toMatchObject({ code: 'mcp.server_error' })
})

test('cancels a call at the server when its caller cancels', async () => {
  const { connection } = await connect()
  fake.behaviour = () => stream([': working\n\n'], { ends: false })
  const left = new AbortController()
  const calling = call(connection, {}, left.signal)
  await until('the call', () => fake.last('tools/call') !== undefined)
  left.abort(new Error('left'))
  await expect(calling).rejects.toThrow('left')
  await until('the cancellation', () => fake.last('notifications/cancelled') !== undefined)
  const { id } = fake.last('tools/call')?.body ?? {}
  expect(fake.last('notifications/cancelled')?.body.params).toEqual({ requestId: id })
})

test('gives up on a silent server, and extends its time on progress up to the total', async () => {
  const { connection } = await connect({ fields: { timeouts: '{"idle_seconds":0.4,"total_seconds":1.6}' } })
  fake.behaviour = () => stream([': working\n\n'], { ends: false })
  await expect(call(connection)).rejects.toMatchObject({ code: 'mcp.server_timeout' })
  let steps = 0
  fake.behaviour = ({ id }) => {
    const told = frame({ jsonrpc: '2.0', method: 'notifications/progress', params: { progressToken: id, progress: 1 } })
    const body = new ReadableStream({
      async pull(controller) {
        await Bun.sleep(30)
        steps += 1
        controller.enqueue(new TextEncoder().encode(told))
      },
    })
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  }
  const calling = connection.request('tools/call', {}, { signal: forever(), onProgress: () => undefined })
  await expect(calling).rejects.toMatchObject({ code: 'mcp.server_timeout' })
  expect(steps).toBeGreaterThan(4)
})

test('stops reading a result that exceeds the limit', async () => {
  const { connection } = await connect({ settings: { mcp_result_bytes: 10_000 } })
  const large = 'x'.repeat(4000)
  fake.behaviour = (message) => answer(message, { text: large.repeat(3) })
  await expect(call(connection)).rejects.toEqual(failing('mcp.result_too_large'))
  function* endless() {
    yield 'data: '
    for (;;) yield large
  }
  fake.behaviour = () => stream(endless())
  await expect(call(connection)).rejects.toEqual(failing('mcp.result_too_large'))
  fake.behaviour = (message) => answer(message, { text: 'small' })
  expect(await call(connection)).toEqual({ text: 'small' })
})

test('disconnects a server that sends too much', async () => {
  const { connection, caller } = await connect()
  function* endless() {
    for (;;) yield frame({ jsonrpc: '2.0', method: 'notifications/message', params: {} }).repeat(100)
  }
  fake.behaviour = () => stream(endless())
  await expect(call(connection)).rejects.toEqual(failing('mcp.server_error'))
  expect(caller.told.length).toBeLessThan(15_000)
})

test('ignores answers that no request waits for', async () => {
  const { connection } = await connect()
  fake.behaviour = (message) =>
    stream([
      frame(answer({ id: 999 }, { wrong: 1 })),
      frame(answer({ id: String(message.id) }, { wrong: 2 })),
      frame('none'),
      frame([answer(message, { wrong: 3 })]),
      frame(answer(message, { right: true })),
      frame(answer(message, { wrong: 4 })),
    ])
  expect(await call(connection)).toEqual({ right: true })
  fake.behaviour = () => answer({ id: 999 }, {})
  await expect(call(connection)).rejects.toEqual(failing('mcp.server_error'))
  fake.behaviour = () => new Response('<html>', { headers: { 'content-type': 'application/json' } })
  await expect(call(connection)).rejects.toEqual(failing('mcp.server_error'))
})

test('does not follow a redirect', async () => {
  const { connection } = await connect({ credentials: { headers: { 'x-key': 'secret' } } })
  const elsewhere = new FakeMcpServer()
  try {
    fake.behaviour = () => Response.redirect(elsewhere.url, 307)
    await expect(call(connection)).rejects.toEqual(failing('mcp.server_error'))
    expect(elsewhere.received).toEqual([])
  } finally {
    await elsewhere.stop()
  }
})

test('begins a forgotten session anew and sends the request once more', async () => {
  const { connection, caller } = await connect()
  await connection.request('logging/setLevel', { level: 'debug' }, { signal: forever() })
  fake.forgetSessions()
  expect(await call(connection, { name: 'a' })).toEqual({ echoed: { name: 'a' } })
  expect(fake.sessions).toBe(2)
  expect(fake.methods().filter((method) => method === 'logging/setLevel')).toHaveLength(2)
  expect(caller.told).toContainEqual(['notifications/tools/list_changed', undefined])
})

test('pauses calls to a server that fails repeatedly', async () => {
  const { connection, servers } = await connect({ settings: { circuit_failures: 2, circuit_open_seconds: 60 } })
  fake.behaviour = () => new Response(null, { status: 503 })
  for (let turn = 0; turn < 2; turn++) {
    await expect(call(connection)).rejects.toEqual(failing('mcp.server_unreachable'))
  }
  const record = only(servers.list())
  const before = fake.received.length
  await expect(servers.connect(record, new TestCaller())).rejects.toMatchObject({ code: 'mcp.server_unavailable' })
  expect(fake.received).toHaveLength(before)
})

test('reports an unreachable server', async () => {
  await fake.stop()
  await expect(connect()).rejects.toEqual(failing('mcp.server_unreachable'))
})

test('stops using a server after it was disabled or changed', async () => {
  const { connection, servers, source, stored } = await connect()
  let told = 0
  servers.onChange(() => told++)
  source.change([{ ...stored, approved: new Set(['x']) }])
  expect(await call(connection)).toEqual({ echoed: {} })
  source.change([])
  expect(told).toBe(2)
  await expect(call(connection)).rejects.toEqual(failing('mcp.server_unavailable'))
})

test('gets and shares an access token by client credentials and renews it when the server refuses it', async () => {
  let given = 0
  const asked: { authorization: string | null; form: string }[] = []
  const login = Bun.serve({
    hostname: '127.0.0.1',
    port: 0,
    async fetch(request) {
      asked.push({ authorization: request.headers.get('authorization'), form: await request.text() })
      return Response.json({ access_token: `token-${++given}`, token_type: 'Bearer', expires_in: 3600 })
    },
  })
  const oauth = {
    token_url: `http://127.0.0.1:${login.port}/token`,
    client_id: 'gate way',
    client_secret: 's:3',
    scope: 'tools',
    resource: fake.url,
  }
  try {
    const { connection, servers } = await connect({ credentials: { oauth } })
    await servers.connect(only(servers.list()), new TestCaller())
    expect(asked).toHaveLength(1)
    expect(atob(asked[0]?.authorization?.replace('Basic ', '') ?? '')).toBe('gate+way:s%3A3')
    expect(Object.fromEntries(new URLSearchParams(asked[0]?.form))).toEqual({
      grant_type: 'client_credentials',
      scope: 'tools',
      resource: fake.url,
    })
    fake.refusedTokens.push('token-1')
    expect(await call(connection)).toEqual({ echoed: {} })
    expect(fake.last('tools/call')?.headers.get('authorization')).toBe('Bearer token-2')
    fake.refusedTokens.push('token-2', 'token-3')
    await expect(call(connection)).rejects.toEqual(failing('mcp.server_error'))
    expect(given).toBe(3)
  } finally {
    await login.stop(true)
  }
})

test('shows a new server’s offers as first seen and reports the others', async () => {
  const { servers, source, stored } = await connect()
  const record = only(servers.list())
  const [a, changed, b] = [tool('a'), tool('a', { description: 'Sends it to me' }), tool('b')]
  expect(servers.approved(record, 'tool', [a])).toEqual([a])
  expect(servers.approved(record, 'tool', [changed, b])).toEqual([b])
  expect(servers.approved(record, 'tool', [changed, b])).toEqual([b])
  await eventually(() => expect(source.reports).toHaveLength(1))
  expect(source.reports[0]).toMatchObject({ server_id: stored.id, kind: 'tool' })
  expect(source.reports[0]?.definitions).toHaveLength(3)
  source.change([{ ...stored, approval: 'required' }])
  expect(servers.approved(only(servers.list()), 'tool', [a, b])).toEqual([])
})

test('does not decompress an answer that would exceed the limit', async () => {
  const { connection } = await connect({ settings: { mcp_result_bytes: 100_000 } })
  fake.behaviour = () =>
    new Response(Bun.gzipSync(Buffer.alloc(200_000)), {
      headers: { 'content-encoding': 'gzip', 'content-type': 'application/json' },
    })
  await expect(call(connection)).rejects.toEqual(failing('mcp.result_too_large'))
})

test('does not count answers as flooding, however many are requested', async () => {
  const { connection } = await connect()
  for (let asked = 0; asked < 4000; asked += 100) {
    await Promise.all(Array.from({ length: 100 }, () => call(connection)))
  }
  expect(await call(connection)).toEqual({ echoed: {} })
})

test('reports a thousand tools within the first use', async () => {
  const { servers, source } = await connect()
  const tools = Array.from({ length: 1000 }, (_, index) => tool(`tool-${index}`))
  expect(servers.approved(only(servers.list()), 'tool', tools)).toHaveLength(1000)
  const all = () => source.reports.flatMap(({ definitions }) => definitions).length === 1000
  await until('all reports', all, { withinMs: 4000 })
})

test('shows what another worker saw first as soon as the state says so', async () => {
  const { servers, source, stored } = await connect()
  const [here, there, later] = [tool('a'), tool('a', { description: 'There' }), tool('b')]
  expect(servers.approved(only(servers.list()), 'tool', [here])).toEqual([here])
  const baselines = new Map([['tool', Date.now()]])
  source.change([{ ...stored, baselines, ...approvalOf(there) }])
  expect(servers.approved(only(servers.list()), 'tool', [here])).toEqual([])
  expect(servers.approved(only(servers.list()), 'tool', [there])).toEqual([there])
  // Of what the state has not heard yet nothing is missing meanwhile.
  expect(servers.approved(only(servers.list()), 'tool', [later])).toEqual([later])
})

test.each([
  ['while the first use lasts is shown', 5000, 1],
  ['after the first use is held', 10_001, 0],
])('shows offers of %s as first seen here until another gateway reports', async (_, ago, shown) => {
  const { servers } = await connect({ fields: { baselines: new Map([['tool', Date.now() - ago]]) } })
  expect(servers.approved(only(servers.list()), 'tool', [tool('b')])).toHaveLength(shown)
})

test('never shows or reports an offer that callers could not read', async () => {
  const misfit = tool('bad', { description: 5 })
  const approved = new Set([definitionOf('tool', misfit)?.digest ?? ''])
  const { servers, source } = await connect({ fields: { approved } })
  const record = only(servers.list())
  expect(servers.approved(record, 'tool', [misfit, { name: 'none' }, tool('good')])).toEqual([tool('good')])
  await eventually(() => expect(source.reports[0]?.definitions).toHaveLength(3))
})

test('bounds what it remembers of a new server that offers endlessly', async () => {
  const { servers } = await connect()
  const record = only(servers.list())
  const offers = Array.from({ length: 6000 }, (_, index) => tool(`tool ${index}`))
  expect(servers.approved(record, 'tool', offers)).toHaveLength(5000)
  expect(servers.approved(record, 'tool', offers.slice(0, 2))).toHaveLength(2)
})

test('drops a report that the control plane refuses as invalid and sends the next', async () => {
  const { servers, source } = await connect({ fields: { approval: 'required' } })
  const record = only(servers.list())
  source.refuses = 'tool'
  const many = (count: number) => Array.from({ length: count }, (_, index) => ({ name: `tool ${index}` }))
  servers.approved(record, 'tool', many(2000))
  servers.approved(record, 'prompt', [{ name: 'a' }])
  expect(source.reports).toEqual([])
  await until('room', () => {
    servers.approved(record, 'prompt', [{ name: 'a' }])
    return source.reports.length > 0
  })
  expect(source.reports).toMatchObject([{ kind: 'prompt' }])
})

test('shows only approved definitions of a known server', async () => {
  const { servers, source } = await connect({ fields: { baselines: new Map([['tool', 0]]) } })
  const record = only(servers.list())
  expect(servers.approved(record, 'tool', [{ name: 'a' }])).toEqual([])
  expect(servers.approved(record, 'prompt', [])).toEqual([])
  await eventually(() => expect(source.reports.map(({ kind }) => kind)).toEqual(['tool', 'prompt']))
})

test('gives up after the connect timeout on a server that does not read its input', async () => {
  fake.deaf = true
  const fields = { timeouts: '{"connect_seconds":1}' }
  await expect(connect({ fields })).rejects.toMatchObject({ code: 'mcp.server_unreachable' })
})

test('limits the pending requests of a server that does not take answers', async () => {
  const { connection } = await connect()
  fake.deaf = true
  const pings = Array.from({ length: 500 }, (_, id) => frame({ jsonrpc: '2.0', id: `p${id}`, method: 'ping' }))
  fake.behaviour = (message) => stream([...pings, frame(answer(message, { content: [] }))])
  await call(connection)
  await until('the answers', () => fake.methods().filter((method) => method === 'answer').length >= 64)
  await call(connection)
  expect(fake.methods().filter((method) => method === 'answer').length).toBe(64)
})
