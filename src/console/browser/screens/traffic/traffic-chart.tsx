/** The requests of the list over time, where sums are kept for its filters; dragging over it zooms in. */
import { useCallback, useMemo } from 'preact/hooks'
import { queryValue } from '../../address.ts'
import { api, type Series } from '../../api/routes.ts'
import { countNoun, number } from '../../formats.ts'
import { Show, useLoaded } from '../../parts/loaded.tsx'
import { ChartPanel, useSeries } from './series.tsx'
import { verdictLines } from './verdict-lines.ts'

/** One of these at a time. */
const summed = ['model', 'token', 'token_id', 'gateway_id'] as const

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
        There is no chart for these filters. Keep verdicts and at most one of model, token and gateway.
      </p>
    )
  const name = queryValue('token')
  const verdicts = queryValue('verdict')
  return name === null ? (
    <Requests filters={text} sums={text} verdicts={verdicts} />
  ) : (
    <RequestsOfToken name={name} filters={text} verdicts={verdicts} />
  )
}

const tokensRead = 100

/** Sums are kept by the id of a token: the chart is of the one token that has the name. */
function RequestsOfToken({ name, ...rest }: { name: string; filters: string; verdicts: string | null }) {
  const found = useLoaded(`tokens named ${name}`, async (signal) => {
    const { tokens } = await api('GET /v1/tokens', { query: { limit: tokensRead, name: name.slice(0, 200) }, signal })
    return tokens.filter((token) => token.name === name || token.id === name.toLowerCase())
  })
  return (
    <Show of={found} rows={5}>
      {(tokens) =>
        tokens.length === 1 ? (
          <Requests sums={JSON.stringify({ token_id: tokens[0]?.id })} {...rest} />
        ) : (
          <p class="quiet">
            {countNoun(tokens.length, 'token')} of this name: a chart is of one token. Filter by a token id instead.
          </p>
        )
      }
    </Show>
  )
}

/** `filters` stay in the address when a verdict is chosen; `sums` are those by which the sums are read. */
function Requests({ filters, sums, verdicts }: { filters: string; sums: string; verdicts: string | null }) {
  const given = useMemo((): Record<string, string> => JSON.parse(filters), [filters])
  const summedBy = useMemo((): Record<string, string> => JSON.parse(sums), [sums])
  const found = useSeries('verdict', summedBy)
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
