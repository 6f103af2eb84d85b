import { afterEach, beforeEach, expect, jest, spyOn, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../../../test/support/eventually.ts'
import { systemClock } from '../../lib/clock.ts'
import { newId } from '../../lib/ids.ts'
import { silentLog } from '../../lib/log/log.ts'
import { type Database, openDatabase } from '../../store/open.ts'
import { migrateLedger } from '../../store/schema/migrate.ts'
import { connectedWorkers } from './connected-workers.ts'
import { propagate } from './propagation.ts'
import { type Worker, WorkerRegistry } from './worker-registry.ts'

let directory: string
let ledger: Database
let registry: WorkerRegistry

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-registry-'))
  ledger = await openDatabase(join(directory, 'ledger.db'), directory)
  await migrateLedger(ledger)
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

const standing = async (): Promise<string[]> => (await registry.standing(300_000)).map(({ worker: name }) => name)

test('a heartbeat that arrives behind the goodbye of its worker does not bring the worker back', async () => {
  const gone = worker()
  await registry.take(gone)
  registry.heartbeat(gone, 1)
  await registry.leave(gone)
  registry.heartbeat(gone, 2)
  await registry.close()
  expect(await standing()).toEqual([])
})

test('a heartbeat that was written while the clock of the ledger was ahead does not count for ever', async () => {
  const held = worker()
  await registry.take(held)
  await ledger.write([{ sql: 'update workers set last_heartbeat_at = ?', args: [systemClock.now() + 3_600_000] }])
  registry.heartbeat(held, 1)
  await registry.close()
  const [row] = await ledger.read<{ last_heartbeat_at: number }>('select last_heartbeat_at from workers')
  expect(row?.last_heartbeat_at).toBeLessThanOrEqual(systemClock.now())
})

test('a worker that has said goodbye stands again with its next stream', async () => {
  const back = worker()
  await registry.take(back)
  await registry.leave(back)
  const again = { ...back, streamId: newId() }
  await registry.take(again)
  registry.heartbeat(again, 1)
  await registry.close()
  expect(await standing()).toEqual([back.worker])
})

test('workers that said goodbye are not counted as connected', async () => {
  const [stays, leaves] = [worker(), worker()]
  for (const each of [stays, leaves]) {
    await registry.take(each)
    registry.heartbeat(each, 1)
  }
  await registry.close()
  expect(await connectedWorkers(ledger)).toBe(2)
  await registry.leave(leaves)
  expect(await connectedWorkers(ledger)).toBe(1)
})

test('no worker is taken once the control plane ends, whose stream would keep it from ending', async () => {
  await registry.close()
  const refused = registry.take(worker())
  await expect(refused).rejects.toMatchObject({ code: 'dependency_unavailable' })
  expect(await ledger.read('select worker from workers')).toEqual([])
})

test('what another control plane says of its workers is believed by their streams, without a look at the rows', async () => {
  const away = new WorkerRegistry({ ledger, clock: systemClock, log: silentLog, shared: true })
  const far = worker()
  await away.take(far)
  away.heartbeat(far, 1)
  await away.close()
  const reads = spyOn(ledger, 'read')
  // A clock that stands: however slow all else is, it is not time to look at the rows.
  const clock = { now: Date.now, monotonic: () => 0 }
  const propagation = propagate(registry, { version: 2, staleAfterMs: 300_000, clock })
  await Bun.sleep(0)
  registry.heard([{ worker: far.worker, stream_id: newId(), version: 2 }])
  await Bun.sleep(0)
  registry.heard([{ worker: far.worker, stream_id: far.streamId, version: 2 }])
  registry.heard([{ worker: far.worker, stream_id: far.streamId, version: 1 }])
  expect(await propagation).toMatchObject({ connected: 1, acknowledged: 1, unreachable: [] })
  expect(reads).toHaveBeenCalledTimes(1)
})

test('acknowledgements are told with their versions, and written at once only where somebody did not hear them', async () => {
  const told: unknown[] = []
  const near = worker()
  await registry.take(near)
  registry.heartbeat(near, 1)
  await eventually(async () => (await registry.standing(300_000)).length === 1)
  expect(await ledger.read('select acknowledged_version as version from workers')).toEqual([{ version: 1 }])
  const writes = spyOn(ledger, 'read')
  for (const [version, heard] of [true, false].entries()) {
    registry.tellOthers = async (workers) => {
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

test('acknowledgements of all workers are told at once, and one that stays away keeps the others for a moment only', async () => {
  const workers = Array.from({ length: 10 }, worker)
  for (const each of workers) await registry.take(each)
  const told: number[] = []
  registry.tellOthers = async (said) => told.push(said.length) > 0
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

/** A stream that tells what it was told. */
function listener(worker: Worker): string[] {
  const said: string[] = []
  worker.stream = { send: ({ kind }) => void said.push(kind), end: () => void said.push('end') }
  return said
}

test('a take that a hanging primary writes late takes nothing from the stream that was opened meanwhile', async () => {
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
  const late = elsewhere.take(first).catch(({ code }: { code: string }) => code)
  await held.promise
  const second = { ...first, streamId: newId() }
  const told = listener(second)
  await registry.take(second)
  released.resolve()
  expect(await late).toBe('dependency_unavailable')
  await registry.taken(first.worker, first.streamId)
  expect(told).toEqual([])
  expect(await registry.row(first.worker)).toMatchObject({ stream_id: second.streamId })
  expect([elsewhere.get(first.worker), registry.get(first.worker)]).toEqual([null, second])
  await elsewhere.close()
})

test('a take that nobody waits for any more takes nothing', async () => {
  const holder = worker()
  const told = listener(holder)
  await registry.take(holder)
  const gone = registry.take({ ...holder, streamId: newId() }, () => false).catch(({ code }: { code: string }) => code)
  expect(await gone).toBe('dependency_unavailable')
  expect([await registry.row(holder.worker), told]).toMatchObject([{ stream_id: holder.streamId }, []])
})

test('a process gets its worker back unless another took it since, by the time of the ledger', async () => {
  const [mine, since] = [worker(), 1_000_000]
  const again = () => registry.take({ ...mine, streamId: newId() }, undefined, since)
  const rowOf = (holder: string, at: number) =>
    ledger.write([{ sql: 'update workers set holder = ?, connected_at = ?', args: [holder, at] }])
  expect(await registry.take(mine)).toMatchObject({ forgotten: false })
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

test('another process that takes the worker ends its holder, here and by word of another control plane', async () => {
  const elsewhere = new WorkerRegistry({ ledger, clock: systemClock, log: silentLog, shared: true })
  const [one, two, three] = [worker(), worker(), worker()].map((each, _, [{ worker: name } = each]) => ({
    ...each,
    worker: name,
  }))
  if (one === undefined || two === undefined || three === undefined) throw new RangeError()
  const [oneTold, twoTold] = [listener(one), listener(two)]
  await registry.take(one)
  await registry.take(two)
  expect(oneTold).toEqual(['fenced', 'end'])
  await elsewhere.take(three)
  await registry.taken(three.worker, three.streamId)
  expect(twoTold).toEqual(['fenced', 'end'])
  await elsewhere.close()
})
