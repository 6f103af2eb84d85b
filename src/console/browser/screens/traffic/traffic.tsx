/** Exchanges as they come, or any events; filters and page stand in the address. */
import { useRef, useState } from 'preact/hooks'
import { hasQuery, href, queryValue, setQuery } from '../../address.ts'
import type { Refusal } from '../../api/request.ts'
import { api } from '../../api/routes.ts'
import { countNoun } from '../../formats.ts'
import { installation } from '../../installation.ts'
import { type Filter, Filters } from '../../parts/forms/filters.tsx'
import { PageHeader } from '../../parts/frame/frame.tsx'
import { Icon } from '../../parts/icon.tsx'
import { ErrorNote, useLoaded } from '../../parts/loaded.tsx'
import { Command } from '../../parts/small.tsx'
import { Empty, TableCard } from '../../parts/table.tsx'
import { hasPermission } from '../../session.ts'
import { timeRange } from '../../time-range.ts'
import { isSearched, recordOptions, recordsNamed } from '../catalog/record-options.ts'
import { suggestedValues } from '../dimensions.ts'
import { ColumnChoice } from './column-choice.tsx'
import { chosenColumns, eventColumns, exchangeColumns } from './event-columns.tsx'
import { LiveEvents, readEvents } from './event-pages.ts'
import { useHeldPage } from './held-page.ts'
import { TrafficChart } from './traffic-chart.tsx'
import { refusedVerdicts } from './verdict-lines.ts'
import { ViewsDialog } from './views-dialog.tsx'

const exchanges = 'gateway.request.outcome'
const verdicts = [
  [refusedVerdicts.join(), 'Refused'] as const,
  ...['allow', 'block', 'deny', 'redact', 'rewrite', 'escalate', 'rate_limit', 'error'],
]
const statuses = ['2xx', '3xx', '4xx', '5xx'].map((status) => [status, status] as const)
const liveMilliseconds = 3000

export function Traffic() {
  const [paused, setPaused] = useState(false)
  const [more, setMore] = useState(false)
  const type = queryValue('event_type') ?? exchanges
  const cursor = queryValue('cursor')
  const { since, until, seconds } = timeRange()
  const live = !paused && cursor === null && until === null
  const filters = {
    ...Object.fromEntries(filterNames.map((name) => [name, queryValue(name)])),
    event_type: type === 'all' ? null : type,
    since,
    until,
  }
  const query = { ...filters, cursor, limit: 50 }
  const key = JSON.stringify(query)
  const events = useRef(new LiveEvents())
  const [choosing, setChoosing] = useState(false)
  const [viewing, setViewing] = useState(false)
  const charted = queryValue('chart') !== null
  const found = useLoaded(
    key,
    async (signal) => ({ key, page: await (live ? events.current.read(query, signal) : readEvents(query, signal)) }),
    { everyMs: live ? liveMilliseconds : 0 },
  )
  const { page, newer, showNewer, reading } = useHeldPage(found.value)
  return (
    <>
      <PageHeader title="Traffic">
        {newer > 0 && (
          <button type="button" onClick={showNewer}>
            Show {countNoun(newer, 'newer event')}
          </button>
        )}
        <button type="button" onClick={() => setViewing(true)}>
          Views
        </button>
        {type === exchanges && (
          <button
            type="button"
            aria-pressed={charted}
            onClick={() => setQuery({ chart: charted ? null : 'on' }, { keepPage: true, replace: true })}
          >
            Chart
          </button>
        )}
        {type === exchanges && (
          <button type="button" onClick={() => setChoosing(true)}>
            Columns
          </button>
        )}
        <button type="button" aria-pressed={!live} onClick={() => resume(live, setPaused)}>
          <Icon name={live ? 'pause' : 'play'} />
          {live ? 'Live' : 'Paused'}
        </button>
        {hasPermission('events:export') && (
          <a class="button" href={exportAddress(filters)} download="events.csv">
            Export
          </a>
        )}
      </PageHeader>
      <div class="row filtered">
        <Filters
          filters={[...usualFilters, ...furtherFilters.filter(({ name }) => more || queryValue(name) !== null)]}
        />
        <button type="button" aria-expanded={more} onClick={() => setMore(!more)}>
          {more ? 'Fewer filters' : 'More filters'}
        </button>
      </div>
      {found.refusal !== null && <RefusedFilter refusal={found.refusal} retry={found.retry} />}
      {charted && type === exchanges && <TrafficChart filterNames={filterNames} />}
      <div class="tall" {...reading}>
        <TableCard
          label={type === exchanges ? 'Requests' : 'Events'}
          rows={page === undefined && found.refusal !== null ? null : page?.events}
          next={page?.next_cursor}
          keyOf={({ event_id }) => event_id}
          linkOf={(event) => href(`/traffic/${event.exchange_id ?? event.event_id}`)}
          columns={type === exchanges ? exchangeColumns(seconds) : eventColumns(seconds)}
          empty={<NoTraffic />}
        />
      </div>
      {choosing && <ColumnChoice close={() => setChoosing(false)} />}
      {viewing && <ViewsDialog close={() => setViewing(false)} />}
    </>
  )
}

