/**
 * What passes between callers and MCP servers, under tokens and policies, both ways, and how it is recorded.
 *
 * Longer than most: each way that words may take is one test over the same gateway and server.
 */
import { afterEach, expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { hashSecret } from '../../identity/secret.ts'
import { compilePolicySet } from '../../policies/chain.ts'
import type { StoredPolicy } from '../../policies/stored-policy.ts'
import { InMemoryLimits } from '../../usage/testing/in-memory-limits.ts'
import { eventsOf, jsonHeaders, startMcpGateway, type TestMcpServer, testMcpServer } from '../testing/mcp.ts'
import { testPolicy } from '../testing/worker.ts'

type McpGateway = Awaited<ReturnType<typeof startMcpGateway>>
let running: McpGateway | null = null
afterEach(async () => {
  await running?.stop()
  running = null
})

const tool = (name: string) => ({ name, inputSchema: { type: 'object' } })

const server = (): TestMcpServer =>
  testMcpServer('files', {
    'tools/list': () => ({ tools: ['read', 'write', 'ask', 'hang', 'fail', 'log'].map(tool) }),
    'tools/call': async ({ params, signal, ask, notify }) => {
      if (params.name === 'hang') await new Promise((_, reject) => signal.addEventListener('abort', reject))
      if (params.name === 'fail') throw new Error('No file of ann@example.com')
      if (params.name === 'log') notify('notifications/message', { level: 'info', data: { by: 'ann@example.com' } })
      if (params.name === 'ask') {
        const message = { role: 'user', content: { type: 'text', text: 'Mail ann@example.com?' } }
        const said = await ask('sampling/createMessage', { messages: [message], maxTokens: 5 })
        return { content: [{ type: 'text', text: 'done' }], structuredContent: { heard: JSON.stringify(said) } }
      }
      return {
        content: [
          { type: 'text', text: 'by ann@example.com' },
          { type: 'resource', resource: { uri: 'file:///a', text: 'to ann@example.com' } },
        ],
        structuredContent: { id: 'ann@example.com', count: 1 },
        heard: params.arguments,
      }
    },
    'prompts/list': () => ({ prompts: [{ name: 'greet' }] }),
    'prompts/get': () => ({ messages: [{ role: 'user', content: { type: 'text', text: 'ann@example.com' } }] }),
  })

async function start(policies: StoredPolicy[] = []): Promise<{ gateway: McpGateway; files: TestMcpServer }> {
  const files = server()
  const gateway = await startMcpGateway([files])
  gateway.worker.policies = compilePolicySet(policies)
  running = gateway
  return { gateway, files }
}

const pii = (change: Partial<StoredPolicy> & { action?: string } = {}) => {
  const { action = 'redact', ...rest } = change
  return testPolicy({ id: 'pii', kind: 'pii', config: { types: ['email'], action, capture_escalated: true }, ...rest })
}

test('refuses a missing token or one of another resource and says where to get a token', async () => {
  const { gateway } = await start()
  const ask = async (headers: Record<string, string>) => {
    const response = await fetch(`${gateway.url}/mcp`, {
      method: 'POST',
      headers: { ...jsonHeaders, ...headers },
      body: '{}',
    })
    return [response.status, response.headers.get('www-authenticate')]
  }
  const metadata = 'resource_metadata="http://127.0.0.1:7080/.well-known/oauth-protected-resource/mcp"'
  const bearer = (members: object) => ({ authorization: `Bearer ${gateway.worker.addToken(members)}` })
  const delegation = { clientId: 'c', grantId: 'g', scope: ['mcp:invoke'], permissions: ['mcp:invoke'] }
  expect(await ask({})).toEqual([401, `Bearer scope="mcp:invoke", ${metadata}`])
  const elsewhere = { delegation: { ...delegation, resources: ['http://127.0.0.1:7080'] } }
  expect(await ask(bearer(elsewhere))).toEqual([401, `Bearer error="invalid_token", scope="mcp:invoke", ${metadata}`])
  const unscoped = { delegation: { ...delegation, scope: [], permissions: [], resources: [] } }
  const missing = `Bearer error="insufficient_scope", scope="mcp:invoke", ${metadata}`
  expect(await ask(bearer(unscoped))).toEqual([403, missing])
  // What is wrong after that is an error of JSON-RPC.
  const here = { delegation: { ...delegation, resources: ['http://127.0.0.1:7080/mcp'] } }
  expect((await ask(bearer(here)))[0]).toBe(400)
  expect((await ask(bearer({ gatewayId: 'another' })))[0]).toBe(200)
  expect((await ask(bearer({ roles: ['auditor'] })))[0]).toBe(200)
})

test('sends the JSON-RPC id with the refusal of a revoked token', async () => {
  const { gateway } = await start()
  const accounts = [{ id: 'd', maxBudget: null, maxRequests: 1, rateLimitRpm: null, rateLimitTpm: null }]
  const depleted = gateway.worker.addToken({ keyClass: 'disposable', accounts })
  Object.assign(gateway.worker, { usageLimits: new InMemoryLimits({ 'token/d/requests': 0 }) })
  for (const secret of [depleted, gateway.worker.addToken({ roles: ['auditor'] })]) {
    const headers = { ...jsonHeaders, authorization: `Bearer ${secret}` }
    const ask = (body: string) => fetch(`${gateway.url}/mcp`, { method: 'POST', headers, body })
    const refused = await (await ask('{"jsonrpc":"2.0","id":"mine","method":"tools/list"}')).json()
    expect(refused).toMatchObject({ id: 'mine', error: { data: { status: 403 } } })
    expect(await (await ask('{')).json()).not.toHaveProperty('id')
  }
})

test('records a call before it is sent, and its server, tool and sizes before the answer leaves', async () => {
  const { gateway, files } = await start()
  const caller = await gateway.caller()
  const answer = await caller.call('files__read', { path: '/a' })
  const { opened, closed } = gateway.worker.journal
  expect(opened.size).toBe(1)
  const [events] = [...closed.values()]
  expect(events).toHaveLength(1)
  expect(events?.[0]).toMatchObject({
    event_type: 'gateway.request.outcome',
    verdict: 'allow',
    reason_code: 'ok',
    details: {
      route: 'POST /mcp',
      method: 'tools/call',
      server: 'files',
      tool: 'files__read',
      model: 'files__read',
      request_bytes: expect.any(Number),
      result_bytes: JSON.stringify(answer).length,
      latency_ms: expect.any(Number),
    },
  })
  expect(events?.[0]?.event_cost_attribution).toBeUndefined()
  expect(JSON.stringify(files.requests)).not.toContain(gateway.secret)
})

test('treats a tool name as long as a body as unknown and does not record it', async () => {
  const { gateway } = await start()
  const caller = await gateway.caller()
  const answer = await caller.call(`files__${'x'.repeat(100_000)}`)
  expect(answer).toMatchObject({ error: { code: -32602, data: { code: 'mcp.unknown_name' } } })
  const recorded = gateway.worker.journal.outcomes()
  expect(recorded.some(({ reason_code: code }) => code === 'mcp.unknown_name')).toBe(true)
  expect(JSON.stringify(recorded).length).toBeLessThan(10_000)
})

test('applies policies to text anywhere in arguments and results', async () => {
  const { gateway } = await start([pii({ stages: ['pre_request', 'pre_response'] })])
  const caller = await gateway.caller()
  const answer = await caller.call('files__read', { deep: [{ mail: 'bob@example.com', n: 1 }] })
  expect(answer).toMatchObject({
    result: {
      content: [{ text: 'by [EMAIL]' }, { resource: { uri: 'mcp://files/file:///a', text: 'to [EMAIL]' } }],
      structuredContent: { id: '[EMAIL]', count: 1 },
      heard: { deep: [{ mail: '[EMAIL]', n: 1 }] },
    },
  })
  expect(await caller.ask('prompts/get', { name: 'files__greet' })).toMatchObject({
    result: { messages: [{ content: { text: '[EMAIL]' } }] },
  })
  const failed = JSON.stringify(await caller.call('files__fail'))
  expect(failed).toContain('No file of [EMAIL]')
  const outcomes = gateway.worker.journal.outcomes()
  expect(outcomes.find(({ details }) => details?.tool === 'files__fail')).toMatchObject({
    verdict: 'error',
    reason_code: 'mcp.server_error',
  })
})

test('answers a blocked call with a JSON-RPC error and does not send it to the server', async () => {
  const { gateway, files } = await start([pii({ action: 'block' })])
  const caller = await gateway.caller()
  expect(await caller.call('files__read', { mail: 'bob@example.com' })).toMatchObject({
    error: {
      code: -32000,
      data: { code: 'content_policy_violation', verdictan: { verdict: 'BLOCK', reason_code: 'policy.pii' } },
    },
  })
  expect(files.requests.map(({ method }) => method)).not.toContain('tools/call')
})

test('answers an escalated call with a result that names it, and sends the same call once after approval', async () => {
  const { gateway } = await start([pii({ action: 'escalate' })])
  const caller = await gateway.caller()
  const call = async (progressToken: number) => {
    const params = { name: 'files__read', arguments: { mail: 'bob@example.com' }, _meta: { progressToken } }
    const response = await caller.post({ jsonrpc: '2.0', id: progressToken, method: 'tools/call', params })
    return [response.headers.get('x-service-verdict'), await response.json()]
  }
  const [verdict, waiting] = await call(1)
  expect(verdict).toBe('ESCALATE')
  expect(waiting).toMatchObject({
    id: 1,
    result: { isError: true, verdictan: { verdict: 'ESCALATE', escalation: { status: 'queued' } } },
  })
  expect(JSON.stringify(waiting)).toMatch(/gatehouse escalation claim ([\w-]{36})\..*"escalation":\{"id":"\1"/)
  const decision = gateway.worker.journal.refused.find(({ event_type }) => event_type === 'decision')
  expect(decision?.details?.escalation).toMatchObject({
    calls: [{ tool: 'files__read', arguments: '{"mail":"[EMAIL]"}' }],
  })
  const { digest } = (decision?.details?.escalation ?? {}) as { digest: string }
  const tokenId = decision?.event_attribution.token_id ?? ''
  gateway.worker.grants.push({ id: 'g', tokenId, digest, expiresAt: Date.now() + 60_000 })
  expect((await call(2))[1]).toMatchObject({ id: 2, result: { content: [{}, {}] } })
})

test('tells the caller and the approver that a call was made when its result is escalated', async () => {
  const { gateway, files } = await start([pii({ action: 'escalate', stages: ['pre_response'] })])
  const caller = await gateway.caller()
  const held = expect.stringMatching(/^This was done.* does it again/)
  expect(await caller.call('files__read')).toMatchObject({ result: { isError: true, content: [{ text: held }] } })
  expect(files.requests.filter(({ method }) => method === 'tools/call')).toHaveLength(1)
  expect(await caller.ask('prompts/get', { name: 'files__greet' })).toMatchObject({ error: { message: held } })
  const events = [...gateway.worker.journal.closed.values()].flat()
  const decisions = events.filter(({ event_type }) => event_type === 'decision')
  expect(decisions.map(({ details }) => details?.escalation)).toMatchObject([{ sent: true }, { sent: true }])
})

test('inspects base64 content of a text media type and refuses more texts than can be inspected', async () => {
  const { gateway, files } = await start([pii({ stages: ['pre_response'] })])
  const caller = await gateway.caller()
  const encoded = (text: string) => Buffer.from(text).toString('base64')
  const blob = encoded('to ann@example.com')
  const resource = (mimeType: string) => ({ type: 'resource', resource: { uri: 'x://1', mimeType, blob } })
  files.handlers['tools/call'] = () => ({
    content: [resource('text/plain; charset=utf-8'), resource('image/png'), resource('application/ld+json')],
  })
  const blobs = [encoded('to [EMAIL]'), blob, encoded('to [EMAIL]')].map((each) => ({ resource: { blob: each } }))
  expect(await caller.call('files__read')).toMatchObject({ result: { content: blobs } })
  files.handlers['tools/call'] = () => ({
    content: Array.from({ length: 50_001 }, () => ({ type: 'text', text: 'x' })),
  })
  expect(await caller.call('files__read')).toMatchObject({ error: { data: { code: 'mcp.server_error' } } })
})

test('neither lists nor calls tools that a token may not use under the condition of a policy', async () => {
  const access = (change: Partial<StoredPolicy> & { config: object }) =>
    testPolicy({ id: 'a', kind: 'tool-access', ...change })
  const listed = async (policies: StoredPolicy[]) => {
    const { gateway } = await start(policies)
    const caller = await gateway.caller()
    const { result } = (await caller.ask('tools/list')) as { result: { tools: { name: string }[] } }
    const called = (await caller.call('files__write')) as { error?: { data: { code: string } } }
    const decisions = gateway.worker.journal.refused.filter(({ event_type }) => event_type === 'decision')
    await gateway.stop()
    running = null
    const writes = result.tools.some(({ name }) => name === 'files__write')
    return [writes, called.error?.data.code ?? 'called', decisions.length]
  }
  expect(await listed([access({ config: { deny: ['*__write'] } })])).toEqual([false, 'policy_denied', 1])
  expect(await listed([access({ config: { allow: ['files__read'], action: 'remove' } })])).toEqual([
    false,
    'policy_denied',
    1,
  ])
  expect(await listed([access({ config: { deny: ['*__write'] }, mode: 'monitor' })])).toEqual([true, 'called', 0])
  const when = (text: string) => access({ config: { deny: ['*__write'] }, when: text })
  expect(await listed([when('token.purpose == "integration"')])).toEqual([true, 'called', 0])
  expect(await listed([when('model.provider == "files" && "files__write" in request.tools')])).toEqual([
    false,
    'policy_denied',
    1,
  ])
  const only = testPolicy({
    id: 'a',
    kind: 'escalate',
    config: { reason_code: 'x.y' },
    targets: { models: ['other__*'] },
    when: 'true',
  })
  expect(await listed([only])).toEqual([true, 'called', 0])
})

test('gives a token bound to a provider only the server of that name', async () => {
  const { gateway } = await start()
  const bound = await gateway.caller({ secret: gateway.worker.addToken({ provider: 'openai' }) })
  expect(await bound.ask('tools/list')).toMatchObject({ result: { tools: [] } })
  expect(await bound.call('files__read')).toMatchObject({ error: { data: { code: 'tokens.provider_not_allowed' } } })
  const files = await gateway.caller({ secret: gateway.worker.addToken({ provider: 'files', modelFilter: ['gpt-*'] }) })
  expect(await files.call('files__read')).toMatchObject({ result: {} })
})

test('applies policies to requests and notifications of the server and records them', async () => {
  const { gateway } = await start([pii({ stages: ['pre_request', 'pre_response'] })])
  const caller = await gateway.caller({ capabilities: { sampling: {} } })
  const response = await caller.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'files__ask' } })
  const events = eventsOf(response)
  const asked = (await events.next()) as { id: string; method: string }
  expect(asked).toMatchObject({
    method: 'sampling/createMessage',
    params: { messages: [{ content: { text: 'Mail [EMAIL]?' } }] },
  })
  const content = { type: 'text', text: 'Yes, and bob@example.com' }
  const result = { role: 'assistant', model: 'm', content }
  expect((await caller.post({ jsonrpc: '2.0', id: asked.id, result })).status).toBe(202)
  expect(JSON.stringify(await events.next())).toContain('Yes, and [EMAIL]')
  const outcomes = gateway.worker.journal.outcomes()
  expect(outcomes.find(({ details }) => details?.method === 'sampling/createMessage')).toMatchObject({
    verdict: 'redact',
    details: { server: 'files' },
  })
})

