/** Several gateway processes on one port: the work is dealt out, and every promise of one process holds for all. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { chat, createToken, revoke } from '../client.ts'
import { until } from '../eventually.ts'
import { executable } from '../executable.ts'
import { type FakeUpstream, jsonReply, startFakeUpstream } from '../fakes/upstream.ts'
import { type Gatehouse, startGatehouse, temporaryDirectory } from '../harness.ts'
import { childrenOf, listensOn, signal } from '../processes.ts'
import { eventsInLedger } from '../recorded.ts'

setDefaultTimeout(120_000)

const dataDirectory = join(temporaryDirectory(), 'data')
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

test('two workers share the port, and of 300 requests at once exactly 100 are accepted', async () => {
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

test('a revocation counts every worker, and none of them accepts the token after it', async () => {
  const token = await createToken(gatehouse)
  expect(count(await askMany(token.token_value, 10), 200)).toBe(10)
  const revoked = await revoke(gatehouse, token.id)
  expect(revoked.body).toMatchObject({ propagation: { connected: 2, acknowledged: 2, unreachable: [] } })
  expect(count(await askMany(token.token_value, 20), 401)).toBe(20)
})

test('while one worker is killed the other goes on, and the limit still holds', async () => {
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

test('a worker that is wanted no longer has its events reported, and nothing of it stays', async () => {
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
