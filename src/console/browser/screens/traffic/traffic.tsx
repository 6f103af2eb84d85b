/** Exchanges as they come, or any events; filters and page stand in the address. */
import { useRef, useState } from 'preact/hooks'
import { hasQuery, href, queryValue, setQuery } from '../../address.ts'
import type { Event } from '../../api/routes.ts'
import { clockTime, dateAndTime, humanize, milliseconds, money, number } from '../../formats.ts'
import { installation } from '../../installation.ts'
import { type Filter, Filters } from '../../parts/filters.tsx'
import { PageHeader } from '../../parts/frame.tsx'
import { Icon } from '../../parts/icon.tsx'
import { ErrorNote, useLoaded } from '../../parts/loaded.tsx'
import { Command } from '../../parts/small.tsx'
import { type Column, Empty, TableCard } from '../../parts/table.tsx'
import { userText } from '../../parts/user-text.tsx'
import { VerdictBadge } from '../../parts/verdict.tsx'
import { hasPermission } from '../../session.ts'
import { timeRange } from '../../time-range.ts'
import { LiveEvents, readEvents } from './event-pages.ts'
import { detail, eventTitle, numberDetail } from './exchange-story.ts'

const exchanges = 'gateway.request.outcome'
const verdicts = ['allow', 'block', 'deny', 'redact', 'rewrite', 'escalate', 'rate_limit', 'error']
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
  const events = useRef(new LiveEvents())
  const found = useLoaded(
    JSON.stringify(query),
    (signal) => (live ? events.current.read(query, signal) : readEvents(query, signal)),
    { everyMs: live ? liveMilliseconds : 0 },
  )
  return (
    <>
      <PageHeader title="Traffic">
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
      <div class="row">
        <Filters
          filters={[...usualFilters, ...furtherFilters.filter(({ name }) => more || queryValue(name) !== null)]}
        />
        <button type="button" aria-expanded={more} onClick={() => setMore(!more)}>
          {more ? 'Fewer filters' : 'More filters'}
        </button>
      </div>
      {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.reload} />}
      <TableCard
        label={type === exchanges ? 'Requests' : 'Events'}
        rows={found.value === undefined && found.refusal !== null ? null : found.value?.events}
        next={found.value?.next_cursor}
        keyOf={({ event_id }) => event_id}
        linkOf={(event) => href(`/traffic/${event.exchange_id ?? event.event_id}`)}
        columns={type === exchanges ? exchangeColumns(seconds) : eventColumns(seconds)}
        empty={<NoTraffic />}
      />
    </>
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

const usualFilters: readonly Filter[] = [
  { name: 'verdict', label: 'Verdict', options: verdicts },
  { name: 'model', label: 'Model' },
  { name: 'token', label: 'Token' },
  { name: 'reason_text', label: 'Reason has' },
  { name: 'status', label: 'Status', options: statuses },
  { name: 'request_id', label: 'Request id' },
  { name: 'event_type', label: 'Events', usual: exchanges, options: typeOptions },
]

/** Shown where they are set, or asked for. */
const furtherFilters: readonly Filter[] = [
  { name: 'team', label: 'Team' },
  { name: 'user', label: 'Person' },
  { name: 'provider', label: 'Provider' },
  { name: 'policy', label: 'Policy' },
  { name: 'dimension', label: 'Dimension, such as customer=acme' },
  { name: 'min_cost', label: 'Cost from, USD' },
  { name: 'min_latency_ms', label: 'Latency from, ms' },
  { name: 'reason_code', label: 'Reason' },
  { name: 'client', label: 'Client' },
  { name: 'session_id', label: 'Session id' },
  { name: 'token_id', label: 'Token id' },
  { name: 'user_id', label: 'Person id' },
  { name: 'gateway_id', label: 'Gateway id' },
]

const filterNames = [...usualFilters, ...furtherFilters].map(({ name }) => name).filter((name) => name !== 'event_type')

/** All that the filters find, as CSV with every column. */
function exportAddress(filters: Readonly<Record<string, string | null>>): string {
  const query = new URLSearchParams({
    format: 'csv',
    columns: 'model,token,team,user,provider,tokens,cost,latency,policy',
  })
  for (const [name, value] of Object.entries(filters)) if (value !== null) query.set(name, value)
  return `/v1/events/export?${query}`
}

const timeColumn = (seconds: number): Column<Event> => ({
  title: 'Time',
  nowrap: true,
  cell: ({ timestamp }) => (
    <time dateTime={timestamp} class="number">
      {seconds > 86_400 ? dateAndTime(timestamp) : clockTime(timestamp)}
    </time>
  ),
})

const verdictColumn: Column<Event> = {
  title: 'Verdict',
  nowrap: true,
  cell: ({ verdict }) => <VerdictBadge verdict={verdict} />,
}
const reasonColumn: Column<Event> = {
  title: 'Reason',
  from: 'wide',
  cell: ({ reason_code: reason }) => (reason === 'ok' ? <span class="quiet">–</span> : <code>{userText(reason)}</code>),
}

const exchangeColumns = (seconds: number): Column<Event>[] => [
  timeColumn(seconds),
  verdictColumn,
  { title: 'Model', cell: eventTitle },
  reasonColumn,
  { title: 'Status', right: true, from: 'wide', cell: (event) => detail(event, 'status') ?? '–' },
  { title: 'Latency', right: true, from: 'wide', cell: (event) => milliseconds(numberDetail(event, 'latency_ms')) },
  {
    title: 'First token',
    right: true,
    from: 'wider',
    cell: (event) => milliseconds(numberDetail(event, 'first_token_ms')),
  },
  {
    title: 'Tokens',
    right: true,
    from: 'wider',
    cell: ({ event_cost_attribution: cost }) =>
      cost === undefined ? '–' : `${number(cost.input_tokens)} + ${number(cost.output_tokens)}`,
  },
  { title: 'Cost', right: true, cell: ({ event_cost_attribution: cost }) => money(cost?.cost) },
]

const eventColumns = (seconds: number): Column<Event>[] => [
  timeColumn(seconds),
  { title: 'Event', cell: ({ event_type }) => humanize(event_type) },
  verdictColumn,
  { title: 'About', from: 'wide', cell: eventTitle },
  reasonColumn,
  { title: 'By', from: 'wider', cell: (event) => <code>{userText(detail(event, 'actor') ?? '–')}</code> },
]

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
