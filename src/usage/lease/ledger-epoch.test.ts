import { afterEach, beforeEach, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import fc from 'fast-check'
import { type Database, databaseTime } from '../../store/open.ts'
import { openMigrated, temporaryDirectory } from '../../store/testing/store.ts'
import { LedgerEpoch } from './ledger-epoch.ts'

let directory: string
let ledger: Database
beforeEach(async () => {
  directory = temporaryDirectory()
  ledger = await openMigrated('ledger', directory)
})
afterEach(() => {
  ledger.close()
  rmSync(directory, { recursive: true, force: true })
})

const run = (sql: string) => ledger.write([{ sql, args: [] }])
async function count(epoch: LedgerEpoch): Promise<void> {
  await ledger.write([epoch.count()])
  epoch.made()
}

test('a ledger that lacks a transaction of any writer is behind, and the known counts stay', async () => {
  const [own, other] = [new LedgerEpoch('own'), new LedgerEpoch('other')]
  await count(own)
  await count(other)
  expect(await own.read(ledger)).toBe(true)
  await run("update ledger_epoch set written = 0 where writer = 'other'")
  expect(await own.read(ledger)).toBe(false)
  expect(own.known).toContainEqual({ writer: 'other', written: 1 })
})

test('forgets a control plane that has written nothing for a day, without calling the ledger restored', async () => {
  const [own, former] = [new LedgerEpoch('own'), new LedgerEpoch('former')]
  await count(own)
  await count(former)
  expect(await own.read(ledger)).toBe(true)
  await run(`update ledger_epoch set at = ${databaseTime} - 86400001 where writer = 'former'`)
  expect(await own.read(ledger)).toBe(true)
  expect(own.known).toEqual([{ writer: 'own', written: 1 }])
})

test('remembers the latest of many restarted control planes and does not call the ledger restored', async () => {
  const own = new LedgerEpoch('own')
  for (let start = 0; start < 120; start += 1) {
    await count(new LedgerEpoch(`start ${start}`))
    await run(`update ledger_epoch set at = ${databaseTime} - ${1000 - start} where writer = 'start ${start}'`)
    if (start % 30 === 0) expect(await own.read(ledger)).toBe(true)
  }
  expect(await own.read(ledger)).toBe(true)
  expect(own.known).toHaveLength(50)
  expect(own.known).toContainEqual({ writer: 'start 119', written: 1 })
})

const hourMs = 3_600_000
const passHours = (hours: number) => run(`update ledger_epoch set at = at - ${hours * hourMs}`)
const written = () => ledger.read<{ writer: string; written: number; at: number }>('select * from ledger_epoch')

type Step = { what: 'count' | 'start' | 'end' | 'put back'; which: number } | { what: 'pass'; hours: number }
const anyStep: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ what: fc.constantFrom('count', 'count', 'start', 'end', 'put back'), which: fc.nat(5) }),
  fc.record({ what: fc.constant('pass'), hours: fc.integer({ min: 1, max: 700 }) }),
)

test('in any order of starts, ends and writes only a restored ledger is behind, and ended writers leave nothing', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anyStep, { minLength: 5, maxLength: 30 }), async (steps) => {
      await run('delete from ledger_epoch')
      let started = 1
      let running = [new LedgerEpoch('start 0')]
      const at = (which: number) => running[which % running.length] ?? new LedgerEpoch('nobody')
      const tidyAll = async () => {
        for (const epoch of running) await ledger.write(epoch.tidy())
      }
      const readAll = () => Promise.all(running.map((epoch) => epoch.read(ledger)))
      for (const step of steps) {
        if (step.what === 'count') await count(at(step.which))
        if (step.what === 'start') running.push(new LedgerEpoch(`start ${started++}`))
        if (step.what === 'end') running = running.filter((epoch) => epoch !== at(step.which) || running.length === 1)
        if (step.what === 'put back') {
          const copy = await written()
          await count(at(step.which))
          expect(await readAll()).not.toContain(false)
          await run('delete from ledger_epoch')
          for (const row of copy) {
            const sql = 'insert into ledger_epoch (writer, written, at) values (?, ?, ?)'
            await ledger.write([{ sql, args: [row.writer, row.written, row.at] }])
          }
          expect(await readAll()).not.toContain(true)
          // As it is made up for where that is found.
          await run(`insert into ledger_epoch select value ->> 'writer', value ->> 'written', ${databaseTime}
            from json_each('${at(0).text}') where true on conflict (writer) do update set written = excluded.written`)
        }
        if (step.what === 'pass') {
          await passHours(step.hours)
          await tidyAll()
        }
        expect(await readAll()).not.toContain(false)
      }
      for (const hours of [700, 30]) {
        await passHours(hours)
        expect(await readAll()).not.toContain(false)
        await tidyAll()
      }
      expect((await written()).length).toBeLessThanOrEqual(running.length)
      expect(await readAll()).not.toContain(false)
    }),
    { numRuns: 10 },
  )
}, 30_000)
