/** Callers of MCP 2026-07-28, before servers with sessions. */
import { afterEach, expect, test } from 'bun:test'
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client'
import { eventually, until } from '../../../test/support/eventually.ts'
import type { Json } from '../../mcp/connection.ts'
import { mcpCodes, metaKeys, modernVersion } from '../../mcp/protocol.ts'
import { eventsOf, type Handler, messagesOf, startMcpGateway, testMcpServer } from '../testing/mcp.ts'
import { modernCaller } from '../testing/modern-mcp.ts'
import type { SiblingWorkers } from './sibling-workers.ts'

let gateway: Awaited<ReturnType<typeof startMcpGateway>>
afterEach(() => gateway.stop())

const said = (words: string) => ({ content: [{ type: 'text', text: words }] })
const tools = (...names: string[]) => ({
  tools: names.map((name) => ({ name, description: name, inputSchema: { type: 'object' } })),
})

async function start(handlers: Record<string, Handler> = {}, siblings?: SiblingWorkers) {
  const files = testMcpServer('files', {
    'tools/list': () => tools('read', 'ask', 'wait'),
    'tools/call': ({ params }) => said(JSON.stringify(params.arguments)),
    'resources/list': () => ({ resources: [{ uri: 'file:///one', name: 'one' }] }),
    'resources/subscribe': () => ({}),
    'resources/unsubscribe': () => ({}),
    'logging/setLevel': () => ({}),
    ...handlers,
  })
  gateway = await startMcpGateway([files], {}, siblings)
  return files
}

test('answers each request by itself, without a session', async () => {
  const files = await start()
  const caller = modernCaller(gateway)
  const response = await caller.post('tools/list')
  expect(response.headers.get('mcp-session-id')).toBeNull()
  const [listed] = await messagesOf(response)
  expect(listed?.result).toMatchObject({
    ...{ resultType: 'complete', cacheScope: 'private', ttlMs: 30_000 },
    _meta: { [metaKeys.serverInfo]: { name: 'gatehouse' } },
    tools: [{ name: 'files__read' }, { name: 'files__ask' }, { name: 'files__wait' }],
  })
  expect(await caller.call('files__read', { path: 'a' })).toMatchObject({
    result: { resultType: 'complete', content: [{ text: '{"path":"a"}' }] },
  })
  const sent = files.requests.find(({ method }) => method === 'tools/call')
  expect(sent?.params).toEqual({ name: 'read', arguments: { path: 'a' } })
})

test("its own refusals are results of the form that the version's official client reads", async () => {
  await start()
  const refused = { isError: true, content: [{ text: expect.stringContaining('no such tool') }] }
  expect(await modernCaller(gateway).call('files__nothing')).toMatchObject({
    result: { resultType: 'complete', ...refused },
  })
  const older = await gateway.caller()
  const { result } = await older.call('files__nothing')
  expect(result).toMatchObject(refused)
  expect(result).not.toHaveProperty('resultType')
})

test('says in server/discover what it supports', async () => {
  await start()
  expect((await modernCaller(gateway).ask('server/discover')).result).toMatchObject({
    supportedVersions: ['2026-07-28', '2025-11-25', '2025-06-18'],
    capabilities: { tools: { listChanged: true }, resources: { subscribe: true } },
    ...{ resultType: 'complete', cacheScope: 'public' },
  })
})

