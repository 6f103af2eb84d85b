/** Who spends what: over time, by model, team or token. */
import { useCallback } from 'preact/hooks'
import { href, queryValue } from '../../address.ts'
import type { Series, SeriesBy, SeriesKey } from '../../api/routes.ts'
import { money, number, shortId } from '../../formats.ts'
import { PageHeader } from '../../parts/frame/frame.tsx'
import { Tabs } from '../../parts/frame/tabs.tsx'
import { Empty, TableCard } from '../../parts/table.tsx'
import { dimensionIn, dimensionTitle, keyOf, useDimensions, valueFilter } from '../dimensions.ts'
import { ChartPanel, useSeries } from './series.tsx'
import { otherName, spendOf } from './spend-lines.ts'

const groups = [
  ['model', 'Model'],
  ['team', 'Team'],
  ['token', 'Token'],
  ['gateway', 'Gateway'],
] as const satisfies readonly (readonly [SeriesBy, string])[]

export function Spend() {
  const declared = useDimensions()
  const asked = queryValue('by') ?? ''
  const dimension = dimensionIn(asked)
  const by: SeriesBy = dimension === null ? (groups.find(([name]) => name === asked)?.[0] ?? 'model') : keyOf(dimension)
  // The one that is shown has its tab before the others are known.
  const names = declared.value ?? (dimension === null ? [] : [dimension])
  const tabs = [...groups, ...names.map((name) => [keyOf(name), dimensionTitle(name)] as const)]
  const title = tabs.find(([name]) => name === by)?.[1] ?? dimensionTitle(dimension ?? by)
  const found = useSeries(by)
  const draw = useCallback(
    (series: Series, times: readonly number[]) =>
      spendOf(series, times, { nameOf: nameIn(series.totals, title), linkOf: (each) => linkOf(by, each) }),
    [by, title],
  )
  return (
    <>
      <PageHeader title="Spend" />
      <Tabs label="Spend by" path="/spend" name="by" tabs={tabs} shown={by} />
      {found.value?.totals.length !== 0 && (
        <ChartPanel
          key={by}
          title={`Spend by ${title.toLowerCase()}`}
          of={found}
          draw={draw}
          format={money}
          stacked
          empty="No spend in this time range."
        />
      )}
      <TableCard
        label={`Spend by ${title.toLowerCase()}`}
        rows={
          found.value === undefined && found.refusal !== null
            ? null
            : found.value?.totals.toSorted((left, right) => right.cost - left.cost)
        }
        keyOf={({ key, rest }) => `${rest} ${key ?? ''}`}
        linkOf={({ key, rest }) => linkOf(by, { key, rest })}
        columns={[
          {
            title,
            cell: ({ key, rest }) => nameIn(found.value?.totals ?? [], title)({ key, rest }),
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
  const dimension = dimensionIn(by)
  if (dimension !== null) return href('/traffic', { dimension: valueFilter(dimension, key) })
  return href('/traffic', by === 'model' ? { model: key } : by === 'token' ? { token_id: key } : { gateway_id: key })
}

const nameIn =
  (totals: Series['totals'], title: string) =>
  ({ key, rest }: SeriesKey): string => {
    if (rest) return otherName
    if (key === null) return `No ${title.toLowerCase()}`
    return totals.find((each) => each.key === key)?.name ?? (isId(key) ? shortId(key) : key)
  }

const isId = (key: string): boolean => /^[0-9a-f-]{36}$/.test(key)
