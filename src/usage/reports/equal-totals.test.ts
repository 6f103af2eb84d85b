/** Every report of a month has the same totals, whatever it is grouped by: those of the events. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type Event, noAttribution } from '../../events/event.ts'
import { foldRollups } from '../../events/rollups/fold.ts'
import { pendingRollups } from '../../events/rollups/pending-rollups.ts'
import { keysAtMost, otherKey } from '../../events/rollups/rollup.ts'
import { emptyTestDatabases, openTestDatabases, type TestDatabases, testEvent } from '../../events/testing/ledger.ts'
import type { Visibility } from '../../events/visibility.ts'
import { toNano } from '../../lib/money.ts'
import { focusLines } from './focus.ts'
import { type MonthReport, monthReport, type ReportDimension, reportDimensions, windowsOf } from './month-report.ts'
import { readCosts } from './read-costs.ts'

const now = Date.parse('2026-11-20T12:00:00Z')
const everyTeam: Visibility = { teams: 'every', ownTokens: [] }
let databases: TestDatabases
beforeAll(async () => {
  databases = await openTestDatabases()
})
afterAll(() => databases.remove())

interface Spent {
  day: string
  team: string | null
  token: string
  user: string | null
  provider: string
  model: string
  dimensions: Record<string, string> | undefined
  nano: number
}

const value = fc.constantFrom('acme', 'other', 'Ünïcode "x"', '\u0001', 'a\u001eb')
const anySpent: fc.Arbitrary<Spent> = fc.record({
  day: fc.constantFrom('2026-10-01', '2026-10-20', '2026-10-31', '2026-11-01', '2026-11-18', '2026-11-20'),
  team: fc.constantFrom('red', 'blue', null),
  token: fc.constantFrom('token-1', 'token-2'),
  user: fc.constantFrom('ada', 'ada\u0001', null),
  provider: fc.constantFrom('openai', 'anthropic'),
  model: fc.constantFrom('a', 'b', 'b\u001fc'),
  dimensions: fc.option(fc.dictionary(fc.constantFrom('customer', 'feature'), value), { nil: undefined }),
  nano: fc.integer({ min: 1, max: 9_000_000_000 }),
})

const eventOf = ({ day, team, token, user, provider, model, dimensions, nano }: Spent): Event =>
  testEvent({
    timestamp: `${day}T10:00:00.000Z`,
    details: { model, provider },
    event_attribution: {
      ...{ ...noAttribution, team_id: team, token_id: token, user_id: user, gateway_id: 'gateway-1' },
      ...(dimensions !== undefined && { dimensions }),
    },
    event_cost_attribution: {
      ...{ currency: 'USD', cost: nano / 1e9, estimated: false, input_tokens: 10, output_tokens: 2, provider, model },
      ...{ cached_input_tokens: null, reasoning_tokens: null, price_source: null, spend_owner: null },
    },
  })

async function keep(spent: readonly Spent[]): Promise<void> {
  await databases.ledger.write(pendingRollups(spent.map(eventOf), now))
  await foldRollups(databases.ledger)
}

function report(by: readonly ReportDimension[], visibility = everyTeam): Promise<MonthReport> {
  const windows = windowsOf('2026-11', now)
  const window = { from: windows.before.from, until: windows.month.until, visibility }
  const withDimensions = by.some((dimension) => dimension.startsWith('dimension:'))
  return monthReport({ by, windows, costs: readCosts(databases.ledger, { ...window, withDimensions }) })
}

const dimensions: readonly ReportDimension[] = [
  ...reportDimensions,
  'dimension:customer',
  'dimension:feature',
  'dimension:without_values',
]
const everyChoice = dimensions.flatMap((one, index) => [
  [one],
  ...dimensions.slice(index + 1).map((other) => [one, other]),
])

/** The lines of a file of FOCUS without its header. */
async function focusText(visibility: Visibility): Promise<string[]> {
  const names = { ledger: databases.ledger, seesPeople: true }
  const text = (await Array.fromAsync(focusLines(names, { month: '2026-11', visibility }))).join('')
  return text
    .split('\r\n')
    .filter((line) => line !== '')
    .slice(1)
}

