/** One budget: how much is used and how fast, who used it, and which requests it refused. */
import { useState } from 'preact/hooks'
import { href, navigate, queryValue } from '../../address.ts'
import { api, type Budget, type BudgetUsage, type Event, type UsageReport } from '../../api/routes.ts'
import { ago, countNoun, fullTime, humanize, money, number } from '../../formats.ts'
import { Chart } from '../../parts/chart.tsx'
import { Filters } from '../../parts/forms/filters.tsx'
import { PageHeader } from '../../parts/frame/frame.tsx'
import { ErrorNote, type Loaded, Show, useLoaded } from '../../parts/loaded.tsx'
import { Facts, Time, UsedBar } from '../../parts/small.tsx'
import { Empty, Table, TableCard } from '../../parts/table.tsx'
import { hasPermission } from '../../session.ts'
import { Editor } from '../catalog/records.tsx'
import { dimensionTitle, valueFilter } from '../dimensions.ts'
import { RecordName } from '../record-name.tsx'
import { readEvents } from '../traffic/event-pages.ts'
import { detail } from '../traffic/exchange/event-details.ts'
import { budgetKind } from './budget-kind.tsx'
import { BudgetScope } from './budget-scope.tsx'
import { BudgetUse } from './budget-use.tsx'

export function BudgetScreen({ id }: { id: string }) {
  const found = useLoaded(id, (signal) => api('GET /v1/budgets/{id}', { params: { id }, signal }))
  const [changing, setChanging] = useState(false)
  const budget = found.value
  const close = () => {
    setChanging(false)
    found.reload()
  }
  return (
    <>
      <PageHeader title={budget?.name ?? 'Budget'} back={['/catalog', 'Catalog']}>
        {hasPermission('catalog:write') && (
          <button type="button" disabled={budget === undefined} onClick={() => setChanging(true)}>
            Change
          </button>
        )}
      </PageHeader>
      {changing && budget !== undefined && (
        <Editor
          kind={budgetKind}
          record={budget}
          close={close}
          deleted={() => navigate(href('/catalog', { kind: 'budgets' }))}
        />
      )}
      <Show of={found} rows={8}>
        {(shown) => <Shown budget={shown} />}
      </Show>
    </>
  )
}

function Shown({ budget }: { budget: Budget }) {
  const { id, max_budget: limit, window, scope, resets_at: resets, forecast, remaining, per } = budget
  const usage = useLoaded(`usage ${id}`, (signal) => api('GET /v1/budgets/{id}/usage', { params: { id }, signal }))
  const since = usage.value?.since
  const refused = useRefused(id, since)
  const count = refused.value?.totals.requests ?? (refused.refusal === null ? 0 : null)
  const used = per === null ? `${money(budget.current_spend)} of ${money(limit)}` : money(budget.current_spend)
  const { note, sentence } = stateOf(budget, count)
  return (
    <div class="stack">
      <section class={`note ${note} stack`}>
        <p class="lead">{sentence}</p>
        <BudgetUse budget={budget} />
      </section>
      {per !== null && <Values budget={budget} per={per} />}
      <div class="cards">
        <section class="card stack">
          <h2>How much</h2>
          <Facts
            facts={[
              [per === null ? 'Used' : 'Used by all', used],
              per === null ? ['Left', money(remaining)] : [`For each ${per}`, money(limit)],
              ['Forecast', forecast === null ? 'None yet' : `${money(forecast)} at the end of the ${window}`],
              ['Window', humanize(window)],
              ['Resets', resets === null ? 'Never' : `${fullTime(resets)} (${ago(resets)})`],
              ['Of', <BudgetScope key="of" scope={scope} linked />],
            ]}
          />
        </section>
        <section class="card stack">
          <h2>Spend by day</h2>
          <Show of={usage} rows={5}>
            {(read) => <Burn usage={read} />}
          </Show>
        </section>
        <section class="card stack">
          <h2>Who used it</h2>
          <Show of={usage} rows={5}>
            {({ rows }) => (
              <Table
                label="Who used it"
                rows={rows}
                keyOf={({ token_id }) => token_id ?? ''}
                linkOf={({ token_id }) => (token_id === null ? undefined : href(`/tokens/${token_id}`))}
                columns={[
                  { title: 'Token', cell: ({ name, token_id }) => name ?? token_id ?? 'None' },
                  { title: 'Requests', right: true, cell: ({ requests }) => number(requests) },
                  { title: 'Spend', right: true, cell: ({ cost }) => money(cost) },
                ]}
                empty={<p class="quiet">Nobody has used it in this window.</p>}
              />
            )}
          </Show>
        </section>
      </div>
      {hasPermission('events:read') && since !== undefined && <Refused id={id} since={since} found={refused} />}
    </div>
  )
}

