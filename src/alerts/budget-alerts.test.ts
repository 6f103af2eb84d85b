import { afterEach, beforeEach, expect, test } from 'bun:test'
import { valueDigest } from '../usage/attribution/dimension.ts'
import { evaluateAlerts } from './evaluate.ts'
import { type AlertInstallation, alertInstallation } from './testing/alert-installation.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
let made: AlertInstallation
beforeEach(async () => {
  made = await alertInstallation()
})
afterEach(() => made.store.remove())

const evaluate = () => evaluateAlerts(made.dependencies)
const told = async () => (await made.firings()).map(({ about, resolved_at }) => [about, resolved_at !== null])

test('tells the highest share of a budget that is reached, each once in a window', async () => {
  await made.alert('budget_share')
  await made.channel('slack', { url: 'https://hooks.slack.com/services/T/B/X' })
  const budget = crypto.randomUUID()
  await made.store.state.write([
    {
      sql: `insert into budgets (id, max_budget, window, scope_kind, scope_id, version) values (?, 100000000000, 'month', 'organization', null, 1)`,
      args: [budget],
    },
  ])
  await made.store.ledger.write([
    {
      sql: "insert into limit_names (id, kind, name, created_at) values (?, 'budget', 'the company', 0)",
      args: [budget],
    },
  ])
  const spend = (dollars: number) =>
    made.store.ledger.write([
      {
        sql: `insert into usage_accounts (account, kind, settled) values (?, 'budget', ?)
          on conflict do update set settled = excluded.settled`,
        args: [`budget/${budget}@2026-01-01`, dollars * 1e9],
      },
    ])
  await spend(30)
  await evaluate()
  expect(await told()).toEqual([])
  await spend(85)
  await evaluate()
  const tellings = async () => (await made.firings()).filter(({ announced }) => announced === 1)
  expect((await tellings()).map(({ threshold, about }) => [threshold, about])).toEqual([
    [80, '85 % ($85.00 of $100.00) of the budget the company are used in this month.'],
  ])
  await spend(100)
  await evaluate()
  expect((await tellings()).map(({ threshold }) => threshold)).toEqual([80, 100])
  // The amount is raised, and the same shares are reached again.
  await made.store.state.write([{ sql: 'update budgets set max_budget = 300000000000', args: [] }])
  await evaluate()
  await spend(290)
  await evaluate()
  expect(await tellings()).toHaveLength(2)
  made.clock.advance(31 * day)
  await evaluate()
  expect((await made.firings()).every(({ resolved_at }) => resolved_at !== null)).toBe(true)
})

test('tells of a budget for each value of a dimension what the value that used most has used', async () => {
  await made.alert('budget_share')
  await made.channel('slack', { url: 'https://hooks.slack.com/services/T/B/X' })
  const budget = crypto.randomUUID()
  await made.store.state.write([
    {
      sql: `insert into budgets (id, max_budget, window, scope_kind, scope_id, version, name, per)
        values (?, 5000000000, 'month', 'organization', null, 1, 'each', 'customer')`,
      args: [budget],
    },
  ])
  const spend = (value: string, dollars: number) =>
    made.store.ledger.write([
      {
        sql: "insert into usage_accounts (account, kind, settled, dimension_value) values (?, 'budget', ?, ?)",
        args: [`budget/${budget}/${valueDigest(value)}@2026-01-01`, dollars * 1e9, value],
      },
    ])
  await spend('acme', 3)
  await spend('globex', 2)
  await evaluate()
  const abouts = async () => (await made.firings()).filter(({ announced }) => announced === 1).map(({ about }) => about)
  expect((await abouts()).some((about) => String(about).startsWith('100 %'))).toBe(false)
  await spend('initech', 5)
  await evaluate()
  expect((await abouts()).at(-1)).toMatch(
    /^100 % \(\$5\.00 of \$5\.00\) of the budget .* of the customer initech are used/,
  )
})
