import { afterEach, beforeEach, expect, jest, spyOn, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../../../test/support/eventually.ts'
import { systemClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import type { Database } from '../../store/open.ts'
import { openMigrated } from '../../store/testing/store.ts'
import { connectedWorkers } from './connected-workers.ts'
import { propagate } from './propagation.ts'
import { type Worker, WorkerRegistry } from './worker-registry.ts'

let directory: string
let ledger: Database
let registry: WorkerRegistry

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-registry-'))
  ledger = await openMigrated('ledger', directory)
  registry = new WorkerRegistry({ ledger, clock: systemClock, log: silentLog, shared: true })
})

afterEach(async () => {
  await registry.close()
  ledger.close()
  rmSync(directory, { recursive: true, force: true })
})

const worker = (): Worker => ({
  worker: newId(),
  gatewayId: newId(),
  instanceId: newId(),
  workerNumber: 0,
  tokenId: newId(),
  streamId: newId(),
  process: newId(),
  stream: null,
  acknowledgedVersion: 0,
  lastHeartbeatAt: null,
  staleAfterMs: null,
})

const status = async (): Promise<string[]> => (await registry.statuses(300_000)).map(({ worker: name }) => name)

test('a heartbeat that arrives after the deregistration does not register the worker again', async () => {
  const gone = worker()
  await registry.takeOver(gone)
  registry.heartbeat(gone, 1)
  await registry.deregister(gone)
  registry.heartbeat(gone, 2)
  await registry.close()
  expect(await status()).toEqual([])
})

test("a heartbeat written while the ledger's clock was ahead does not count for ever", async () => {
  const held = worker()
  await registry.takeOver(held)
  await ledger.write([{ sql: 'update workers set last_heartbeat_at = ?', args: [systemClock.now() + 3_600_000] }])
  registry.heartbeat(held, 1)
  await registry.close()
  const [row] = await ledger.read<{ last_heartbeat_at: number }>('select last_heartbeat_at from workers')
  expect(row?.last_heartbeat_at).toBeLessThanOrEqual(systemClock.now())
})

test('a deregistered worker counts again with its next stream', async () => {
  const back = worker()
  await registry.takeOver(back)
  await registry.deregister(back)
  const again = { ...back, streamId: newId() }
  await registry.takeOver(again)
  registry.heartbeat(again, 1)
  await registry.close()
  expect(await status()).toEqual([back.worker])
})

test('deregistered workers do not count as connected', async () => {
  const [stays, leaves] = [worker(), worker()]
  for (const each of [stays, leaves]) {
    await registry.takeOver(each)
    registry.heartbeat(each, 1)
  }
  await registry.close()
  expect(await connectedWorkers(ledger)).toBe(2)
  await registry.deregister(leaves)
  expect(await connectedWorkers(ledger)).toBe(1)
})

test('takes no worker over once the control plane is shutting down', async () => {
  await registry.close()
  const refused = registry.takeOver(worker())
  await expect(refused).rejects.toMatchObject({ code: 'dependency_unavailable' })
  expect(await ledger.read('select worker from workers')).toEqual([])
})

test('believes another control plane about its workers by their stream, without reading the rows', async () => {
  const away = new WorkerRegistry({ ledger, clock: systemClock, log: silentLog, shared: true })
  const far = worker()
  await away.takeOver(far)
  away.heartbeat(far, 1)
  await away.close()
  const reads = spyOn(ledger, 'read')
  // A clock that stands: however slow all else is, it is not time to look at the rows.
  const clock = { now: Date.now, monotonic: () => 0 }
  const propagation = propagate(registry, { version: 2, staleAfterMs: 300_000, clock })
  await Bun.sleep(0)
  registry.applyPeerAcknowledgements([{ worker: far.worker, stream_id: newId(), version: 2 }])
  await Bun.sleep(0)
  registry.applyPeerAcknowledgements([{ worker: far.worker, stream_id: far.streamId, version: 2 }])
  registry.applyPeerAcknowledgements([{ worker: far.worker, stream_id: far.streamId, version: 1 }])
  expect(await propagation).toMatchObject({ connected: 1, acknowledged: 1, unreachable: [] })
  expect(reads).toHaveBeenCalledTimes(1)
})

test('broadcasts acknowledgements with their versions, and writes at once only if a peer did not receive them', async () => {
  const told: unknown[] = []
  const near = worker()
  await registry.takeOver(near)
  registry.heartbeat(near, 1)
  await eventually(async () => (await registry.statuses(300_000)).length === 1)
  expect(await ledger.read('select acknowledged_version as version from workers')).toEqual([{ version: 1 }])
  const writes = spyOn(ledger, 'read')
  for (const [version, heard] of [true, false].entries()) {
    registry.broadcastAcknowledgements = async (workers) => {
      told.push(...workers)
      return heard
    }
    // No second passes, in which heartbeats are written anyway.
    jest.useFakeTimers()
    registry.heartbeat(near, version + 3)
    await new Promise(process.nextTick)
    jest.useRealTimers()
    expect(told.at(-1)).toEqual({ worker: near.worker, stream_id: near.streamId, version: version + 3 })
    expect(writes).toHaveBeenCalledTimes(heard ? 0 : 1)
  }
})

