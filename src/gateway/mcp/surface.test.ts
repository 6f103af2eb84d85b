/** What a caller meets on `/mcp`. Longer than most: each of its methods and rules is a test over the same two servers. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'
import { CreateMessageRequestSchema, LoggingMessageNotificationSchema } from '@modelcontextprotocol/sdk/types.js'
import { eventually } from '../../../test/support/eventually.ts'
import { eventsOf, jsonHeaders, messagesOf, startMcpGateway, testMcpServer } from '../testing/mcp.ts'

const tools = (...names: string[]) => ({
  tools: names.map((name) => ({ name, inputSchema: { type: 'object' }, odd: 1 })),
})

const alpha = testMcpServer('alpha', {
  'tools/list': ({ params }) =>
    params.cursor === undefined
      ? { ...tools('echo', 'wait'), nextCursor: 'two' }
      : tools('chatty', 'asking', 'deep__er'),
  'tools/call': async ({ params, signal, progress, notify, ask }) => {
    if (params.name === 'wait')
      await new Promise((_, reject) => signal.addEventListener('abort', () => reject(new Error('left'))))
    if (params.name === 'chatty') {
      notify('notifications/message', { level: 'info', data: 'working' })
      progress(1)
    }
    if (params.name === 'asking') {
      const said = await ask('sampling/createMessage', {
        messages: [{ role: 'user', content: { type: 'text', text: 'Who?' } }],
        maxTokens: 5,
      })
      return { content: [{ type: 'text', text: JSON.stringify(said) }] }
    }
    return { content: [{ type: 'text', text: JSON.stringify(params.arguments ?? {}) }], odd: { kept: true } }
  },
  'resources/list': () => ({ resources: [{ uri: 'file:///a/../b?c#d', name: 'b' }] }),
  'resources/templates/list': () => ({ resourceTemplates: [{ uriTemplate: 'file:///{path}', name: 't' }] }),
  'resources/read': ({ params }) => ({ contents: [{ uri: params.uri, text: 'words' }] }),
  'prompts/list': () => ({ prompts: [{ name: 'greet' }] }),
  'prompts/get': ({ params }) => ({
    messages: [{ role: 'user', content: { type: 'text', text: `Hi ${params.name}` } }],
  }),
  'completion/complete': ({ params }) => ({ completion: { values: [JSON.stringify(params.ref)] } }),
})
const beta = testMcpServer('beta', {
  'tools/list': () => ({ tools: tools('echo').tools.map((tool) => ({ ...tool, uri: 'hidden' })) }),
  'tools/call': () => ({ content: [] }),
})

let running: Awaited<ReturnType<typeof startMcpGateway>>
beforeAll(async () => {
  running = await startMcpGateway([alpha, beta])
})
afterAll(() => running.stop())

const names = (answer: Record<string, unknown>, member: string): unknown[] => {
  const { result } = answer as { result: Record<string, { name: string }[]> }
  return result[member]?.map(({ name }) => name) ?? []
}

/** A result, so that a model can read it and go on. */
const noSuchTool = { result: { isError: true, content: [{ text: expect.stringContaining('no such tool') }] } }

test('lists everything that the servers offer under published names and answers unknown names with an error', async () => {
  const caller = await running.caller()
  const all = await caller.ask('tools/list')
  expect(names(all, 'tools')).toEqual([
    'alpha__echo',
    'alpha__wait',
    'alpha__chatty',
    'alpha__asking',
    'alpha__deep__er',
    'beta__echo',
  ])
  expect(all).toMatchObject({ result: { tools: [{ odd: 1 }, {}, {}, {}, {}, {}] } })
  expect(names(await caller.ask('prompts/list'), 'prompts')).toEqual(['alpha__greet'])
  const resources = await caller.ask('resources/list')
  expect(resources).toMatchObject({
    result: { resources: [{ name: 'alpha__b', uri: 'mcp://alpha/file:///a/../b?c#d' }] },
  })
})

