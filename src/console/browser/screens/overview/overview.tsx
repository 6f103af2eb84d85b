/** Whether everything is all right, and then what a person on call looks at; each number leads to the events behind it. */
import { useMemo } from 'preact/hooks'
import { href } from '../../address.ts'
import { api, type Series, type SeriesPoint, type Summary, type Totals } from '../../api/routes.ts'
import { milliseconds, money, number, shortNumber } from '../../formats.ts'
import type { ChartSeries } from '../../parts/chart.tsx'
import { PageHeader } from '../../parts/frame/frame.tsx'
import { type Loaded, useLoaded } from '../../parts/loaded.tsx'
import { hasPermission, opensToken } from '../../session.ts'
import { timeRange } from '../../time-range.ts'
import { FirstHour } from '../first-hour/first-hour.tsx'
import { ChartPanel, useSummary, valuesAt } from '../traffic/series.tsx'
import { otherName, spendOf } from '../traffic/spend-lines.ts'
import { refusedVerdicts, verdictLines } from '../traffic/verdict-lines.ts'
import { BudgetsInUse } from './budgets-in-use.tsx'
import { Gateways } from './gateways.tsx'
import { Status, useStatus } from './status.tsx'
import { Reasons, Top } from './top.tsx'

/** The status is read first: nothing else that the control plane answers keeps it waiting. */
export function Overview() {
  const status = useStatus()
  const wait = !status.isRead
  const summary = useSummary(wait)
  const shownSince = summary.value?.verdicts.since
  const tokens = useTokens(summary)
  return (
    <>
      <PageHeader title="Overview" />
      {!wait && <FirstHour failedTests={status.parts.failedTests} />}
      <Status of={status} />
      <Figures of={summary} />
      <div class="charts">
        <ChartPanel
          title="Requests per minute by outcome"
          of={partOf(summary, ({ verdicts }) => verdicts)}
          draw={verdictLines}
          format={rate}
          stacked
          empty={nothing}
        />
        <ChartPanel
          title="Latency of answered requests"
          of={partOf(summary, ({ answered }) => answered)}
          draw={drawTimes}
          format={milliseconds}
          empty={noAnswer}
        />
        <ChartPanel
          title="Spend by model"
          of={partOf(summary, ({ models }) => models)}
          draw={drawSpend}
          format={money}
          stacked
          empty={nothing}
        />
        <Top
          title="Top models"
          of={partOf(summary, ({ top }) => top.models)}
          shownSince={shownSince}
          linkOf={(key) => href('/traffic', { model: key })}
          none="No model"
        />
        {hasPermission('catalog:read') && <BudgetsInUse of={status.parts.budgets} />}
        <Top
          title="Top teams"
          of={partOf(summary, ({ top }) => top.teams)}
          shownSince={shownSince}
          linkOf={() => href('/spend', { by: 'team' })}
          none="No team"
        />
        <Top title="Top tokens" of={tokens} shownSince={shownSince} linkOf={tokenAddress} none="Without a token" />
        <Reasons of={summary} />
      </div>
      {hasPermission('catalog:read') && <Gateways of={status.parts.workers} />}
    </>
  )
}

/** The token, or its requests for a person who may not open the tokens of others. */
const tokenAddress = (id: string): string =>
  opensToken(null) ? href(`/tokens/${id}`) : href('/traffic', { token_id: id })

/** The dearest tokens of the time of the summary. They are read apart, because they take longer than all the rest. */
function useTokens({ value, refusal, reload, retry }: Loaded<Summary>): Loaded<Totals> {
  const query = { since: value?.verdicts.since ?? '', until: value?.until ?? '' }
  const { since, until } = timeRange()
  const range = `${since} ${until}`
  // A summary stays after another range was chosen, until that one is read.
  const rangeOfSummary = useMemo(() => range, [value])
  const tokens = useLoaded(
    `tokens ${rangeOfSummary}`,
    (signal) => api('GET /v1/events/summary/tokens', { query, signal }),
    { wait: value === undefined, moment: `${query.since} ${query.until}` },
  )
  return value === undefined ? { ...tokens, refusal, reload, retry } : tokens
}

