import { afterEach, beforeEach, expect, test } from 'bun:test'
import { valueDigest } from '../usage/attribution/dimension.ts'
import { subjectsAtMost } from './dependencies.ts'
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
  // Somebody disables the alert and enables it again: the share that still holds is told again, once.
  const enabledAgain = `update alerts set config = json_set(config, '$.enabled_at', ?)`
  await made.store.ledger.write([
    { sql: 'update alert_firings set resolved_at = fired_at', args: [] },
    { sql: enabledAgain, args: [made.clock.now()] },
  ])
  made.clock.advance(minute)
  await evaluate()
  await evaluate()
  expect((await tellings()).map(({ threshold }) => threshold)).toEqual([80, 100, 80])
  made.clock.advance(31 * day)
  await evaluate()
  expect((await made.firings()).every(({ resolved_at }) => resolved_at !== null)).toBe(true)
})

const customers = crypto.randomUUID()
const dollars = 1e9
/** A budget of 5 dollars a month for each customer. */
const budgetForEach = () =>
  made.store.state.write([
    {
      sql: `insert into budgets (id, max_budget, window, scope_kind, scope_id, version, name, per)
        values (?, 5000000000, 'month', 'organization', null, 1, 'each', 'customer')`,
      args: [customers],
    },
  ])
const spendOf = (spent: Readonly<Record<string, number>>) =>
  made.store.ledger.write(
    Object.entries(spent).map(([value, amount]) => ({
      sql: `insert into usage_accounts (account, kind, settled, dimension_value) values (?, 'budget', ?, ?)
        on conflict do update set settled = excluded.settled`,
      args: [`budget/${customers}/${valueDigest(value)}@2026-01-01`, amount * dollars, value],
    })),
  )
const notices = async () => (await made.firings()).filter(({ announced }) => announced === 1)
const numbered = (count: number, amount: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`customer ${index}`, amount]))

test('tells of each value of a budget with a share that it has reached, once in a window, and when it is over', async () => {
  await made.alert('budget_share')
  await made.channel('slack', { url: 'https://hooks.slack.com/services/T/B/X' })
  await budgetForEach()
  await spendOf({ acme: 3, globex: 2, initech: 5 })
  await evaluate()
  await spendOf({ globex: 4.25 })
  // A second control plane evaluates at the same time, and each once more after it was started again.
  await Promise.all([evaluate(), evaluate()])
  await evaluate()
  expect((await notices()).map(({ about }) => about).toSorted()).toEqual(
    [
      ['100 % ($5.00 of $5.00)', 'initech'],
      ['60 % ($3.00 of $5.00)', 'acme'],
      ['85 % ($4.25 of $5.00)', 'globex'],
    ].map(([share, name]) => `${share} of the budget ${customers} of the customer ${name} are used in this month.`),
  )
  made.clock.advance(31 * day)
  await Promise.all([evaluate(), evaluate()])
  await evaluate()
  const kinds = (await made.deliveries()).map(({ kind }) => kind)
  expect(kinds).toEqual(['fired', 'fired', 'fired', 'resolved', 'resolved', 'resolved'])
})

test('counts the values beyond twenty, tells again when they are twice as many, and still tells of other budgets', async () => {
  await made.alert('budget_share', { thresholds: [80] })
  await budgetForEach()
  await spendOf(numbered(subjectsAtMost + 3, 4.5))
  await evaluate()
  const counted = async () =>
    (await notices()).map(({ about }) => about).filter((about) => about.includes('more values of customer'))
  expect(await notices()).toHaveLength(subjectsAtMost + 1)
  expect(await counted()).toEqual([
    `3 more values of customer have used 80 % or more of the budget ${customers}; "gatehouse budget values ${customers}" lists them.`,
  ])
  await spendOf(numbered(subjectsAtMost + 4, 4.5))
  await evaluate()
  expect(await counted()).toEqual([expect.stringMatching(/^3 more/), expect.stringMatching(/^4 more/)])
  await spendOf(numbered(subjectsAtMost + 7, 4.5))
  await evaluate()
  expect(await counted()).toHaveLength(2)
  await made.store.state.write([
    {
      sql: "insert into budgets (id, max_budget, window, scope_kind, version) values ('all', 1000000000, 'total', 'organization', 1)",
      args: [],
    },
  ])
  await made.store.ledger.write([
    { sql: "insert into usage_accounts (account, kind, settled) values ('budget/all', 'budget', 800000000)", args: [] },
  ])
  await evaluate()
  expect((await notices()).at(-1)?.subject).toBe('budget/all')
})