test('applies policies to the caller’s answers to server requests', async () => {
  const { gateway, files } = await start([pii({ stages: ['pre_request'] })])
  const heard = Promise.withResolvers<unknown>()
  files.handlers['tools/call'] = async ({ ask }) => {
    ask('sampling/createMessage', { messages: [], maxTokens: 5 }).catch(heard.resolve)
    return { content: [{ type: 'text', text: String(await heard.promise) }] }
  }
  const caller = await gateway.caller({ capabilities: { sampling: {} } })
  const response = await caller.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'files__ask' } })
  const { id } = await eventsOf(response).next()
  const words = 'Ask bob@example.com'
  await caller.post({ jsonrpc: '2.0', id, error: { code: -1, message: words, data: { of: words } } })
  expect(await heard.promise).toMatchObject({
    code: -1,
    message: expect.stringContaining('Ask [EMAIL]'),
    data: { of: 'Ask [EMAIL]' },
  })
  const asked = gateway.worker.journal.outcomes().filter(({ details }) => details?.method === 'sampling/createMessage')
  expect(asked).toMatchObject([{ verdict: 'redact', reason_code: 'policy.pii' }])
})

test('stops requests and notifications on an open stream once the token may no longer use the server', async () => {
  const { gateway, files } = await start()
  const { view } = gateway.worker
  const { token } = view
  files.handlers['tools/call'] = async ({ ask, notify }) => {
    view.token = (hash) => {
      const known = token(hash)
      return known === null ? null : { ...known, provider: 'another' }
    }
    notify('notifications/message', { level: 'info', data: 'words' })
    await ask('sampling/createMessage', { messages: [], maxTokens: 5 })
    return { content: [] }
  }
  const caller = await gateway.caller({ capabilities: { sampling: {} } })
  const response = await caller.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'files__ask' } })
  const text = await response.text()
  expect(text).not.toContain('words')
  expect(text).not.toContain('sampling/createMessage')
  const refused = gateway.worker.journal
    .outcomes()
    .filter(({ reason_code: code }) => code === 'tokens.provider_not_allowed')
  expect(refused).toHaveLength(2)
})