const billedInFocus = async (visibility: Visibility): Promise<number> =>
  (await focusText(visibility)).reduce((billed, line) => billed + toNano(Number(line.split(',')[0])), 0)

test('totals are equal by any one or two dimensions, for each caller, and equal to the events', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(anySpent, { minLength: 1, maxLength: 30 }), async (spent) => {
      await emptyTestDatabases(databases)
      await keep(spent)
      const callers: readonly (readonly [Visibility, (each: Spent) => boolean])[] = [
        [everyTeam, () => true],
        [{ teams: ['red'], ownTokens: [] }, ({ team }) => team === 'red'],
        [{ teams: [], ownTokens: ['token-2'] }, ({ token }) => token === 'token-2'],
      ]
      for (const [visibility, sees] of callers) {
        const seen = spent.filter(sees)
        const ofMonth = (month: string) => seen.filter(({ day }) => day.startsWith(month))
        const sum = (some: readonly Spent[]) => some.reduce((total, { nano }) => total + nano, 0)
        const [cost, previous] = [sum(ofMonth('2026-11')), sum(ofMonth('2026-10'))]
        const requests = ofMonth('2026-11').length
        const forecasts = new Set<number>()
        for (const by of everyChoice) {
          const { rows, totals, forecastOf } = await report(by, visibility)
          expect([by, totals]).toMatchObject([by, { cost, previous, requests, input_tokens: 10 * requests }])
          expect(rows.reduce((total, row) => total + row.cost, 0)).toBe(cost)
          expect(rows.reduce((total, row) => total + row.previousToDate, 0)).toBe(totals.previousToDate)
          forecasts.add(forecastOf(totals))
        }
        expect(forecasts.size).toBe(1)
        expect(await billedInFocus(visibility)).toBe(cost)
      }
    }),
    { numRuns: Number(process.env.REPORT_RUNS ?? 15) },
  )
})

const usual: Spent = {
  ...{ day: '2026-11-18', team: 'red', token: 'token-1', user: null, provider: 'openai', model: 'a' },
  ...{ dimensions: undefined, nano: 1 },
}

test('counts new values of a full day as other, and all else exactly', async () => {
  await emptyTestDatabases(databases)
  await keep([{ ...usual, dimensions: { customer: 'early' } }])
  await databases.ledger.write([
    {
      sql: `with recursive n (n) as (select 2 union all select n + 1 from n where n < ?)
        insert into event_rollups (kind, step, scope, at, key, verdict, requests, input_tokens, output_tokens, cost)
        select kind, step, scope, at, replace(key, 'early', 'c' || n), verdict, requests, input_tokens, output_tokens, cost
          from event_rollups, n where kind = 'cost'`,
      args: [keysAtMost('cost')],
    },
  ])
  const late = { ...usual, model: 'b', dimensions: { customer: 'late' } }
  await keep([
    late,
    late,
    { ...late, dimensions: { customer: 'later' } },
    { ...usual, dimensions: { customer: 'early' } },
  ])
  await keep([
    { ...usual, team: 'blue', dimensions: { customer: 'late' } },
    { ...usual, team: 'blue', model: 'b', dimensions: { customer: 'other' } },
    { ...late, dimensions: undefined },
  ])
  const { rows, totals } = await report(['model', 'dimension:customer'])
  const costOf = (model: string, customer: string, isRest = false) =>
    rows.find(({ group, rest }) => group.model === model && group['dimension:customer'] === customer && rest === isRest)
      ?.cost
  expect([costOf('b', 'other', true), costOf('b', 'other')]).toEqual([3, 1])
  expect([costOf('a', 'early'), costOf('a', 'late'), costOf('b', '')]).toEqual([2, 1, 1])
  expect(costOf('b', otherKey)).toBeUndefined()
  expect(totals.cost).toBe(keysAtMost('cost') + 7)
  expect((await report(['model'])).rows.map(({ group, cost }) => [group.model, cost])).toEqual([
    ['a', keysAtMost('cost') + 2],
    ['b', 5],
  ])
  const lines = await focusText(everyTeam)
  expect(lines.filter((line) => line.includes('""customer"":""other""'))).toHaveLength(2)
  expect(lines.filter((line) => line.includes('""customer"":""other"",""gatehouse/rest"":""true""'))).toHaveLength(1)
})
