/** What may happen to a fleet under load, each case by its name; `failure-trial.ts` counts what came of it. */
import { expect } from 'bun:test'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import type { Event } from '../../src/events/event.ts'
import { readRecords } from '../../src/events/log/read-records.ts'
import { readLogHead, readSegments } from '../../src/events/log/segment-rows.ts'
import type { Reader } from '../../src/store/open.ts'
import { chat, revoke } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { fillDisk } from '../support/full-disk.ts'
import { temporaryDirectory } from '../support/harness.ts'
import { cuttableNetwork } from './cut.ts'
import type { FailureTrial } from './failure-trial.ts'
import type { FleetGateway } from './gateway.ts'
import { wrongClock } from './wrong-clock.ts'

/** How long a failure lasts. */
const failureMs = 2000
const coming = { withinMs: 60_000 }

/** This machine lacks what the case needs. */
export class Skipped extends Error {}

export type FailureCase = (trial: FailureTrial) => Promise<void>

const isReady =
  ({ gatewayUrl }: FleetGateway) =>
  async () =>
    (await fetch(`${gatewayUrl}/readyz`)).ok

async function nothing(trial: FailureTrial): Promise<void> {
  await trial.endedToken()
}

/** A token is revoked while the primary is away, and again until that is answered. */
const primaryAway =
  (begin: (trial: FailureTrial) => Promise<void> | void, end: (trial: FailureTrial) => Promise<void> | void) =>
  async (trial: FailureTrial): Promise<void> => {
    await trial.endedToken()
    const token = await trial.newToken()
    await trial.accepted(token)
    await begin(trial)
    const asked = trial.end(trial.fleet.planes[0], token)
    await Bun.sleep(failureMs)
    await end(trial)
    await asked
  }

async function primaryWiped(trial: FailureTrial): Promise<void> {
  const { state } = trial.fleet.primary
  const copy = await state.copy()
  await trial.endedToken()
  await state.wipe()
  await Bun.sleep(failureMs)
  await state.restore(copy)
}

async function primaryRestored(trial: FailureTrial): Promise<void> {
  const { primary, planes } = trial.fleet
  const [one, other] = [await trial.newToken(), await trial.newToken()]
  await trial.accepted(one)
  await trial.accepted(other)
  const copy = await primary.state.copy()
  await trial.end(planes[0], one)
  await trial.end(planes[1], other)
  await primary.state.restore(copy)
}

async function controlPlaneKilled(trial: FailureTrial): Promise<void> {
  const token = await trial.newToken()
  await trial.accepted(token)
  const [first, second] = trial.fleet.planes
  const asked = revoke(first, token.id).catch(() => null)
  await Bun.sleep(12)
  await first.kill()
  await asked
  await trial.end(second, token)
  await Bun.sleep(failureMs)
  await first.restart()
}

async function sidecarsKilled(trial: FailureTrial): Promise<void> {
  const { planes, gateways } = trial.fleet
  await trial.endedToken()
  const over = Date.now() + trial.killSeconds * 1000
  while (Date.now() < over) {
    await gateways[Math.floor(Math.random() * gateways.length)]?.restart()
    await trial.endedToken(planes[Math.random() < 0.5 ? 0 : 1])
  }
}

