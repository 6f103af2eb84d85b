import { expect, test } from 'bun:test'
import { settableClock } from '../../../members/testing/installation.ts'
import { WorkerAccounts } from './worker-accounts.ts'

const account = 'token/t/requests'
const ledgerHasAll = { lastEvent: 0, acknowledged: 0, sent: 1 }

test('forgets a refused account when the refusal expires', () => {
  const clock = settableClock()
  const accounts = new WorkerAccounts(clock)
  accounts.refuse(accounts.get(account), 1, { account, reason: 'exhausted', retry_after: null, left: 0, until: null })
  accounts.forget(ledgerHasAll)
  expect(accounts.size).toBe(1)
  clock.advance(60_000)
  accounts.forget(ledgerHasAll)
  expect(accounts.size).toBe(0)
})

test('forgets the refusals of all values of a budget when the limit of the budget changes', () => {
  const accounts = new WorkerAccounts(settableClock())
  const refused = ['budget/b/acme', 'budget/b/globex', 'budget/b', 'budget/other/acme'] as const
  for (const name of refused) {
    const refusal = { account: name, reason: 'too_many_values', retry_after: null, left: 0, until: null } as const
    accounts.refuse(accounts.get(name), 1, refusal)
  }
  accounts.forgetRefusals('budget/b')
  const still = refused.filter((name) => accounts.refused([{ account: name, want: 1, min: 1 }]) !== null)
  expect(still).toEqual(['budget/other/acme'])
})

test('keeps a refusal no longer than its window', () => {
  const clock = settableClock()
  const accounts = new WorkerAccounts(clock)
  const refusal = { account, reason: 'exhausted', retry_after: 1, left: 0, until: clock.now() + 1000 } as const
  accounts.refuse(accounts.get(account), 1, refusal)
  const demands = [{ account, want: 1, min: 1 }]
  expect(accounts.refused(demands)?.name).toBe(account)
  clock.advance(1000)
  expect(accounts.refused(demands)).toBeNull()
})

test('asks for contact with the control plane long before its balances lapse', () => {
  const clock = settableClock()
  const accounts = new WorkerAccounts(clock)
  accounts.contact(clock.monotonic())
  clock.advance(6000)
  expect(accounts.needsContact).toBe(false)
  accounts.adopt({ account: 'token/t/requests', rounds: 0, granted: 3, returned: 0, settled: 0 }, 1)
  expect(accounts.needsContact).toBe(true)
  accounts.contact(clock.monotonic())
  expect(accounts.needsContact).toBe(false)
})
