import { expect, test } from 'bun:test'
import { costliestFirst, monthReport, type ReportRow, windowsOf } from './month-report.ts'
import type { CostRow } from './read-costs.ts'

const row = (at: string, team: string, model: string, cost: number): CostRow => ({
  ...{ at: Date.parse(at), dimensions: {}, requests: 1, input_tokens: 10, output_tokens: 20, cost },
  ...{ team_id: team, provider: 'openai', model, token_id: 't', gateway_id: 'g', user_id: '' },
})
const at = Date.parse

test('a running month is compared with the same days of the month before, and has days left', () => {
  const now = at('2026-11-23T12:00:00Z')
  expect(windowsOf('2026-11', now)).toEqual({
    month: { from: at('2026-11-01'), until: at('2026-12-01') },
    before: { from: at('2026-10-01'), until: at('2026-11-01') },
    sameDays: { from: at('2026-10-01'), until: at('2026-10-24') },
    trend: { from: at('2026-11-16'), until: at('2026-11-23') },
    daysLeft: 7.5,
  })
  expect(windowsOf('2026-03', at('2026-03-31T12:00:00Z')).sameDays.until).toBe(at('2026-03-01'))
})

test('a month that is over has no forecast, and January is compared with December', () => {
  const windows = windowsOf('2026-01', at('2026-11-23T12:00:00Z'))
  expect([windows.trend, windows.daysLeft]).toEqual([null, 0])
  expect(windows.before).toEqual({ from: at('2025-12-01'), until: at('2026-01-01') })
  expect(windows.sameDays).toEqual(windows.before)
})

test('adds up by dimensions, the dearest first, with what was in the month before alone', async () => {
  const { rows, totals, forecastOf } = await monthReport({
    by: ['team', 'model'],
    windows: windowsOf('2026-11', at('2026-11-29T00:00:00Z')),
    costs: [
      [row('2026-11-21', 'a', 'gpt', 80), row('2026-10-31', 'a', 'gpt', 100), row('2026-11-28', 'a', 'gpt', 70)],
      [row('2026-10-03', 'a', 'gpt', 200), row('2026-10-03', 'c', 'old', 70), row('2026-11-21', 'b', 'gpt', 400)],
    ],
  })
  const [ordered = []] = await Array.fromAsync(costliestFirst(rows, 10))
  expect(ordered.map((each) => [each.group, each.cost, each.previous, each.previousToDate, forecastOf(each)])).toEqual([
    [{ team: 'b', model: 'gpt' }, 400, 0, 0, 400],
    [{ team: 'a', model: 'gpt' }, 150, 300, 200, 170],
    [{ team: 'c', model: 'old' }, 0, 70, 70, 0],
  ])
  expect(totals).toEqual({
    ...{ requests: 3, input_tokens: 30, output_tokens: 60 },
    ...{ cost: 550, previous: 370, previousToDate: 270, trend: 70 },
  })
  expect(forecastOf(totals)).toBe(570)
})

test('forecasts by the days since the first cost where there are fewer than seven', async () => {
  const windows = windowsOf('2026-11', at('2026-11-29T00:00:00Z'))
  const forecast = async (...days: string[]) => {
    const costs = [days.map((day) => row(day, 'a', 'gpt', 100))]
    const { totals, forecastOf } = await monthReport({ by: ['team'], windows, costs })
    return forecastOf(totals)
  }
  // Two days are left. One of the two days since the first cost had none.
  expect(await forecast('2026-11-27', '2026-11-28')).toBe(200 + 2 * 100)
  expect(await forecast('2026-11-27')).toBe(100 + 2 * 50)
  expect(await forecast('2026-11-29')).toBe(100)
})

test('on the first day of a month the seven days before are of the month before', async () => {
  const windows = windowsOf('2026-03', at('2026-03-01T12:00:00Z'))
  expect(windows.sameDays).toEqual({ from: at('2026-02-01'), until: at('2026-02-02') })
  const days = ['2026-02-01', '2026-02-22', '2026-02-28', '2026-03-01']
  const costs = [days.map((day) => row(day, 'a', 'gpt', 70))]
  const { totals, forecastOf } = await monthReport({ by: ['team'], windows, costs })
  expect(totals).toMatchObject({ cost: 70, previous: 210, previousToDate: 70, trend: 140 })
  expect(forecastOf(totals)).toBe(70 + (140 / 7) * 30.5)
})

test.each([
  ['2026-02', 28, '2026-01-28'],
  ['2028-02', 29, '2028-01-29'],
  ['2026-03', 31, '2026-02-28'],
  ['2026-04', 30, '2026-03-30'],
])('compares all of %s, of %p days, with the month before up to the same day', (month, days, last) => {
  const windows = windowsOf(month, at(`${month}-${days}T23:59:59.999Z`))
  expect(windows.sameDays.until - 86_400_000).toBe(at(last))
  expect(windows.month.until - windows.month.from).toBe(days * 86_400_000)
  expect(windows.daysLeft).toBeLessThan(1e-7)
})

test('a month without costs has no rows, and costs and forecasts nothing', async () => {
  for (const now of ['2026-11-01T00:00:00Z', '2026-11-29T00:00:00Z', '2027-01-01T00:00:00Z']) {
    const { rows, totals, forecastOf } = await monthReport({
      by: ['team'],
      windows: windowsOf('2026-11', at(now)),
      costs: [],
    })
    expect([rows, totals.cost, forecastOf(totals)]).toEqual([[], 0, 0])
  }
})

test('gives the rows with the highest cost first without sorting all of them at once', async () => {
  const costs = Array.from({ length: 4500 }, (_, index) => (index * 7919) % 4500)
  const rows = costs.map((cost): ReportRow => {
    const sums = { requests: 1, input_tokens: 0, output_tokens: 0, previous: -cost, previousToDate: 0, trend: 0 }
    return { group: {}, rest: false, ...sums, cost: Math.floor(cost / 10) }
  })
  let turns = 0
  let isRunning = true
  const turn = () => {
    turns += 1
    if (isRunning) setImmediate(turn)
  }
  setImmediate(turn)
  const { value: first } = await costliestFirst(rows, 500).next()
  isRunning = false
  expect(turns).toBeGreaterThanOrEqual(2)
  const all = await Array.fromAsync(costliestFirst(rows, 500))
  expect(all.map(({ length }) => length)).toEqual(Array(9).fill(500))
  expect(all[0]).toEqual(first)
  const expected = rows.toSorted((one, other) => other.cost - one.cost || other.previous - one.previous)
  expect(all.flat()).toEqual(expected)
})
