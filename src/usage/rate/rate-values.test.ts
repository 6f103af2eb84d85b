/** Rates for each value of a dimension: which accounts they are, and that each value has exactly its own limit. */
import { expect, test } from 'bun:test'
import fc from 'fast-check'
import type { LimitRow, LimitRows } from '../../store/limit-rows.ts'
import { type AccessPolicy, noLimits } from '../limits.ts'
import { attempt } from '../testing/rates.ts'
import { promptly, SlotWorld } from '../testing/slots.ts'
import { slotMinuteMs } from './rate.ts'
import { rateDemands } from './rate-demands.ts'
import { slotsOf } from './rate-limits.ts'

const policyId = '019a0000-0000-7000-8000-000000000001'
const tokenOf = (id: string) => ({
  ...{ id: `019a0000-0000-7000-8000-00000000000${id}`, teamId: null, userId: null, ownerKind: 'team' as const },
  ...{ ownerId: 'o', accessPolicyIds: [policyId], accounts: [] },
})
const policy = (scope: AccessPolicy['scope'], per: string | null, requestsPerMinute: number): AccessPolicy => ({
  ...{ id: policyId, name: 'p', requestsPerMinute, tokensPerMinute: null, models: null, providers: null, scope, per },
})
const demandsOf = (of: AccessPolicy, token: string, customer: string | null) =>
  rateDemands(
    tokenOf(token),
    { ...noLimits, accessPolicies: new Map([[policyId, of]]) },
    { least: 1, most: 1, isBounded: true },
    customer === null ? null : { customer },
  )
const accountsOf = (of: AccessPolicy, token: string, customer: string | null): string[] =>
  demandsOf(of, token, customer).map(({ account }) => account)

const rowsOf = (members: Partial<LimitRow>): LimitRows => ({
  read: async (keys) =>
    new Map(
      keys.map((key) => [
        key,
        {
          ...{ max_requests: null, max_budget: null, requests_per_minute: 7, tokens_per_minute: null, window: null },
          ...{ scope: null, gateway_id: null, tool_limits: null, max_values: null, ...members },
        },
      ]),
    ),
})

test('each value has slots of its own, with a policy of each token and with one of all its tokens', () => {
  const shared = policy('shared', 'customer', 7)
  const [acme = ''] = accountsOf(shared, '1', 'acme')
  expect(acme).toMatch(new RegExp(`^access/${policyId}/[0-9a-f]{32}/requests$`))
  expect(accountsOf(shared, '2', 'acme')).toEqual([acme])
  expect(accountsOf(shared, '1', 'globex')).not.toEqual([acme])
  const ofToken = policy('token', 'customer', 7)
  expect(accountsOf(ofToken, '1', 'acme')).not.toEqual(accountsOf(ofToken, '2', 'acme'))
  expect(accountsOf(ofToken, '1', 'acme')).not.toEqual(accountsOf(ofToken, '1', 'globex'))
  expect(accountsOf(shared, '1', null)).not.toEqual([acme])
})

test('grants slots only to accounts of the form that the policy has', async () => {
  const [ofValue = ''] = accountsOf(policy('shared', 'customer', 7), '1', 'acme')
  const [ofTokenAndValue = ''] = accountsOf(policy('token', 'customer', 7), '1', 'acme')
  const [ofToken = ''] = accountsOf(policy('token', null, 7), '1', 'acme')
  const [ofAll = ''] = accountsOf(policy('shared', null, 7), '1', 'acme')
  const names = [ofValue, ofTokenAndValue, ofToken, ofAll, `access/${policyId}/x/y/requests`, `${ofValue}/requests`]
  const granted = (row: Partial<LimitRow>) => Promise.all(names.map((name) => slotsOf(rowsOf(row), name)))
  expect(await granted({ scope: 'shared', max_values: 10 })).toEqual([7, 0, 0, 0, 0, 0])
  expect(await granted({ scope: 'token', max_values: 10 })).toEqual([0, 7, 0, 0, 0, 0])
  expect(await granted({ scope: 'token' })).toEqual([0, 0, 7, 0, 0, 0])
  expect(await granted({ scope: 'shared' })).toEqual([0, 0, 0, 7, 0, 0])
})

