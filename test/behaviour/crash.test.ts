import { afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { splitPlans } from '../fakes/splits.ts'
import { type Call, type FakeUpstream, jsonReply, startFakeUpstream, streamReply } from '../fakes/upstream.ts'
import type { Event } from '../support/answers.ts'
import { api, chat, createToken } from '../support/client.ts'
import { eventually, until } from '../support/eventually.ts'
import { executable } from '../support/executable.ts'
import { type Gatehouse, operate, startGatehouse, temporaryDirectory } from '../support/harness.ts'
import { descendantsOf, isAlive, signal } from '../support/processes.ts'
import { eventsInLedger } from '../support/recorded.ts'

setDefaultTimeout(180_000)

const atEveryFrame = splitPlans['at every frame'] ?? (() => [])
const slowStream = (pauseBetweenPiecesMs: number) => ({ ...streamReply(), split: atEveryFrame, pauseBetweenPiecesMs })

const asksForStream = ({ body }: Call): boolean => body.toString().includes('"stream":true')

let upstream: FakeUpstream
let directory: string
let dataDirectory: string
let gatehouse: Gatehouse
let token: string

beforeAll(() => executable().then(() => undefined), 240_000)
beforeEach(async () => {
  upstream = await startFakeUpstream()
  // A provider takes its time; without that the load would be all there is on the machine.
  upstream.when('fake-model', (call) => (asksForStream(call) ? slowStream(2) : { ...jsonReply(), headersAfterMs: 3 }))
  directory = temporaryDirectory()
  dataDirectory = join(directory, 'data')
  gatehouse = await startGatehouse({ upstream, dataDirectory })
  token = (await createToken(gatehouse)).token_value
})
afterEach(async () => {
  await gatehouse?.stop()
  await upstream?.close()
  rmSync(directory, { recursive: true, force: true })
})

interface Load {
  /** Request ids whose answers came back whole, to the last byte. */
  completed: Set<string>
  stop(): Promise<void>
}

/** Sends whole and streamed requests on several connections at once; the request id is also in the prompt. */
function startLoad(name: string, connections = 8): Load {
  const completed = new Set<string>()
  let going = true
  let next = 0
  const one = async () => {
    const requestId = `${name}-${next++}`
    const stream = next % 2 === 0
    try {
      const answer = await chat(gatehouse, { token, requestId, text: `id=${requestId}.`, stream })
      const text = await answer.text()
      if (answer.status === 200 && (stream ? text.endsWith('[DONE]\n\n') : text.endsWith('}\n\n'))) {
        completed.add(requestId)
      }
    } catch {
      // The gateway is down: what is counted is what was completed.
      await Bun.sleep(5)
    }
  }
  const loops = Array.from({ length: connections }, async () => {
    while (going) await one()
  })
  return {
    completed,
    async stop() {
      going = false
      await Promise.all(loops)
    },
  }
}

/** The ids of the requests that reached the provider. */
const dispatched = (): string[] =>
  upstream.calls.flatMap(({ body }) => /id=([a-z0-9-]+)\./.exec(body.toString())?.[1] ?? [])

/** How many outcomes each request has in the ledger. */
function outcomesByRequest(events: readonly Event[]): Map<string, Event[]> {
  const outcomes = events.filter(({ event_type }) => event_type === 'gateway.request.outcome')
  return Map.groupBy(outcomes, ({ request_id }) => request_id ?? '')
}

/** Waits until every dispatched request has an outcome, then checks that each has exactly one. */
async function expectExactlyOnce(load: Load): Promise<Map<string, Event[]>> {
  await until(
    'every dispatched request has an outcome in the ledger',
    () => {
      const outcomes = outcomesByRequest(eventsInLedger(gatehouse))
      return [...dispatched(), ...load.completed].every((id) => outcomes.has(id))
    },
    { withinMs: 60_000, everyMs: 100 },
  )
  const events = eventsInLedger(gatehouse)
  const outcomes = outcomesByRequest(events)
  const verified = await operate(gatehouse, 'events', 'verify')
  expect(verified).toMatchObject({ code: 0, stdout: expect.stringContaining(' 0 findings') })
  expect(new Set(events.map(({ event_id }) => event_id)).size).toBe(events.length)
  expect([...outcomes].filter(([, { length }]) => length > 1).map(([id]) => id)).toEqual([])
  expect([...load.completed].filter((id) => outcomes.get(id)?.length !== 1)).toEqual([])
  expect([...new Set(dispatched())].filter((id) => outcomes.get(id)?.length !== 1)).toEqual([])
  return outcomes
}

const serves = async (): Promise<boolean> => {
  try {
    return (await fetch(`${gatehouse.gatewayUrl}/readyz`)).status === 200
  } catch {
    // Nobody listens yet.
    return false
  }
}

test('a gateway killed under load restarts on its port and loses no event of a completed answer', async () => {
  const load = startLoad('killed')
  for (let kill = 0; kill < 3; kill++) {
    const before = load.completed.size
    await until('fifty more answers are complete', () => load.completed.size >= before + 50, { withinMs: 60_000 })
    const gateway = gatehouse.gatewayPid()
    process.kill(gateway, 'SIGKILL')
    await until('the killed gateway is gone', () => !isAlive(gateway))
    await until('the gateway serves again', serves, { withinMs: 60_000 })
  }
  await load.stop()
  const outcomes = await expectExactlyOnce(load)
  const interrupted = [...outcomes.values()].flat().filter(({ reason_code }) => reason_code === 'gateway.interrupted')
  expect(interrupted.every(({ verdict }) => verdict === 'error')).toBe(true)
  expect(interrupted.filter(({ request_id }) => load.completed.has(request_id ?? ''))).toEqual([])
  console.info(
    `three kills: ${load.completed.size} completed, ${new Set(dispatched()).size} dispatched, ` +
      `${interrupted.length} interrupted, each with exactly one outcome`,
  )
})

test('a request that a kill interrupts within its stream is recorded as interrupted', async () => {
  upstream.when('fake-model', { ...streamReply(), split: atEveryFrame, stop: { after: 3, by: 'stall' } })
  const requestId = 'interrupted'
  const answer = await chat(gatehouse, { token, requestId, stream: true, text: `id=${requestId}.` })
  await answer.body?.getReader().read()
  process.kill(gatehouse.gatewayPid(), 'SIGKILL')
  const outcome = await eventually(
    () => {
      const found = outcomesByRequest(eventsInLedger(gatehouse)).get(requestId)
      expect(found?.length).toBe(1)
      return found?.[0]
    },
    { withinMs: 60_000 },
  )
  expect(outcome).toMatchObject({ verdict: 'error', reason_code: 'gateway.interrupted' })
})

test('a killed gateway still refuses a token revoked before the kill', async () => {
  const doomed = await createToken(gatehouse)
  await api(gatehouse, `/v1/tokens/${doomed.id}`, { method: 'DELETE' })
  const gateway = gatehouse.gatewayPid()
  process.kill(gateway, 'SIGKILL')
  await until('the killed gateway is gone', () => !isAlive(gateway))
  await until('the gateway answers again', async () => {
    const answer = await chat(gatehouse, { token: doomed.token_value }).catch(() => null)
    expect(answer?.status).not.toBe(200)
    return answer?.status === 401
  })
})

test('a gateway works on without its control plane, and its events arrive later exactly once', async () => {
  const controlPlane = gatehouse.controlPlanePid()
  // Keeps the supervisor from bringing it back while the gateway is looked at.
  process.kill(gatehouse.supervisorPid, 'SIGSTOP')
  process.kill(controlPlane, 'SIGKILL')
  const load = startLoad('alone')
  try {
    await until('two hundred answers with no control plane', () => load.completed.size >= 200, { withinMs: 60_000 })
    expect(
      await fetch(`${gatehouse.baseUrl}/healthz`).then(
        () => 'up',
        () => 'down',
      ),
    ).toBe('down')
    expect((await fetch(`${gatehouse.gatewayUrl}/readyz`)).status).toBe(200)
  } finally {
    await load.stop()
    process.kill(gatehouse.supervisorPid, 'SIGCONT')
  }
  await until(
    'the control plane is back on its port',
    async () => (await fetch(`${gatehouse.baseUrl}/readyz`).catch(() => null))?.status === 200,
    { withinMs: 60_000 },
  )
  await expectExactlyOnce(load)
})

test('a control plane killed repeatedly during shipping records each event exactly once', async () => {
  const load = startLoad('shipping')
  for (let kill = 0; kill < 3; kill++) {
    const before = load.completed.size
    await until('forty more answers are complete', () => load.completed.size >= before + 40, { withinMs: 60_000 })
    const pid = await eventually(() => gatehouse.controlPlanePid(), { withinMs: 60_000 })
    process.kill(pid, 'SIGKILL')
    await until('it is gone', () => !isAlive(pid))
  }
  await load.stop()
  await expectExactlyOnce(load)
})

test('gateway and control plane killed in turn and together during ingest record each event exactly once', async () => {
  const load = startLoad('by-turns')
  const kill = async (pids: readonly number[]) => {
    for (const pid of pids) signal(pid, 'SIGKILL')
    await until('they are gone', () => !pids.some(isAlive))
    await until('the gateway serves again', serves, { withinMs: 60_000 })
  }
  const counts: string[] = []
  for (const [what, pids] of [
    ['gateway', () => [gatehouse.gatewayPid()]],
    ['control plane', () => [gatehouse.controlPlanePid()]],
    ['both', () => [gatehouse.gatewayPid(), gatehouse.controlPlanePid()]],
    ['control plane', () => [gatehouse.controlPlanePid()]],
    ['both', () => [gatehouse.controlPlanePid(), gatehouse.gatewayPid()]],
  ] as const) {
    const before = load.completed.size
    await until('forty more answers are complete', () => load.completed.size >= before + 40, { withinMs: 30_000 })
    const found = await eventually(pids, { withinMs: 60_000 })
    counts.push(
      `${what}: ${load.completed.size} completed, ${outcomesByRequest(eventsInLedger(gatehouse)).size} in the ledger`,
    )
    await kill(found)
  }
  await load.stop()
  const outcomes = await expectExactlyOnce(load)
  console.info(`${counts.join('; ')}; at the end ${load.completed.size} completed, ${outcomes.size} in the ledger`)
})

test('SIGTERM lets a running stream finish, refuses new requests, exits 0 and leaves nothing unrecorded', async () => {
  upstream.when('fake-model', slowStream(150))
  const requestId = 'drained'
  const answer = await chat(gatehouse, { token, requestId, stream: true, text: `id=${requestId}.` })
  const family = [gatehouse.supervisorPid, ...descendantsOf(gatehouse.supervisorPid)]
  const ended = gatehouse.end('SIGTERM')
  await until('new requests are turned away', async () => {
    const refused = await chat(gatehouse, { token, model: 'simulator/echo' }).catch(() => null)
    return refused === null || refused.status === 503
  })
  expect((await answer.text()).endsWith('data: [DONE]\n\n')).toBe(true)
  expect(await ended).toBe(0)
  expect(family.filter(isAlive)).toEqual([])
  const outcomes = outcomesByRequest(eventsInLedger(gatehouse)).get(requestId)
  expect(outcomes?.map(({ verdict }) => verdict)).toEqual(['allow'])
})

test('SIGTERM waits no longer than the drain timeout', async () => {
  await gatehouse.end('SIGTERM')
  await gatehouse.stop()
  gatehouse = await startGatehouse({ upstream, dataDirectory, flags: ['--drain-seconds', '1'] })
  upstream.when('fake-model', { ...streamReply(), split: atEveryFrame, stop: { after: 2, by: 'stall' } })
  const requestId = 'cut-short'
  const answer = await chat(gatehouse, { token, requestId, stream: true, text: `id=${requestId}.` })
  const rest = answer.text().catch(() => 'cut')
  const startedAt = performance.now()
  expect(await gatehouse.end('SIGTERM')).toBe(0)
  expect(performance.now() - startedAt).toBeLessThan(25_000)
  expect(await rest).toMatch(/data: \{"error":.*\n\ndata: \[DONE\]\n\n$/)
  const outcomes = outcomesByRequest(eventsInLedger(gatehouse)).get(requestId)
  expect(outcomes?.map(({ verdict }) => verdict)).toEqual(['error'])
})

test('a killed supervisor leaves no orphan process, and its directory can be started again', async () => {
  const children = descendantsOf(gatehouse.supervisorPid)
  expect(children.length).toBeGreaterThanOrEqual(2)
  try {
    await gatehouse.end('SIGKILL')
    await until('all children have ended', () => !children.some(isAlive))
  } finally {
    for (const pid of children) signal(pid, 'SIGKILL')
  }
  gatehouse = await startGatehouse({ upstream, dataDirectory, adminToken: gatehouse.adminToken })
  expect((await api(gatehouse, '/v1/tokens')).status).toBe(200)
  expect((await chat(gatehouse, { token })).status).toBe(200)
})

test('a start after all processes were killed under load has every event of completed answers', async () => {
  const load = startLoad('all-at-once')
  await until('a hundred answers are complete', () => load.completed.size >= 100, { withinMs: 60_000 })
  const family = [gatehouse.supervisorPid, ...descendantsOf(gatehouse.supervisorPid)]
  for (const pid of family) signal(pid, 'SIGKILL')
  await load.stop()
  await gatehouse.stop()
  gatehouse = await startGatehouse({ upstream, dataDirectory, adminToken: gatehouse.adminToken })
  await expectExactlyOnce(load)
})
