import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type TemporaryInstallation, temporaryInstallation } from '../../members/testing/installation.ts'
import { temporaryApi } from '../../tokens/testing/api.ts'
import { limitRoutes } from '../api/limit-routes.ts'
import { settlementStatements } from '../settlement-statements.ts'
import { bookedBudget, windowAt } from '../window.ts'
import { budgetValuesRoute } from './budget-values-route.ts'
import { valueDigest } from './dimension.ts'

let made: TemporaryInstallation
let api: ReturnType<typeof temporaryApi>
let budget: string
const call = (method: string, path: string, body?: unknown) => api(method, path, { body, headers: {} })

beforeAll(async () => {
  made = await temporaryInstallation()
  api = temporaryApi(made, [...limitRoutes(made.deps), budgetValuesRoute(made.deps)])
  await call('POST', '/v1/attribution-dimensions', {
    name: 'customer',
    source: { kind: 'header', key: 'x-customer-id' },
  })
  const each = { name: 'each', max_budget: 5, window: 'month', scope: { kind: 'organization' }, per: 'customer' }
  budget = (await call('POST', '/v1/budgets', each)).json.id
})
afterAll(() => made.store.remove())

const accountOf = (value: string) =>
  bookedBudget(`${budget}/${valueDigest(value)}`, 'month', made.deps.clock.now()).booked
const spend = (value: string, dollars: number) =>
  made.store.ledger.write([
    {
      sql: 'insert or ignore into lease_balances (account, worker, granted) values (?, ?, 1000000000000)',
      args: [accountOf(value), 'g/i/0'],
    },
    ...settlementStatements({
      worker: 'g/i/0',
      settlements: [{ account: accountOf(value), amount: dollars * 1e9 }],
      values: new Map(value === '' ? [] : [[valueDigest(value), value]]),
      epoch: '{}',
    }),
  ])

test('lists the values of a budget, those that spent most first, in pages', async () => {
  const nobody = await call('GET', `/v1/budgets/${budget}`)
  expect(nobody.json.values).toEqual({ count: 0, exhausted: 0, nearly_exhausted: 0, most_spent: 0 })
  for (const [value, dollars] of [
    ['acme', 5],
    ['globex', 1],
    ['initech', 4.5],
    ['', 2],
  ] as const) {
    await spend(value, dollars)
  }
  await spend('globex', 0.5)
  const path = `/v1/budgets/${budget}/values`
  const first = await call('GET', `${path}?limit=3`)
  const end = windowAt('month', made.deps.clock.now())?.end ?? 0
  expect(first.json.values[0]).toEqual({
    ...{ value: 'acme', account: accountOf('acme'), spend: 5, remaining: 0, resets_at: new Date(end).toISOString() },
  })
  const second = await call('GET', `${path}?limit=3&cursor=${first.json.next_cursor}`)
  expect(second.json.next_cursor).toBeNull()
  const shown = [...first.json.values, ...second.json.values].map((each) => [each.value, each.spend, each.remaining])
  expect(shown).toEqual([
    ['acme', 5, 0],
    ['initech', 4.5, 0.5],
    [null, 2, 3],
    ['globex', 1.5, 3.5],
  ])
  const { json } = await call('GET', `/v1/budgets/${budget}`)
  expect(json).toMatchObject({ current_spend: 13, remaining: 5 })
  expect(json.values).toEqual({ count: 4, exhausted: 1, nearly_exhausted: 1, most_spent: 5 })
})

test('says how one value stands, also one that spent nothing, and requests without a value', async () => {
  const of = async (value: string) => {
    const { json } = await call('GET', `/v1/budgets/${budget}/values?value=${encodeURIComponent(value)}`)
    return json.values
  }
  expect(await of('globex')).toMatchObject([{ value: 'globex', spend: 1.5, remaining: 3.5 }])
  expect(await of('new & other')).toMatchObject([{ value: 'new & other', spend: 0, remaining: 5 }])
  expect(await of('')).toMatchObject([{ value: null, spend: 2, remaining: 3 }])
})

test('refuses a budget of one amount, one that is not there, and a cursor of another list', async () => {
  const whole = { name: 'whole', max_budget: 5, window: 'month', scope: { kind: 'organization' } }
  const { json } = await call('POST', '/v1/budgets', whole)
  expect(json.values).toBeNull()
  const refused = await call('GET', `/v1/budgets/${json.id}/values`)
  expect([refused.status, refused.json.error.code, refused.json.error.param]).toEqual([422, 'invalid_parameter', 'id'])
  expect((await call('GET', `/v1/budgets/${crypto.randomUUID()}/values`)).status).toBe(404)
  const forged = await call('GET', `/v1/budgets/${budget}/values?cursor=abc`)
  expect([forged.status, forged.json.error.code]).toEqual([422, 'invalid_cursor'])
})
