/** Several gateway processes on one port: the work is dealt out, and every promise of one process holds for all. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { z } from 'zod'
import { OfficialMcpServer } from '../fakes/official-mcp-server.ts'
import { type FakeUpstream, jsonReply, startFakeUpstream } from '../fakes/upstream.ts'
import { api, chat, createToken, revoke } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { type Gatehouse, run, startGatehouse, temporaryDirectory } from '../support/harness.ts'
import { childrenOf, listensOn, signal } from '../support/processes.ts'
import { eventsInLedger } from '../support/recorded.ts'

setDefaultTimeout(120_000)

const dataDirectory = join(temporaryDirectory(), 'data')
const tools = new OfficialMcpServer()
let upstream: FakeUpstream
let gatehouse: Gatehouse

beforeAll(async () => {
  await executable()
  upstream = await startFakeUpstream()
  upstream.when('fake-model', () => ({ ...jsonReply(), headersAfterMs: 20 }))
  gatehouse = await startGatehouse({ upstream, dataDirectory, env: { SERVICE_GATEWAY_WORKERS: '2' } })
}, 240_000)
afterAll(async () => {
  await gatehouse.stop()
  await upstream.close()
  await tools.stop()
})

const workers = (): number[] =>
  childrenOf(gatehouse.supervisorPid).filter((pid) => listensOn(pid, Number(new URL(gatehouse.gatewayUrl).port)))

/** One request on a connection of its own, which the kernel gives to either worker; 0 where it broke. */
async function ask(token: string): Promise<number> {
  try {
    const answer = await fetch(`${gatehouse.gatewayUrl}/v1/chat/completions`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'fake-model', messages: [{ role: 'user', content: 'Hello' }] }),
      keepalive: false,
    })
    await answer.text()
    return answer.status
  } catch {
    // A worker that is killed answers nobody.
    return 0
  }
}

const askMany = (token: string, count: number): Promise<number[]> =>
  Promise.all(Array.from({ length: count }, () => ask(token)))

const count = (statuses: readonly number[], wanted: number): number =>
  statuses.filter((status) => status === wanted).length

/** Requests of each worker, by the figures that whichever worker is asked gives of all. */
async function requestsByWorker(): Promise<number[]> {
  const text = await (await fetch(`${gatehouse.gatewayUrl}/metrics`)).text()
  const requests = [0, 0]
  for (const [, worker, number] of text.matchAll(/^gatehouse_requests_total\{worker="(\d)".*\} (\d+)$/gm)) {
    requests[Number(worker)] = (requests[Number(worker)] ?? 0) + Number(number)
  }
  return requests
}

/** How many workers are connected to the control plane. */
const connected = async (): Promise<number> =>
  (await (await fetch(`${gatehouse.gatewayUrl}/metrics`)).text()).match(/^gatehouse_stream_connected\{.*\} 1$/gm)
    ?.length ?? 0

test('two workers share the port and accept exactly 100 of 300 concurrent requests', async () => {
  expect(workers()).toHaveLength(2)
  const token = await createToken(gatehouse, { max_requests: 100 })
  const statuses = await askMany(token.token_value, 300)
  expect(count(statuses, 200)).toBe(100)
  expect(count(statuses, 429)).toBe(200)
  const [first = 0, second = 0] = await requestsByWorker()
  expect(first + second).toBe(300)
  expect(first).toBeGreaterThan(0)
  expect(second).toBeGreaterThan(0)
})

test('a revocation waits for every worker, and none accepts the token afterwards', async () => {
  const token = await createToken(gatehouse)
  expect(count(await askMany(token.token_value, 10), 200)).toBe(10)
  const revoked = await revoke(gatehouse, token.id)
  expect(revoked.body).toMatchObject({ propagation: { connected: 2, acknowledged: 2, unreachable: [] } })
  expect(count(await askMany(token.token_value, 20), 401)).toBe(20)
})

