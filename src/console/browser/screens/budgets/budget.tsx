/** One budget: how much is used and how fast, who used it, and which requests it refused. */
import { href } from '../../address.ts'
import { api, type Budget, type BudgetUsage, type Event } from '../../api/routes.ts'
import { ago, countNoun, fullTime, humanize, money, number } from '../../formats.ts'
import { isObject } from '../../json-object.ts'
import { Chart } from '../../parts/chart.tsx'
import { PageHeader } from '../../parts/frame.tsx'
import { ErrorNote, type Loaded, Show, useLoaded } from '../../parts/loaded.tsx'
import { Facts, Time, UsedBar } from '../../parts/small.tsx'
import { Empty, Table, TableCard } from '../../parts/table.tsx'
import { hasPermission } from '../../session.ts'
import { readEvents } from '../traffic/event-pages.ts'
import { detail } from '../traffic/exchange-story.ts'

export function BudgetScreen({ id }: { id: string }) {
  const found = useLoaded(id, (signal) => api('GET /v1/budgets/{id}', { params: { id }, signal }))
  return (
    <>
      <PageHeader title={found.value?.name ?? 'Budget'} back={['/catalog', 'Catalog']}>
        {hasPermission('catalog:write') && (
          <a class="button" href={href('/catalog', { kind: 'budgets', open: id })}>
            Change
          </a>
        )}
      </PageHeader>
      <Show of={found} rows={8}>
        {(budget) => <Shown budget={budget} />}
      </Show>
    </>
  )
}

const windowNames: Readonly<Record<string, string>> = { day: 'this day', week: 'this week', month: 'this month' }

function Shown({ budget }: { budget: Budget }) {
  const { id, current_spend: spent, max_budget: limit, window, scope, resets_at: resets, forecast, remaining } = budget
  const usage = useLoaded(`usage ${id}`, (signal) => api('GET /v1/budgets/{id}/usage', { params: { id }, signal }))
  const refused = useRefused(id, usage)
  const count = refused.value?.length ?? 0
  const used = `${money(spent)} of ${money(limit)}`
  const state =
    spent >= limit
      ? `It is used up: requests that draw on it are refused${resets === null ? '' : ` until ${fullTime(resets)}`}.`
      : forecast !== null && forecast > limit
        ? `At its pace it is used up before the ${window} ends.`
        : count > 0
          ? `Too little of it is left for some requests: ${countNoun(count, 'request')} refused in this window.`
          : 'It lasts at its pace so far.'
  return (
    <div class="stack">
      <section
        class={`note ${spent >= limit ? 'danger' : count > 0 || (forecast !== null && forecast > limit) ? 'warn' : ''} stack`}
      >
        <p class="lead">{state}</p>
        <UsedBar used={spent} limit={limit} text={`${used} used ${windowNames[window] ?? 'in all'}`} />
      </section>
      <div class="sides">
        <section class="card stack">
          <h2>How much</h2>
          <Facts
            facts={[
              ['Used', used],
              ['Left', money(remaining)],
              ['Forecast', forecast === null ? 'None yet' : `${money(forecast)} at the end of the ${window}`],
              ['Resets', resets === null ? 'Never' : `${fullTime(resets)} (${ago(resets)})`],
              ['Of', humanize(scope.kind)],
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
        {hasPermission('events:read') && <Refused found={refused} />}
      </div>
    </div>
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

const readAtMost = 100

const isOf = ({ details }: Event, id: string): boolean => isObject(details?.limit) && details.limit.id === id

/** Of the newest refusals by any budget, those of this one; unknown until it is known since when the window runs. */
function useRefused(id: string, usage: Loaded<{ since: string }>): Loaded<Event[]> {
  const since = usage.value?.since
  const read = useLoaded(`refused ${id} ${since}`, async (signal) => {
    if (since === undefined || !hasPermission('events:read')) return []
    const reason_code = 'usage_authorization_budget_exceeded'
    const { events } = await readEvents({ since, limit: readAtMost, reason_code }, signal)
    return events.filter((event) => isOf(event, id))
  })
  return since === undefined ? { ...read, value: undefined, refusal: usage.refusal } : read
}

function Refused({ found }: { found: Loaded<Event[]> }) {
  return (
    <section class="stack close">
      <h2>Requests refused</h2>
      {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.reload} />}
      <TableCard
        label="Requests refused"
        rows={found.value === undefined && found.refusal !== null ? null : found.value}
        note={`Among the newest ${readAtMost} requests that a budget refused`}
        keyOf={({ event_id }) => event_id}
        linkOf={({ exchange_id, event_id }) => href(`/traffic/${exchange_id ?? event_id}`)}
        columns={[
          { title: 'When', cell: ({ timestamp }) => <Time at={timestamp} /> },
          { title: 'Model', cell: (event) => detail(event, 'model') ?? '–' },
          { title: 'Route', from: 'wide', cell: (event) => detail(event, 'route') ?? '–' },
        ]}
        empty={<Empty title="No request was refused in this window" />}
      />
    </section>
  )
}
