/** The reason of a refusal after a wait for amounts held by others. */
import { expect, test } from 'bun:test'
import { type AccountState, decide } from './contention.ts'

const account = 'token/t/money'
const need = { worker: 'one', want: 1, min: 1, arrivedAt: 0, waited: 2000, wait: 2000 }
const balance = { account, worker: 'two', rounds: 0, granted: 10, returned: 0, settled: 3 }
const state: AccountState = {
  limit: 10,
  balances: [balance],
  reports: new Map(),
  connected: () => true,
  inReach: () => true,
  othersAsk: false,
  mayComeBack: true,
  now: 1000,
}

test('refuses as held while a worker is slow to report its grant, and as unknown if it is unreachable', () => {
  expect(decide(need, state)).toEqual({ kind: 'refuse', reason: 'held' })
  expect(decide(need, { ...state, inReach: () => false })).toEqual({ kind: 'refuse', reason: 'unknown' })
  const spent = [{ ...balance, settled: 10 }]
  expect(decide(need, { ...state, balances: spent })).toEqual({ kind: 'refuse', reason: 'exhausted' })
})

test('waits for what the asking worker itself has not returned yet, and does not call the account exhausted', () => {
  const own = { ...balance, worker: 'one' }
  const report = { ...own, open: 0 }
  const justFreed = { ...state, balances: [own], reports: new Map([['one', report]]) }
  expect(decide({ ...need, waited: 0 }, justFreed)).toEqual({ kind: 'wait' })
  expect(decide(need, justFreed)).toEqual({ kind: 'refuse', reason: 'held' })
  // The events that settle the rest are on their way to the ledger.
  const spent = new Map([['one', { ...report, settled: 10 }]])
  expect(decide({ ...need, waited: 0 }, { ...justFreed, reports: spent })).toEqual({
    kind: 'refuse',
    reason: 'exhausted',
  })
})
