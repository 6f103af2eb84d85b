/** What a person on call looks at first; each number leads to the events behind it. */
import { href } from '../../address.ts'
import { request } from '../../api/request.ts'
import type { Series, SeriesKey, SeriesPoint, Verdict } from '../../api/routes.ts'
import { humanize, milliseconds, money, number, shortNumber } from '../../formats.ts'
import { type ChartSeries, seriesColours } from '../../parts/chart.tsx'
import { PageHeader } from '../../parts/frame.tsx'
import { Icon } from '../../parts/icon.tsx'
import { type Loaded, Show, useLoaded } from '../../parts/loaded.tsx'
import { isObject, type JsonObject } from '../../parts/schema-form.tsx'
import { Id, Time } from '../../parts/small.tsx'
import { Empty, Table } from '../../parts/table.tsx'
import { hasPermission } from '../../session.ts'
import { OpenAlerts } from '../alerts/open-alerts.tsx'
import { Alerts } from '../tokens/tokens.tsx'
import { Findings } from './findings.tsx'
import { ChartPanel, useSeries, valuesAt } from './series.tsx'

export function Overview() {
  const byVerdict = useSeries('verdict')
  const all = useSeries(null)
  const byModel = useSeries('model')
  const byReason = useSeries('reason')
  return (
    <>
      <PageHeader title="Overview" />
      <Figures all={all} byVerdict={byVerdict} />
      {hasPermission('catalog:read') && <Findings />}
      {hasPermission('catalog:read') && <OpenAlerts />}
      {hasPermission('tokens:read') && <Alerts />}
      <div class="charts">
        <ChartPanel title="Requests" of={byVerdict} draw={drawVerdicts} format={shortNumber} stacked empty={nothing} />
        <ChartPanel title="Latency" of={all} draw={drawTimes} format={milliseconds} empty={nothing} />
        <ChartPanel title="Spend by model" of={byModel} draw={drawSpend} format={money} stacked empty={nothing} />
        <section class="card stack">
          <h2>Why requests were refused or changed</h2>
          <Show of={byReason} rows={5}>
            {(series) => <Reasons series={series} />}
          </Show>
        </section>
      </div>
      {hasPermission('catalog:read') && <Gateways />}
    </>
  )
}

const nothing = 'No request in this time range. Requests appear here when they finish.'

/** A figure of what was read; a dash where it did not come, which is said below. */
const figureOf = ({ value, refusal }: Loaded<Series>, read: (series: Series) => string): string =>
  value !== undefined ? read(value) : refusal === null ? '…' : '–'

const total = (series: Series | undefined) => series?.totals[0]

const slowerThan = (latency: number | undefined) =>
  latency === undefined ? {} : { min_latency_ms: String(Math.round(latency)) }

