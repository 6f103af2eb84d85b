import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, spyOn, test } from 'bun:test'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { eventually } from '../../../test/support/eventually.ts'
import type { StateView } from '../protocol/worker.ts'
import { FileStateView } from '../state/state-view.ts'
import { movableClock, TemporaryFleet } from '../testing/temporary-fleet.ts'

let fleet: TemporaryFleet

beforeEach(async () => {
  fleet = await TemporaryFleet.start()
})

afterEach(async () => {
  await fleet.remove()
})

test('acknowledges a change with only revocations at once and reads the state later', async () => {
  const worker = await fleet.worker('a', { heartbeatEveryMs: 60_000, random: () => 0 })
  await eventually(() => worker.ready().ok && worker.counters.connected === 1)
  const hash = fleet.addToken()
  await eventually(() => worker.view.version === fleet.head().version)
  const { version } = fleet.revoke(hash, true)
  await eventually(() => worker.view.isRevoked(hash))
  expect(await fleet.control.fleet.propagation(version)).toMatchObject({ connected: 1, acknowledged: 1 })
  expect(worker.view.version).toBeLessThan(version)
  await eventually(() => worker.view.version === version)
  expect(worker.view.isRevoked(hash)).toBe(false)
})

test('reads many revocations together, and sooner when max_staleness is short', async () => {
  const settings = {
    max_staleness_seconds: 0,
    outbox_segment_bytes: 65_536,
    outbox_limit_bytes: 2 ** 20,
    outbox_keep_hours: 1,
    usage_wait_seconds: 2,
  }
  const patient = await fleet.worker('patient', { heartbeatEveryMs: 60_000, random: () => 0 })
  const strict = await fleet.worker('strict', { heartbeatEveryMs: 60_000, random: () => 1, settings })
  const hashes = Array.from({ length: 20 }, () => fleet.addToken())
  await eventually(async () => (await fleet.control.fleet.propagation(fleet.head().version)).acknowledged === 2)
  await eventually(() => [patient, strict].every(({ view }) => view.version === fleet.head().version))
  const reads: StateView[] = []
  const { refresh } = FileStateView.prototype
  const spy = spyOn(FileStateView.prototype, 'refresh').mockImplementation(function (this: FileStateView) {
    reads.push(this)
    return refresh.call(this)
  })
  for (const hash of hashes) {
    const { version } = fleet.revoke(hash, true)
    expect(await fleet.control.fleet.propagation(version)).toMatchObject({ connected: 2, acknowledged: 2 })
  }
  await eventually(() => [patient, strict].every(({ view }) => view.version === fleet.head().version))
  spy.mockRestore()
  expect(reads[0]).toBe(strict.view)
  expect(reads.filter((view) => view === patient.view).length).toBeLessThan(hashes.length / 2)
})

test('an answer that took three seconds counts as of when it was requested', async () => {
  fleet.interfere = async (path, _request, forward) => {
    const answer = await forward()
    if (path.endsWith('/heartbeat')) await Bun.sleep(2500)
    return answer
  }
  const worker = await fleet.worker('a', { heartbeatEveryMs: 500 })
  await eventually(() => worker.ready().ok)
  expect(worker.counters.secondsSinceFresh).toBeGreaterThan(2.4)
  const hash = fleet.addToken()
  const { version } = fleet.revoke(hash)
  await eventually(async () => (await fleet.control.fleet.propagation(version)).acknowledged === 1)
  worker.status.assertCurrent()
}, 30_000)

/** What a stream brings, all events behind the first so many replaced by comments. */
function stalledStream(body: ReadableStream<Uint8Array>, events: number): ReadableStream<Uint8Array> {
  let passed = 0
  return body.pipeThrough(
    new TransformStream({
      transform(piece, out) {
        out.enqueue(passed++ < events ? piece : new TextEncoder().encode(':\n\n'))
      },
    }),
  )
}

