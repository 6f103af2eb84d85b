/**
 * Segments as rows of the ledger.
 *
 * SQL text: positions are allocated inside the inserting transaction, and one statement writes many rows.
 */
import { asBytes, shownText, storedBytes } from '../../store/damage/stored-text.ts'
import type { Reader } from '../../store/open.ts'
import type { Row, Statement } from '../../store/statement.ts'
import { type ChainPart, type Facets, mostBlocks } from './segment.ts'
import { facetRows, type StoredBlock, type StoredSegment } from './segment-codec.ts'

/** A number that JavaScript holds, whatever an altered row holds: two reads of it are equal. */
const number = (column: string): string => `min(max(cast(${column} as integer), 0), ${Number.MAX_SAFE_INTEGER})`

/** Rows of one statement; few different texts, so that prepared statements are used again. */
const rowsAtOnce = 32

/** The position after the last record, as SQL. */
const nextPosition = '(select next_position from event_log)'

/** Appends a segment at the end of the log. Positions are given by the transaction that these statements run in. */
export const appendSegment = (segment: StoredSegment): Statement[] => [
  ...insertSegment(segment, nextPosition),
  { sql: 'update event_log set next_position = next_position + ?', args: [segment.records] },
]

/** Inserts a segment whose first position is this number, or this expression. */
export function insertSegment(
  { records, receivedAt, header, ids, blocks, facets, chains }: StoredSegment,
  position: number | typeof nextPosition,
): Statement[] {
  const [first, at] = typeof position === 'number' ? ['?', [position]] : [position, []]
  const statements: Statement[] = [
    {
      sql: `insert into event_segments (first_position, records, received_at, header, ids) values (${first}, ?, ?, ?, ?)`,
      args: [...at, records, receivedAt, header, ids],
    },
  ]
  let offset = 0
  for (const [ordinal, block] of blocks.entries()) {
    const { bytes, first_at, last_at, places, body } = block
    statements.push({
      sql: `insert into event_blocks (first_position, segment, ordinal, records, bytes, first_at, last_at, places, body)
        values (${first} + ?, ${first}, ?, ?, ?, ?, ?, ?, ?)`,
      args: [...at, offset, ...at, ordinal, block.records, bytes, first_at, last_at, places, body],
    })
    offset += block.records
  }
  const inserted = (table: string, rows: readonly (string | number)[][]) => {
    for (const some of chunks(rows)) {
      statements.push({
        sql: `insert into ${table} values ${some.map((row) => `(${first}${', ?'.repeat(row.length)})`).join()}`,
        args: some.flatMap((row) => [...at, ...row]),
      })
    }
  }
  inserted(
    'segment_chains (segment, chain, first_seq, last_seq, digest_before)',
    chains.map((each) => [each.chain, each.first, each.last, each.digestBefore]),
  )
  inserted('segment_facets (segment, facet, value, events, blocks)', storedFacets({ facets, records, blocks }))
  return statements
}

const largeRecords = 2048

/** Whether a segment with so many records and blocks is not merged again. The values of its facets have rows then. */
export const isLarge = ({ records, blocks }: { records: number; blocks: number }): boolean =>
  records >= largeRecords || blocks > mostBlocks / 2

/** The only facet row of a small segment: it matches any value. Each value has a row when the segment is large. */
export const anyFacet = 'any'

/** The facets of a segment as rows of their table. */
export const storedFacets = (
  segment: Pick<StoredSegment, 'records' | 'facets'> & { blocks: readonly unknown[] },
): [facet: string, value: string, events: number, blocks: number][] =>
  isLarge({ records: segment.records, blocks: segment.blocks.length })
    ? facetRows(segment.facets)
    : [[anyFacet, '', segment.records, 2 ** segment.blocks.length - 1]]

/** In powers of two, so that there are few statement texts. */
function chunks<Item>(items: readonly Item[]): (readonly Item[])[] {
  const all: (readonly Item[])[] = []
  let size = rowsAtOnce
  for (let from = 0; from < items.length; from += size) {
    while (size > items.length - from) size /= 2
    all.push(items.slice(from, from + size))
  }
  return all
}