const meta = (changed: Json) => ({ _meta: changed })
test.each<[words: string, Json, Record<string, string | null>, number, number]>([
  ['no Mcp-Method', {}, { 'mcp-method': null }, 400, mcpCodes.headerMismatch],
  ['another Mcp-Method', {}, { 'mcp-method': 'tools/list' }, 400, mcpCodes.headerMismatch],
  ['another spelling of Mcp-Method', {}, { 'mcp-method': 'TOOLS/CALL' }, 400, mcpCodes.headerMismatch],
  ['no Mcp-Name', {}, { 'mcp-name': null }, 400, mcpCodes.headerMismatch],
  ['another Mcp-Name', {}, { 'mcp-name': 'files__ask' }, 400, mcpCodes.headerMismatch],
  ['a broken encoding of Mcp-Name', {}, { 'mcp-name': '=?base64?%%?=' }, 400, mcpCodes.headerMismatch],
  ['no version header', {}, { 'mcp-protocol-version': null }, 400, mcpCodes.headerMismatch],
  ['an older version header', {}, { 'mcp-protocol-version': '2025-11-25' }, 400, mcpCodes.headerMismatch],
  [
    'an unknown version',
    meta({ [metaKeys.version]: '2099-01-01' }),
    { 'mcp-protocol-version': '2099-01-01' },
    ...([400, mcpCodes.unsupportedVersion] as const),
  ],
  ['capabilities that are no object', meta({ [metaKeys.capabilities]: 'all' }), {}, 400, -32_602],
  ['an unknown log level', meta({ [metaKeys.logLevel]: 'loud' }), {}, 400, -32_602],
])('refuses %s', async (_words, params, headers, status, code) => {
  await start()
  const response = await modernCaller(gateway).post('tools/call', { name: 'files__read', ...params }, headers)
  expect(response.status).toBe(status)
  expect(await response.json()).toMatchObject({ id: 'm1', error: { code } })
})

test('reads an encoded Mcp-Name', async () => {
  await start()
  const encoded = `=?base64?${Buffer.from('files__read').toString('base64')}?=`
  const response = await modernCaller(gateway).post('tools/call', { name: 'files__read' }, { 'mcp-name': encoded })
  expect(response.status).toBe(200)
})

test.each(['initialize', 'ping', 'logging/setLevel', 'resources/subscribe', 'resources/unsubscribe', 'no/method'])(
  'answers 404 to %s and records the refusal',
  async (method) => {
    await start()
    const response = await modernCaller(gateway).post(method)
    expect([response.status, await response.json()]).toMatchObject([404, { id: 'm1', error: { code: -32_601 } }])
    const refused = { verdict: 'deny', reason_code: 'mcp.unknown_method', details: { status: 404 } }
    expect(gateway.worker.journal.outcomes()).toMatchObject([refused])
  },
)