test('broadcasts the acknowledgements of all workers together, and waits only briefly for a missing one', async () => {
  const workers = Array.from({ length: 10 }, worker)
  for (const each of workers) await registry.takeOver(each)
  const told: number[] = []
  registry.broadcastAcknowledgements = async (said) => told.push(said.length) > 0
  // The moment does not pass, however long the heartbeats take to arrive.
  jest.useFakeTimers()
  for (const each of workers) {
    registry.heartbeat(each, 1)
    await new Promise(process.nextTick)
  }
  jest.useRealTimers()
  expect(told).toEqual([10])
  for (const each of workers.slice(1)) registry.heartbeat(each, 2)
  await eventually(() => told.length > 1)
  expect(told).toEqual([10, 9])
})

/** A stream that keeps the messages it was sent. */
function listener(worker: Worker): string[] {
  const said: string[] = []
  worker.stream = { send: ({ kind }) => void said.push(kind), end: () => void said.push('end') }
  return said
}

test('a takeover that a hanging primary writes late does not displace the newer stream', async () => {
  const [held, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const hanging: Database = {
    ...ledger,
    async writeAndRead<Shape>(statements: Parameters<Database['writeAndRead']>[0]) {
      held.resolve()
      await released.promise
      return await ledger.writeAndRead<Shape>(statements)
    },
  }
  const elsewhere = new WorkerRegistry({ ledger: hanging, clock: systemClock, log: silentLog, shared: true })
  const first = worker()
  const late = elsewhere.takeOver(first).catch(({ code }: { code: string }) => code)
  await held.promise
  const second = { ...first, streamId: newId() }
  const told = listener(second)
  await registry.takeOver(second)
  released.resolve()
  expect(await late).toBe('dependency_unavailable')
  await registry.takenElsewhere(first.worker, first.streamId)
  expect(told).toEqual([])
  expect(await registry.row(first.worker)).toMatchObject({ stream_id: second.streamId })
  expect([elsewhere.get(first.worker), registry.get(first.worker)]).toEqual([null, second])
  await elsewhere.close()
})

test('a takeover that nobody waits for any more takes nothing', async () => {
  const holder = worker()
  const told = listener(holder)
  await registry.takeOver(holder)
  const gone = registry
    .takeOver({ ...holder, streamId: newId() }, () => false)
    .catch(({ code }: { code: string }) => code)
  expect(await gone).toBe('dependency_unavailable')
  expect([await registry.row(holder.worker), told]).toMatchObject([{ stream_id: holder.streamId }, []])
})

test("a process gets its worker back unless another took it since, by the ledger's time", async () => {
  const [mine, since] = [worker(), 1_000_000]
  const again = () => registry.takeOver({ ...mine, streamId: newId() }, undefined, since)
  const rowOf = (holder: string, at: number) =>
    ledger.write([{ sql: 'update workers set holder = ?, connected_at = ?', args: [holder, at] }])
  expect(await registry.takeOver(mine)).toMatchObject({ forgotten: false })
  await rowOf('another', since + 1)
  await expect(again()).rejects.toMatchObject({ code: 'worker_fenced' })
  // An answer that did not arrive.
  await rowOf(mine.process, since + 1)
  expect(await again()).toMatchObject({ forgotten: false })
  await rowOf('a former one', since - 1)
  expect(await again()).toMatchObject({ forgotten: true })
  await ledger.write([{ sql: 'delete from workers', args: [] }])
  expect(await again()).toMatchObject({ forgotten: true })
})

test('a takeover by another process ends the former stream, here and on other control planes', async () => {
  const elsewhere = new WorkerRegistry({ ledger, clock: systemClock, log: silentLog, shared: true })
  const [one, two, three] = [worker(), worker(), worker()].map((each, _, [{ worker: name } = each]) => ({
    ...each,
    worker: name,
  }))
  if (one === undefined || two === undefined || three === undefined) throw new RangeError()
  const [oneTold, twoTold] = [listener(one), listener(two)]
  await registry.takeOver(one)
  await registry.takeOver(two)
  expect(oneTold).toEqual(['fenced', 'end'])
  await elsewhere.takeOver(three)
  await registry.takenElsewhere(three.worker, three.streamId)
  expect(twoTold).toEqual(['fenced', 'end'])
  await elsewhere.close()
})