/** Removes segments, whose facets are named because their table has no index by segment. */
export function removeSegments(segments: readonly { first: number; facets: Facets }[]): Statement[] {
  const firsts = JSON.stringify(segments.map(({ first }) => first))
  const keys = segments.flatMap(({ first, facets }) => facetRows(facets).map(([facet, value]) => [facet, value, first]))
  const among = 'in (select value from json_each(?))'
  return [
    {
      // A `json_each` of arrays is joined by the primary key.
      sql: `delete from segment_facets where (facet, value, segment) in
        (select value ->> 0, value ->> 1, value ->> 2 from json_each(?))`,
      args: [JSON.stringify(keys)],
    },
    {
      sql: `delete from segment_facets where facet = '${anyFacet}' and value = '' and segment ${among}`,
      args: [firsts],
    },
    { sql: `delete from segment_chains where segment ${among}`, args: [firsts] },
    { sql: `delete from event_blocks where segment ${among}`, args: [firsts] },
    { sql: `delete from event_segments where first_position ${among}`, args: [firsts] },
  ]
}

/** A segment without its blocks, as it is read. */
export interface SegmentRow {
  first: number
  records: number
  receivedAt: number
  header: Uint8Array
  ids: Uint8Array
}

/** Segments that meet a condition, in the order of their positions; `tail` is SQL after `from event_segments`. */
export async function readSegments(ledger: Reader, tail: string, args: Statement['args']): Promise<SegmentRow[]> {
  const rows = await ledger.read(
    `select first_position, records, received_at, header, ids from event_segments ${tail}`,
    args,
  )
  return rows.map((row) => ({
    first: Number(row.first_position),
    records: Number(row.records),
    receivedAt: Number(row.received_at),
    header: bytesOf(row.header),
    ids: bytesOf(row.ids),
  }))
}

/** A block as it is read, with its place in the log. */
export interface PlacedBlock extends StoredBlock {
  first_position: number
  segment: number
}

/** The columns of a block to select from `event_blocks b`, for `placedBlock`; these are without its body. */
export const placeColumns = `b.first_position, ${['segment', 'records', 'bytes', 'first_at', 'last_at']
  .map((column) => `${number(`b.${column}`)} as ${column}`)
  .join()}, b.places`
export const blockColumns = `${placeColumns}, b.body`

export const placedBlock = (row: Row): PlacedBlock => ({
  first_position: Number(row.first_position),
  segment: Number(row.segment),
  records: Number(row.records),
  bytes: Number(row.bytes),
  first_at: Number(row.first_at),
  last_at: Number(row.last_at),
  places: bytesOf(row.places),
  body: bytesOf(row.body),
})

const bytesOf = (value: unknown): Uint8Array => storedBytes(value) ?? new Uint8Array()

/** The blocks of segments, in the order of their positions. */
export async function readBlocks(ledger: Reader, segments: readonly number[]): Promise<PlacedBlock[]> {
  const rows = await ledger.read(
    `select ${blockColumns} from event_blocks b where b.segment in (select value from json_each(?)) order by b.first_position`,
    [JSON.stringify(segments)],
  )
  return rows.map(placedBlock)
}

export interface ChainRow extends ChainPart {
  segment: number
}

/** Where a chain's records are: rows of `segment_chains` that meet a condition; `tail` is SQL after `where chain = ?`. */
export async function readChainRows(
  ledger: Reader,
  chain: string,
  tail: string,
  args: Statement['args'],
): Promise<ChainRow[]> {
  const rows = await ledger.read<{ first_seq: number; last_seq: number; segment: number; digest: unknown }>(
    `select first_seq, last_seq, segment, ${asBytes('digest_before')} as digest from segment_chains where chain = ? ${tail}`,
    [chain, ...args],
  )
  return rows.map(({ first_seq, last_seq, segment, digest }) => ({
    ...{ chain, first: first_seq, last: last_seq, segment },
    digestBefore: shownText(digest),
  }))
}

export interface LogHead {
  /** The position that the next record gets; the first record of a log has 1. */
  next: number
  /** Grows whenever segments are merged: a reader detects by it that blocks have moved. */
  merges: number
  /** Everything that retention has removed was received before this, in milliseconds since the epoch. */
  removedUntil: number
}

/** How often segments were merged, as SQL. */
export const mergesNow = `(select ${number('merges')} from event_log)`

export async function readLogHead(ledger: Reader): Promise<LogHead> {
  const [row] = await ledger.read<{ next_position: number; merges: number; removed_until: number }>(
    `select ${number('next_position')} as next_position, ${number('merges')} as merges,
      ${number('removed_until')} as removed_until from event_log`,
  )
  return { next: row?.next_position ?? 1, merges: row?.merges ?? 0, removedUntil: row?.removed_until ?? 0 }
}
