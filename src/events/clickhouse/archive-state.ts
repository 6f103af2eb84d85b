/**
 * Whether ClickHouse keeps what it is to keep: what it says of itself, and which records wait for it in the ledger.
 *
 * SQL text: sums over rows of segments.
 */
import type { Reader } from '../../store/open.ts'
import type { Archive } from './archive.ts'
import type { ArchiveState } from './records-table.ts'

/** What an operator is told where ClickHouse answers and cannot keep the records. */
export const archiveFaults: Readonly<
  Record<Exclude<ArchiveState, 'ready' | 'away'>, { what: string; todo: string; param: string }>
> = {
  refused: {
    what: 'ClickHouse refuses the user that is to keep events',
    todo: 'Set SERVICE_EVENTS_USER and SERVICE_EVENTS_PASSWORD to a user that may read and write gatehouse_events',
    param: 'events_password',
  },
  no_table: {
    what: 'The ClickHouse of SERVICE_EVENTS_URL has no table for events in this database',
    todo: 'Make it: gatehouse install clickhouse prints the SQL',
    param: 'events_url',
  },
  other_schema: {
    what: 'The table of ClickHouse is of another version of Gatehouse',
    todo: 'Make the table that gatehouse install clickhouse prints in another database and name that one, or run the version of Gatehouse that made this one',
    param: 'events_url',
  },
}

export interface Unmoved {
  records: number
  /** How long ago the oldest of them was to be moved, in seconds. */
  seconds: number
}

export interface ArchiveReport extends Unmoved {
  state: ArchiveState
}

/** The records in the ledger that were received before an instant: they wait for ClickHouse. */
export async function unmovedRecords(ledger: Reader, before: number): Promise<Unmoved> {
  const [row] = await ledger.read<{ records: number; oldest: number }>(
    `select coalesce(sum(records), 0) as records, coalesce(min(received_at), ?1) as oldest
      from event_segments where received_at < ?1`,
    [before],
  )
  return { records: row?.records ?? 0, seconds: Math.max(0, Math.round((before - (row?.oldest ?? before)) / 1000)) }
}

/** `before`: as for `unmovedRecords`. */
export async function archiveReport(ledger: Reader, archive: Archive, before: number): Promise<ArchiveReport> {
  const [state, unmoved] = await Promise.all([archive.table.state(), unmovedRecords(ledger, before)])
  return { state, ...unmoved }
}
