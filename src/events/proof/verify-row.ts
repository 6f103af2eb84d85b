/** Whether the columns of an event's row agree with its body. */

import { type Cells, cellsOf, named, readCells } from '../../store/damage/stored-cells.ts'
import { asBytes, storedBytes, storedText } from '../../store/damage/stored-text.ts'
import type { Row } from '../../store/statement.ts'
import type { Event } from '../event.ts'
import { eventColumns } from '../log/append.ts'
import { controlPlaneChain } from '../log/chain.ts'
import { isQuarantineReason, quarantined, quarantinedType } from '../log/quarantine.ts'
import { arrivalText } from './arrivals.ts'
import type { FindingCode } from './verify-finding.ts'

/** A row of `events`, which anyone who can write the file may have altered. */
export interface EventRow {
  /** Its decimal digits: SQLite's integers go beyond those of JavaScript. */
  position: string
  /** Every other column, by name. */
  cells: Cells
  /** The bytes of its text; null where it is none. */
  body: Uint8Array | null
  /** What the body says; null where that is no event. */
  event: Event | null
  arrival: unknown
}

const columns = named(['seq', 'digest', 'received_at', ...Object.keys(eventColumns)])

/** What `verify` reads of each row. */
export const rowColumns = `cast(position as text) as position, ${cellsOf(columns)}, ${asBytes('body')} as body,
  typeof(body) as body_type, ${arrivalText} as arrival`

/** A row that was selected so. */
export function readRow(row: Row): EventRow {
  const body = row.body_type === 'text' ? storedBytes(row.body) : null
  return {
    position: String(row.position),
    cells: readCells(columns, row.cells),
    body,
    event: read(body),
    arrival: row.arrival,
  }
}

/** The names of the columns that differ from the body. */
export function alteredColumns(chain: string, row: EventRow): string[] {
  const { cells } = row
  const receivedAt = cells.received_at
  if (typeof receivedAt !== 'number' || !Number.isSafeInteger(receivedAt)) return ['received_at']
  const event =
    cells.event_type === quarantinedType && chain !== controlPlaneChain ? quarantinedEvent(chain, cells) : row.event
  // No valid position is below one or this large. It was moved there, and later rows are behind it.
  const moved = Number(row.position) >= 1 && Number.isSafeInteger(Number(row.position)) ? [] : ['position']
  if (event === null) return [...moved, 'body']
  const others = Object.entries(eventColumns).filter(
    ([name, value]) => cells[name] !== (value(event, receivedAt) ?? null),
  )
  return [...moved, ...others.map(([name]) => name)]
}

/** What a gateway has recorded about the proof itself. For unsigned events nothing else would show it. */
export function recordedProofFailure(
  chain: string,
  { cells: { event_type: type, reason_code: reason } }: EventRow,
): FindingCode | null {
  if (chain === controlPlaneChain) return null
  if (type === 'gateway.checkpoint_regressed') return 'checkpoint.seen_going_back'
  const parted = reason === 'chain_fork' || reason === 'chain_lost'
  return type === 'gateway.instance_replaced' && parted ? 'chain.parted' : null
}

/** The event that stands for quarantined bytes. It has only its own id and reason. */
function quarantinedEvent(
  chain: string,
  { event_id: id, reason_code: reason, received_at: receivedAt }: Cells,
): Event | null {
  if (typeof id !== 'string' || !isQuarantineReason(reason) || typeof receivedAt !== 'number') return null
  const line = { n: 0, digest: '', body: '' }
  const [gatewayId = ''] = chain.split('/')
  return quarantined(line, { reason, gatewayId, receivedAt, newId: () => id }).event
}

/** The body as an event. Only what columns are read from is checked, so that older forms are understood too. */
function read(body: Uint8Array | null): Event | null {
  const text = storedText(body)
  if (text === null) return null
  try {
    const parsed: Event = JSON.parse(text)
    // What columns are read from must be there. The digest proves the rest.
    return typeof parsed === 'object' && typeof parsed?.event_attribution === 'object' && parsed.event_attribution
      ? parsed
      : null
  } catch {
    // Invalid JSON: whatever the columns contain, it is not in the body.
    return null
  }
}
