/** Retention of records in ClickHouse. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { type ClickHouseClient, ClickHouseLogLevel, createClient } from '@clickhouse/client'
import { type ClickHouseServer, startClickHouse } from '../../../test/fakes/clickhouse.ts'
import { silentLog } from '../../lib/log/log.ts'
import { Archive } from '../clickhouse/archive.ts'
import { moveOldRecords } from '../clickhouse/move.ts'
import { movedLog } from '../clickhouse/moved-log.ts'
import { clickhouseSchema, recordsTable } from '../clickhouse/schema.ts'
import { keepLogIn, logOf } from '../engine/log-of.ts'
import { retentionDays, TestProof } from '../testing/proof.ts'

const day = 86_400_000
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
  server.before = () => undefined
  proof = await TestProof.start()
  keepLogIn(proof.store.ledger, movedLog(proof.store.ledger, archive))
  await proof.recordTwoCheckpoints()
})

const command = (query: string) => client.command({ query, clickhouse_settings: { mutations_sync: '2' } })

const move = () =>
  moveOldRecords({
    ...{ ledger: proof.store.ledger, archive, log: silentLog, clock: { now: () => proof.now + 1 } },
    keepMilliseconds: 0,
  })

/** Two days of records in ClickHouse, of which retention may remove the first. */
async function twoDays(): Promise<void> {
  await move()
  proof.now += 2 * day
  await proof.shipEvents(1, 3)
  await proof.sign()
  await move()
  proof.now += (retentionDays - 1) * day
}

test('removes whole days, raises the floors, and the rest verifies', async () => {
  await twoDays()
  expect(await proof.retain()).toEqual({ removed: 16, finished: true })
  expect(await logOf(proof.store.ledger).oldest()).toBe(17)
  expect(await proof.findings()).toEqual([])
  expect(await proof.retain()).toEqual({ removed: 0, finished: true })
  proof.now += 3 * day
  expect(await proof.retain()).toEqual({ removed: 3, finished: true })
  expect(await logOf(proof.store.ledger).oldest()).toBeNull()
  expect(await proof.findings()).toEqual([])
})

test('a kill between the floors and the removal is made good by the next round', async () => {
  await twoDays()
  server.before = (statement) => {
    if (statement.startsWith('DELETE')) throw new Error('killed')
  }
  await expect(proof.retain()).rejects.toThrow('ClickHouse')
  server.before = () => undefined
  expect(await logOf(proof.store.ledger).oldest()).toBe(1)
  expect(await proof.findings()).toEqual([])
  expect(await proof.retain()).toEqual({ removed: 0, finished: true })
  expect(await logOf(proof.store.ledger).oldest()).toBe(17)
})

test('what does not verify is not removed', async () => {
  await twoDays()
  await command(`ALTER TABLE ${recordsTable} UPDATE text = replaceAll(text, '"allow"', '"block"') WHERE position = 16`)
  expect(await proof.retain()).toEqual({ removed: 0, finished: true })
  expect(await logOf(proof.store.ledger).oldest()).toBe(1)
})

test('what a sink has not got is kept for some days more', async () => {
  await twoDays()
  expect(await proof.retain({ heldFrom: async () => 5 })).toEqual({ removed: 0, finished: true })
  proof.now += 7 * day
  expect(await proof.retain({ heldFrom: async () => 5 })).toEqual({ removed: 16, finished: true })
})
