/**
 * Two control planes, sidecars with load on all of them, and one failure after the other. After each, the same is
 * counted: answers on revoked tokens, limits, events, replicas, chains. With few sidecars here; for a whole fleet:
 *
 *   FLEET_SIDECARS=20 FLEET_KILL_SECONDS=60 bun test test/fleet/failures.test.ts
 *
 * Only where a number of sidecars is asked for: the cases of the primary, which primary-failures.test.ts has one by one,
 * and the full disk, which test/behaviour/sidecar-disk-full.test.ts has. They take a minute.
 */
import { afterAll, afterEach, beforeAll, beforeEach, expect, setDefaultTimeout, test } from 'bun:test'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createdToken, revokedToken } from '../answers.ts'
import { api, chat, createToken, expectAnswer, revoke } from '../client.ts'
import { eventually, until } from '../eventually.ts'
import { fillDisk } from '../full-disk.ts'
import { temporaryDirectory } from '../harness.ts'
import type { ControlPlane } from './control-plane.ts'
import { cuttableNetwork } from './cut.ts'
import { type FleetUnderTest, startFleet } from './fleet.ts'
import type { FleetGateway } from './gateway.ts'
import { type Counted, count } from './invariants.ts'
import { type Load, startLoad } from './load.ts'
import { wrongClock } from './wrong-clock.ts'

const sidecars = Number(process.env.FLEET_SIDECARS ?? 3)
const killSeconds = Number(process.env.FLEET_KILL_SECONDS ?? 2)
const staleSeconds = 6
const limit = 10
/** How long a failure lasts. */
const troubleMs = 2000

const wholeFleet = test.skipIf(process.env.FLEET_SIDECARS === undefined)

setDefaultTimeout(240_000 + killSeconds * 1000)

let fleet: FleetUnderTest
let load: Load
let limited: string
const ended = new Map<string, number>()
const table: (Counted & { case: string })[] = []

beforeAll(async () => {
  fleet = await startFleet({
    gateways: sidecars,
    environment: { SERVICE_MAX_STALENESS_SECONDS: String(staleSeconds) },
  })
}, 600_000)
afterAll(async () => {
  if (table.length > 0) console.table(table)
  await fleet?.[Symbol.asyncDispose]()
}, 60_000)

const newToken = async (fields: object = {}) => {
  const token = await eventually(() => createToken(fleet.planes[0], fields), { withinMs: 30_000 })
  load?.use(token.token_value)
  return token
}

beforeEach(async () => {
  ended.clear()
  load = startLoad(fleet.gateways, [])
  limited = (await newToken({ max_requests: limit })).token_value
  await newToken()
})
afterEach(async () => {
  await load.stop()
})

/** Revokes until a control plane has said by when it holds. */
async function end(plane: ControlPlane, { id, token_value: secret }: { id: string; token_value: string }) {
  const { propagation } = await eventually(async () => expectAnswer(await revoke(plane, id), 200, revokedToken), {
    withinMs: 30_000,
    everyMs: 200,
  })
  ended.set(secret, Date.parse(propagation.effective_by))
  return propagation
}

/** A token that gateways have taken for a while and that is revoked then. */
async function endedToken(plane: ControlPlane = fleet.planes[1]) {
  const token = await newToken()
  await accepted(token.token_value)
  return await end(plane, token)
}

const accepted = (token: string) =>
  until('it is accepted', () => load.answers.some((answer) => answer.token === token && answer.status === 200), {
    withinMs: 30_000,
  })

/** Lets the load go on for a moment after all, then counts. */
async function holds(name: string): Promise<void> {
  await endedToken()
  await Bun.sleep(1000)
  await load.stop()
  const counted = await count(fleet, {
    answers: load.answers,
    ended,
    limits: new Map([[limited, limit]]),
    gateways: fleet.gateways,
  })
  table.push({ case: name, ...counted })
  expect(counted).toMatchObject({
    acceptedTooLate: 0,
    limitsPassed: 0,
    eventsMissing: 0,
    eventsTwice: 0,
    replicasUnequal: 0,
    verifyExitCode: 0,
  })
  expect(counted.accepted).toBeGreaterThan(0)
}

test('nothing has failed', async () => {
  await endedToken()
  await holds('none')
})

wholeFleet('the primary is killed and comes back', async () => {
  await endedToken()
  const token = await newToken()
  await accepted(token.token_value)
  await fleet.primary.state.kill()
  const asked = end(fleet.planes[0], token)
  await Bun.sleep(troubleMs)
  await fleet.primary.state.restart()
  await asked
  await holds('primary killed')
})

wholeFleet('the primary hangs and goes on', async () => {
  await endedToken()
  const token = await newToken()
  await accepted(token.token_value)
  fleet.primary.state.freeze()
  const asked = end(fleet.planes[0], token)
  await Bun.sleep(troubleMs)
  fleet.primary.state.thaw()
  await asked
  await holds('primary hung')
})

wholeFleet('the primary is emptied, and is given back an older copy', async () => {
  const copy = await fleet.primary.state.copy()
  await endedToken()
  await fleet.primary.state.wipe()
  await Bun.sleep(troubleMs)
  await fleet.primary.state.restore(copy)
  await holds('primary wiped')
})