/** One message to `/mcp` on a connection of its own. */
const sendMcp = (token: string, message: object | null, headers: Record<string, string> = {}) =>
  fetch(`${gatehouse.gatewayUrl}/mcp`, {
    method: message === null ? 'GET' : 'POST',
    headers: {
      ...{ authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      accept: message === null ? 'text/event-stream' : 'application/json, text/event-stream',
      ...headers,
    },
    ...(message !== null && { body: JSON.stringify({ jsonrpc: '2.0', ...message }) }),
    keepalive: false,
  })

async function mcpSession(token: string): Promise<Record<string, string>> {
  const params = { protocolVersion: '2025-11-25', capabilities: {}, clientInfo: { name: 'test', version: '1' } }
  const begun = await sendMcp(token, { id: 0, method: 'initialize', params })
  await begun.text()
  return { 'mcp-session-id': begun.headers.get('mcp-session-id') ?? '' }
}

const ping = { id: 1, method: 'ping' }

test('an MCP session works through every worker, with streams, and a local command is refused', async () => {
  const { token_value: token } = await createToken(gatehouse)
  for (const body of [
    { name: 'tools', url: tools.url },
    { name: 'local', command: { program: 'true' } },
  ]) {
    expect((await api(gatehouse, '/v1/catalog/mcp-servers', { body })).status).toBe(201)
  }
  const headers = await mcpSession(token)
  const call = (id: number, name: string) => {
    const params = { name, arguments: { id }, _meta: { progressToken: id } }
    return sendMcp(token, { id, method: 'tools/call', params }, headers)
  }
  await until('the servers are there', async () => (await (await call(1, 'tools__echo')).text()).includes('"result"'))
  const echoed = await Promise.all(Array.from({ length: 20 }, async (_, id) => (await call(id, 'tools__echo')).json()))
  expect(echoed).toMatchObject(echoed.map((_, id) => ({ id, result: { content: [{ text: `{"id":${id}}` }] } })))
  const streams = await Promise.all(Array.from({ length: 6 }, async (_, id) => (await call(id, 'tools__steps')).text()))
  for (const text of streams) expect(text.match(/notifications\/progress/g)).toHaveLength(2)
  const resumed = await Promise.all(
    streams.map(async (text) => {
      const [, lastEventId = ''] = /^id: (.*)$/m.exec(text) ?? []
      return (await sendMcp(token, null, { ...headers, 'last-event-id': lastEventId })).text()
    }),
  )
  expect(resumed.every((text, index) => streams[index]?.endsWith(text))).toBe(true)
  expect(await (await call(2, 'local__x')).json()).toMatchObject({ error: { data: { code: 'mcp.commands_refused' } } })
  const stranger = (await createToken(gatehouse)).token_value
  const statuses = await Promise.all(
    Array.from({ length: 6 }, async () => (await sendMcp(stranger, ping, headers)).status),
  )
  expect(statuses).toEqual(statuses.map(() => 404))
})

/** A token, once every worker knows it and the servers. */
async function tokenOfAll(): Promise<string> {
  const { token_value: token } = await createToken(gatehouse)
  const isKnown = async () => {
    const calls = Array.from({ length: 8 }, () => callModern(token, 'tools__echo').then(Boolean, () => false))
    return (await Promise.all(calls)).every(Boolean)
  }
  await until('every worker knows the servers', isKnown, { withinMs: 10_000 })
  return token
}

/** One request of MCP 2026-07-28 for a tool, on a connection of its own. */
async function callModern(token: string, name: string, more: object = {}) {
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': '2026-07-28',
    'io.modelcontextprotocol/clientCapabilities': { elicitation: {} },
  }
  const headers = { 'mcp-protocol-version': '2026-07-28', 'mcp-method': 'tools/call', 'mcp-name': name }
  const params = { name, arguments: {}, _meta, ...more }
  const answer = await sendMcp(token, { id: 1, method: 'tools/call', params }, headers)
  return z.object({ result: z.looseObject({}) }).parse(await answer.json()).result
}

test('a call of 2026-07-28 that asks its caller goes on wherever the caller returns', async () => {
  const token = await tokenOfAll()
  const input = z.looseObject({ inputRequests: z.record(z.string(), z.unknown()), requestState: z.string() })
  const { length } = tools.called
  const rounds = Array.from({ length: 8 }, async () => {
    const { inputRequests, requestState } = input.parse(await callModern(token, 'tools__elicit'))
    const [key = ''] = Object.keys(inputRequests)
    const inputResponses = { [key]: { action: 'accept', content: { city: 'Turin' } } }
    return await callModern(token, 'tools__elicit', { requestState, inputResponses })
  })
  const done = await Promise.all(rounds)
  expect(done).toMatchObject(done.map(() => ({ content: [{ text: '{"city":"Turin"}' }] })))
  expect(tools.called.slice(length)).toEqual(done.map(() => 'elicit'))
})

