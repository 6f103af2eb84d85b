import { expect, test } from 'bun:test'
import { type DatabaseDelays, readinessWarning } from './readiness-warning.ts'
import { Stalls } from './stalls.ts'

const said = (delays: Partial<DatabaseDelays>) =>
  readinessWarning({
    stateAgeMs: 1000,
    lastStall: null,
    unwrittenMs: 1000,
    unwrittenBecause: null,
    remote: true,
    ...delays,
  })

test('warns about a database that cannot be read or written once that has lasted', () => {
  expect(said({})).toBeNull()
  expect(said({ stateAgeMs: 4000, unwrittenMs: 12_000 })).toBe('The state database has not been read for 4 s')
  expect(said({ unwrittenMs: 12_400 })).toBe(
    'The ledger database has taken no write for 12 s. Where it can be read, restart its server',
  )
})

test('warns about a full disk with the remedy, and not with a restart', () => {
  const cause = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
  for (const remote of [true, false]) {
    const unwrittenBecause = new Error('write', { cause })
    expect(said({ unwrittenMs: 12_000, unwrittenBecause, remote })).toContain('The disk is full: free space on it')
  }
  const unwrittenBecause = new Error('disk I/O error')
  expect(said({ unwrittenMs: 12_000, unwrittenBecause, remote: false })).toEndWith('for 12 s. Error: disk I/O error')
})

test('warns about a stall of the state for five minutes after its end, and counts it', () => {
  const stalls = new Stalls()
  stalls.readAfter(Number.POSITIVE_INFINITY, 0)
  stalls.readAfter(1200, 1000)
  expect(stalls.recent(1000)).toBeNull()
  stalls.readAfter(12_000, 20_000)
  expect(said({ lastStall: stalls.recent(60_000) })).toBe(
    'The state database did not answer for 12 s, until 40 s ago: changes reached gateways late',
  )
  expect(stalls.recent(20_000 + 5 * 60_000 + 1)).toBeNull()
  stalls.readAfter(5000, 400_000)
  expect(stalls).toMatchObject({ count: 2, totalMs: 17_000 })
})
