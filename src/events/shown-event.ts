/**
 * An event as it is shown: by its body, but for one that was kept without being understood (ingest.ts) and one whose body
 * somebody has altered to what is no event. Of these the columns tell, with `details.chain` and `details.seq` for where it
 * stands; the second has the reason `event.damaged`, and `gatehouse events verify` says more. So a page and an export go
 * on around what is damaged, whatever bytes there are.
 */
import { timestamp } from '../lib/clock.ts'
import type { Row } from '../store/open.ts'
import { type Cells, cellsValue, named, readCells } from '../store/stored-cells.ts'
import { asBytes, shownText } from '../store/stored-text.ts'
import { type Event, eventTypes, nobody, verdicts } from './event.ts'
import { isQuarantineReason, quarantinedType } from './quarantine.ts'

/** Its number, or its digits where JavaScript has no such number; SQLite compares both with a position alike. */
export type Position = number | string

/** Beyond every position. */
export const beyondAll: Position = '9223372036854775807'

export const positionOf = (digits: unknown): Position => {
  const number = Number(digits)
  return Number.isSafeInteger(number) ? number : String(digits)
}

const columns = {
  ...named(['event_id', 'event_type', 'timestamp', 'verdict', 'reason_code', 'gateway_id', 'team_id', 'token_id']),
  ...named(['chain', 'seq']),
  bytes: 'length(cast(body as blob))',
}

const isShownByBody = `case when event_type <> '${quarantinedType}' and typeof(body) = 'text' and instr(body, char(0)) = 0
  and json_valid(body) then json_type(body, '$.event_id') = 'text' and json_type(body, '$.event_type') = 'text'
  and json_type(body, '$.timestamp') = 'text' and json_type(body, '$.event_attribution') = 'object' end`

/** An event's time is at most its receipt, as filters have it too (protocols section 7), whatever a lane has claimed. */
const clampedBody = `case when round(unixepoch(body ->> '$.timestamp', 'subsec') * 1000) > received_at
  then json_set(body, '$.timestamp', strftime('%Y-%m-%dT%H:%M:%fZ', received_at / 1000.0, 'unixepoch')) else body end`

/** What is selected of an event to be shown. */
export const shownColumns = `cast(position as text) as position, iif(${isShownByBody}, ${asBytes(clampedBody)}, null) as body,
  iif(${isShownByBody}, null, ${cellsValue(columns)}) as cells`

/** The text of an event that was selected so, which is JSON. */
export const shownJson = (row: Row): string =>
  row.body === null ? JSON.stringify(fromColumns(row)) : shownText(row.body)

export const shownEvent = (row: Row): Event => (row.body === null ? fromColumns(row) : JSON.parse(shownText(row.body)))

function fromColumns({ cells }: Row): Event {
  const row = readCells(columns, cells)
  const { chain, seq, bytes } = row
  const type = eventTypes.find((known) => known === row.event_type)
  const aside = type === quarantinedType && isQuarantineReason(row.reason_code)
  const attribution = { ...nobody, gateway_id: textOrNull(row.gateway_id) }
  return {
    event_id: String(row.event_id),
    event_type: type ?? quarantinedType,
    request_id: null,
    timestamp: instantOf(row),
    verdict: verdicts.find((known) => known === row.verdict) ?? 'error',
    reason_code: aside ? String(row.reason_code) : 'event.damaged',
    config_version: 0,
    event_attribution: aside
      ? attribution
      : { ...attribution, team_id: textOrNull(row.team_id), token_id: textOrNull(row.token_id) },
    details: { chain, seq, bytes },
  }
}

const textOrNull = (cell: unknown): string | null => (typeof cell === 'string' ? cell : null)

const lastInstant = 253_402_300_799_999

const instantOf = ({ timestamp: at }: Cells): string =>
  timestamp(typeof at === 'number' ? Math.max(0, Math.min(lastInstant, Math.trunc(at))) : 0)