test('all calls of 2026-07-28 of one caller share a session with their server, whatever worker takes them', async () => {
  const before = tools.sessions
  const token = await tokenOfAll()
  const answers = await Promise.all(Array.from({ length: 12 }, () => callModern(token, 'tools__echo')))
  expect(answers).toMatchObject(answers.map(() => ({ content: [{ text: '{}' }] })))
  expect(tools.sessions).toBe(before + 1)
})

test('the sessions of a killed worker go on at any other, and those that their callers ended stay ended', async () => {
  const { token_value: token } = await createToken(gatehouse)
  const sessions = await Promise.all(Array.from({ length: 12 }, () => mcpSession(token)))
  const ended = await Promise.all(Array.from({ length: 8 }, () => mcpSession(token)))
  for (const session of ended) {
    const headers = { authorization: `Bearer ${token}`, ...session }
    expect((await fetch(`${gatehouse.gatewayUrl}/mcp`, { method: 'DELETE', headers, keepalive: false })).status).toBe(
      200,
    )
  }
  const [victim = 0] = workers()
  signal(victim, 'SIGKILL')
  // Ended as a whole: while it ends, one of its ports may close before the other.
  await until('the worker is gone', () => !existsSync(`/proc/${victim}`))
  const status = async (session: Record<string, string>) => {
    try {
      return (await sendMcp(token, ping, session)).status
    } catch {
      // The connection had been given to the worker that was killed.
      return 0
    }
  }
  // A connection may still be given to the worker that was killed, but no other worker lacks a session.
  const meanwhile = await Promise.all(sessions.map(status))
  expect(meanwhile.filter((status) => status !== 200 && status !== 0)).toEqual([])
  const isBack = async () => workers().length === 2 && (await connected()) === 2
  await until('the worker has come back', isBack, { withinMs: 10_000 })
  expect(await Promise.all(sessions.map(status))).toEqual(sessions.map(() => 200))
  for (const again of [1, 2, 3])
    expect([again, await Promise.all(ended.map(status))]).toEqual([again, ended.map(() => 404)])
})

test('the other worker serves while one is killed, and the limit still holds', async () => {
  const token = await createToken(gatehouse, { max_requests: 100 })
  const [victim = 0] = workers()
  const statuses = askMany(token.token_value, 200)
  await Bun.sleep(10)
  signal(victim, 'SIGKILL')
  const accepted = count(await statuses, 200)
  expect(accepted).toBeLessThanOrEqual(100)
  const answered = await chat(gatehouse, { token: (await createToken(gatehouse)).token_value, model: 'fake-model' })
  expect(answered.status).toBe(200)
  const isBack = async () => !workers().includes(victim) && (await connected()) === 2
  await until('the worker has come back', isBack)
})

test('doctor reads the files of every worker and reports none missing', async () => {
  const { stdout } = await run(['doctor', '--data', dataDirectory], {
    env: {
      SERVICE_API_URL: gatehouse.baseUrl,
      SERVICE_API_TOKEN: gatehouse.adminToken,
      SERVICE_GATEWAY_LISTEN: new URL(gatehouse.gatewayUrl).host,
      SERVICE_GATEWAY_WORKERS: '2',
    },
  })
  const lines = stdout.split('\n').filter((line) => line.includes('Worker '))
  expect(lines.filter((line) => !line.startsWith('ok '))).toEqual([])
  expect(lines.filter((line) => line.includes('Worker 1: The outbox takes'))).toHaveLength(1)
})

test('a removed worker has its events shipped and its files deleted', async () => {
  const token = await createToken(gatehouse)
  expect(count(await askMany(token.token_value, 40), 200)).toBe(40)
  // Nothing is drained: what was not reported yet is in the workers' outboxes alone.
  await gatehouse.stop()
  gatehouse = await startGatehouse({ upstream, dataDirectory, adminToken: gatehouse.adminToken })
  const outcomes = () =>
    eventsInLedger(gatehouse).filter(
      ({ event_type: type, event_attribution: by }) => type === 'gateway.request.outcome' && by.token_id === token.id,
    )
  await until('all outcomes are in the ledger', () => outcomes().length === 40, { withinMs: 60_000 })
  const directory = join(dataDirectory, 'gateway', 'workers', '1')
  await until('the former worker has left', () => !existsSync(directory), { withinMs: 60_000 })
})