const workers = ['a', 'b', 'c'] as const
const customers = ['acme', 'globex', null] as const
const delay = fc.integer({ min: 0, max: 2000 })
const fates = fc.record({
  there: delay,
  back: delay,
  lost: fc.oneof({ weight: 6, arbitrary: fc.constant('no' as const) }, fc.constantFrom('message' as const, 'answer')),
  again: fc.option(fc.integer({ min: 0, max: 100_000 }), { freq: 5 }),
})
const acts = fc.array(
  fc.record({
    wait: fc.oneof(fc.integer({ min: 0, max: 50 }), fc.integer({ min: 0, max: 20_000 })),
    worker: fc.constantFrom(...workers),
    customer: fc.constantFrom(...customers),
    act: fc.oneof(
      { weight: 10, arbitrary: fc.constant('burst' as const) },
      fc.constantFrom('kill' as const, 'crash' as const, 'cut' as const, 'mend' as const),
    ),
  }),
  { minLength: 20, maxLength: 60 },
)

test('in any minute no value passes more than the limit, under loss, delay, kills and partitions', async () => {
  await fc.assert(
    fc.asyncProperty(
      acts,
      fc.array(fates, { minLength: 1, maxLength: 40 }),
      fc.integer({ min: 1, max: 5 }),
      async (list, late, limit) => {
        let messages = 0
        const inside = new SlotWorld(new Map([[policyId, limit]]), () => late[messages++ % late.length] ?? promptly)
        for (const name of workers) inside.start(name, workers.indexOf(name) * 12_345)
        const passed = new Map(customers.map((customer) => [customer, [] as number[]]))
        const tick = () => {
          for (const worker of inside.workers.values()) worker.tick()
          inside.at(inside.now + 1000, tick)
        }
        tick()
        for (const { wait, worker, customer, act } of list) {
          await inside.until(inside.now + wait)
          if (act === 'kill' || act === 'crash') inside.start(worker, workers.indexOf(worker) * 54_321, act)
          else if (act === 'cut') inside.cut.add(worker)
          else if (act === 'mend') inside.cut.delete(worker)
          else {
            const demands = demandsOf(policy('shared', 'customer', limit), '1', customer)
            for (let index = 0; index < limit + 1; index++) attempt(inside, worker, demands, passed.get(customer) ?? [])
          }
        }
        await inside.until(inside.now + 10_000)
        for (const times of passed.values()) {
          times.sort((first, second) => first - second)
          for (const [index, time] of times.entries()) {
            const next = times[index + limit]
            if (next !== undefined) expect(next - time).toBeGreaterThanOrEqual(slotMinuteMs)
          }
        }
      },
    ),
    { numRuns: 40 },
  )
}, 60_000)

test('on a network without loss each value passes exactly its limit, whatever the others do', async () => {
  const late = fc.array(fc.integer({ min: 0, max: 60 }), { minLength: 1, maxLength: 30 })
  const limits = fc.integer({ min: 1, max: 30 })
  await fc.assert(
    fc.asyncProperty(late, limits, async (delays, limit) => {
      let messages = 0
      const next = () => delays[messages++ % delays.length] ?? 0
      const inside = new SlotWorld(new Map([[policyId, limit]]), () => ({ ...promptly, there: next(), back: next() }))
      for (const name of workers) inside.start(name)
      const passed = new Map(customers.map((customer) => [customer, [] as number[]]))
      for (let index = 0; index < 12 * limit; index++) {
        const worker = workers[index % workers.length] ?? 'a'
        const customer = customers[(index * 7) % 5 === 0 ? 1 : index % 2 === 0 ? 0 : 2] ?? null
        const demands = demandsOf(policy('shared', 'customer', limit), '1', customer)
        const times = passed.get(customer) ?? []
        inside.at(inside.now + ((index * 7919) % 300), () => void attempt(inside, worker, demands, times))
      }
      await inside.until(inside.now + 10_000)
      expect([...passed.values()].map(({ length }) => length)).toEqual([limit, limit, limit])
    }),
    { numRuns: 25 },
  )
}, 60_000)
