/** Sessions of agents, those with the newest request first; filters and page stand in the address. */
import { hasQuery, href, queryValue } from '../../address.ts'
import { type AgentSession, api } from '../../api/routes.ts'
import { countNoun, money, number } from '../../formats.ts'
import { type Filter, Filters } from '../../parts/forms/filters.tsx'
import { PageHeader } from '../../parts/frame/frame.tsx'
import { ErrorNote, useLoaded } from '../../parts/loaded.tsx'
import { Time } from '../../parts/small.tsx'
import { type Column, Empty, TableCard } from '../../parts/table.tsx'
import { userText } from '../../parts/user-text.tsx'
import { timeRange } from '../../time-range.ts'

const clients = ['claude-code', 'codex', 'gemini-cli', 'opencode', 'cline', 'cursor'].map(
  (name) => [name, name] as const,
)

const filters: readonly Filter[] = [
  { name: 'client', label: 'Client', options: clients },
  { name: 'token', label: 'Token' },
  { name: 'user', label: 'Person' },
  { name: 'team', label: 'Team' },
  { name: 'session_id', label: 'Session id' },
]
const filterNames = filters.map(({ name }) => name)

export function Sessions() {
  const { since, until } = timeRange()
  const chosen = Object.fromEntries(filterNames.map((name) => [name, queryValue(name)]))
  const query = { ...chosen, since, until, cursor: queryValue('cursor'), limit: 50 }
  const found = useLoaded(JSON.stringify(query), (signal) => api('GET /v1/events/sessions', { query, signal }))
  return (
    <>
      <PageHeader title="Sessions" />
      <Filters filters={filters} />
      {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.retry} />}
      <TableCard
        label="Sessions"
        rows={found.value === undefined && found.refusal !== null ? null : found.value?.sessions}
        next={found.value?.next_cursor}
        keyOf={keyOf}
        linkOf={sessionAddress}
        columns={sessionColumns}
        empty={<NoSessions />}
      />
    </>
  )
}

export const keyOf = ({ session_id, token }: AgentSession): string => `${token.id} ${session_id}`

export const sessionAddress = ({ session_id, token }: AgentSession): string =>
  href(`/sessions/${encodeURIComponent(session_id)}`, { token: token.id })

/** A session id is the caller's, and as long as it likes. */
const longestShown = 24

export const sessionColumns: readonly Column<AgentSession>[] = [
  {
    title: 'Session',
    cell: ({ session_id: id }) => (
      <code title={id}>{userText(id.length > longestShown ? `${id.slice(0, longestShown)}…` : id)}</code>
    ),
  },
  { title: 'Client', from: 'wide', cell: ({ client }) => client ?? <span class="quiet">–</span> },
  { title: 'Who asked', from: 'wide', cell: ({ user, token }) => user?.name ?? token.name ?? token.id },
  { title: 'Last request', nowrap: true, cell: ({ last_at }) => <Time at={last_at} /> },
  { title: 'Requests', right: true, cell: ({ requests }) => number(requests) },
  {
    title: 'Findings',
    right: true,
    from: 'wide',
    cell: ({ findings }) => (findings === 0 ? <span class="quiet">0</span> : number(findings)),
  },
  {
    title: 'Errors',
    right: true,
    from: 'wide',
    cell: ({ errors }) => (errors === 0 ? <span class="quiet">0</span> : number(errors)),
  },
  { title: 'Models', from: 'wider', cell: ({ models }) => firstNames(models) },
  { title: 'Tools', from: 'wider', cell: ({ tools }) => firstNames(tools) },
  { title: 'Cost', right: true, cell: ({ cost }) => money(cost) },
]

function firstNames(names: AgentSession['models']): string {
  const [first] = names
  if (first === undefined) return '–'
  return names.length === 1 ? first.name : `${first.name} and ${countNoun(names.length - 1, 'more').replace(/s$/, '')}`
}

const NoSessions = () => (
  <Empty title={hasQuery(filterNames) ? 'No session matches these filters' : 'No session in this time range'}>
    <p>
      A session appears with its first request. Claude Code, Codex and opencode name theirs; any client may send the
      header <code>x-session-id</code>.
    </p>
  </Empty>
)
