import { afterEach, beforeEach, expect, setDefaultTimeout, spyOn, test } from 'bun:test'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../../../test/support/eventually.ts'
import { systemClock } from '../../lib/clock.ts'
import type { GatewayAgent } from '../protocol/worker.ts'
import { type Interfere, movableClock, TemporaryFleet } from '../testing/temporary-fleet.ts'
import { WorkerFiles } from './agent-files.ts'

setDefaultTimeout(30_000)

let fleet: TemporaryFleet

beforeEach(async () => {
  fleet = await TemporaryFleet.start()
})

afterEach(async () => {
  await fleet.remove()
})

const pass: Interfere = (_path, _request, forward) => forward()
const refuse: Interfere = async () => new Response(null, { status: 503 })

async function restartWith(seconds: number): Promise<void> {
  const port = await fleet.stopControlPlane()
  fleet.maxStalenessSeconds = seconds
  fleet.startControlPlane(port)
}

/** In how many seconds a revoke of now says that it holds for this worker, to the next ten. */
async function secondsUntil(worker: GatewayAgent): Promise<number> {
  const { version } = fleet.change(() => undefined)
  const { unreachable } = await fleet.control.fleet.propagation(version)
  const latest = Math.max(0, ...unreachable.map(({ until: end }) => Date.parse(end) - systemClock.now()))
  expect(worker.ready().ok).toBe(true)
  return Math.round(latest / 10_000) * 10
}

const written = async (): Promise<number | undefined> => {
  const [row] = await fleet.ledger.read<{ stale_after_ms: number }>('select stale_after_ms from workers')
  return row?.stale_after_ms
}

const serves = (worker: GatewayAgent): boolean => worker.ready().ok

test('after max_staleness was lowered, a disconnected worker counts for as long as its own value', async () => {
  const worker = await fleet.worker('a')
  await eventually(() => serves(worker))
  await eventually(async () => (await written()) === 300_000)
  fleet.interfere = refuse
  await restartWith(20)
  expect(await secondsUntil(worker)).toBe(300)
})

test('after max_staleness was raised, a disconnected worker counts no longer than it serves', async () => {
  await restartWith(20)
  const worker = await fleet.worker('a')
  await eventually(() => serves(worker))
  await eventually(async () => (await written()) === 20_000)
  fleet.interfere = refuse
  await restartWith(300)
  expect(await secondsUntil(worker)).toBe(20)
})

test('a lower max_staleness applies at once, is reported and is kept for a restart', async () => {
  const clock = movableClock()
  const worker = await fleet.worker('a', { clock, random: () => 0 })
  await eventually(() => serves(worker))
  await restartWith(20)
  await eventually(async () => (await written()) === 20_000)
  fleet.interfere = refuse
  expect(await secondsUntil(worker)).toBe(20)
  await fleet.stopControlPlane()
  await eventually(() => worker.counters.connected === 0)
  await worker.drain()
  const again = await fleet.worker('a', { clock })
  expect(serves(again)).toBe(true)
  clock.skip(21_000)
  expect(serves(again)).toBe(false)
})

test('a heartbeat lowers max_staleness and never raises it; a handshake may raise it after its row was written', async () => {
  await restartWith(20)
  const clock = movableClock()
  let heartbeats = 300
  let rowAtHello: number | undefined
  fleet.interfere = async (path, request, forward) => {
    const answer = await pass(path, request, forward)
    if (path.endsWith('/stream')) rowAtHello = await written()
    if (!path.endsWith('/heartbeat') || !answer.ok) return answer
    return Response.json({ ...Object(await answer.json()), max_staleness_seconds: heartbeats })
  }
  const worker = await fleet.worker('a', { clock, random: () => 0 })
  await eventually(() => serves(worker))
  await Bun.sleep(150)
  expect(await written()).toBe(20_000)
  heartbeats = 10
  await eventually(async () => (await written()) === 10_000)
  heartbeats = 300
  await restartWith(40)
  await eventually(() => rowAtHello === 40_000 && worker.counters.connected === 1 && serves(worker))
  fleet.interfere = refuse
  clock.skip(30_000)
  expect(serves(worker)).toBe(true)
  clock.skip(11_000)
  expect(serves(worker)).toBe(false)
})

test('a killed process serves by the value it reported, whatever its setting says since', async () => {
  const clock = movableClock()
  const settings = (seconds: number) => ({
    max_staleness_seconds: seconds,
    ...{ outbox_segment_bytes: 262_144, outbox_limit_bytes: 8_388_608, outbox_keep_hours: 1, usage_wait_seconds: 2 },
  })
  const worker = await fleet.worker('a', { clock, settings: settings(10) })
  await eventually(() => serves(worker))
  await eventually(async () => (await written()) === 10_000)
  await fleet.stopControlPlane()
  await eventually(() => worker.counters.connected === 0)
  await worker.drain()
  const again = await fleet.worker('a', { clock, settings: settings(300) })
  expect(serves(again)).toBe(true)
  clock.skip(11_000)
  expect(serves(again)).toBe(false)
})

test('a worker with files of an earlier version goes stale even if its disk accepts no writes', async () => {
  const clock = movableClock()
  const worker = await fleet.worker('a', { clock })
  await eventually(() => serves(worker))
  await fleet.stopControlPlane()
  await eventually(() => worker.counters.connected === 0)
  await worker.drain()
  const kept = join(fleet.directory, 'a', 'worker', 'fresh')
  writeFileSync(kept, readFileSync(kept, 'utf8').split(' ')[0] ?? '')
  const write = spyOn(WorkerFiles.prototype, 'keepFreshOrThrow').mockImplementation(() => {
    throw new Error('ENOSPC')
  })
  try {
    const again = await fleet.worker('a', { clock })
    expect(serves(again)).toBe(true)
    clock.skip(301_000)
    expect(serves(again)).toBe(false)
  } finally {
    write.mockRestore()
  }
})
