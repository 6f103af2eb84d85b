/** Servers of MCP 2026-07-28: how they are recognized, what they are sent, and what callers of both generations get. */
import { afterEach, expect, test } from 'bun:test'
import { eventually, until } from '../../../test/support/eventually.ts'
import type { Json } from '../connection.ts'
import { mcpCodes, metaKeys, modernVersion } from '../protocol.ts'
import { gatewayServers, storedServer, TestCaller } from '../testing/servers.ts'

type Answer = Json | ((message: Json, request: Request) => Json | Response | Promise<Json | Response>)

const stops: (() => unknown)[] = []
afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop()
})

const discovered: Json = {
  resultType: 'complete',
  supportedVersions: [modernVersion],
  capabilities: { tools: {}, logging: {} },
}

/** A server that answers by method, a result or a whole response; what it was sent is kept. */
function serve(answers: Record<string, Answer>) {
  const requests: { message: Json; headers: Headers; method: string }[] = []
  const server = Bun.serve({
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const message = (request.method === 'POST' ? await request.json() : {}) as Json
      requests.push({ message, headers: request.headers, method: request.method })
      const { id, method } = message
      const answer = answers[String(method)]
      const made = typeof answer === 'function' ? await answer(message, request) : answer
      if (made instanceof Response) return made
      if (made === undefined)
        return Response.json(
          { jsonrpc: '2.0', id, error: { code: -32_601, message: 'Method not found' } },
          { status: 404 },
        )
      return Response.json({ jsonrpc: '2.0', id, ...('error' in made ? made : { result: made }) })
    },
  })
  stops.push(() => server.stop(true))
  return {
    requests,
    url: `http://localhost:${server.port}/mcp`,
    methods: () => requests.map(({ message }) => message.method),
  }
}

function gateway(url: string, settings: object = {}) {
  const { servers } = gatewayServers([storedServer({ url })], { ...settings })
  stops.push(() => servers.close())
  const [record] = servers.list()
  if (record === undefined) throw new Error('There is no server')
  return (caller: TestCaller) => servers.connect(record, caller)
}

const all = { sampling: {}, elicitation: { form: {}, url: {} }, roots: {} }
const modern = () => new TestCaller(all, modernVersion)
const options = () => ({ signal: AbortSignal.timeout(5000) })
const call = { name: 'greet', arguments: {} }

test('sends a request with all that it says about itself, and needs no initialize', async () => {
  const { url, requests, methods } = serve({
    'server/discover': discovered,
    'tools/call': { resultType: 'complete', content: [] },
  })
  const connection = await gateway(url)(modern())
  expect(connection.modern).toBe(true)
  const headers = { 'mcp-param-city': 'Turin' }
  const sent = { ...options(), headers, logLevel: 'info', onProgress: () => undefined }
  expect(await connection.request('tools/call', { ...call, name: 'grüße' }, sent)).toEqual({
    resultType: 'complete',
    content: [],
  })
  expect(methods()).toEqual(['server/discover', 'tools/call'])
  const [, last] = requests
  expect(last?.message.params).toEqual({
    ...call,
    name: 'grüße',
    _meta: {
      progressToken: 2,
      [metaKeys.version]: modernVersion,
      [metaKeys.clientInfo]: { name: 'gatehouse', version: expect.any(String) },
      [metaKeys.capabilities]: all,
      [metaKeys.logLevel]: 'info',
    },
  })
  const encoded = `=?base64?${Buffer.from('grüße').toString('base64')}?=`
  const wanted = { 'mcp-protocol-version': modernVersion, 'mcp-method': 'tools/call', 'mcp-name': encoded, ...headers }
  for (const [name, value] of Object.entries(wanted)) expect(last?.headers.get(name)).toBe(value)
  expect(last?.headers.has('mcp-session-id')).toBe(false)
})

test.each<[words: string, caller: () => TestCaller]>([
  ['of its version', modern],
  ['with a session', () => new TestCaller(all)],
])(
  'refuses a resultType that nobody knows for a caller %s, and takes a result without one for complete',
  async (_, caller) => {
    const result: Json = { content: [], resultType: 'banana' }
    const { url } = serve({ 'server/discover': discovered, 'tools/call': () => result })
    const connection = await gateway(url)(caller())
    await expect(connection.request('tools/call', call, options())).rejects.toMatchObject({
      code: 'mcp.server_error',
      message: 'The MCP server one answered tools/call with an unknown resultType',
    })
    delete result.resultType
    expect(await connection.request('tools/call', call, options())).toEqual({ content: [] })
  },
)

