/** Limits a minute over restarts: no restart refuses what is left of a limit, and none gives it anew. */
import { afterEach, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { join } from 'node:path'
import { z } from 'zod'
import { type FakeUpstream, startFakeUpstream } from '../fakes/upstream.ts'
import { api, chat, createToken, expectAnswer } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { type Gatehouse, startGatehouse, temporaryDirectory } from '../support/harness.ts'
import { startMoreGateway } from '../support/more-gateways.ts'
import { isAlive, signal } from '../support/processes.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream
const running: Gatehouse[] = []

beforeAll(() => executable().then(() => undefined), 240_000)
afterEach(async () => {
  for (const gatehouse of running.splice(0)) await gatehouse.stop()
  await upstream.close()
})

async function start(options: Partial<Parameters<typeof startGatehouse>[0]> = {}): Promise<Gatehouse> {
  const gatehouse = await startGatehouse({ upstream, ...options })
  running.push(gatehouse)
  return gatehouse
}

async function statuses(gatehouse: Gatehouse, token: string, count: number): Promise<number[]> {
  const answers = await Promise.all(Array.from({ length: count }, () => chat(gatehouse, { token })))
  await Promise.all(answers.map((answer) => answer.text()))
  return answers.map(({ status }) => status).sort()
}

const times = (count: number, status: number): number[] => Array.from({ length: count }, () => status)

async function restartGateway(gatehouse: Gatehouse, name: NodeJS.Signals): Promise<void> {
  const pid = gatehouse.gatewayPid()
  signal(pid, name)
  await until('the gateway is gone', () => !isAlive(pid))
  await eventually(async () => expect((await fetch(`${gatehouse.gatewayUrl}/readyz`)).status).toBe(200), {
    withinMs: 30_000,
  })
}

test('a token keeps the rest of its minute through a clean stop, a kill and a full restart', async () => {
  upstream = await startFakeUpstream()
  const dataDirectory = join(temporaryDirectory(), 'data')
  let gatehouse = await start({ dataDirectory })
  const { token_value: token } = await createToken(gatehouse, { rate_limit_rpm: 25, rate_limit_tpm: 1_000_000 })
  expect(await statuses(gatehouse, token, 5)).toEqual(times(5, 200))
  await restartGateway(gatehouse, 'SIGTERM')
  expect(await statuses(gatehouse, token, 5)).toEqual(times(5, 200))
  await restartGateway(gatehouse, 'SIGKILL')
  expect(await statuses(gatehouse, token, 5)).toEqual(times(5, 200))
  await gatehouse.end('SIGTERM')
  gatehouse = await start({ dataDirectory, adminToken: gatehouse.adminToken })
  expect(await statuses(gatehouse, token, 5)).toEqual(times(5, 200))
  await gatehouse.stop()
  gatehouse = await start({ dataDirectory, adminToken: gatehouse.adminToken })
  expect(await statuses(gatehouse, token, 10)).toEqual([...times(5, 200), ...times(5, 503)])
})

test('a new gateway at once gets what a stopped one had left of a consumer group', async () => {
  upstream = await startFakeUpstream()
  const gatehouse = await start()
  const token = await createToken(gatehouse)
  const group = { name: 'all', requests_per_minute: 10, members: { tokens: [token.id] } }
  await expectAnswer(await api(gatehouse, '/v1/consumer-groups', { body: group }), 201, z.looseObject({}))
  const first = await startMoreGateway(gatehouse, 'first')
  expect(await statuses({ ...gatehouse, gatewayUrl: first.url }, token.token_value, 4)).toEqual(times(4, 200))
  const pid = await eventually(() => first.pid())
  signal(pid, 'SIGTERM')
  await until('the first gateway is gone', () => !isAlive(pid))
  await using second = await startMoreGateway(gatehouse, 'second')
  const rest = await statuses({ ...gatehouse, gatewayUrl: second.url }, token.token_value, 8)
  expect(rest).toEqual([...times(6, 200), ...times(2, 429)])
  await first[Symbol.asyncDispose]()
})
