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
  const set = filterNames.filter((name) => queryValue(name) !== null)
  const text = JSON.stringify(Object.fromEntries(set.map((name) => [name, queryValue(name) ?? ''])))
  if (!isSummed(set))
    return <p class="quiet">Sums over time are kept by model, token id and gateway id, one at a time.</p>
  return <Requests filters={text} />
}

function Requests({ filters }: { filters: string }) {
  const given = useMemo((): Record<string, string> => JSON.parse(filters), [filters])
  const found = useSeries('verdict', given)
  const draw = useCallback((series: Series, times: readonly number[]) => verdictLines(series, times, given), [given])
  return (
    <ChartPanel
      title="Requests per minute by outcome"
      of={found}
      draw={draw}
      format={number}
      stacked
      empty="No request in this time range."
    />
  )
}