const partOf = <Part,>(summary: Loaded<Summary>, read: (summary: Summary) => Part): Loaded<Part> => ({
  ...summary,
  value: summary.value === undefined ? undefined : read(summary.value),
  set: () => undefined,
})

const nothing = 'No request in this time range. Requests appear here when they finish.'
const noAnswer = 'No request was answered in this time range.'

const rate = (value: number): string => shortNumber(Math.round(value * 100) / 100)

/** A figure of what was read; a dash where it did not come, which is said below. */
const figureOf = ({ value, refusal }: Loaded<Summary>, read: (summary: Summary) => string): string =>
  value !== undefined ? read(value) : refusal === null ? '…' : '–'

const slowerThan = (latency: number | undefined) =>
  latency === undefined ? {} : { min_latency_ms: String(Math.round(latency)) }

function Figures({ of }: { of: Loaded<Summary> }) {
  const times = of.value?.answered.totals[0]
  const sum = (measure: 'requests' | 'cost', keys?: readonly string[]) => (summary: Summary) =>
    summary.verdicts.totals.reduce(
      (total, each) => (keys === undefined || keys.includes(each.key ?? '') ? total + each[measure] : total),
      0,
    )
  const count = (keys?: readonly string[]) => figureOf(of, (summary) => number(sum('requests', keys)(summary)))
  const figures = [
    ['Requests', count(), '/traffic', {}],
    ['Refused', count(refusedVerdicts), '/traffic', { verdict: refusedVerdicts.join() }],
    ['Failed', count(['error']), '/traffic', { verdict: 'error' }],
    ['Spent', figureOf(of, (summary) => money(sum('cost')(summary))), '/spend', {}],
    [
      'p95 latency',
      figureOf(of, () => milliseconds(times?.latency_ms?.p95)),
      '/traffic',
      slowerThan(times?.latency_ms?.p95),
    ],
    ['p95 first token', figureOf(of, () => milliseconds(times?.first_token_ms?.p95)), '/traffic', {}],
  ] as const
  return (
    <div class="cards figures">
      {figures.map(([name, value, to, query]) => (
        <a key={name} class="card figure-link" href={href(to, query)}>
          <span class="quiet">{name}</span>
          <span class="figure">{value}</span>
        </a>
      ))}
    </div>
  )
}

function drawTimes({ series, totals }: Series, times: readonly number[]): ChartSeries[] {
  const [all] = series
  const [sums] = totals
  if (all === undefined || (sums?.requests ?? 0) === 0) return []
  const line = (name: string, colour: string, value: (of: Times) => number | undefined) => ({
    ...{ name, colour, values: valuesAt(times, all.points, (point) => value(point) ?? null, null) },
    sum: milliseconds(sums === undefined ? null : value(sums)),
  })
  return [
    line('p50', '--accent', ({ latency_ms }) => latency_ms?.p50),
    line('p95', '--escalate', ({ latency_ms }) => latency_ms?.p95),
    line('p99', '--deny', ({ latency_ms }) => latency_ms?.p99),
    line('p50 to the first token', '--rewrite', ({ first_token_ms }) => first_token_ms?.p50),
    line('p95 to the first token', '--allow', ({ first_token_ms }) => first_token_ms?.p95),
  ]
}
type Times = Pick<SeriesPoint, 'latency_ms' | 'first_token_ms'>

const drawSpend = (series: Series, times: readonly number[]): ChartSeries[] =>
  spendOf(series, times, {
    nameOf: ({ key, rest }) => (rest ? otherName : (key ?? 'No model')),
    linkOf: ({ key, rest }) => (key === null || rest ? undefined : href('/traffic', { model: key })),
  })