test('calls the tool of the right server when the tool name holds two underscores', async () => {
  const caller = await running.caller()
  expect(await caller.call('alpha__deep__er', { a: 1 })).toMatchObject({
    result: { content: [{ type: 'text', text: '{"a":1}' }], odd: { kept: true } },
  })
  expect(alpha.requests.at(-1)).toMatchObject({ method: 'tools/call', params: { name: 'deep__er' } })
  expect(await caller.ask('prompts/get', { name: 'alpha__greet' })).toMatchObject({
    result: { messages: [{ content: { text: 'Hi greet' } }] },
  })
  expect(await caller.ask('resources/read', { uri: 'mcp://alpha/file:///a/../b?c#d' })).toMatchObject({
    result: { contents: [{ uri: 'mcp://alpha/file:///a/../b?c#d', text: 'words' }] },
  })
  expect(alpha.requests.at(-1)?.params).toMatchObject({ uri: 'file:///a/../b?c#d' })
  const ref = { type: 'ref/prompt', name: 'alpha__greet' }
  expect(await caller.ask('completion/complete', { ref, argument: { name: 'a', value: 'b' } })).toMatchObject({
    result: { completion: { values: ['{"type":"ref/prompt","name":"greet"}'] } },
  })
})

test('answers an unknown tool and an unknown method with their errors', async () => {
  const caller = await running.caller()
  for (const name of ['gamma__echo', 'echo', '__echo']) {
    expect(await caller.call(name)).toMatchObject({ error: { code: -32602, data: { code: 'mcp.unknown_name' } } })
  }
  expect(await caller.call('alpha__none')).toMatchObject(noSuchTool)
  expect(await caller.ask('prompts/get', { name: 'alpha__none' })).toMatchObject({ error: { code: -32602 } })
  expect(await caller.ask('tasks/list')).toMatchObject({ error: { code: -32601 } })
  expect(await caller.ask('tools/list', { cursor: 'x' })).toMatchObject({ error: { code: -32602 } })
  expect(await caller.ask('ping')).toEqual({ jsonrpc: '2.0', id: expect.any(String), result: {} })
})

test('answers an unsupported protocol version with the newest, and refuses it in a header', async () => {
  const begin = (protocolVersion: string) =>
    fetch(`${running.url}/mcp`, {
      method: 'POST',
      headers: { ...jsonHeaders, authorization: `Bearer ${running.secret}` },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'initialize',
        params: { protocolVersion, capabilities: {} },
      }),
    })
  for (const [asked, spoken] of [
    ['2025-06-18', '2025-06-18'],
    ['1999-01-01', '2025-11-25'],
  ]) {
    expect(await (await begin(asked ?? '')).json()).toMatchObject({ result: { protocolVersion: spoken } })
  }
  const caller = await running.caller()
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  const before = running.worker.journal.outcomes()
  expect((await caller.post(ping, { 'mcp-protocol-version': '1999-01-01' })).status).toBe(400)
  expect((await caller.post([ping])).status).toBe(400)
  expect((await caller.post('{')).status).toBe(400)
  expect((await caller.post(ping, { accept: 'text/html' })).status).toBe(406)
  expect((await caller.post(ping, { 'content-type': 'text/plain' })).status).toBe(415)
  expect((await caller.get({ accept: 'application/json' })).status).toBe(406)
  expect((await caller.post(ping, { 'mcp-session-id': 'of nobody' })).status).toBe(404)
  expect((await fetch(`${running.url}/mcp`, { method: 'PUT' })).status).toBe(405)
  expect((await caller.post({ jsonrpc: '2.0', method: 'notifications/none' })).status).toBe(202)
  expect((await caller.post(ping)).status).toBe(200)
  const unknown = await caller.post({ ...ping, method: 'tasks/list' }, { 'x-request-id': 'unknown' })
  expect(unknown.headers.get('x-request-id')).toBe('unknown')
  expect(await unknown.json()).toMatchObject({ id: 1, error: { code: -32601 } })
  const recorded = running.worker.journal.outcomes().filter((event) => !before.includes(event))
  expect(recorded.map(({ verdict, reason_code: reason, details }) => [verdict, reason, details?.status])).toEqual([
    ['deny', 'bad_request', 400],
    ['deny', 'bad_request', 400],
    ['deny', 'invalid_json', 400],
    ['deny', 'not_acceptable', 406],
    ['deny', 'unsupported_media_type', 415],
    ['deny', 'not_acceptable', 406],
    ['deny', 'mcp.session_unknown', 404],
    ['deny', 'mcp.unknown_method', 200],
  ])
  expect(recorded.at(-1)?.request_id).toBe('unknown')
  expect(recorded.every(({ event_attribution: { token_id } }) => token_id !== null)).toBe(true)
})

