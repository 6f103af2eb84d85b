import { expect, test } from 'bun:test'
import { monthReport, totalsOf, windowsOf } from './month-report.ts'
import type { CostRow } from './read-costs.ts'

const row = (team: string, model: string, cost: number): CostRow => ({
  ...{ value: '', team_id: team, provider: 'openai', model, token_id: 't', gateway_id: 'g', user_id: '' },
  ...{ requests: 1, input_tokens: 10, output_tokens: 20, cost },
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
  const rows = await monthReport({
    by: ['team', 'model'],
    windows: windowsOf('2026-11', at('2026-11-29T00:00:00Z')),
    days: [
      { at: at('2026-10-03'), rows: [row('a', 'gpt', 200), row('c', 'old', 70)] },
      { at: at('2026-10-31'), rows: [row('a', 'gpt', 100)] },
      { at: at('2026-11-21'), rows: [row('a', 'gpt', 80), row('b', 'gpt', 400)] },
      { at: at('2026-11-28'), rows: [row('a', 'gpt', 70)] },
    ],
  })
  expect(
    rows.map(({ group, cost, previous, previousToDate, forecast }) => [
      group,
      cost,
      previous,
      previousToDate,
      forecast,
    ]),
  ).toEqual([
    [{ team: 'b', model: 'gpt' }, 400, 0, 0, 400],
    [{ team: 'a', model: 'gpt' }, 150, 300, 200, 170],
    [{ team: 'c', model: 'old' }, 0, 70, 70, 0],
  ])
  expect(totalsOf(rows)).toEqual({
    ...{
      requests: 3,
      input_tokens: 30,
      output_tokens: 60,
      cost: 550,
      previous: 370,
      previousToDate: 270,
      forecast: 570,
    },
  })
})

test('forecasts by the days since the first cost where there are fewer than seven', async () => {
  const windows = windowsOf('2026-11', at('2026-11-29T00:00:00Z'))
  const forecast = async (...days: string[]) => {
    const [first] = await monthReport({
      by: ['team'],
      windows,
      days: days.map((day) => ({ at: at(day), rows: [row('a', 'gpt', 100)] })),
    })
    return first?.forecast
  }
  // Two days are left. One of the two days since the first cost had none.
  expect(await forecast('2026-11-27', '2026-11-28')).toBe(200 + 2 * 100)
  expect(await forecast('2026-11-27')).toBe(100 + 2 * 50)
  expect(await forecast('2026-11-29')).toBe(100)
})