/** How it stands, and how urgent that is. `refused`: requests that it refused in this window; null: that could not be read. */
function stateOf(budget: Budget, refused: number | null): { note: string; sentence: string } {
  const { current_spend: spent, max_budget: limit, window, resets_at: resets, forecast, per, values } = budget
  const until = resets === null ? '' : ` until ${fullTime(resets)}`
  const ofRefused = refusedState(refused)
  if (per !== null) {
    const exhausted = values?.exhausted ?? 0
    if (exhausted > 0) {
      const some = `It is used up for ${number(exhausted)} of ${countNoun(values?.count ?? 0, 'value')} of ${per}`
      return { note: 'warn', sentence: `${some}: their requests are refused${until}. Others go on.` }
    }
    return ofRefused ?? { note: '', sentence: `Each ${per} has some of it left.` }
  }
  if (spent >= limit) {
    return { note: 'danger', sentence: `It is used up: requests that draw on it are refused${until}.` }
  }
  if (forecast !== null && forecast > limit) {
    return { note: 'warn', sentence: `At its pace it is used up before the ${window} ends.` }
  }
  return ofRefused ?? { note: '', sentence: 'It lasts at its pace so far.' }
}

/** Null where it refused nothing. */
function refusedState(refused: number | null): { note: string; sentence: string } | null {
  if (refused === 0) return null
  const sentence =
    refused === null
      ? 'Whether it refused requests in this window could not be read.'
      : `Too little of it is left for some requests: ${countNoun(refused, 'request')} refused in this window.`
  return { note: 'warn', sentence }
}

const valuesOnPage = 20

/** The values, those that spent most first; or the one that is looked for. */
function Values({ budget: { id, max_budget: limit }, per }: { budget: Budget; per: string }) {
  const [cursor, value] = [queryValue('cursor'), queryValue('value')]
  const query = { limit: valuesOnPage, cursor: value === null ? cursor : null, value }
  const found = useLoaded(`values ${id} ${JSON.stringify(query)}`, (signal) =>
    api('GET /v1/budgets/{id}/values', { params: { id }, query, signal }),
  )
  const hasNone = `Requests without a ${per}`
  return (
    <section class="stack close">
      <div class="row between">
        <h2>By {per}</h2>
        <Filters filters={[{ name: 'value', label: dimensionTitle(per) }]} drops={['cursor']} />
      </div>
      {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.retry} />}
      <TableCard
        label={`Values of ${per}`}
        rows={found.value === undefined && found.refusal !== null ? null : found.value?.values}
        next={found.value?.next_cursor}
        keyOf={({ account }) => account}
        linkOf={({ value: each }) =>
          each === null ? undefined : href('/traffic', { dimension: valueFilter(per, each) })
        }
        columns={[
          { title: dimensionTitle(per), cell: ({ value: each }) => each ?? hasNone },
          {
            title: 'Used',
            cell: ({ spend }) => <UsedBar used={spend} limit={limit} text={`${money(spend)} of ${money(limit)}`} />,
          },
          { title: 'Left', right: true, cell: ({ remaining }) => money(remaining) },
        ]}
        empty={<Empty title={`No ${per} has spent anything in this window`} />}
      />
    </section>
  )
}

