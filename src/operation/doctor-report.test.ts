import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type TemporaryStore, temporaryStore } from '../store/testing/store.ts'
import { claimLook, readReport, writeReport } from './doctor-report.ts'

let store: TemporaryStore
beforeEach(async () => {
  store = await temporaryStore()
})
afterEach(() => store.remove())

const silent = (seconds: number) => ({
  check: 'workers',
  level: 'warn' as const,
  what: `Worker a is silent for ${seconds} s`,
  todo: 'Look at its host',
})

test('lets one of several control planes look, and the next one when the time is over', async () => {
  const claims = await Promise.all([1, 2, 3].map(() => claimLook(store.ledger, 60_000)))
  expect(claims.filter((claimed) => claimed)).toHaveLength(1)
  await store.ledger.write([{ sql: 'update doctor_report set claimed_at = claimed_at - 61000', args: [] }])
  expect([await claimLook(store.ledger, 60_000), await claimLook(store.ledger, 60_000)]).toEqual([true, false])
})

test('looks again where the clock of the database has gone back', async () => {
  await claimLook(store.ledger, 60_000)
  await store.ledger.write([{ sql: 'update doctor_report set claimed_at = claimed_at + 3600000', args: [] }])
  expect(await claimLook(store.ledger, 60_000)).toBe(true)
})

test('keeps since when a finding is there, though its figures change, and forgets it when it is gone', async () => {
  expect(await readReport(store.ledger)).toEqual({ examinedAt: null, findings: [] })
  await claimLook(store.ledger, 60_000)
  expect(await readReport(store.ledger)).toEqual({ examinedAt: null, findings: [] })
  await writeReport(store.ledger, [silent(61)], 1000)
  await writeReport(store.ledger, [silent(121), { ...silent(1), check: 'other' }], 2000)
  const { examinedAt, findings } = await readReport(store.ledger)
  expect([examinedAt, findings.map(({ what, since }) => [what, since])]).toEqual([
    2000,
    [
      ['Worker a is silent for 121 s', 1000],
      ['Worker a is silent for 1 s', 2000],
    ],
  ])
  await writeReport(store.ledger, [], 3000)
  await writeReport(store.ledger, [silent(1)], 4000)
  expect((await readReport(store.ledger)).findings[0]?.since).toBe(4000)
})
