/** The columns of the list of requests and of the list of all events. Which are shown, in which order, is in the address. */

import { knownReason, reasonTitle } from '../../../../reason-words.ts'
import { queryValue } from '../../address.ts'
import type { Event } from '../../api/routes.ts'
import { eventWords } from '../../event-words.ts'
import { clockTime, dateAndTime, milliseconds, money, number } from '../../formats.ts'
import type { Column } from '../../parts/table.tsx'
import { userText } from '../../parts/user-text.tsx'
import { VerdictBadge } from '../../parts/verdict.tsx'
import { RecordName } from '../record-name.tsx'
import { detail, numberDetail, policyResults } from './exchange/event-details.ts'
import { eventTitle } from './exchange/exchange-story.ts'

const columns = {
  time: { title: 'Time', nowrap: true, cell: ({ timestamp }) => <EventTime at={timestamp} withDate={false} /> },
  verdict: { title: 'Verdict', nowrap: true, cell: ({ verdict }) => <VerdictBadge verdict={verdict} /> },
  model: { title: 'Model', cell: (event) => <span class="name model">{userText(eventTitle(event))}</span> },
  reason: { title: 'Reason', from: 'wide', cell: ({ reason_code }) => <Reason code={reason_code} /> },
  status: { title: 'Status', right: true, from: 'wide', cell: (event) => detail(event, 'status') ?? '–' },
  latency: {
    ...{ title: 'Latency', right: true, from: 'wide' },
    cell: (event) => milliseconds(numberDetail(event, 'latency_ms')),
  },
  first_token: {
    ...{ title: 'First token', right: true, from: 'wider' },
    cell: (event) => milliseconds(numberDetail(event, 'first_token_ms')),
  },
  tokens: {
    ...{ title: 'Tokens', right: true, from: 'wider' },
    cell: ({ event_cost_attribution: cost }) =>
      cost === undefined ? '–' : `${number(cost.input_tokens)} + ${number(cost.output_tokens)}`,
  },
  cost: { title: 'Cost', right: true, cell: ({ event_cost_attribution: cost }) => money(cost?.cost) },
  token: {
    title: 'Token',
    cell: ({ event_attribution }) => <RecordName kind="tokens" id={event_attribution.token_id} />,
  },
  team: { title: 'Team', cell: ({ event_attribution }) => <RecordName kind="teams" id={event_attribution.team_id} /> },
  user: {
    title: 'Person',
    cell: ({ event_attribution }) => <RecordName kind="users" id={event_attribution.user_id} />,
  },
  provider: {
    title: 'Provider',
    cell: (event) => <span class="name">{userText(detail(event, 'provider') ?? '–')}</span>,
  },
  policy: {
    title: 'Policy',
    cell: (event) => <RecordName kind="policies" id={decisive(event)} />,
  },
} as const satisfies Readonly<Record<string, Column<Event>>>

export type ColumnName = keyof typeof columns

export const columnTitle = (name: ColumnName): string => columns[name].title

const isColumn = (name: string): name is ColumnName => Object.hasOwn(columns, name)

export const columnNames: readonly ColumnName[] = Object.keys(columns).filter(isColumn)

export const usualColumns: readonly ColumnName[] = [
  ...(['time', 'verdict', 'model', 'reason', 'status', 'latency', 'first_token', 'tokens', 'cost'] as const),
]

/** Those that the address names, in its order; the usual ones where it names none. */
export function chosenColumns(): readonly ColumnName[] {
  const named = [...new Set((queryValue('columns') ?? '').split(',').filter(isColumn))]
  return named.length === 0 ? usualColumns : named
}

/** The columns to draw. What the reader chose is drawn at every width. */
export function exchangeColumns(seconds: number): Column<Event>[] {
  const chosen = chosenColumns()
  return chosen.map((name): Column<Event> => {
    const { from, ...column }: Column<Event> = name === 'time' ? timeColumn(seconds) : columns[name]
    return chosen === usualColumns && from !== undefined ? { ...column, from } : column
  })
}

export const eventColumns = (seconds: number): Column<Event>[] => [
  timeColumn(seconds),
  { title: 'Event', nowrap: true, cell: ({ event_type }) => eventWords(event_type) },
  columns.verdict,
  { title: 'About', from: 'wide', cell: eventTitle },
  columns.reason,
  { title: 'By', from: 'wider', cell: (event) => <code>{userText(detail(event, 'actor') ?? '–')}</code> },
]

const timeColumn = (seconds: number): Column<Event> => ({
  ...columns.time,
  cell: ({ timestamp }) => <EventTime at={timestamp} withDate={seconds > 86_400} />,
})

const EventTime = ({ at, withDate }: { at: string; withDate: boolean }) => (
  <time dateTime={at} class="number">
    {withDate ? dateAndTime(at) : clockTime(at)}
  </time>
)

/** In words, with the code that logs and answers have. */
function Reason({ code }: { code: string }) {
  if (code === 'ok') return <span class="quiet">–</span>
  return (
    <>
      {userText(reasonTitle(code))} {knownReason(code) !== undefined && <code class="quiet">{code}</code>}
    </>
  )
}

/** The policy whose verdict became that of the request; null where none did. */
const decisive = (event: Event): string | null =>
  policyResults(event).findLast(
    ({ verdict, mode }) => verdict === event.verdict && mode === 'enforce' && verdict !== 'allow',
  )?.policy_id ?? null