async function clocksWrong(trial: FailureTrial): Promise<void> {
  const [ahead, behind] = [wrongClock(600), wrongClock(-600)]
  if (ahead === null || behind === null) throw new Skipped('it needs a C compiler')
  const { fleet } = trial
  const wrong = [
    await trial.add(fleet.planes[0], { environment: ahead }),
    await trial.add(fleet.planes[1], { environment: behind }),
  ]
  const ask = async (gateway: FleetGateway, token: string, requestId?: string): Promise<number> => {
    const answer = await chat(gateway, { token, model: 'simulator/echo', ...(requestId && { requestId }) })
    await answer.arrayBuffer()
    return answer.status
  }
  const good = (await trial.newToken({ expires_at: new Date(Date.now() + 300_000).toISOString() })).token_value
  const expires = new Date(Date.now() + 6000)
  const { token_value: expiring } = await trial.expiringToken(expires)
  for (const [index, gateway] of wrong.entries()) {
    await until('it is accepted', async () => (await ask(gateway, good, `clock-${index}`)) === 200)
  }
  await Bun.sleep(Math.max(0, expires.getTime() - Date.now()))
  for (const gateway of wrong) {
    expect(await ask(gateway, expiring)).toBe(401)
    // What was kept of the wrong clock must make nothing stale, nor fresh for longer.
    await gateway.restart()
    // A machine that is too busy for a heartbeat in time makes it refuse with 503 for a moment.
    const seen: number[] = []
    await until('it refuses the expired token', async () => {
      seen.push(await ask(gateway, expiring))
      return seen.at(-1) === 401
    })
    expect(seen).not.toContain(200)
    await until('it is served', async () => (await ask(gateway, good)) === 200)
  }
  expect((await trial.endedToken()).unreachable).toEqual([])
  await until('both are told of in the right time', async () => {
    const late = await lateness(fleet.primary.log)
    for (const each of late) expect(each).toBeWithin(0, 60_000)
    return late.length >= 2
  })
}

/** By how much the answered requests of the wrong clocks were received after they happened, in milliseconds. */
async function lateness(log: Reader): Promise<number[]> {
  const { next } = await readLogHead(log)
  const segments = await readSegments(log, 'order by first_position', [])
  const late: number[] = []
  for await (const { position, at, text } of readRecords(log, { from: 1, before: next })) {
    const { request_id, event_type, verdict }: Event = JSON.parse(text)
    if (event_type !== 'gateway.request.outcome' || verdict !== 'allow') continue
    if (request_id?.startsWith('clock-') !== true) continue
    const segment = segments.findLast(({ first }) => first <= position)
    late.push((segment?.receivedAt ?? Number.NaN) - at)
  }
  return late
}

async function networkCut(trial: FailureTrial): Promise<void> {
  const { primary, planes } = trial.fleet
  const [plane] = planes
  const network = await cuttableNetwork(plane.baseUrl, primary.state.url)
  trial.after(() => network[Symbol.asyncDispose]())
  const alone = await trial.add(plane, { controlPlane: network.controlPlane })
  const token = await trial.newToken()
  const expires = new Date(Date.now() + 9000)
  const expiring = await trial.expiringToken(expires)
  await trial.accepted(token)
  await trial.accepted(expiring)
  network.cut()
  const { unreachable, effective_by } = await trial.end(plane, token)
  expect(unreachable.length).toBe(1)
  const over = Math.max(Date.parse(effective_by), expires.getTime())
  await Bun.sleep(Math.max(0, over - Date.now()) + 1000)
  network.mend()
  await until('it is ready again', isReady(alone), coming)
}

async function diskFull(trial: FailureTrial): Promise<void> {
  const directory = temporaryDirectory()
  if (Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=64m', 'tmpfs', directory]).exitCode !== 0) {
    throw new Skipped('mounting a tmpfs is not permitted here')
  }
  trial.after(() => void Bun.spawnSync(['umount', '-l', directory]))
  const data = join(directory, 'host', 'data')
  mkdirSync(data, { recursive: true })
  const full = await trial.add(trial.fleet.planes[0], { directory: data })
  await trial.endedToken()
  const ballast = join(directory, 'ballast')
  fillDisk(ballast)
  for (let round = 0; round < 3; round++) await trial.endedToken()
  await Bun.sleep(failureMs)
  rmSync(ballast)
  await until('it is ready again', isReady(full), coming)
}

export const failureCases = {
  none: nothing,
  'primary killed': primaryAway(
    ({ fleet }) => fleet.primary.state.kill(),
    ({ fleet }) => fleet.primary.state.restart(),
  ),
  'primary hung': primaryAway(
    ({ fleet }) => fleet.primary.state.freeze(),
    ({ fleet }) => fleet.primary.state.thaw(),
  ),
  'primary wiped': primaryWiped,
  'primary restored': primaryRestored,
  'control plane killed': controlPlaneKilled,
  'sidecars killed': sidecarsKilled,
  'clocks wrong': clocksWrong,
  'network cut, token expired': networkCut,
  'disk full': diskFull,
} satisfies Record<string, FailureCase>