test('gives a session only to its token and ends it when the caller deletes it', async () => {
  const caller = await running.caller()
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  const other = { authorization: `Bearer ${running.worker.addToken()}` }
  expect((await caller.post(ping, other)).status).toBe(404)
  expect((await caller.post(ping, { 'mcp-session-id': '' })).status).toBe(404)
  const init = { headers: { ...jsonHeaders, authorization: `Bearer ${running.secret}` } }
  expect((await fetch(`${running.url}/mcp`, { ...init, method: 'POST', body: JSON.stringify(ping) })).status).toBe(400)
  expect((await caller.post(ping)).status).toBe(200)
  await caller.call('beta__echo')
  const open = beta.connections
  const headers = { ...init.headers, 'mcp-session-id': caller.session }
  expect((await fetch(`${running.url}/mcp`, { method: 'DELETE', headers })).status).toBe(200)
  expect((await caller.post(ping)).status).toBe(404)
  await eventually(() => beta.connections === open - 1)
})

test('refuses a page of another origin with any credential', async () => {
  const caller = await running.caller()
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  expect((await caller.post(ping, { origin: 'http://evil.example' })).status).toBe(403)
  expect((await caller.post(ping, { origin: running.worker.status.gatewayUrl })).status).toBe(200)
})

test('answers the CORS preflight of an allowed origin and lets its pages read answers', async () => {
  const origin = 'https://tools.example.com'
  const pages = await startMcpGateway([beta], { mcp_origins: `https://other.example ${origin}` })
  const ask = (headers: Record<string, string>) =>
    fetch(`${pages.url}/mcp`, { method: 'OPTIONS', headers: { 'access-control-request-method': 'POST', ...headers } })
  const allowed = await ask({ origin })
  expect(allowed.status).toBe(204)
  expect(allowed.headers.get('access-control-allow-origin')).toBe(origin)
  expect(allowed.headers.get('access-control-allow-headers')).toContain('mcp-session-id')
  const refused = await ask({ origin: 'https://evil.example' })
  expect([refused.status, refused.headers.get('access-control-allow-origin')]).toEqual([403, null])
  expect((await ask({})).status).toBe(405)
  const caller = await pages.caller()
  const read = await caller.post({ jsonrpc: '2.0', id: 1, method: 'ping' }, { origin })
  expect(read.headers.get('access-control-expose-headers')).toContain('mcp-session-id')
  const unknown = await caller.post({}, { origin, authorization: 'Bearer nobody' })
  expect([unknown.status, unknown.headers.get('access-control-allow-origin')]).toEqual([401, origin])
  await pages.stop()
})

test('streams the answer when notifications precede the result, by progress token', async () => {
  const caller = await running.caller()
  const params = { name: 'alpha__chatty', arguments: {}, _meta: { progressToken: 'mine' } }
  const response = await caller.post({ jsonrpc: '2.0', id: 9, method: 'tools/call', params })
  expect(response.headers.get('content-type')).toBe('text/event-stream')
  expect(await messagesOf(response)).toMatchObject([
    { method: 'notifications/message', params: { data: 'working' } },
    { method: 'notifications/progress', params: { progressToken: 'mine', progress: 1 } },
    { id: 9, result: {} },
  ])
  const json = await caller.post(
    { jsonrpc: '2.0', id: 10, method: 'tools/call', params },
    { accept: 'application/json' },
  )
  expect(await json.json()).toMatchObject({ id: 10, result: {} })
  const sse = await caller.post(
    { jsonrpc: '2.0', id: 11, method: 'tools/call', params: { name: 'beta__echo' } },
    { accept: 'text/event-stream' },
  )
  expect(await sse.text()).toMatch(/^id: \d+-1\nretry: \d+\ndata: \n\nid: \d+-2\nevent: message\ndata: \{.*\}\n\n$/)
})

