/** Requests by verdict as the lines of a chart. */
import { href } from '../../address.ts'
import type { Series, Verdict } from '../../api/routes.ts'
import { humanize, number } from '../../formats.ts'
import type { ChartSeries } from '../../parts/chart.tsx'
import { bucketsOf, valuesAt } from './series.tsx'

/** The verdicts of requests that a policy, a limit or a permission stopped. */
export const refusedVerdicts: readonly string[] = ['deny', 'block', 'rate_limit']

const order: readonly Verdict[] = [
  'allow',
  'redact',
  'rewrite',
  'escalate',
  'approval_required',
  'pending',
  'rate_limit',
  'deny',
  'block',
  'error',
]

/** Requests in a bucket as requests per minute, by verdict; `filters` go along to the traffic behind a line. */
export const verdictLines = (
  read: Series,
  times: readonly number[],
  filters: Readonly<Record<string, string>> = {},
): ChartSeries[] => {
  const [first = 0, second = 60] = bucketsOf(read)
  const minutes = (second - first) / 60
  return order.flatMap((verdict) => {
    const found = read.series.find(({ key }) => key === verdict)
    if (found === undefined) return []
    const sum = read.totals.find(({ key }) => key === verdict)?.requests ?? 0
    return [
      {
        name: humanize(verdict),
        colour: verdict === 'approval_required' ? '--pending' : `--${verdict}`,
        values: valuesAt(times, found.points, ({ requests }) => requests / minutes, 0),
        sum: number(sum),
        to: href('/traffic', { ...filters, verdict }),
      },
    ]
  })
}