test('has no GET and no DELETE, and takes notifications', async () => {
  await start()
  const headers = { authorization: `Bearer ${gateway.secret}`, 'mcp-protocol-version': modernVersion }
  for (const method of ['GET', 'DELETE'])
    expect((await fetch(`${gateway.url}/mcp`, { method, headers })).status).toBe(405)
  const body = JSON.stringify({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
  const json = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' }
  const told = await fetch(`${gateway.url}/mcp`, { method: 'POST', headers: { ...headers, ...json }, body })
  expect(told.status).toBe(202)
})

const requestedSchema = { type: 'object', properties: { city: { type: 'string' } } }
const elicit: Handler = async ({ ask }) => {
  const answer = await ask('elicitation/create', { message: 'Which city?', requestedSchema })
  return said(JSON.stringify(answer.content))
}

/** The one question and the state of a result. */
function questionOf({ result }: Json): { key: string; request: Json; requestState: unknown } {
  const { inputRequests, requestState, resultType } = result as Json
  expect(resultType).toBe('input_required')
  const [[key = '', request = {}] = []] = Object.entries(inputRequests as Record<string, Json>)
  return { key, request, requestState }
}

test('asks what a server with sessions asks by a result, and goes on with the same call', async () => {
  const files = await start({ 'tools/call': elicit })
  const caller = modernCaller(gateway)
  const { key, request, requestState } = questionOf(await caller.call('files__ask'))
  expect(request).toMatchObject({ method: 'elicitation/create', params: { message: 'Which city?' } })
  const inputResponses = { [key]: { action: 'accept', content: { city: 'Turin' } }, unknown: {} }
  const missing = questionOf(await caller.call('files__ask', {}, { requestState, inputResponses: { other: {} } }))
  expect(missing.key).toBe(key)
  expect(await caller.call('files__ask', {}, { requestState: missing.requestState, inputResponses })).toMatchObject({
    result: { resultType: 'complete', content: [{ text: '{"city":"Turin"}' }] },
  })
  expect(files.requests.filter(({ method }) => method === 'tools/call')).toHaveLength(1)
  expect(await caller.call('files__ask', {}, { requestState, inputResponses })).toMatchObject({
    error: { code: -32_602 },
  })
})

test('refuses a requestState that was changed, of another name, or of another caller', async () => {
  await start({ 'tools/call': elicit })
  const caller = modernCaller(gateway)
  const { requestState } = questionOf(await caller.call('files__ask'))
  const refused = { error: { code: -32_602 } }
  expect(await caller.call('files__ask', {}, { requestState: `${requestState}00` })).toMatchObject(refused)
  expect(await caller.call('files__read', {}, { requestState })).toMatchObject(refused)
  const other = modernCaller(gateway, { secret: gateway.worker.addToken() })
  expect(await other.call('files__ask', {}, { requestState })).toMatchObject(refused)
})

test('refuses the requestState of another resource, also where the request has a name besides', async () => {
  await start({ 'resources/read': elicit })
  const caller = modernCaller(gateway)
  const read = (path: string, more: Json = {}) =>
    caller.ask('resources/read', { name: 'same', uri: `mcp://files/file:///${path}`, ...more })
  const { requestState } = questionOf(await read('one'))
  expect(await read('two', { requestState })).toMatchObject({ error: { code: -32_602 } })
})

test('tells servers to stop watching for a subscription that is refused because there are too many', async () => {
  const files = await start()
  const caller = modernCaller(gateway)
  const leaving = new AbortController()
  const listen = (notifications: Json) => caller.post('subscriptions/listen', { notifications }, {}, leaving.signal)
  for (let count = 0; count < 64; count++) expect((await listen({ toolsListChanged: true })).status).toBe(200)
  const refused = await listen({ resourceSubscriptions: ['mcp://files/file:///one'] })
  expect(await refused.json()).toMatchObject({ error: { message: 'Too many subscriptions of this caller' } })
  const unsubscribed = { method: 'resources/unsubscribe', params: { uri: 'file:///one' } }
  await eventually(() => expect(files.requests).toContainEqual(unsubscribed))
  leaving.abort()
})

test('passes the retry of a call by call_tool on to the worker that waits for it', async () => {
  const asked: string[] = []
  const siblings = {
    sessionPrefix: '0.a.',
    homeOf: () => null,
    ownerOf(id: string) {
      asked.push(id)
      return async () => Response.json({ jsonrpc: '2.0', id: 'm2', result: 'of the other worker' })
    },
  }
  await start({ 'tools/call': elicit }, siblings)
  const caller = modernCaller(gateway)
  const { requestState } = questionOf(await caller.call('call_tool', { name: 'files__ask' }))
  siblings.sessionPrefix = '1.b.'
  const retried = await caller.call('call_tool', { name: 'files__ask' }, { requestState })
  expect([asked, retried]).toMatchObject([['0.a.'], { result: 'of the other worker' }])
})

test('calls by call_tool a tool whose arguments headers repeat', async () => {
  const properties = { region: { type: 'string', 'x-mcp-header': 'Region' } }
  await start({ 'tools/list': () => ({ tools: [{ name: 'read', inputSchema: { type: 'object', properties } }] }) })
  const caller = modernCaller(gateway)
  const args = { region: 'eu' }
  expect(await caller.call('files__read', args)).toMatchObject({ error: { code: mcpCodes.headerMismatch } })
  expect(await caller.call('call_tool', { name: 'files__read', arguments: args })).toMatchObject({
    result: { content: [{ text: '{"region":"eu"}' }] },
  })
})

test('tells a server that a caller cannot be asked what it did not declare', async () => {
  await start({
    'tools/call': ({ ask }) =>
      ask('roots/list', {}).then(
        () => said('asked'),
        () => said('not asked'),
      ),
  })
  const caller = modernCaller(gateway, { capabilities: {} })
  expect(await caller.call('files__ask')).toMatchObject({ result: { content: [{ text: 'not asked' }] } })
})

test('asks for the addresses that a server of 2025-11-25 wants opened', async () => {
  let opened = false
  await start({
    'tools/call'() {
      if (opened) return said('done')
      const data = {
        elicitations: [{ mode: 'url', message: 'Sign in', url: 'https://a.example/', elicitationId: 'e' }],
      }
      throw Object.assign(new Error('Open it'), { code: mcpCodes.legacyUrlElicitation, data })
    },
  })
  const caller = modernCaller(gateway)
  const { key, request, requestState } = questionOf(await caller.call('files__ask'))
  expect(request).toEqual({
    method: 'elicitation/create',
    params: { mode: 'url', message: 'Sign in', url: 'https://a.example/' },
  })
  expect(requestState).toBeUndefined()
  opened = true
  expect(await caller.call('files__ask', {}, { inputResponses: { [key]: { action: 'accept' } } })).toMatchObject({
    result: { content: [{ text: 'done' }] },
  })
})

test('streams progress, and a log only to a request that asks for it', async () => {
  await start({
    async 'tools/call'({ progress, notify }) {
      for (const level of ['debug', 'error']) notify('notifications/message', { level, data: level })
      progress(1)
      return said('done')
    },
  })
  const methods = async (_meta: Json) => {
    const response = await modernCaller(gateway).post('tools/call', { name: 'files__read', _meta })
    return [
      response,
      (await messagesOf(response)).map(({ method, params }) => [method, (params as Json)?.level]),
    ] as const
  }
  const [quiet, withProgress] = await methods({ progressToken: 'p' })
  expect(withProgress).toEqual([
    ['notifications/progress', undefined],
    [undefined, undefined],
  ])
  expect(await quiet.headers.get('content-type')).toBe('text/event-stream')
  const [, withLog] = await methods({ [metaKeys.logLevel]: 'warning' })
  expect(withLog).toEqual([
    ['notifications/message', 'error'],
    [undefined, undefined],
  ])
})

test('cancels a call whose caller leaves', async () => {
  let ended = false
  await start({
    async 'tools/call'({ signal }) {
      const { promise, resolve } = Promise.withResolvers<void>()
      signal.addEventListener('abort', () => resolve())
      await promise
      ended = true
      return said('late')
    },
  })
  const leaving = new AbortController()
  const answer = modernCaller(gateway)
    .post('tools/call', { name: 'files__wait' }, {}, leaving.signal)
    .catch(() => 'left')
  await Bun.sleep(50)
  leaving.abort()
  expect(await answer).toBe('left')
  await until('the server was told', () => ended)
})

test('tells changes on a stream, those alone that its caller asked for', async () => {
  let tell: (method: string, params: Json) => void = () => undefined
  const files = await start({
    'tools/call'({ notify }) {
      tell = notify
      return said('ready')
    },
  })
  const caller = modernCaller(gateway)
  const uri = 'mcp://files/file:///one'
  const leaving = new AbortController()
  const notifications = { toolsListChanged: true, resourceSubscriptions: [uri, 'mcp://other/x'] }
  const stream = eventsOf(await caller.post('subscriptions/listen', { notifications }, {}, leaving.signal))
  const own = { [metaKeys.subscriptionId]: 'm1' }
  expect(await stream.next()).toEqual({
    ...{ jsonrpc: '2.0', method: 'notifications/subscriptions/acknowledged' },
    params: { _meta: own, notifications: { toolsListChanged: true, resourceSubscriptions: [uri] } },
  })
  expect(files.requests.some(({ method }) => method === 'resources/subscribe')).toBe(true)
  await caller.call('files__read')
  tell('notifications/prompts/list_changed', {})
  tell('notifications/resources/updated', { uri: 'file:///two' })
  tell('notifications/resources/updated', { uri: 'file:///one' })
  expect(await stream.next()).toMatchObject({ method: 'notifications/resources/updated', params: { uri, _meta: own } })
  gateway.servers.changed()
  expect(await stream.next()).toMatchObject({ method: 'notifications/tools/list_changed', params: { _meta: own } })
  leaving.abort()
  await eventually(() =>
    expect(files.requests.at(-1)).toEqual({ method: 'resources/unsubscribe', params: { uri: 'file:///one' } }),
  )
})

test('serves the official client of the new version, also what a server asks it', async () => {
  await start({ 'tools/call': elicit })
  const client = new Client(
    { name: 'test', version: '1' },
    { capabilities: { elicitation: {} }, versionNegotiation: { mode: { pin: modernVersion } } },
  )
  client.setRequestHandler('elicitation/create', async () => ({ action: 'accept', content: { city: 'Turin' } }))
  const requestInit = { headers: { authorization: `Bearer ${gateway.secret}` } }
  await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit }))
  expect((await client.listTools()).tools.map(({ name }) => name)).toContain('files__ask')
  expect(await client.callTool({ name: 'files__ask', arguments: {} })).toMatchObject({
    content: [{ text: '{"city":"Turin"}' }],
  })
  await client.close()
})
