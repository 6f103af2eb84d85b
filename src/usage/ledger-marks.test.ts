import { afterEach, beforeEach, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { migrateLedger } from '../store/migrate.ts'
import { type Database, databaseTime, openDatabase } from '../store/open.ts'
import { temporaryDirectory } from '../store/test-store.ts'
import { LedgerMarks } from './ledger-marks.ts'

let directory: string
let ledger: Database
beforeEach(async () => {
  directory = temporaryDirectory()
  ledger = await openDatabase(join(directory, 'ledger.db'), directory)
  await migrateLedger(ledger)
})
afterEach(() => {
  ledger.close()
  rmSync(directory, { recursive: true, force: true })
})

const run = (sql: string) => ledger.write([{ sql, args: [] }])
async function count(marks: LedgerMarks): Promise<void> {
  await ledger.write([marks.count()])
  marks.made()
}

test('a ledger that lacks a transaction of anybody is behind, and what was known of it stays known', async () => {
  const [own, other] = [new LedgerMarks('own'), new LedgerMarks('other')]
  await count(own)
  await count(other)
  expect(await own.read(ledger)).toBe(true)
  await run("update ledger_marks set written = 0 where writer = 'other'")
  expect(await own.read(ledger)).toBe(false)
  expect(own.known).toContainEqual({ writer: 'other', written: 1 })
})

test('a control plane that has written nothing for a day is forgotten, and not taken for lost', async () => {
  const [own, former] = [new LedgerMarks('own'), new LedgerMarks('former')]
  await count(own)
  await count(former)
  expect(await own.read(ledger)).toBe(true)
  await run(`update ledger_marks set at = ${databaseTime} - 86400001 where writer = 'former'`)
  expect(await own.read(ledger)).toBe(true)
  expect(own.known).toEqual([{ writer: 'own', written: 1 }])
})

test('of control planes that were started over and over the latest are remembered, and none is taken for lost', async () => {
  const own = new LedgerMarks('own')
  for (let start = 0; start < 120; start += 1) {
    await count(new LedgerMarks(`start ${start}`))
    await run(`update ledger_marks set at = ${databaseTime} - ${1000 - start} where writer = 'start ${start}'`)
    if (start % 30 === 0) expect(await own.read(ledger)).toBe(true)
  }
  expect(await own.read(ledger)).toBe(true)
  expect(own.known).toHaveLength(50)
  expect(own.known).toContainEqual({ writer: 'start 119', written: 1 })
})