function Burn({ usage: { days } }: { usage: BudgetUsage }) {
  if (days.length === 0) return <p class="quiet">No spend in this window.</p>
  const times = days.map(({ at }) => Date.parse(at) / 1000)
  // A chart needs two instants.
  const [first = 0] = times
  const shown = times.length === 1 ? [first - 86_400, first] : times
  const values = days.map(({ cost }) => cost)
  const sum = money(values.reduce((total, cost) => total + cost, 0))
  return (
    <Chart
      label="Spend by day"
      times={shown}
      series={[{ name: 'Spend', colour: '--accent', values: times.length === 1 ? [0, ...values] : values, sum }]}
      stacked
      format={money}
    />
  )
}

const reasonOf = 'usage_authorization_budget_exceeded'

/** Which tokens this budget refused, and how often; read once it is known since when the window runs. */
function useRefused(id: string, since = ''): Loaded<UsageReport> {
  const query = { since, by: 'token', reason_code: reasonOf, limit_id: id }
  return useLoaded(`refused ${id} ${since}`, (signal) => api('GET /v1/usage/report', { query, signal }), {
    wait: since === '' || !hasPermission('events:read'),
  })
}

const mostTokens = 20

const newestShown = 20

function Refused({ id, since, found }: { id: string; since: string; found: Loaded<UsageReport> }) {
  const filters = { reason_code: reasonOf, limit_id: id, since }
  const newest = useLoaded(`newest refused ${id} ${since}`, async (signal) => {
    const { events } = await readEvents({ ...filters, limit: newestShown }, signal)
    return events
  })
  const tokens = found.value?.rows
  const rows = tokens?.toSorted((one, other) => other.requests - one.requests).slice(0, mostTokens)
  return (
    <>
      <section class="stack close">
        <h2>Who was refused</h2>
        {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.retry} />}
        <TableCard
          label="Who was refused"
          rows={rows === undefined && found.refusal !== null ? null : rows}
          note={
            tokens === undefined || tokens.length <= mostTokens ? undefined : (
              <>
                The {mostTokens} of {number(tokens.length)} tokens that it refused most often.{' '}
                <a href={href('/traffic', filters)}>All refused requests</a>
              </>
            )
          }
          keyOf={({ group }) => group.token ?? ''}
          linkOf={({ group }) => href('/traffic', { ...filters, token_id: group.token ?? null })}
          columns={[
            { title: 'Token', cell: ({ group, names }) => names.token ?? group.token ?? 'Without a token' },
            { title: 'Requests refused', right: true, cell: ({ requests }) => number(requests) },
          ]}
          empty={<Empty title="Nobody was refused in this window" />}
        />
      </section>
      {newest.value?.length !== 0 && <Newest found={newest} />}
    </>
  )
}

const Newest = ({ found }: { found: Loaded<Event[]> }) => (
  <section class="stack close">
    <h2>Newest refused requests</h2>
    {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.retry} />}
    <TableCard
      label="Newest refused requests"
      rows={found.value === undefined && found.refusal !== null ? null : found.value}
      note={found.value?.length === newestShown ? `The newest ${newestShown}` : undefined}
      keyOf={({ event_id }) => event_id}
      linkOf={({ exchange_id, event_id }) => href(`/traffic/${exchange_id ?? event_id}`)}
      columns={[
        { title: 'When', cell: ({ timestamp }) => <Time at={timestamp} /> },
        { title: 'Token', cell: ({ event_attribution: who }) => <RecordName kind="tokens" id={who.token_id} /> },
        { title: 'Model', cell: (event) => detail(event, 'model') ?? '–' },
        { title: 'Route', from: 'wide', cell: (event) => detail(event, 'route') ?? '–' },
      ]}
      empty={null}
    />
  </section>
)
