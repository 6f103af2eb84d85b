/** Verification of a log whose older records are in ClickHouse. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { type ClickHouseServer, startClickHouse } from '../../../test/fakes/clickhouse.ts'
import { silentLog } from '../../lib/log/log.ts'
import { Archive } from '../clickhouse/archive.ts'
import { moveOldRecords, moveSome } from '../clickhouse/move.ts'
import { movedLog } from '../clickhouse/moved-log.ts'
import { clickhouseSchema, recordsTable } from '../clickhouse/schema.ts'
import { keepLogIn } from '../engine/log-of.ts'
import { retentionDays, TestProof } from '../testing/proof.ts'
import { type VerifyLine, verifyEvents } from './verify.ts'

let server: ClickHouseServer
let client: ClickHouseClient
let archive: Archive
let proof: TestProof
beforeAll(async () => {
  server = startClickHouse()
  client = createClient({ url: server.url, log: { level: ClickHouseLogLevel.OFF } })
  await client.command({ query: clickhouseSchema })
  archive = new Archive(client)
})
afterAll(async () => {
  await client.close()
  await server.stop()
})
beforeEach(async () => {
  await command(`TRUNCATE TABLE ${recordsTable}`)
  proof = await TestProof.start()
  keepLogIn(proof.store.ledger, movedLog(proof.store.ledger, archive))
  await proof.recordTwoCheckpoints()
})

const command = (query: string) =>
  client.command({ query, clickhouse_settings: { mutations_sync: '2', lightweight_deletes_sync: '2' } })

const moving = () => ({
  ...{ ledger: proof.store.ledger, archive, log: silentLog, clock: { now: () => proof.now + 1 }, keepMilliseconds: 0 },
})

const move = () => moveOldRecords(moving())

test('a log that moved verifies, and goes on to', async () => {
  expect(await move()).toBe(16)
  expect(await proof.findings()).toEqual([])
  await proof.shipEvents(2, 3)
  expect(await proof.sign()).toBe(true)
  expect(await proof.findings()).toEqual([])
  await move()
  expect(await proof.findings({ since: proof.now - 1 })).toEqual([])
  const summary = (await proof.verify()).at(-1)
  expect(summary).toMatchObject({ kind: 'summary', records: 19, findings: 0 })
})

test('checkpoints are signed while ClickHouse is away, and cover what comes meanwhile', async () => {
  await move()
  server.before = () => Promise.reject(new Error('gone'))
  await proof.shipEvents(1, 2)
  await proof.record(1)
  expect(await proof.sign()).toBe(true)
  await expect(proof.findings()).rejects.toThrow('ClickHouse')
  server.before = () => undefined
  const summary = (await proof.verify()).at(-1)
  expect(summary).toMatchObject({ kind: 'summary', records: 19, not_covered: 0, findings: 0 })
})

test('records that move while they are verified are all read, once', async () => {
  const { state, ledger } = proof.store
  let elapsed = 0
  let moved = 0
  const lines: VerifyLine[] = []
  for await (const line of verifyEvents({
    ...{ state, ledger, since: null, pinned: [], witnesses: [], now: proof.now + 20_000 },
    ...{ signal: new AbortController().signal, retention: retentionDays * 86_400_000 },
    // So each segment is followed by a line of progress.
    monotonic: () => (elapsed += 2_000),
  })) {
    lines.push(line)
    if (line.kind === 'progress') moved += (await moveSome({ ...moving(), segments: 2 })) ?? 0
  }
  expect(moved).toBe(16)
  expect(lines.filter(({ kind }) => kind === 'finding')).toEqual([])
  expect(lines.at(-1)).toMatchObject({ kind: 'summary', records: 16 })
})

test('an altered text is found by its chain', async () => {
  await move()
  await command(`ALTER TABLE ${recordsTable} UPDATE text = replaceAll(text, '"allow"', '"block"') WHERE position = 2`)
  expect(await proof.findings()).toEqual(['segment.index_altered 2–2 verdict', 'event.altered 01900001 1–4'])
})

test('a column that does not say what the text says is named', async () => {
  await move()
  await command(`ALTER TABLE ${recordsTable} UPDATE team = ['other'] WHERE position = 3`)
  expect(await proof.findings()).toEqual(['segment.index_altered 3–3 team'])
})

test('removed records are missing', async () => {
  await move()
  await command(`DELETE FROM ${recordsTable} WHERE position IN (7, 16)`)
  const found = await proof.findings()
  expect(found).toContain('segment.missing 7–7')
  expect(found).toContain('events.missing 01900002 2–2')
  expect(found).toContain('segment.missing 16–16')
  expect(found).toContain('events.missing 01900001 10–10')
})
