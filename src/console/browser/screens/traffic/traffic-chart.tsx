/** The requests of the list over time, where sums are kept for its filters; dragging over it zooms in. */
import { useCallback, useMemo } from 'preact/hooks'
import { queryValue } from '../../address.ts'
import type { Series } from '../../api/routes.ts'
import { number } from '../../formats.ts'
import { ChartPanel, useSeries } from './series.tsx'
import { verdictLines } from './verdict-lines.ts'

/** One of these at a time. */
const summed = ['model', 'token_id', 'gateway_id'] as const

/** Whether sums are kept for just these filters. */
const isSummed = (set: readonly string[]): boolean =>
  set.every((name) => summed.some((one) => one === name)) && set.length <= 1

export function TrafficChart({ filterNames }: { filterNames: readonly string[] }) {
  // Sums are kept for each verdict: those that are not asked for are left out of the drawing.
  const set = filterNames.filter((name) => name !== 'verdict' && queryValue(name) !== null)
  const text = JSON.stringify(Object.fromEntries(set.map((name) => [name, queryValue(name) ?? ''])))
  if (!isSummed(set))
    return (
      <p class="quiet">
        There is no chart for these filters. Keep verdicts and at most one of model, token id and gateway id.
      </p>
    )
  return <Requests filters={text} verdicts={queryValue('verdict')} />
}

function Requests({ filters, verdicts }: { filters: string; verdicts: string | null }) {
  const given = useMemo((): Record<string, string> => JSON.parse(filters), [filters])
  const found = useSeries('verdict', given)
  const columns = queryValue('columns')
  const draw = useCallback(
    (read: Series, times: readonly number[]) => {
      const asked = verdicts?.split(',')
      const series = read.series.filter(({ key }) => asked === undefined || (key !== null && asked.includes(key)))
      // A link of the legend changes the verdict and nothing else of what is shown.
      return verdictLines({ ...read, series }, times, { ...given, chart: 'on', ...(columns !== null && { columns }) })
    },
    [given, verdicts, columns],
  )
  return (
    <ChartPanel
      title="Requests per minute by outcome"
      of={found}
      draw={draw}
      format={number}
      stacked
      empty={verdicts === null ? 'No request in this time range.' : 'No request with this verdict in this time range.'}
    />
  )
}
