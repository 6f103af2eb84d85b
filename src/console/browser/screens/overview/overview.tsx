/** Whether everything is all right, and then what a person on call looks at; each number leads to the events behind it. */
import { href } from '../../address.ts'
import type { Series, SeriesPoint } from '../../api/routes.ts'
import { milliseconds, money, number, shortNumber } from '../../formats.ts'
import type { ChartSeries } from '../../parts/chart.tsx'
import { PageHeader } from '../../parts/frame/frame.tsx'
import type { Loaded } from '../../parts/loaded.tsx'
import { hasPermission, opensToken } from '../../session.ts'
import { FirstHour } from '../first-hour/first-hour.tsx'
import { ChartPanel, useSeries, valuesAt } from '../traffic/series.tsx'
import { otherName, spendOf } from '../traffic/spend-lines.ts'
import { refusedVerdicts, verdictLines } from '../traffic/verdict-lines.ts'
import { BudgetsInUse } from './budgets-in-use.tsx'
import { Gateways } from './gateways.tsx'
import { Status } from './status.tsx'
import { Reasons, Top } from './top.tsx'

const answeredOnly = { answered: 'true' }

export function Overview() {
  const byVerdict = useSeries('verdict')
  const answered = useSeries(null, answeredOnly)
  const byModel = useSeries('model')
  const byToken = useSeries('token')
  const byTeam = useSeries('team')
  const byReason = useSeries('reason')
  return (
    <>
      <PageHeader title="Overview" />
      <FirstHour />
      <Status />
      <Figures answered={answered} byVerdict={byVerdict} />
      <div class="charts">
        <ChartPanel
          title="Requests per minute by outcome"
          of={byVerdict}
          draw={verdictLines}
          format={rate}
          stacked
          empty={nothing}
        />
        <ChartPanel
          title="Latency of answered requests"
          of={answered}
          draw={drawTimes}
          format={milliseconds}
          empty={noAnswer}
        />
        <ChartPanel title="Spend by model" of={byModel} draw={drawSpend} format={money} stacked empty={nothing} />
        <Top title="Top models" of={byModel} linkOf={(key) => href('/traffic', { model: key })} none="No model" />
        {hasPermission('catalog:read') && <BudgetsInUse />}
        <Top title="Top teams" of={byTeam} linkOf={() => href('/spend', { by: 'team' })} none="No team" />
        <Top title="Top tokens" of={byToken} linkOf={tokenAddress} none="Without a token" />
        <Reasons of={byReason} />
      </div>
      {hasPermission('catalog:read') && <Gateways />}
    </>
  )
}

/** The token, or its requests for a person who may not open the tokens of others. */
const tokenAddress = (id: string): string =>
  opensToken(null) ? href(`/tokens/${id}`) : href('/traffic', { token_id: id })

const nothing = 'No request in this time range. Requests appear here when they finish.'
const noAnswer = 'No request was answered in this time range.'

const rate = (value: number): string => shortNumber(Math.round(value * 100) / 100)

/** A figure of what was read; a dash where it did not come, which is said below. */
const figureOf = ({ value, refusal }: Loaded<Series>, read: (series: Series) => string): string =>
  value !== undefined ? read(value) : refusal === null ? '…' : '–'

const slowerThan = (latency: number | undefined) =>
  latency === undefined ? {} : { min_latency_ms: String(Math.round(latency)) }

function Figures({ answered, byVerdict }: { answered: Loaded<Series>; byVerdict: Loaded<Series> }) {
  const times = answered.value?.totals[0]
  const sum = (of: 'requests' | 'cost', keys?: readonly string[]) =>
    byVerdict.value?.totals.reduce(
      (total, each) => (keys === undefined || keys.includes(each.key ?? '') ? total + each[of] : total),
      0,
    ) ?? 0
  const figures = [
    ['Requests', figureOf(byVerdict, () => number(sum('requests'))), '/traffic', {}],
    [
      'Refused',
      figureOf(byVerdict, () => number(sum('requests', refusedVerdicts))),
      '/traffic',
      { verdict: refusedVerdicts.join() },
    ],
    ['Failed', figureOf(byVerdict, () => number(sum('requests', ['error']))), '/traffic', { verdict: 'error' }],
    ['Spent', figureOf(byVerdict, () => money(sum('cost'))), '/spend', {}],
    [
      'p95 latency',
      figureOf(answered, () => milliseconds(times?.latency_ms?.p95)),
      '/traffic',
      slowerThan(times?.latency_ms?.p95),
    ],
    ['p95 first token', figureOf(answered, () => milliseconds(times?.first_token_ms?.p95)), '/traffic', {}],
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
    nameOf: ({ key, rest }) => (rest ? otherName : (key ?? 'None')),
    linkOf: ({ key, rest }) => (key === null || rest ? undefined : href('/traffic', { model: key })),
  })