function Figures({ all, byVerdict }: { all: Loaded<Series>; byVerdict: Loaded<Series> }) {
  const sums = total(all.value)
  const ended = (verdict: Verdict) =>
    figureOf(byVerdict, ({ totals }) => number(totals.find(({ key }) => key === verdict)?.requests ?? 0))
  const figures = [
    ['Requests', figureOf(all, () => number(sums?.requests ?? 0)), '/traffic', {}],
    ['Denied', ended('deny'), '/traffic', { verdict: 'deny' }],
    ['Blocked', ended('block'), '/traffic', { verdict: 'block' }],
    ['Spent', figureOf(all, () => money(sums?.cost ?? 0)), '/spend', {}],
    [
      'p95 latency',
      figureOf(all, () => milliseconds(sums?.latency_ms?.p95)),
      '/traffic',
      slowerThan(sums?.latency_ms?.p95),
    ],
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

const drawVerdicts = ({ series, totals }: Series, times: readonly number[]): ChartSeries[] =>
  order.flatMap((verdict) => {
    const found = series.find(({ key }) => key === verdict)
    if (found === undefined) return []
    const sum = totals.find(({ key }) => key === verdict)?.requests ?? 0
    return [
      {
        name: humanize(verdict),
        colour: verdict === 'approval_required' ? '--pending' : `--${verdict}`,
        values: valuesAt(times, found.points, ({ requests }) => requests, 0),
        sum: number(sum),
        to: href('/traffic', { verdict }),
      },
    ]
  })

function drawTimes({ series, totals }: Series, times: readonly number[]): ChartSeries[] {
  const [all] = series
  const [sums] = totals
  if (all === undefined) return []
  const line = (
    name: string,
    colour: string,
    value: (point: SeriesPoint) => number | null,
    sum: number | null | undefined,
  ) => ({
    ...{ name, colour, values: valuesAt(times, all.points, value, null) },
    sum: milliseconds(sum),
  })
  return [
    line('p50 latency', '--accent', ({ latency_ms }) => latency_ms?.p50 ?? null, sums?.latency_ms?.p50),
    line('p95 latency', '--escalate', ({ latency_ms }) => latency_ms?.p95 ?? null, sums?.latency_ms?.p95),
    line(
      'p50 time to first token',
      '--rewrite',
      ({ first_token_ms }) => first_token_ms?.p50 ?? null,
      sums?.first_token_ms?.p50,
    ),
  ]
}

const drawSpend = (series: Series, times: readonly number[]): ChartSeries[] =>
  spendOf(series, times, {
    nameOf: ({ key, rest }) => (rest ? otherName : (key ?? 'None')),
    linkOf: ({ key, rest }) => (key === null || rest ? undefined : href('/traffic', { model: key })),
  })

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

function Reasons({ series: { totals } }: { series: Series }) {
  const refused = totals.filter(({ key, rest }) => key !== null && key !== 'ok' && !rest).slice(0, 8)
  return (
    <Table
      label="Reasons"
      rows={refused}
      keyOf={({ key }) => key ?? ''}
      linkOf={({ key }) => href('/traffic', { reason_code: key })}
      columns={[
        { title: 'Reason', cell: ({ key }) => key },
        { title: 'Requests', right: true, cell: ({ requests }) => number(requests) },
      ]}
      empty={<p class="quiet">No request was refused or changed in this time range.</p>}
    />
  )
}

/** How a worker stands, in a word, and how bad that is. */
function workerStatus({
  connected,
  left_at,
  serves_until,
}: JsonObject): [verdict: 'allow' | 'rate_limit' | 'deny', word: string] {
  if (connected === true) return ['allow', 'Connected']
  if (left_at !== null) return ['rate_limit', 'Stopped']
  const serves = typeof serves_until === 'string' && Date.parse(serves_until) > Date.now()
  return serves ? ['rate_limit', 'Silent'] : ['deny', 'Refusing']
}

function Gateways() {
  const found = useLoaded(
    'workers',
    async (signal) => {
      const page = await request<JsonObject>('GET', '/v1/gateway-workers', { query: { limit: 100 }, signal })
      return Array.isArray(page.workers) ? page.workers.filter(isObject) : []
    },
    { everyMs: 15_000 },
  )
  return (
    <section class="card stack">
      <h2>Gateways</h2>
      <Show of={found} rows={2}>
        {(workers) => (
          <Table
            label="Gateways"
            rows={workers}
            keyOf={({ worker }) => String(worker)}
            columns={[
              { title: 'Gateway', cell: ({ gateway_name }) => String(gateway_name) },
              { title: 'Worker', from: 'wide', cell: ({ worker }) => <Id id={String(worker)} what="Worker" short /> },
              {
                title: 'State',
                cell: (worker) => {
                  const [verdict, word] = workerStatus(worker)
                  return (
                    <span class="badge" data-verdict={verdict}>
                      <Icon name={verdict} />
                      {word}
                    </span>
                  )
                },
              },
              {
                title: 'Lag',
                from: 'wide',
                cell: ({ acknowledged_version, state_version }) =>
                  Math.max(0, Number(state_version) - Number(acknowledged_version)),
              },
              {
                title: 'Serves until',
                from: 'wide',
                cell: ({ serves_until }) => (serves_until === null ? '–' : <Time at={String(serves_until)} />),
              },
              {
                title: 'Last heartbeat',
                cell: ({ last_heartbeat_at }) =>
                  last_heartbeat_at === null ? '–' : <Time at={String(last_heartbeat_at)} />,
              },
            ]}
            empty={
              <Empty title="No gateway has connected yet">
                <p>A gateway appears here after its start.</p>
              </Empty>
            }
          />
        )}
      </Show>
    </section>
  )
}
