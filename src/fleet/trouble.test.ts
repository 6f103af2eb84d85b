import { expect, test } from 'bun:test'
import { troubleOf } from './trouble.ts'

test('a database that cannot be read, or is read and takes no writes, is named once it has lasted', () => {
  const said = (stateAgeMs: number, unwrittenMs: number) => troubleOf({ stateAgeMs, unwrittenMs })
  expect(said(1000, 1000)).toBeNull()
  expect(said(12_000, 12_000)).toBe('The state database has not been read for 12 s')
  expect(said(1000, 12_400)).toContain('The ledger database has taken no write for 12 s; where it can be read, restart')
})