test('keeps a server request from the caller when a policy blocks it', async () => {
  const { gateway } = await start([pii({ action: 'block', stages: ['pre_response'] })])
  const caller = await gateway.caller({ capabilities: { sampling: {} } })
  expect(await caller.call('files__ask')).toMatchObject({ error: { message: expect.stringContaining('policy') } })
})

test('applies policies to log messages of the server', async () => {
  const { gateway } = await start([pii({ stages: ['pre_response'] })])
  const caller = await gateway.caller()
  const response = await caller.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'files__log' } })
  const text = await response.text()
  expect(text).toContain('"data":{"by":"[EMAIL]"}')
  expect(text).not.toContain('ann@')
})

test('ends the sessions and running calls of a revoked token', async () => {
  const { gateway, files } = await start()
  const caller = await gateway.caller()
  const listening = await caller.get()
  const hanging = caller.post({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: { name: 'files__hang' } })
  await eventually(() => files.requests.some(({ method }) => method === 'tools/call'))
  const hash = hashSecret(gateway.secret)
  gateway.worker.revocations.add(hash)
  gateway.gateway.cutTokens([hash])
  expect((await hanging).status).toBe(401)
  await listening.text()
  expect((await caller.post({ jsonrpc: '2.0', id: 2, method: 'ping' })).status).toBe(401)
  await eventually(() => files.connections === 0)
  expect(gateway.worker.journal.outcomes().map(({ reason_code }) => reason_code)).toContain('token.revoked')
})