test('resumes a broken stream after its last event and refuses the stream of another session', async () => {
  const caller = await running.caller()
  const message = { jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'alpha__chatty' } }
  const text = await (await caller.post(message)).text()
  const [first = ''] = /\d+-\d+/.exec(text) ?? []
  const resumed = await caller.get({ 'last-event-id': first })
  expect(await resumed.text()).toBe(text.slice(text.indexOf('\n\n') + 2))
  expect((await (await running.caller()).get({ 'last-event-id': first })).status).toBe(400)
  expect((await caller.get({ 'last-event-id': '0-999' })).status).toBe(400)
})

test('cancels a call at the server when its caller cancels, and sends no answer', async () => {
  const caller = await running.caller()
  const { length } = alpha.requests
  const answer = caller.post({ jsonrpc: '2.0', id: 'w', method: 'tools/call', params: { name: 'alpha__wait' } })
  await eventually(() => alpha.requests.slice(length).some(({ method }) => method === 'tools/call'))
  await caller.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 'w' } })
  expect(await messagesOf(await answer)).toEqual([])
  await eventually(() =>
    running.worker.journal.outcomes().some(({ reason_code }) => reason_code === 'client.cancelled'),
  )
})

test('answers and records a call whose session is replaced as session_replaced, not as cancelled', async () => {
  const small = await startMcpGateway([alpha], { mcp_sessions: 1 })
  const first = await small.caller()
  const { length } = alpha.requests
  const waiting = first.call('alpha__wait')
  await eventually(() => alpha.requests.slice(length).some(({ method }) => method === 'tools/call'))
  await small.caller()
  expect(await waiting).toMatchObject({ error: { data: { code: 'mcp.session_ended' } } })
  const ended = small.worker.journal.outcomes().filter(({ details }) => details?.method === 'tools/call')
  expect(ended).toMatchObject([{ verdict: 'error', reason_code: 'mcp.session_ended' }])
  await small.stop()
})

test('ends a call when its client disconnects before a stream exists', async () => {
  const caller = await running.caller()
  const { length } = alpha.requests
  const leaving = new AbortController()
  const headers = { ...jsonHeaders, authorization: `Bearer ${running.secret}`, 'mcp-session-id': caller.session }
  const body = JSON.stringify({ jsonrpc: '2.0', id: 'w', method: 'tools/call', params: { name: 'alpha__wait' } })
  const answer = fetch(`${running.url}/mcp`, { method: 'POST', headers, body, signal: leaving.signal })
  await eventually(() => alpha.requests.slice(length).some(({ method }) => method === 'tools/call'))
  leaving.abort()
  // It left: there is no answer.
  await answer.catch(() => undefined)
  await eventually(() => running.worker.journal.outcomes().some(({ reason_code }) => reason_code === 'client.left'))
})

test('leaves an unreachable server out of the list and logs it', async () => {
  beta.down = true
  const caller = await running.caller()
  expect(names(await caller.ask('tools/list'), 'tools')).not.toContain('beta__echo')
  const notes = running.worker.journal.outcomes().flatMap(({ details }) => details?.notes ?? [])
  expect(notes).toContain('mcp.server_missing:beta')
  expect(await caller.call('beta__echo')).toMatchObject({
    error: { code: -32603, data: { code: 'dependency_unavailable' } },
  })
  beta.down = false
  expect(names(await caller.ask('tools/list'), 'tools')).toContain('beta__echo')
})

test('neither lists nor calls an unapproved tool, from the moment of the change', async () => {
  const caller = await running.caller()
  expect(await caller.call('beta__echo')).toMatchObject({ result: {} })
  beta.unapproved.add('echo')
  const listening = eventsOf(await caller.get())
  running.servers.changed()
  expect(await listening.next()).toMatchObject({ method: 'notifications/tools/list_changed' })
  await listening.close()
  expect(names(await caller.ask('tools/list'), 'tools')).not.toContain('beta__echo')
  const saysSo = [{ text: expect.stringContaining('not approved yet') }]
  expect(await caller.call('beta__echo')).toMatchObject({ result: { isError: true, content: saysSo } })
  beta.unapproved.clear()
})

