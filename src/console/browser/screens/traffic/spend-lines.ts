/** Spend as the lines of a chart, one for each key. */
import type { Series, SeriesKey } from '../../api/routes.ts'
import { money } from '../../formats.ts'
import { type ChartSeries, seriesColours } from '../../parts/chart.tsx'
import { dearest } from './dearest.ts'
import { valuesAt } from './series.tsx'

/** What sums up all that are not shown. */
export const otherName = 'All others'

/** The spend of each key, the dearest first. Where more keys spent than there are colours, the last line is all others. */
export function spendOf(
  { series, totals }: Series,
  times: readonly number[],
  { nameOf, linkOf }: { nameOf(key: SeriesKey): string; linkOf(key: SeriesKey): string | undefined },
): ChartSeries[] {
  const keys = series.map((each) => ({ ...each, cost: costOf(totals, each) }))
  const { shown, others } = dearest(keys, seriesColours.length)
  const lineOf = (name: string, index: number, of: typeof keys, to?: string): ChartSeries => {
    const each = of.map(({ points }) => valuesAt(times, points, ({ cost }) => cost, 0))
    return {
      name,
      colour: seriesColours[index] ?? '--accent',
      values: times.map((_, at) => each.reduce((sum, values) => sum + (values[at] ?? 0), 0)),
      sum: money(of.reduce((sum, { cost }) => sum + cost, 0)),
      ...(to === undefined ? {} : { to }),
    }
  }
  const lines = shown.map((key, index) => lineOf(nameOf(key), index, [key], linkOf(key)))
  return others.length === 0 ? lines : [...lines, lineOf(otherName, lines.length, others)]
}

const costOf = (totals: Series['totals'], { key, rest }: SeriesKey): number =>
  totals.find((one) => one.key === key && one.rest === rest)?.cost ?? 0