const initialized: Answer = ({ params }) => ({
  protocolVersion: (params as Json).protocolVersion,
  capabilities: { tools: {} },
  serverInfo: { name: 's', version: '1' },
})

test.each<[words: string, Answer]>([
  ['does not know the method', { error: { code: -32_601, message: 'Method not found' } }],
  [
    'wants a session',
    () =>
      Response.json(
        { jsonrpc: '2.0', id: null, error: { code: -32_000, message: 'Not initialized' } },
        { status: 400 },
      ),
  ],
  ['answers 400 without a body', () => new Response(null, { status: 400 })],
  ['answers a page', () => new Response('<html>', { status: 404 })],
  [
    'names older versions alone',
    {
      error: {
        code: mcpCodes.unsupportedVersion,
        message: 'No',
        data: { supported: ['2025-11-25'], requested: modernVersion },
      },
    },
  ],
])('begins a session with a server that %s, and remembers it', async (_words, answer) => {
  const { url, methods } = serve({
    'server/discover': answer,
    initialize: initialized,
    'notifications/initialized': () => new Response(null, { status: 202 }),
    'tools/call': { content: [] },
  })
  const connect = gateway(url)
  const connection = await connect(modern())
  expect(connection.modern).toBe(false)
  expect(await connection.request('tools/call', call, options())).toEqual({ content: [] })
  await connect(modern())
  expect(methods().filter((method) => method === 'server/discover')).toHaveLength(1)
})

test('does not begin a session with a server that shares no version, or is out of reach', async () => {
  const unsupported = { code: mcpCodes.unsupportedVersion, message: 'No', data: { supported: ['2031-01-01'] } }
  const newer = serve({ 'server/discover': { error: unsupported } })
  await expect(gateway(newer.url)(modern())).rejects.toMatchObject({ code: 'mcp.server_error' })
  const broken = serve({ 'server/discover': () => new Response(null, { status: 503 }) })
  await expect(gateway(broken.url)(modern())).rejects.toMatchObject({ code: 'mcp.server_unreachable' })
  expect([newer.methods(), broken.methods()]).toEqual([['server/discover'], ['server/discover']])
})

test('asks a server again for its version when it begins to want a session', async () => {
  let isOld = false
  const wanted = () =>
    Response.json({ error: { code: -32_000, message: 'Not initialized' }, jsonrpc: '2.0', id: null }, { status: 400 })
  const { url, methods } = serve({
    'server/discover': () => (isOld ? wanted() : discovered),
    initialize: initialized,
    'notifications/initialized': () => new Response(null, { status: 202 }),
    'tools/call': (_message, { headers }) => (isOld && headers.has('mcp-method') ? wanted() : { content: [] }),
  })
  const connection = await gateway(url)(modern())
  expect(connection.modern).toBe(true)
  isOld = true
  expect(await connection.request('tools/call', call, options())).toEqual({ content: [] })
  expect(connection.modern).toBe(false)
  expect(methods()).toContain('initialize')
})

const needs = { method: 'elicitation/create', params: { message: 'Which city?', requestedSchema: { type: 'object' } } }
const asking: Answer = ({ params }) => {
  const { inputResponses, requestState } = params as {
    inputResponses?: { city?: { content?: Json } }
    requestState?: string
  }
  if (inputResponses?.city === undefined)
    return { resultType: 'input_required', inputRequests: { city: needs }, requestState: 'state of the server' }
  return {
    resultType: 'complete',
    ttlMs: 1,
    content: [{ type: 'text', text: `${requestState}: ${inputResponses.city.content?.city}` }],
  }
}

test('asks a caller with sessions by requests, and sends the call again with the answers', async () => {
  const { url, requests } = serve({ 'server/discover': discovered, 'tools/call': asking })
  const caller = new TestCaller(all)
  const asked: unknown[] = []
  caller.answer = (method, params) => {
    asked.push({ method, params })
    return { action: 'accept', content: { city: 'Turin' } }
  }
  const connection = await gateway(url)(caller)
  expect(await connection.request('tools/call', call, options())).toEqual({
    content: [{ type: 'text', text: 'state of the server: Turin' }],
  })
  expect(asked).toEqual([needs])
  expect(requests.map(({ message }) => message.id)).toEqual([1, 2, 3])
})

test('hands what the server needs to a caller of the same version', async () => {
  const { url } = serve({ 'server/discover': discovered, 'tools/call': asking })
  const connection = await gateway(url)(modern())
  expect(await connection.request('tools/call', call, options())).toMatchObject({ inputRequests: { city: needs } })
})

