/** How often each property is tried: `LOG_RUNS=1000 bun test src/events/clickhouse/moved-log.test.ts` tries hard. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { join } from 'node:path'
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { type ClickHouseServer, startClickHouse } from '../../../test/fakes/clickhouse.ts'
import { silentLog } from '../../lib/log/log.ts'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import { keepLogIn, logOf } from '../engine/log-of.ts'
import { announcedHead } from '../ingest/ingest.ts'
import { chainStart } from '../log/chain.ts'
import { failing, LogModel } from '../testing/log-model.ts'
import { holdsForAnySteps } from '../testing/log-suite.ts'
import { Archive } from './archive.ts'
import { moveOldRecords, moveSome } from './move.ts'
import { movedLog, movedUpTo } from './moved-log.ts'
import { clickhouseSchema, recordsTable } from './schema.ts'

let server: ClickHouseServer
let client: ClickHouseClient
let store: TemporaryStore
let archive: Archive
beforeAll(async () => {
  server = startClickHouse()
  client = createClient({ url: server.url, log: { level: ClickHouseLogLevel.OFF } })
  await client.command({ query: clickhouseSchema })
  store = await temporaryStore()
  archive = new Archive(client)
  keepLogIn(store.ledger, movedLog(store.ledger, archive))
})
afterAll(async () => {
  await client.close()
  await server.stop()
  store.remove()
})

const options = () => ({
  ...{ ledger: store.ledger, archive, clock: { now: () => 10_000 }, log: silentLog, keepMilliseconds: 0 },
})

const empty = async () => {
  await client.command({ query: `TRUNCATE TABLE ${recordsTable}` })
}

const countOf = async (table: string): Promise<number> => {
  const answer = await client.query({ query: `SELECT count() AS rows FROM ${table}`, format: 'JSONEachRow' })
  const [row] = await answer.json<{ rows: string }>()
  return Number(row?.rows)
}

test('whatever is appended, merged, moved and crashes, readers get what a plain list gives', async () => {
  const adapter = {
    empty,
    async move(crash: number | null) {
      const ledger = crash === null ? store.ledger : failing(store.ledger, crash)
      // The crash is the error; what it left is compared afterwards.
      const moved = await moveSome({ ...options(), ledger, segments: 2, characters: 3000 }).catch(() => null)
      if (moved !== null) moves += moved
    },
    canRemoveOldest: async () => (await archive.bounds(Number.MAX_SAFE_INTEGER)) === null,
  }
  let moves = 0
  await holdsForAnySteps(store.ledger, adapter, Number(process.env.LOG_RUNS ?? 50))
  expect(moves).toBeGreaterThan(0)
}, 600_000)

const anyShape = { at: 1_010, team: 0, token: 1, model: 2, request: 1, blocked: false, attempts: 1 }

async function logOfTen(): Promise<LogModel> {
  const model = new LogModel(store.ledger)
  await model.begin()
  await empty()
  await model.append(
    'chain-1',
    Array.from({ length: 10 }, (_, index) => ({ ...anyShape, request: index })),
  )
  return model
}

test('a move that stops after ClickHouse has the records shows each of them once', async () => {
  const model = await logOfTen()
  expect(await moveSome({ ...options(), ledger: failing(store.ledger, 0) })).toBe(0)
  expect(await countOf(recordsTable)).toBeGreaterThanOrEqual(10)
  expect(await movedUpTo(store.ledger)).toBe(1)
  expect(await moveOldRecords(options())).toBe(10)
  expect(await movedUpTo(store.ledger)).toBe(11)
  const records = await Array.fromAsync(logOf(store.ledger).records({ from: 1, before: 11 }))
  expect(records.map(({ text }) => text)).toEqual(model.records.map(({ text }) => text))
})

test.each(['before', 'after'] as const)(
  'a process that is killed %s ClickHouse has the records loses none',
  async (moment) => {
    const model = await logOfTen()
    const script = join(import.meta.dir, '../testing/move-process.ts')
    const child = Bun.spawn([process.execPath, script, store.directory, server.url])
    server[moment] = async (statement) => {
      if (!statement.startsWith('INSERT')) return
      child.kill('SIGKILL')
      await child.exited
    }
    await child.exited
    server[moment] = () => undefined
    expect(child.signalCode).toBe('SIGKILL')
    expect(await movedUpTo(store.ledger)).toBe(1)
    const texts = async () => {
      const records = await Array.fromAsync(logOf(store.ledger).records({ from: 1, before: 11 }))
      return records.map(({ text }) => text)
    }
    const expected = model.records.map(({ text }) => text)
    expect(await texts()).toEqual(expected)
    expect(await moveOldRecords(options())).toBe(10)
    expect(await texts()).toEqual(expected)
    expect(await countOf(recordsTable)).toBe(10)
  },
)

test('a move that ClickHouse did not answer keeps the records in the ledger', async () => {
  await logOfTen()
  for (const moment of ['before', 'after'] as const) {
    server[moment] = () => Promise.reject(new Error('gone'))
    await expect(moveOldRecords(options())).rejects.toThrow()
    server[moment] = () => undefined
    expect(await movedUpTo(store.ledger)).toBe(1)
  }
  expect(await moveOldRecords(options())).toBe(10)
})

test('a worker learns its head while ClickHouse is away', async () => {
  const model = await logOfTen()
  await moveOldRecords(options())
  server.before = () => Promise.reject(new Error('gone'))
  const head = await announcedHead(store.ledger, 'chain-1')
  await expect(Array.fromAsync(logOf(store.ledger).records({ from: 1, before: 3 }))).rejects.toThrow('ClickHouse')
  server.before = () => undefined
  expect(head).toEqual({ ...(model.chains.get('chain-1')?.head ?? { seq: 0, digest: '' }), earlier: [] })
})

test('what the ledger can answer is answered while ClickHouse is away', async () => {
  const model = await logOfTen()
  await moveOldRecords(options())
  await model.append('chain-1', [{ ...anyShape, at: 2_000 }])
  await model.append('chain-2', [{ ...anyShape, at: 2_500 }])
  server.before = () => Promise.reject(new Error('gone'))
  const log = logOf(store.ledger)
  const texts = await Array.fromAsync(log.records({ from: 11, before: 13 }))
  const chain = await Array.fromAsync(log.chains().records('chain-1', { after: 10, upTo: 11, bodies: true }))
  const unknown = await Array.fromAsync(log.chains().records('chain-3', { after: 4, upTo: 5, bodies: true }))
  const digest = await log.chains().digestAt('chain-1', 10)
  const lagsSince = await log.timeAt(3)
  server.before = () => undefined
  expect(texts.map(({ text }) => text)).toEqual(model.records.slice(10).map(({ text }) => text))
  expect([chain.length, unknown.length]).toEqual([1, 0])
  expect(digest).toBe(model.chains.get('chain-1')?.digests[10] ?? null)
  expect(lagsSince).toBe(2_000)
  expect(await log.timeAt(3)).toBe(1_010)
})

test('records that were inserted twice under different tokens are shown once', async () => {
  const model = await logOfTen()
  await moveOldRecords(options())
  await client.command({
    query: `INSERT INTO ${recordsTable} SELECT * FROM ${recordsTable}`,
    clickhouse_settings: { insert_deduplicate: 0 },
  })
  const log = logOf(store.ledger)
  const query = { order: 'newest' as const, since: 0, until: 5_000, ceiling: 11, after: null, facets: [], ids: [] }
  const parts = await Array.fromAsync(log.parts(query))
  expect(parts.flatMap(({ events }) => events)).toHaveLength(model.events.length)
  expect(await Array.fromAsync(log.records({ from: 1, before: 11 }))).toHaveLength(10)
  const chain = log.chains().records('chain-1', { after: 0, upTo: 10, bodies: true })
  expect(await Array.fromAsync(chain)).toHaveLength(10)
})

test('reads on behind a gap that is longer than what it asks for at once', async () => {
  await logOfTen()
  await moveOldRecords(options())
  await client.command({
    query: `INSERT INTO ${recordsTable} SELECT * REPLACE (r.position + 5000 AS position) FROM ${recordsTable} AS r`,
  })
  const positions = async (from: number, before: number) => {
    const records = await Array.fromAsync(archive.chained({ from, before }, Number.MAX_SAFE_INTEGER))
    return records.map(({ position }) => position)
  }
  const ten = (first: number) => Array.from({ length: 10 }, (_, index) => first + index)
  expect(await positions(1, 9000)).toEqual([...ten(1), ...ten(5001)])
  expect(await positions(11, 5003)).toEqual([5001, 5002])
  expect(await positions(11, 5000)).toEqual([])
  expect(await positions(5011, 9000)).toEqual([])
  await empty()
})

test('nothing is moved where ClickHouse has records that the ledger lacks', async () => {
  const model = await logOfTen()
  await moveOldRecords(options())
  // As a restored ledger has it.
  await model.begin()
  await new LogModel(store.ledger).append('chain-2', [anyShape])
  expect(await moveOldRecords(options())).toBe(0)
  expect(await movedUpTo(store.ledger)).toBe(1)
})

test('a restored ledger that gives positions again keeps its records', async () => {
  const model = await logOfTen()
  await moveOldRecords(options())
  await model.begin()
  const restored = new LogModel(store.ledger)
  await restored.append(
    'chain-2',
    Array.from({ length: 12 }, () => ({ ...anyShape, at: 1_020 })),
  )
  await expect(moveOldRecords(options())).rejects.toThrow('other records')
  const texts = (await Array.fromAsync(logOf(store.ledger).records({ from: 1, before: 13 }))).map(({ text }) => text)
  expect(texts).toEqual(restored.records.map(({ text }) => text))
  // As the handbook says.
  await client.command({ query: `DELETE FROM ${recordsTable} WHERE position >= 1` })
  expect(await moveOldRecords(options())).toBe(12)
})

test('records that do not lead to the digest of their chain stay in the ledger', async () => {
  await logOfTen()
  await store.ledger.write([{ sql: "update event_blocks set body = x'00' where first_position = 1", args: [] }])
  expect(await moveOldRecords(options())).toBe(0)
  expect(await movedUpTo(store.ledger)).toBe(1)
  expect(await logOf(store.ledger).chains().digestAt('chain-1', 0)).toBe(chainStart('chain-1'))
})