test('reopens a stream that brings bytes but no events or no handshake', async () => {
  const clock = movableClock()
  // The first version of all is in no log of changes.
  fleet.change(() => undefined)
  let streams = 0
  let passed = 1
  fleet.interfere = async (path, _request, forward) => {
    const answer = await forward()
    if (!path.endsWith('/stream') || !answer.body) return answer
    streams++
    return new Response(stalledStream(answer.body, passed), answer)
  }
  const worker = await fleet.worker('a', { clock, random: () => 0 })
  await eventually(() => worker.ready().ok)
  fleet.revoke(fleet.addToken())
  await Bun.sleep(200)
  expect(streams).toBe(1)
  passed = 0
  clock.skip(5000)
  await eventually(() => streams === 2)
  passed = Number.POSITIVE_INFINITY
  clock.skip(15_000)
  await eventually(() => streams === 3 && worker.counters.connected === 1)
  const { version } = fleet.revoke(fleet.addToken())
  await eventually(async () => (await fleet.control.fleet.propagation(version)).acknowledged === 1)
  clock.skip(6000)
  await Bun.sleep(200)
  expect(streams).toBe(3)
}, 30_000)

function copyState(name: string): string {
  const file = join(fleet.directory, name)
  using state = new Database(fleet.stateFile)
  state.run('vacuum into ?', [file])
  return file
}

test('polls a lagging state no more often for many changes than for one, and reads the newest', async () => {
  const stateFile = copyState('behind.db')
  const worker = await fleet.worker('a', { stateFile })
  await eventually(() => worker.ready().ok && worker.counters.connected === 1)
  const head = Array.from({ length: 300 }, () => fleet.change(() => undefined)).at(-1)
  await eventually(async () => (await fleet.control.fleet.propagation(head?.version ?? 0)).acknowledged === 1)
  const refresh = spyOn(FileStateView.prototype, 'refresh')
  await Bun.sleep(400)
  expect(refresh.mock.calls.length).toBeLessThan(100)
  refresh.mockRestore()
  renameSync(copyState('current.db'), stateFile)
  await eventually(() => worker.view.version === head?.version)
})

test('goes stale when its state does not follow, whatever the control plane answers', async () => {
  const stateFile = copyState('behind.db')
  const clock = movableClock()
  const worker = await fleet.worker('a', { stateFile, clock })
  await eventually(() => worker.ready().ok && worker.counters.connected === 1)
  const { version } = fleet.change(() => undefined)
  await eventually(async () => (await fleet.control.fleet.propagation(version)).acknowledged === 1)
  clock.skip(100_000)
  await eventually(() => worker.ready().warning?.includes('lags behind') ?? false)
  clock.skip(201_000)
  await Bun.sleep(120)
  expect(() => worker.status.assertCurrent()).toThrow(expect.objectContaining({ code: 'token_state_stale' }))
  renameSync(copyState('current.db'), stateFile)
  await eventually(() => worker.ready().ok && worker.ready().warning === undefined)
  worker.status.assertCurrent()
})

test('tells the next control plane of the counts of its grants, even before its first heartbeat', async () => {
  const told: unknown[] = []
  fleet.interfere = async (path, request, forward) => {
    if (path.endsWith('/heartbeat')) return new Response(null, { status: 503 })
    if (path.endsWith('/stream')) told.push(JSON.parse(new URL(request.url).searchParams.get('ledger_epoch') ?? '[]'))
    return await forward()
  }
  const worker = await fleet.worker('a')
  const { signal } = new AbortController()
  await eventually(() => worker.counters.connected === 1)
  await worker.usageLimits.reserve([{ account: `grant/${crypto.randomUUID()}`, want: 1, min: 1 }], signal)
  const counted = await fleet.ledger.read<{ writer: string; written: number }>(
    'select writer, written from ledger_epoch where written > 0',
  )
  expect(counted).toHaveLength(1)
  const port = await fleet.stopControlPlane()
  await fleet.startControlPlane(port)
  await eventually(() => told.length > 1)
  expect(told[0]).toEqual([])
  expect(told.at(-1)).toEqual(counted)
}, 30_000)
