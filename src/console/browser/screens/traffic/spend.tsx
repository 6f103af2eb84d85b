/** Who spends what: over time, by model, team or token. */
import { useCallback } from 'preact/hooks'
import { href, queryValue } from '../../address.ts'
import type { Series, SeriesBy, SeriesKey } from '../../api/routes.ts'
import { api } from '../../api/routes.ts'
import { money, number, shortId } from '../../formats.ts'
import { PageHeader } from '../../parts/frame.tsx'
import { useLoaded } from '../../parts/loaded.tsx'
import { Empty, TableCard } from '../../parts/table.tsx'
import { Tabs } from '../../parts/tabs.tsx'
import { hasPermission } from '../../session.ts'
import { teamName, useTeams } from '../team-names.ts'
import { otherName, spendOf } from './overview.tsx'
import { ChartPanel, useSeries } from './series.tsx'

const dimensions = [
  ['model', 'Model'],
  ['team', 'Team'],
  ['token', 'Token'],
  ['gateway', 'Gateway'],
] as const satisfies readonly (readonly [SeriesBy, string])[]

export function Spend() {
  const by = dimensions.find(([name]) => name === queryValue('by'))?.[0] ?? 'model'
  const found = useSeries(by)
  const nameOf = useNames(by)
  const draw = useCallback(
    (series: Series, times: readonly number[]) =>
      spendOf(series, times, { nameOf, linkOf: (each) => linkOf(by, each) }),
    [nameOf, by],
  )
  return (
    <>
      <PageHeader title="Spend" />
      <Tabs label="Spend by" path="/spend" name="by" tabs={dimensions} shown={by} />
      {found.value?.totals.length !== 0 && (
        <ChartPanel
          key={by}
          title={`Spend by ${by}`}
          of={found}
          draw={draw}
          format={money}
          stacked
          empty="No spend in this time range."
        />
      )}
      <TableCard
        label={`Spend by ${by}`}
        rows={
          found.value === undefined && found.refusal !== null
            ? null
            : found.value?.totals.toSorted((left, right) => right.cost - left.cost)
        }
        keyOf={({ key, rest }) => `${rest} ${key ?? ''}`}
        linkOf={({ key, rest }) => linkOf(by, { key, rest })}
        columns={[
          {
            title: dimensions.find(([name]) => name === by)?.[1] ?? by,
            cell: ({ key, rest }) => nameOf({ key, rest }),
          },
          { title: 'Spend', right: true, cell: ({ cost }) => money(cost) },
          { title: 'Requests', right: true, cell: ({ requests }) => number(requests) },
          { title: 'Tokens in', right: true, from: 'wide', cell: ({ input_tokens }) => number(input_tokens) },
          { title: 'Tokens out', right: true, from: 'wide', cell: ({ output_tokens }) => number(output_tokens) },
        ]}
        empty={
          <Empty title="No spend in this time range">
            <p>Spend appears here when requests finish. Set budgets in the catalog to limit it.</p>
          </Empty>
        }
      />
    </>
  )
}

/** The traffic behind a sum; events cannot be asked for by team. */
function linkOf(by: SeriesBy, { key, rest }: SeriesKey): string | undefined {
  if (key === null || rest || by === 'team') return undefined
  return href('/traffic', by === 'model' ? { model: key } : by === 'token' ? { token_id: key } : { gateway_id: key })
}

function useNames(by: SeriesBy): (each: SeriesKey) => string {
  const teams = useTeams()
  const tokens = useLoaded(`names ${by}`, async (signal) => {
    if (by !== 'token' || !hasPermission('tokens:read')) return new Map<string, string>()
    const page = await api('GET /v1/tokens', { query: { limit: 100 }, signal })
    return new Map(page.tokens.map(({ id, name }) => [id, name]))
  })
  const known = tokens.value
  return useCallback(
    ({ key, rest }) => {
      if (rest) return otherName
      if (key === null) return 'None'
      if (by === 'team') return teamName(teams, key)
      if (by === 'token') return known?.get(key) ?? shortId(key)
      return by === 'gateway' ? shortId(key) : key
    },
    [by, teams, known],
  )
}