test('asks a caller nothing that it did not declare, and not without end', async () => {
  const { url, methods } = serve({
    'server/discover': discovered,
    'tools/call': { resultType: 'input_required', inputRequests: { city: needs } },
  })
  const connect = gateway(url)
  const silent = new TestCaller({})
  const refused = (await connect(silent)).request('tools/call', call, options())
  await expect(refused).rejects.toMatchObject({ code: mcpCodes.missingCapability })
  const patient = new TestCaller(all)
  patient.answer = () => ({ action: 'decline' })
  await expect((await connect(patient)).request('tools/call', call, options())).rejects.toMatchObject({ code: -32_603 })
  expect(methods().filter((method) => method === 'tools/call')).toHaveLength(11)
})

/** A stream of events that stays open. */
function openStream(...messages: Json[]) {
  const encoder = new TextEncoder()
  const { promise, resolve } = Promise.withResolvers<ReadableStreamDefaultController<Uint8Array>>()
  let isCancelled = false
  const body = new ReadableStream<Uint8Array>({
    start: resolve,
    cancel() {
      isCancelled = true
    },
  })
  const say = async (message: Json) =>
    (await promise).enqueue(encoder.encode(`data: ${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`))
  for (const message of messages) void say(message)
  const response = new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  return { response, say, end: async () => (await promise).close(), cancelled: () => isCancelled }
}

test('hears changes of lists and of subscribed resources on one stream', async () => {
  const streams: ReturnType<typeof openStream>[] = []
  const capabilities = { tools: { listChanged: true }, resources: { subscribe: true } }
  const { url, requests } = serve({
    'server/discover': { ...discovered, capabilities },
    'subscriptions/listen'({ id, params }) {
      const { notifications } = params as Json
      const own = { [metaKeys.subscriptionId]: id }
      const stream = openStream({
        method: 'notifications/subscriptions/acknowledged',
        params: { _meta: own, notifications },
      })
      streams.push(stream)
      return stream.response
    },
  })
  const caller = new TestCaller(all)
  const connection = await gateway(url)(caller)
  await until('it listens', () => streams.length === 1)
  await streams[0]?.say({
    method: 'notifications/tools/list_changed',
    params: { _meta: { [metaKeys.subscriptionId]: 2 } },
  })
  await eventually(() => expect(caller.told).toContainEqual(['notifications/tools/list_changed', { _meta: {} }]))
  expect(await connection.request('resources/subscribe', { uri: 'file:///a' }, options())).toEqual({})
  await until('it listens again', () => streams.length === 2)
  const filters = requests.flatMap(({ message: { method, params } }) =>
    method === 'subscriptions/listen' ? [(params as Json).notifications] : [],
  )
  expect(filters).toEqual([
    { toolsListChanged: true },
    { toolsListChanged: true, resourceSubscriptions: ['file:///a'] },
  ])
  await until('the first stream is left', () => streams[0]?.cancelled() === true)
  await streams[1]?.say({ method: 'notifications/resources/updated', params: { uri: 'file:///a' } })
  await eventually(() => expect(caller.told).toContainEqual(['notifications/resources/updated', { uri: 'file:///a' }]))
  await connection.close()
  await until('the second stream is left', () => streams[1]?.cancelled() === true)
})

test('passes progress and logs with the call that they belong to, and cancels by leaving its stream', async () => {
  const stream = openStream(
    { method: 'notifications/progress', params: { progressToken: 2, progress: 1 } },
    { method: 'notifications/message', params: { level: 'info', data: 'working' } },
    { id: 7, method: 'elicitation/create', params: {} },
  )
  const { url, methods } = serve({ 'server/discover': discovered, 'tools/call': () => stream.response })
  const caller = modern()
  const connection = await gateway(url)(caller)
  const leaving = new AbortController()
  const progress: Json[] = []
  const onProgress = (told: Json) => void progress.push(told)
  const calling = connection.request('tools/call', call, { signal: leaving.signal, onProgress, related: 'this call' })
  calling.catch(() => undefined)
  await until('all was said', () => progress.length === 1 && caller.told.length === 1)
  expect(caller.told).toEqual([['notifications/message', { level: 'info', data: 'working' }]])
  leaving.abort(new Error('The caller left'))
  await expect(calling).rejects.toThrow('The caller left')
  await until('the stream is left', () => stream.cancelled())
  expect(methods()).toEqual(['server/discover', 'tools/call'])
})