/** Why the list is not there; a filter that is refused, such as one of an old link, can be cleared. */
function RefusedFilter({ refusal, retry }: { refusal: Refusal; retry(): void }) {
  const { param } = refusal
  const filter = [...usualFilters, ...furtherFilters].find(({ name }) => name === param)
  if (filter === undefined) return <ErrorNote refusal={refusal} retry={retry} />
  return (
    <div class="stack close">
      <ErrorNote refusal={refusal} />
      <div class="row">
        <button type="button" onClick={() => setQuery({ [filter.name]: null })}>
          Clear the filter {filter.label}
        </button>
      </div>
    </div>
  )
}

/** Paused by hand, or by looking at a later page: both end where one looks at what is new. */
function resume(live: boolean, setPaused: (paused: boolean) => void): void {
  setPaused(live)
  if (!live) setQuery({ cursor: null })
}

const typeOptions = [
  [exchanges, 'Requests'],
  ['all', 'All events'],
  ['decision', 'Decisions'],
  ['gateway.provider.attempt', 'Provider attempts'],
  ['token.created', 'Tokens created'],
  ['token.revoked', 'Tokens revoked'],
  ['token.emergency_revoked', 'Emergency revocations'],
  ['policy.updated', 'Policies changed'],
  ['escalation.resolved', 'Escalations resolved'],
  ['auth.signed_in', 'Sign-ins'],
  ['auth.refused', 'Refused sign-ins'],
  ['catalog.updated', 'Catalog changed'],
] as const

/** What records of a list are called, of long lists those with what is typed. */
const named = async (path: string, by: 'id' | 'name' | 'email', typed: string): Promise<string[]> =>
  isSearched(path)
    ? (await recordsNamed(path, typed, { limit: 20 })).records.map((record) => String(record[by]))
    : (await recordOptions(path, by)).map(([name]) => name)

/** Tokens are too many to read at once: those whose names have what is typed. */
const tokensWith = async (typed: string): Promise<string[]> => {
  const { tokens } = await api('GET /v1/tokens', { query: { limit: 20, name: typed.slice(0, 200) } })
  return [...new Set(tokens.map(({ name }) => name))]
}

const usualFilters: readonly Filter[] = [
  { name: 'verdict', label: 'Verdict', options: verdicts },
  { name: 'model', label: 'Model', suggest: (typed) => named('/v1/catalog/models', 'id', typed), searched: true },
  { name: 'token', label: 'Token', suggest: tokensWith, searched: true },
  { name: 'reason_text', label: 'Reason has' },
  { name: 'status', label: 'Status', options: statuses },
  { name: 'request_id', label: 'Request id' },
  { name: 'event_type', label: 'Events', usual: exchanges, options: typeOptions },
]

/** Shown where they are set, or asked for. */
const furtherFilters: readonly Filter[] = [
  { name: 'team', label: 'Team', suggest: (typed) => named('/v1/teams', 'name', typed), searched: true },
  { name: 'user', label: 'Person', suggest: (typed) => named('/v1/users', 'email', typed), searched: true },
  { name: 'provider', label: 'Provider', suggest: (typed) => named('/v1/catalog/providers', 'name', typed) },
  { name: 'policy', label: 'Policy', suggest: (typed) => named('/v1/policies', 'name', typed) },
  { name: 'dimension', label: 'Dimension, such as customer=acme', suggest: suggestedValues, searched: true },
  { name: 'min_cost', label: 'Cost from, USD' },
  { name: 'min_latency_ms', label: 'Latency from, ms' },
  { name: 'reason_code', label: 'Reason' },
  { name: 'limit_id', label: 'Limit id' },
  { name: 'client', label: 'Client' },
  { name: 'session_id', label: 'Session id' },
  { name: 'token_id', label: 'Token id' },
  { name: 'user_id', label: 'Person id' },
  { name: 'gateway_id', label: 'Gateway id' },
]

const filterNames = [...usualFilters, ...furtherFilters].map(({ name }) => name).filter((name) => name !== 'event_type')

/** All that the filters find, as CSV: of requests with the columns that are shown, in their order. */
function exportAddress(filters: Readonly<Record<string, string | null>>): string {
  const shown = filters.event_type === exchanges ? { columns: chosenColumns().join(), only_columns: 'true' } : {}
  const query = new URLSearchParams({ format: 'csv', ...shown })
  for (const [name, value] of Object.entries(filters)) if (value !== null) query.set(name, value)
  return `/v1/events/export?${query}`
}

const NoTraffic = () => (
  <Empty title={hasQuery(filterNames) ? 'No request matches these filters' : 'No request in this time range'}>
    <p>Requests appear here when they finish. Send one:</p>
    <Command
      text={`curl ${installation.gateway_url}/v1/chat/completions -H "Authorization: Bearer $TOKEN" \\
  -H "Content-Type: application/json" \\
  -d '{"model":"simulator/echo","messages":[{"role":"user","content":"Hello"}]}'`}
    />
  </Empty>
)
