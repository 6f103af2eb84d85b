import { expect, test } from 'bun:test'
import { troubleOf } from './trouble.ts'

const said = (stateAgeMs: number, unwrittenMs: number, unwrittenBecause: unknown = null, remote = true) =>
  troubleOf({ stateAgeMs, unwrittenMs, unwrittenBecause, remote })

test('a database that cannot be read, or is read and takes no writes, is named once it has lasted', () => {
  expect(said(1000, 1000)).toBeNull()
  expect(said(12_000, 12_000)).toBe('The state database has not been read for 12 s')
  expect(said(1000, 12_400)).toBe(
    'The ledger database has taken no write for 12 s. Where it can be read, restart its server',
  )
})

test('a full disk is named with what to do, and no server is to be restarted', () => {
  const cause = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' })
  for (const remote of [true, false]) {
    expect(said(0, 12_000, new Error('write', { cause }), remote)).toContain('The disk is full: free space on it')
  }
  expect(said(0, 12_000, new Error('disk I/O error'), false)).toEndWith('for 12 s. Error: disk I/O error')
})
