/**
 * Segments as rows of the ledger. SQL text: positions are allocated inside the inserting transaction, and one statement
 * writes many rows.
 *
 *   event_log       one row: the next position, and how often segments were merged
 *   event_segments  one row a segment
 *   event_blocks    the blocks of a segment; indexes by their time
 *   segment_facets  the facets of a segment
 */
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import { storedBytes } from '../../store/damage/stored-text.ts'
import { type FacetRow, facetRows, type StoredBlock, type StoredSegment } from './segment-codec.ts'
import type { Facets } from './segment.ts'

/** Rows of one statement; few different texts, so that prepared statements are used again. */
const rowsAtOnce = 32

/** Appends a segment at the end of the log. Positions are given by the transaction that these statements run in. */
export const appendSegment = (segment: StoredSegment, facets: Facets): Statement[] => [
  ...insertSegment(segment, [...facetRows(facets)], nextPosition),
  { sql: 'update event_log set next_position = next_position + ?', args: [segment.records] },
]

/** Inserts a segment whose first position is this number, or this expression. */
export function insertSegment(
  { records, header, ids, blocks }: StoredSegment,
  facets: readonly FacetRow[],
  position: number | typeof nextPosition,
): Statement[] {
  const first = String(position)
  const statements: Statement[] = [
    {
      sql: `insert into event_segments (first_position, records, header, ids) values (${first}, ?, ?, ?)`,
      args: [records, header, ids],
    },
  ]
  let offset = 0
  for (const [ordinal, block] of blocks.entries()) {
    statements.push({
      sql: `insert into event_blocks (first_position, segment, ordinal, records, first_at, last_at, places, body)
        values (${first} + ?, ${first}, ?, ?, ?, ?, ?, ?)`,
      args: [offset, ordinal, block.records, block.first_at, block.last_at, block.places, block.body],
    })
    offset += block.records
  }
  for (let from = 0; from < facets.length; from += rowsAtOnce) {
    const some = facets.slice(from, from + rowsAtOnce)
    statements.push({
      sql: `insert into segment_facets (facet, value, segment, events, blocks) values ${some
        .map(() => `(?, ?, ${first}, ?, ?)`)
        .join()}`,
      args: some.flatMap(({ facet, value, events, blocks }) => [facet, value, events, blocks]),
    })
  }
  return statements
}

/** The position after the last record, as SQL. */
export const nextPosition = '(select next_position from event_log)'

/** Removes segments, whose facets are named because their table has no index by segment. */
export function removeSegments(segments: readonly { first: number; facets: Facets }[]): Statement[] {
  const firsts = JSON.stringify(segments.map(({ first }) => first))
  const keys = segments.flatMap(({ first, facets }) => [...facetRows(facets)].map(({ facet, value }) => [facet, value, first]))
  return [
    {
      // Facets first: a `json_each` of arrays is joined by the primary key.
      sql: `delete from segment_facets where (facet, value, segment) in
        (select value ->> 0, value ->> 1, value ->> 2 from json_each(?))`,
      args: [JSON.stringify(keys)],
    },
    { sql: 'delete from event_blocks where segment in (select value from json_each(?))', args: [firsts] },
    { sql: 'delete from event_segments where first_position in (select value from json_each(?))', args: [firsts] },
  ]
}

/** A block as it is read, with its place in the log. */
export interface PlacedBlock extends StoredBlock {
  first_position: number
  segment: number
}

export const blockColumns = 'b.first_position, b.segment, b.records, b.first_at, b.last_at, b.places, b.body'

export const placedBlock = (row: Record<string, unknown>): PlacedBlock => ({
  first_position: Number(row.first_position),
  segment: Number(row.segment),
  records: Number(row.records),
  first_at: Number(row.first_at),
  last_at: Number(row.last_at),
  places: String(row.places),
  body: storedBytes(row.body) ?? new Uint8Array(),
})

export interface LogHead {
  /** The position that the next record gets; the first record of a log has 1. */
  next: number
  /** Grows whenever segments are merged: who reads several times sees that blocks have moved. */
  merges: number
}

export async function readLogHead(ledger: Pick<Database, 'read'>): Promise<LogHead> {
  const [row] = await ledger.read<{ next_position: number; merges: number }>(
    'select next_position, merges from event_log',
  )
  return { next: row?.next_position ?? 1, merges: row?.merges ?? 0 }
}