test('tells of the lower share that still holds when the higher one is over', async () => {
  await made.alert('budget_share')
  await made.channel('slack', { url: 'https://hooks.slack.com/services/T/B/X' })
  await budgetForEach()
  await spendOf({ acme: 5 })
  await evaluate()
  await made.store.state.write([{ sql: 'update budgets set max_budget = 8000000000', args: [] }])
  await Promise.all([evaluate(), evaluate()])
  await evaluate()
  expect((await notices()).map(({ threshold, resolved_at }) => [threshold, resolved_at !== null])).toEqual([
    [50, false],
    [100, true],
  ])
  expect((await made.deliveries()).map(({ kind }) => kind)).toEqual(['fired', 'resolved', 'fired'])
  expect((await notices())[0]?.about).toStartWith('62 % ($5.00 of $8.00)')
})

test('announces the lower share after a process was killed between the end of the higher one and its notice', async () => {
  await made.alert('budget_share')
  await made.channel('slack', { url: 'https://hooks.slack.com/services/T/B/X' })
  await budgetForEach()
  await spendOf({ acme: 5 })
  await evaluate()
  await made.store.state.write([{ sql: 'update budgets set max_budget = 8000000000', args: [] }])
  const { recorder } = made.dependencies
  const killed = {
    ...recorder,
    change: (change: Parameters<typeof recorder.change>[0]) =>
      change.event.event_type === 'alert.fired' ? Promise.reject(new Error('killed')) : recorder.change(change),
  }
  await evaluateAlerts({ ...made.dependencies, recorder: killed })
  expect((await made.deliveries()).map(({ kind }) => kind)).toEqual(['fired', 'resolved'])
  await Promise.all([evaluate(), evaluate()])
  await evaluate()
  expect((await made.deliveries()).map(({ kind }) => kind)).toEqual(['fired', 'resolved', 'fired'])
  expect((await notices()).map(({ threshold, resolved_at }) => [threshold, resolved_at !== null])).toEqual([
    [50, false],
    [100, true],
  ])
})

test('reads of ten thousand values only those that used most and those with an open firing, and counts the others', async () => {
  await made.alert('budget_share', { thresholds: [80] })
  await made.channel('slack', { url: 'https://hooks.slack.com/services/T/B/X' })
  await budgetForEach()
  await spendOf({ acme: 4 })
  await evaluate()
  await spendOf(numbered(10_000, 4.5))
  const { ledger } = made.store
  const read: number[] = []
  const counting: typeof ledger = Object.create(ledger, {
    read: {
      value: async (...asked: Parameters<typeof ledger.read>) => {
        const rows = await ledger.read(...asked)
        if (asked[0].includes('usage_accounts')) read.push(rows.length)
        return rows
      },
    },
  })
  await evaluateAlerts({ ...made.dependencies, ledger: counting })
  expect(Math.max(...read)).toBe(subjectsAtMost)
  // 10 001 have reached the share. acme stays one of those that are told one by one, although it used least.
  const open = (await notices()).filter(({ resolved_at }) => resolved_at === null)
  expect(open).toHaveLength(subjectsAtMost + 1)
  expect(open[0]?.about).toContain('of the customer acme')
  expect(open.at(-1)?.value).toBe(10_001 - subjectsAtMost)
})