test('sends no read, subscription or completion of an unapproved offer to the server', async () => {
  const caller = await running.caller()
  await caller.ask('resources/list')
  const reference = (type: string, named: object) => ({
    ref: { type, ...named },
    argument: { name: 'path', value: 'x' },
  })
  const requests: [string, Record<string, unknown>][] = [
    ['resources/read', { uri: 'mcp://alpha/file:///a/../b?c#d' }],
    ['resources/subscribe', { uri: 'mcp://alpha/file:///one' }],
    ['completion/complete', reference('ref/resource', { uri: 'mcp://alpha/file:///{path}' })],
    ['completion/complete', reference('ref/prompt', { name: 'alpha__greet' })],
  ]
  const refused = { error: { code: -32602, data: { code: 'mcp.unknown_name' } } }
  const unlisted = { uri: 'mcp://alpha/other:///one' }
  Object.assign(alpha.record, { approval: 'required' })
  expect(await caller.ask('resources/read', unlisted)).toMatchObject(refused)
  Object.assign(alpha.record, { approval: 'first_use' })
  for (const name of ['b', 't', 'greet']) alpha.unapproved.add(name)
  running.servers.changed()
  alpha.requests.length = 0
  for (const [method, params] of requests) expect(await caller.ask(method, params)).toMatchObject(refused)
  expect(alpha.requests.filter(({ method }) => !method.endsWith('/list'))).toEqual([])
  alpha.unapproved.clear()
  running.servers.changed()
  for (const [method, params] of requests) await caller.ask(method, params)
  expect(alpha.requests.filter(({ method }) => !method.endsWith('/list'))).toHaveLength(4)
})

test('passes an unlisted resource of a trust-on-first-use server and holds back an unapproved one', async () => {
  const caller = await running.caller()
  const read = (uri: string) => caller.ask('resources/read', { uri: `mcp://alpha/${uri}` })
  expect(await read('other:///one')).toMatchObject({ result: { contents: [{ text: 'words' }] } })
  alpha.unapproved.add('b')
  running.servers.changed()
  expect(await read('file:///a/../b?c#d')).toMatchObject({ error: { code: -32602 } })
  alpha.unapproved.clear()
})

test('ignores a nameless tool member without hiding or exposing other tools', async () => {
  const caller = await running.caller()
  expect(await caller.call('beta__hidden')).toMatchObject(noSuchTool)
})

test('serves the official client end to end, including sampling requested by the server', async () => {
  const client = new Client({ name: 'test', version: '1' }, { capabilities: { sampling: {} } })
  client.setRequestHandler(CreateMessageRequestSchema, async ({ params }) => ({
    model: 'm',
    role: 'assistant',
    content: { type: 'text', text: `Asked ${params.messages.length}` },
  }))
  const logged: unknown[] = []
  client.setNotificationHandler(LoggingMessageNotificationSchema, ({ params }) => void logged.push(params.data))
  const requestInit = { headers: { authorization: `Bearer ${running.secret}` } }
  const transport = new StreamableHTTPClientTransport(new URL(`${running.url}/mcp`), { requestInit })
  await client.connect(transport)
  const { tools } = await client.listTools()
  expect(tools).toHaveLength(6)
  expect(JSON.stringify(await client.callTool({ name: 'alpha__asking' }))).toContain('Asked 1')
  let progress = 0
  await client.callTool({ name: 'alpha__chatty' }, undefined, { onprogress: (told) => (progress = told.progress) })
  expect([progress, logged]).toEqual([1, ['working']])
  await transport.terminateSession()
  await client.close()
  const asked = running.worker.journal.outcomes().find(({ details }) => details?.method === 'sampling/createMessage')
  expect(asked).toMatchObject({ verdict: 'allow', details: { server: 'alpha' } })
})

test('answers a server request with an error when the caller cannot be asked', async () => {
  const caller = await running.caller()
  expect(await caller.call('alpha__asking')).toMatchObject({ error: { code: -32601 } })
})

test('replaces the oldest session of a token at its limit and refuses sessions of a full gateway', async () => {
  const small = await startMcpGateway([beta], { mcp_sessions: 2 })
  const first = await small.caller()
  const second = await small.caller()
  const ping = { jsonrpc: '2.0', id: 1, method: 'ping' }
  expect((await first.post(ping)).status).toBe(404)
  expect((await second.post(ping)).status).toBe(200)
  await small.caller({ secret: small.worker.addToken() })
  const third = await small.caller({ secret: small.worker.addToken() })
  expect(third.session).toBe('')
  await small.stop()
})