wholeFleet('the primary is restored from a copy in which a revoked token is alive', async () => {
  const [one, other] = [await newToken(), await newToken()]
  await accepted(one.token_value)
  await accepted(other.token_value)
  const copy = await fleet.primary.state.copy()
  await end(fleet.planes[0], one)
  await end(fleet.planes[1], other)
  await fleet.primary.state.restore(copy)
  await holds('primary restored')
})

test('a control plane is killed while it revokes', async () => {
  const token = await newToken()
  await accepted(token.token_value)
  const [first, second] = fleet.planes
  const asked = revoke(first, token.id).catch(() => null)
  await Bun.sleep(12)
  await first.kill()
  await asked
  await end(second, token)
  await Bun.sleep(troubleMs)
  await first.restart()
  await holds('control plane killed')
})

test('sidecars are killed at random', async () => {
  await endedToken()
  const until = Date.now() + killSeconds * 1000
  while (Date.now() < until) {
    await fleet.gateways[Math.floor(Math.random() * fleet.gateways.length)]?.restart()
    await endedToken(fleet.planes[Math.random() < 0.5 ? 0 : 1])
  }
  await holds('sidecars killed')
})

test('the clocks of two hosts are wrong by ten minutes, one ahead and one behind', async () => {
  const [ahead, behind] = [wrongClock(600), wrongClock(-600)]
  if (ahead === null || behind === null) {
    console.warn('The case of wrong clocks is skipped: it needs a C compiler')
    return
  }
  const [first, second] = fleet.planes
  const wrong = [await fleet.add(first, { environment: ahead }), await fleet.add(second, { environment: behind })]
  for (const gateway of wrong) load.add(gateway)
  const ask = async (gateway: FleetGateway, token: string, requestId?: string): Promise<number> => {
    const answer = await chat(gateway, { token, model: 'simulator/echo', ...(requestId && { requestId }) })
    await answer.arrayBuffer()
    return answer.status
  }
  const inMinutes = (minutes: number) => new Date(Date.now() + minutes * 60_000)
  const good = await newToken({ expires_at: inMinutes(5).toISOString() })
  const expires = inMinutes(0.1)
  const expiring = await newToken({ expires_at: expires.toISOString() })
  ended.set(expiring.token_value, expires.getTime())
  for (const [index, gateway] of wrong.entries()) {
    await until('it is accepted', async () => (await ask(gateway, good.token_value, `clock-${index}`)) === 200)
  }
  await Bun.sleep(Math.max(0, expires.getTime() - Date.now()))
  for (const gateway of wrong) {
    expect(await ask(gateway, expiring.token_value)).toBe(401)
    // What was kept of the wrong clock must make nothing stale, nor fresh for longer.
    await gateway.restart()
    expect(await ask(gateway, expiring.token_value)).toBe(401)
    await until('it is served', async () => (await ask(gateway, good.token_value)) === 200)
  }
  expect((await endedToken()).unreachable).toEqual([])
  await holds('clocks wrong')
  const events = await fleet.primary.read(
    'ledger',
    `select timestamp, received_at from events
      where request_id like 'clock-%' and event_type = 'gateway.request.outcome' and verdict = 'allow'`,
  )
  expect(events.length).toBeGreaterThanOrEqual(2)
  for (const { timestamp, received_at } of events) {
    expect(Number(received_at) - Number(timestamp)).toBeWithin(0, 60_000)
  }
  for (const gateway of wrong) await fleet.remove(gateway)
})

test('a sidecar is cut off from the rest, and a token expires meanwhile', async () => {
  const [plane] = fleet.planes
  await using network = await cuttableNetwork(plane.baseUrl, fleet.primary.state.url)
  const alone = await fleet.add(plane, { controlPlane: network.controlPlane })
  load.add(alone)
  const token = await newToken()
  const expires = new Date(Date.now() + 9000)
  const expiring = createdToken.parse(
    (await api(plane, '/v1/tokens', { body: { name: 'short', purpose: 'general', expires_at: expires.toISOString() } }))
      .body,
  )
  load.use(expiring.token_value)
  ended.set(expiring.token_value, expires.getTime())
  await accepted(token.token_value)
  await accepted(expiring.token_value)
  network.cut()
  const { unreachable, effective_by } = await end(plane, token)
  expect(unreachable.length).toBe(1)
  const over = Math.max(Date.parse(effective_by), expires.getTime())
  await Bun.sleep(Math.max(0, over - Date.now()) + 1000)
  network.mend()
  await until('it is ready again', async () => (await fetch(`${alone.gatewayUrl}/readyz`)).ok, { withinMs: 60_000 })
  await holds('network cut')
  await fleet.remove(alone)
})

wholeFleet('the disk of a sidecar is full for a while', async () => {
  const directory = temporaryDirectory()
  if (Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', directory]).exitCode !== 0) {
    console.warn('The case of a full disk is skipped: mounting a tmpfs is not permitted here')
    return
  }
  try {
    const data = join(directory, 'host', 'data')
    mkdirSync(data, { recursive: true })
    const full = await fleet.add(fleet.planes[0], { directory: data })
    load.add(full)
    await endedToken()
    const ballast = join(directory, 'ballast')
    fillDisk(ballast)
    for (let round = 0; round < 3; round++) await endedToken()
    await Bun.sleep(troubleMs)
    rmSync(ballast)
    await until('it is ready again', async () => (await fetch(`${full.gatewayUrl}/readyz`)).ok, { withinMs: 60_000 })
    await holds('disk full')
    await fleet.remove(full)
  } finally {
    Bun.spawnSync(['umount', '-l', directory])
  }
})
