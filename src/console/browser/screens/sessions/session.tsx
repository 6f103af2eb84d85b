/** One session: who asked, what it used and found, and its turns in order. */

import { reasonTitle } from '../../../../reason-words.ts'
import { href, queryValue } from '../../address.ts'
import { type AgentSession, api, type Event } from '../../api/routes.ts'
import { clockTime, dateAndTime, fullTime, humanize, milliseconds, money, number } from '../../formats.ts'
import { PageHeader } from '../../parts/frame/frame.tsx'
import { ErrorNote, Show, useLoaded } from '../../parts/loaded.tsx'
import { Facts, Id } from '../../parts/small.tsx'
import { type Column, Empty, Table, TableCard } from '../../parts/table.tsx'
import { userText } from '../../parts/user-text.tsx'
import { VerdictBadge } from '../../parts/verdict.tsx'
import { opensToken } from '../../session.ts'
import { RecordName } from '../record-name.tsx'
import { readEvents } from '../traffic/event-pages.ts'
import { detail, numberDetail, policyResults } from '../traffic/exchange/event-details.ts'
import { eventTitle } from '../traffic/exchange/exchange-story.ts'
import { keyOf, sessionAddress, sessionColumns } from './sessions.tsx'

const everything = '3650d'
const turnsOfPage = 50

/** Several tokens may have used the same id: then `token` of the address says whose session it is. */
export function SessionScreen({ id }: { id: string }) {
  const token = queryValue('token')
  const query = { since: everything, session_id: id, token, limit: 50 }
  const found = useLoaded(JSON.stringify(query), (signal) => api('GET /v1/events/sessions', { query, signal }))
  return (
    <>
      <PageHeader title="Session" back={['/sessions', 'Sessions']} />
      <Show of={found} rows={8}>
        {({ sessions }) => <Found sessions={sessions} />}
      </Show>
    </>
  )
}

function Found({ sessions }: { sessions: readonly AgentSession[] }) {
  const [session] = sessions
  if (session === undefined) {
    return (
      <div class="card">
        <Empty title="Session not found">
          <p>It may be older than the retention period or belong to another team.</p>
        </Empty>
      </div>
    )
  }
  if (sessions.length > 1) {
    return (
      <div class="card flush">
        <Table
          label="Sessions of this id"
          rows={sessions}
          keyOf={keyOf}
          linkOf={sessionAddress}
          columns={sessionColumns}
          empty={null}
        />
      </div>
    )
  }
  return (
    <div class="stack">
      <Summary session={session} />
      <Turns session={session} />
    </div>
  )
}

function Summary({ session }: { session: AgentSession }) {
  const { session_id: id, client, token, user, team_id: team, first_at: first, last_at: last } = session
  return (
    <div class="sides">
      <section class="card stack">
        <h2>Who asked</h2>
        <Facts
          facts={[
            ['Session', <Id key="id" id={id} what="Session id" />],
            ['Client', client ?? 'Unknown'],
            [
              'Token',
              opensToken(user?.id ?? null) ? (
                <a key="token" href={href(`/tokens/${token.id}`)}>
                  {userText(token.name ?? token.id)}
                </a>
              ) : (
                userText(token.name ?? token.id)
              ),
            ],
            user === null ? null : ['Person', userText(user.name ?? user.id)],
            team === null ? null : ['Team', <RecordName key="team" kind="teams" id={team} />],
            ['First request', fullTime(first)],
            ['Last request', fullTime(last)],
          ]}
        />
      </section>
      <section class="card stack">
        <h2>What it used</h2>
        <Facts
          facts={[
            ['Requests', number(session.requests)],
            ['Findings', number(session.findings)],
            ['Errors', number(session.errors)],
            ['Cost', money(session.cost)],
            ['Tokens', `${number(session.input_tokens)} in, ${number(session.output_tokens)} out`],
            ['Models', <Names key="models" names={session.models} />],
            ['Tools', <Names key="tools" names={session.tools} />],
          ]}
        />
        <a href={href('/traffic', { session_id: id, token_id: token.id, event_type: 'all', range: '30d' })}>
          All events of this session
        </a>
      </section>
    </div>
  )
}

const Names = ({ names }: { names: AgentSession['models'] }) =>
  names.length === 0 ? (
    <span class="quiet">None</span>
  ) : (
    <span class="row tight">
      {names.map(({ name, count }) => (
        <span class="tag" key={name}>
          {userText(name)} × {number(count)}
        </span>
      ))}
    </span>
  )

function Turns({ session: { session_id, token, first_at: first, last_at: last } }: { session: AgentSession }) {
  const query = {
    ...{ since: first, session_id, token_id: token.id, event_type: 'gateway.request.outcome', order: 'oldest' },
    ...{ limit: turnsOfPage, cursor: queryValue('cursor') },
  }
  const found = useLoaded(JSON.stringify(query), (signal) => readEvents(query, signal))
  const isLong = Date.parse(last) - Date.parse(first) > 86_400_000
  return (
    <section class="stack">
      <h2>Turns</h2>
      {found.refusal !== null && <ErrorNote refusal={found.refusal} retry={found.retry} />}
      <TableCard
        label="Turns"
        rows={found.value === undefined && found.refusal !== null ? null : found.value?.events}
        next={found.value?.next_cursor}
        keyOf={({ event_id }) => event_id}
        linkOf={(event) => href(`/traffic/${event.exchange_id ?? event.event_id}`)}
        columns={turnColumns(isLong)}
        empty={<Empty title="Its events are older than the retention period" />}
      />
    </section>
  )
}

const turnColumns = (isLong: boolean): Column<Event>[] => [
  {
    title: 'Time',
    nowrap: true,
    cell: ({ timestamp: at }) => (
      <time dateTime={at} class="number">
        {isLong ? dateAndTime(at) : clockTime(at)}
      </time>
    ),
  },
  { title: 'Verdict', nowrap: true, cell: ({ verdict }) => <VerdictBadge verdict={verdict} /> },
  { title: 'Model', cell: eventTitle },
  { title: 'Ran before it', from: 'wide', cell: calledTools },
  { title: 'Found', from: 'wide', cell: findings },
  { title: 'Latency', right: true, from: 'wide', cell: (event) => milliseconds(numberDetail(event, 'latency_ms')) },
  {
    title: 'Tokens',
    right: true,
    from: 'wider',
    cell: ({ event_cost_attribution: cost }) =>
      cost === undefined ? '–' : `${number(cost.input_tokens)} + ${number(cost.output_tokens)}`,
  },
  { title: 'Cost', right: true, cell: ({ event_cost_attribution: cost }) => money(cost?.cost) },
]

/** The tools whose results the request brings; over MCP the tool that it calls. */
function calledTools(event: Event): string {
  const called = event.details?.called_tools
  const names = Array.isArray(called) ? called.filter((name) => typeof name === 'string') : []
  return names.join(', ') || (detail(event, 'tool') ?? '–')
}

/** What policies found, else why the request was refused. */
function findings(event: Event) {
  const results = policyResults(event).filter(({ verdict }) => verdict !== 'allow')
  if (results.length > 0)
    return results.map(({ kind, verdict }) => `${humanize(kind)}: ${humanize(verdict)}`).join(', ')
  return event.reason_code === 'ok' ? <span class="quiet">–</span> : userText(reasonTitle(event.reason_code))
}
