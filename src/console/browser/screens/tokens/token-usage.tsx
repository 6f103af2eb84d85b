/** What a token was used for in the time range: requests, refusals, spend and models, from stored sums. */
import { useCallback, useMemo } from 'preact/hooks'
import { href } from '../../address.ts'
import { api, type Series, type TokenModels } from '../../api/routes.ts'
import { money, number } from '../../formats.ts'
import { Chart, type ChartSeries, seriesColours } from '../../parts/chart.tsx'
import { Show, useLoaded } from '../../parts/loaded.tsx'
import { Table } from '../../parts/table.tsx'
import { timeRange } from '../../time-range.ts'
import { bucketsOf, ChartPanel, useSeries, valuesAt } from '../traffic/series.tsx'
import { refusedVerdicts, verdictLines } from '../traffic/verdict-lines.ts'

const nothing = 'No request in this time range.'
const noSpend = 'No spend in this time range.'
const noModel = 'No request was sent to a model in this time range.'

export function TokenUsage({ id }: { id: string }) {
  const filters = useMemo(() => ({ token_id: id }), [id])
  const byVerdict = useSeries('verdict', filters)
  const draw = useCallback(
    (series: Series, times: readonly number[]) => verdictLines(series, times, filters),
    [filters],
  )
  return (
    <>
      <Figures id={id} totals={byVerdict.value?.totals ?? []} />
      <div class="charts">
        <ChartPanel
          title="Requests per minute by outcome"
          of={byVerdict}
          draw={draw}
          format={number}
          stacked
          empty={nothing}
        />
        <ChartPanel title="Spend" of={byVerdict} draw={drawSpend} format={money} stacked empty={noSpend} />
      </div>
      <Models id={id} />
    </>
  )
}

function Figures({ id, totals }: { id: string; totals: Series['totals'] }) {
  const sum = (of: 'requests' | 'cost', among?: readonly string[]) =>
    totals.reduce((total, each) => (among?.includes(each.key ?? '') === false ? total : total + each[of]), 0)
  const figures = [
    ['Requests', number(sum('requests')), {}],
    ['Refused', number(sum('requests', refusedVerdicts)), { verdict: refusedVerdicts.join() }],
    ['Failed', number(sum('requests', ['error'])), { verdict: 'error' }],
    ['Spent', money(sum('cost')), {}],
  ] as const
  return (
    <div class="cards figures">
      {figures.map(([name, value, query]) => (
        <a key={name} class="card figure-link" href={href('/traffic', { token_id: id, ...query })}>
          <span class="quiet">{name}</span>
          <span class="figure">{value}</span>
        </a>
      ))}
    </div>
  )
}

/** The cost of all verdicts together. */
function drawSpend({ series, totals }: Series, times: readonly number[]): ChartSeries[] {
  const cost = totals.reduce((total, each) => total + each.cost, 0)
  if (cost === 0) return []
  const each = series.map(({ points }) => valuesAt(times, points, (point) => point.cost, 0))
  const values = times.map((_, at) => each.reduce((total, of) => total + (of[at] ?? 0), 0))
  return [{ name: 'Spend', colour: '--accent', values, sum: money(cost) }]
}

function Models({ id }: { id: string }) {
  const { since, until } = timeRange()
  const found = useLoaded(`models of ${id} ${since} ${until}`, (signal) =>
    api('GET /v1/tokens/{id}/models', { params: { id }, query: { since, until }, signal }),
  )
  return (
    <section class="card stack">
      <h2>Models</h2>
      <Show of={found} rows={5}>
        {(used) => (used.models.length === 0 ? <p class="quiet">{noModel}</p> : <UsedModels id={id} used={used} />)}
      </Show>
    </section>
  )
}

const nameOf = (model: string | null): string => (model === null ? 'All others' : model === '' ? 'No model' : model)

function UsedModels({ id, used }: { id: string; used: TokenModels }) {
  const times = useMemo(() => bucketsOf(used), [used])
  const lines = useMemo(
    () =>
      used.models.map(({ model, days, requests }, index): ChartSeries => {
        const byDay = new Map(days.map((day) => [Date.parse(day.at) / 1000, day.requests]))
        const values = times.map((time) => byDay.get(time) ?? 0)
        return { name: nameOf(model), colour: seriesColours[index] ?? '--accent', values, sum: number(requests) }
      }),
    [used, times],
  )
  return (
    <>
      {times.length > 2 && (
        <Chart label="Requests by model and day" times={times} series={lines} stacked format={number} />
      )}
      <Table
        label="Models"
        rows={used.models}
        keyOf={({ model }) => model ?? ''}
        linkOf={({ model }) => (model ? href('/traffic', { token_id: id, model }) : undefined)}
        columns={[
          { title: 'Model', cell: ({ model }) => nameOf(model) },
          { title: 'Requests', right: true, cell: ({ requests }) => number(requests) },
          { title: 'Tokens in', right: true, from: 'wide', cell: ({ input_tokens }) => number(input_tokens) },
          { title: 'Tokens out', right: true, from: 'wide', cell: ({ output_tokens }) => number(output_tokens) },
          { title: 'Spend', right: true, cell: ({ cost }) => money(cost) },
        ]}
        empty={null}
      />
    </>
  )
}