test('sends nothing to a revoked token before its session ends', async () => {
  const { gateway, files } = await start()
  const caller = await gateway.caller()
  const listening = await caller.get()
  gateway.servers.changed()
  const hash = hashSecret(gateway.secret)
  files.handlers['tools/call'] = ({ notify }) => {
    gateway.worker.revocations.add(hash)
    notify('notifications/tools/list_changed', {})
    return { content: [] }
  }
  await caller.call('files__read')
  gateway.servers.changed()
  gateway.gateway.cutTokens([hash])
  expect((await listening.text()).split('tools/list_changed')).toHaveLength(2)
})

test('does not make a call that cannot be recorded', async () => {
  const { gateway, files } = await start()
  const caller = await gateway.caller()
  gateway.worker.journal.full.open = true
  expect(await caller.call('files__read')).toMatchObject({
    error: { code: -32603, data: { code: 'event_outbox_full' } },
  })
  expect(files.requests.map(({ method }) => method)).not.toContain('tools/call')
})

test('keeps other callers waiting for a shared list when one of them cancels', async () => {
  const { gateway, files } = await start()
  const lists = files.handlers['tools/list']
  const held = Promise.withResolvers<void>()
  files.handlers['tools/list'] = async (working) => {
    await held.promise
    return lists?.(working) ?? {}
  }
  const caller = await gateway.caller()
  const call = (id: number) =>
    caller.post({ jsonrpc: '2.0', id, method: 'tools/call', params: { name: 'files__read', arguments: {} } })
  const [first, second] = [call(1), call(2)]
  await eventually(() => files.requests.some(({ method }) => method === 'tools/list'))
  const params = { requestId: 1 }
  await caller.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params })
  await (await first).text()
  held.resolve()
  expect(await (await second).json()).toMatchObject({ result: { content: [{}, {}] } })
})

test('ends a list that waits for a server when its caller cancels, and records it at once', async () => {
  const { gateway } = await start()
  const caller = await gateway.caller()
  const asked = Promise.withResolvers<void>()
  gateway.servers.connect = () => {
    asked.resolve()
    return new Promise(() => undefined)
  }
  const listing = caller.post({ jsonrpc: '2.0', id: 1, method: 'tools/list' })
  await asked.promise
  await caller.post({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId: 1 } })
  expect(await (await listing).text()).toBe('')
  expect(gateway.worker.journal.outcomes().map(({ reason_code: code }) => code)).toContain('client.cancelled')
})
