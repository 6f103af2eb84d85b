/** Spend as the lines of a chart, one for each key. */
import type { Series, SeriesKey } from '../../api/routes.ts'
import { money } from '../../formats.ts'
import { type ChartSeries, seriesColours } from '../../parts/chart.tsx'
import { valuesAt } from './series.tsx'

/** What sums up all that are not shown. */
export const otherName = 'All others'

/** The spend of each key, the dearest first, as many as there are colours. */
export const spendOf = (
  { series, totals }: Series,
  times: readonly number[],
  { nameOf, linkOf }: { nameOf(key: SeriesKey): string; linkOf(key: SeriesKey): string | undefined },
): ChartSeries[] =>
  series
    .toSorted((left, right) => costOf(totals, right) - costOf(totals, left))
    .slice(0, seriesColours.length)
    .map((each, index) => {
      const to = linkOf(each)
      return {
        name: nameOf(each),
        colour: seriesColours[index] ?? '--accent',
        values: valuesAt(times, each.points, ({ cost }) => cost, 0),
        sum: money(costOf(totals, each)),
        ...(to === undefined ? {} : { to }),
      }
    })

const costOf = (totals: Series['totals'], { key, rest }: SeriesKey): number =>
  totals.find((one) => one.key === key && one.rest === rest)?.cost ?? 0
