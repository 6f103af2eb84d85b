/**
 * An event as it is shown: by its body, except one that was quarantined (events/log/ingest.ts) and one whose body was
 * altered to no event. These are shown from their columns, with `details.chain` and `details.seq` for their place. The
 * second has the reason `event.damaged`, and `gatehouse events verify` says more. So pages and exports continue past
 * damage.
 */
import { timestamp } from '../../lib/clock.ts'
import { type Cells, cellsOf, named, readCells } from '../../store/damage/stored-cells.ts'
import { asBytes, storedText } from '../../store/damage/stored-text.ts'
import type { Database } from '../../store/open.ts'
import type { Row } from '../../store/statement.ts'
import { type Event, noAttribution, verdicts } from '../event.ts'
import { eventTypes } from '../event-types.ts'
import { isQuarantineReason, quarantinedType } from '../log/quarantine.ts'

/** Its number, or its digits if JavaScript cannot represent it; SQLite compares both alike. */
export type Position = number | string

/** Beyond every position. */
export const afterAllPositions: Position = '9223372036854775807'

export const positionOf = (digits: unknown): Position => {
  const number = Number(digits)
  return Number.isSafeInteger(number) ? number : String(digits)
}

const columns = {
  ...named(['event_id', 'event_type', 'timestamp', 'verdict', 'reason_code', 'gateway_id', 'team_id', 'token_id']),
  ...named(['chain', 'seq']),
  bytes: 'length(cast(body as blob))',
}

/** The columns to select for showing an event; the time of receipt as a float, which no integer overflows. */
export const publicEventColumns = `cast(position as text) as position, ${asBytes('body')} as body,
  cast(received_at as real) as received_at, event_type <> '${quarantinedType}' and typeof(body) = 'text' as by_body`

export interface PublicEvent {
  event: Event
  /** Its JSON. */
  json: string
}

/** The events of rows that were selected so. */
export async function readPublicEvents(ledger: Database, rows: readonly Row[]): Promise<PublicEvent[]> {
  const shown = rows.map(byBody)
  const others = rows.filter((_, index) => shown[index] === null).map((row) => String(row.position))
  if (others.length === 0) return shown.flatMap((each) => each ?? [])
  const told = await ledger.read<{ position: string; cells: unknown }>(
    `select cast(position as text) as position, ${cellsOf(columns)} from events
      where events.position in (select cast(value as integer) from json_each(?))`,
    [JSON.stringify(others)],
  )
  const cells = new Map(told.map((row) => [row.position, row.cells]))
  return rows.flatMap((row, index) => {
    const event = cells.has(String(row.position)) ? fromColumns(cells.get(String(row.position))) : null
    // Removed by retention since it was selected.
    return shown[index] ?? (event === null ? [] : { event, json: JSON.stringify(event) })
  })
}

function byBody(row: Row): PublicEvent | null {
  const json = row.by_body === 1 ? storedText(row.body) : null
  if (json === null) return null
  try {
    const event: Event = JSON.parse(json)
    const sound = typeof event?.event_id === 'string' && typeof event.event_type === 'string'
    if (!sound || typeof event.event_attribution !== 'object' || event.event_attribution === null) return null
    const at = Date.parse(event.timestamp)
    if (at <= Number(row.received_at)) return { event, json }
    if (Number.isNaN(at)) return null
    // At most its receipt, as in filters (events/README.md), whatever a worker has claimed.
    const clamped = { ...event, timestamp: instantOf({ timestamp: row.received_at }) }
    return { event: clamped, json: JSON.stringify(clamped) }
  } catch {
    // No JSON.
    return null
  }
}

function fromColumns(cells: unknown): Event {
  const row = readCells(columns, cells)
  const { chain, seq, bytes } = row
  const type = eventTypes.find((known) => known === row.event_type)
  const aside = type === quarantinedType && isQuarantineReason(row.reason_code)
  const attribution = { ...noAttribution, gateway_id: textOrNull(row.gateway_id) }
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
