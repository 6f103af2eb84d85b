/** What a month costs by two dimensions, beside the month before; and a provider's invoice beside what was booked. */
import { href, queryValue } from '../../address.ts'
import { request } from '../../api/request.ts'
import type { CostReport } from '../../api/routes.ts'
import { humanize, money, monthTitle, number } from '../../formats.ts'
import { Filters } from '../../parts/forms/filters.tsx'
import { PageHeader } from '../../parts/frame/frame.tsx'
import { Tabs } from '../../parts/frame/tabs.tsx'
import { Show, useLoaded } from '../../parts/loaded.tsx'
import { Empty, TableCard } from '../../parts/table.tsx'
import { showInvisible } from '../../parts/user-text.tsx'
import { hasPermission } from '../../session.ts'
import { dimensionIn, dimensionTitle, keyOf, useDimensions } from '../dimensions.ts'
import { Reconciliation } from './reconciliation.tsx'

const tabs = [
  ['month', 'Month'],
  ['invoice', 'Invoice'],
] as const

export function Reports() {
  // An invoice is compared with the spend at a provider of the catalog.
  const mayCompare = hasPermission('catalog:read')
  const shown = mayCompare && queryValue('kind') === 'invoice' ? 'invoice' : 'month'
  return (
    <>
      <PageHeader title="Reports" />
      {mayCompare && <Tabs label="Reports" path="/reports" name="kind" tabs={tabs} shown={shown} />}
      {shown === 'month' ? <MonthReport /> : <Reconciliation months={months()} />}
    </>
  )
}

const monthsShown = 4

/** This month and those before, as the API writes them; older ones may be gone with their events. */
function months(): string[] {
  const now = new Date()
  return Array.from({ length: monthsShown }, (_, back) =>
    new Date(Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - back)).toISOString().slice(0, 7),
  )
}

const groups = ['team', 'provider', 'model', 'token', 'gateway', 'user'] as const
const titles = { user: 'Person', nothing: 'Nothing else' } as const

function MonthReport() {
  const known = months()
  const month = queryValue('month') ?? known[0] ?? ''
  const declared = useDimensions()
  const options = [
    ...groups.map((name) => [name, titleOf(name)] as const),
    ...(declared.value ?? []).map((name) => [keyOf(name), dimensionTitle(name)] as const),
  ]
  const first = queryValue('by') ?? 'team'
  const usual = dimensionIn(first) === null ? 'model' : 'nothing'
  const second = queryValue('and') ?? usual
  const by = second === 'nothing' || second === first ? first : `${first},${second}`
  const found = useLoaded(`costs ${month} ${by}`, (signal) =>
    request<CostReport>('GET', '/v1/usage/costs', { query: { month, by }, signal }),
  )
  const file = (query: Record<string, string>) => `/v1/usage/costs/export?${new URLSearchParams({ month, ...query })}`
  return (
    <section class="stack">
      <div class="head">
        <Filters
          filters={[
            {
              name: 'month',
              label: 'Month',
              usual: known[0] ?? '',
              options: known.map((name) => [name, monthTitle(name)] as const),
            },
            { name: 'by', label: 'By', usual: 'team', options },
            { name: 'and', label: 'And by', usual, options: [...options, ['nothing', titles.nothing]] },
          ]}
        />
        <div class="row">
          <a class="button" href={file({ by })} download={`costs-${month}.csv`}>
            CSV
          </a>
          <a class="button" href={file({ format: 'focus' })} download={`focus-${month}.csv`}>
            FOCUS
          </a>
        </div>
      </div>
      <Show of={found} rows={8}>
        {(report) => <Costs report={report} />}
      </Show>
    </section>
  )
}

const titleOf = (dimension: string): string =>
  dimension === 'user' ? titles.user : humanize(dimensionIn(dimension) ?? dimension)

function Costs({ report: { month, by, rows, totals, left_out } }: { report: CostReport }) {
  const isRunning = month === months()[0]
  return (
    <>
      <div class="cards figures">
        <Figure name="Spent" value={money(totals.cost)} />
        <Figure name="Month before, to the same day" value={money(totals.previous_cost_to_date)} />
        <Figure name="Month before" value={money(totals.previous_cost)} />
        <Figure name={isRunning ? 'Forecast' : 'At its end'} value={money(totals.forecast)} />
      </div>
      {isRunning && (
        <p class="quiet">
          The forecast is what was spent, and for each day that is left the mean of the seven full days before today, or
          of those since the first cost; before the first full day nothing is added. Change compares with the month
          before up to the same day. Days are in UTC.
        </p>
      )}
      <TableCard
        label={`Costs by ${by.map((group) => titleOf(group).toLowerCase()).join(' and ')}`}
        rows={rows}
        keyOf={({ group, rest }) => JSON.stringify([group, rest])}
        columns={[
          ...by.map((dimension) => ({
            title: titleOf(dimension),
            cell: ({ names }: CostReport['rows'][number]) => named(names[dimension]),
          })),
          { title: 'Cost', right: true, cell: ({ cost }) => money(cost) },
          {
            title: 'Change',
            right: true,
            cell: ({ cost, previous_cost_to_date: before }) => changeOf(cost, before),
          },
          { title: 'Month before', right: true, from: 'wide', cell: ({ previous_cost }) => money(previous_cost) },
          { title: 'Forecast', right: true, from: 'wide', cell: ({ forecast }) => money(forecast) },
          { title: 'Requests', right: true, from: 'wide', cell: ({ requests }) => number(requests) },
          { title: 'Tokens in', right: true, from: 'wider', cell: ({ input_tokens }) => number(input_tokens) },
          { title: 'Tokens out', right: true, from: 'wider', cell: ({ output_tokens }) => number(output_tokens) },
        ]}
        empty={
          <Empty title="Nothing was spent in this month">
            <p>
              <a href={href('/spend')}>Spend</a> shows other times. Sums are kept as long as events.
            </p>
          </Empty>
        }
      />
      {left_out > 0 && <p class="quiet">{number(left_out)} more rows are in the CSV.</p>}
    </>
  )
}

const Figure = ({ name, value }: { name: string; value: string }) => (
  <div class="card figure-of">
    <span class="quiet">{name}</span>
    <span class="figure">{value}</span>
  </div>
)

/** Against the month before up to the same day. */
function changeOf(cost: number, before: number): string {
  if (before === 0) return cost === 0 ? '–' : 'New'
  const share = Math.round((100 * (cost - before)) / before)
  return `${share > 0 ? '+' : ''}${share} %`
}

/** What requests without a value have in its place looks unlike a value, which may be called None. */
const named = (name: string | null | undefined) => (name == null ? <i class="quiet">No value</i> : showInvisible(name))
