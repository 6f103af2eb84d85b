/**
 * Holds what an installation has booked on a token's limits against what was sent, what came back and what the provider
 * bills: nothing lost, nothing twice.
 */
import { expect } from 'bun:test'
import { z } from 'zod'
import type { Event } from './answers.ts'
import { until } from './eventually.ts'
import type { Gatehouse } from './harness.ts'
import { type Bill, numberOf, type PaidRequests, worstCase } from './paid-requests.ts'
import { eventsInLedger, sumsOf } from './recorded.ts'

const settlements = z.array(z.object({ account: z.string(), amount: z.number() }))

/** What an event settles on an account, or null where it says nothing of it. */
function amountOn(account: string, event: Event): number | null {
  const found = settlements.parse(event.settlements ?? []).filter((each) => each.account === account)
  return found.length === 0 ? null : found.reduce((sum, { amount }) => sum + amount, 0)
}

export const accountsOf = (token: { id: string }) => ({
  money: `token/${token.id}/money`,
  requests: `token/${token.id}/requests`,
})

/** Waits until nothing is held of an account. */
export const atRest = (gatehouse: Gatehouse, account: string): Promise<void> =>
  until(`all of ${account} is given back`, () => sumsOf(gatehouse, account).outstanding === 0, { withinMs: 30_000 })

export interface Booked {
  /** Outcomes that used the account. */
  exchanges: number
  /** Of them, those that a kill cut off: booked at what they held. */
  interrupted: number
  settled: number
}

/**
 * At rest: whatever reached the provider has one outcome; so has whatever was answered whole, booked at what the
 * provider bills; what was cut off is booked at no more than the most; the sum of all is what the account says.
 */
export async function expectSettledOnce(
  gatehouse: Gatehouse,
  { token, requests, bill }: { token: { id: string }; requests: PaidRequests; bill: Bill },
): Promise<Booked> {
  const { money } = accountsOf(token)
  const outcomes = () =>
    eventsInLedger(gatehouse)
      .filter(({ event_type: type }) => type === 'gateway.request.outcome')
      .flatMap((event) => {
        const amount = amountOn(money, event)
        return amount === null ? [] : [{ number: numberOf(event.request_id ?? ''), amount, reason: event.reason_code }]
      })
  const sent = [...requests.statuses.keys()]
  const reached = [...bill.calls.keys()].filter((number) => requests.statuses.has(number))
  await atRest(gatehouse, money)
  await until(
    'whatever reached the provider has an outcome',
    () => new Set(reached).isSubsetOf(new Set(outcomes().map(({ number }) => number))),
    { withinMs: 60_000, everyMs: 100 },
  )
  const found = outcomes()
  const numbers = found.map(({ number }) => number)
  const cut = found.filter(({ reason }) => reason === 'gateway.interrupted')
  const cutNumbers = new Set(cut.map(({ number }) => number))
  const whole = found.filter(({ number }) => !cutNumbers.has(number))
  const settled = found.reduce((sum, { amount }) => sum + amount, 0)
  expect(new Set(numbers).size).toBe(numbers.length)
  expect(new Set(numbers).difference(new Set(sent))).toEqual(new Set())
  expect(reached.filter((number) => bill.calls.get(number) !== 1)).toEqual([])
  expect(new Set(requests.completed).difference(new Set(whole.map(({ number }) => number)))).toEqual(new Set())
  expect(whole.filter(({ number, amount }) => amount !== bill.costs.get(number))).toEqual([])
  expect(cut.filter(({ amount }) => amount > worstCase)).toEqual([])
  expect(sumsOf(gatehouse, money)).toEqual({ settled, outstanding: 0 })
  return { exchanges: found.length, interrupted: cut.length, settled }
}
