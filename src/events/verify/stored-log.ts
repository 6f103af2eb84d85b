/**
 * Reads the log as `verify` needs it: whatever anyone who can write the file has put there is read, and nothing of it is
 * trusted. The rows of a segment come from one statement, so that they belong together while segments are merged.
 *
 * SQL text: numbers and texts as JSON, because libSQL refuses an integer above 2^53 and ends the process at a text that
 * is no UTF-8 (store/damage/stored-cells.ts).
 */
import { z } from 'zod'
import { asBytes, storedBytes, storedText } from '../../store/damage/stored-text.ts'
import type { Reader } from '../../store/open.ts'
import type { Row, Statement } from '../../store/statement.ts'
import { wordsOfBytes } from '../log/id-hashes.ts'
import type { ChainPart } from '../log/segment.ts'
import { decodeHeader, type Header, type StoredBlock } from '../log/segment-codec.ts'
import { storedFacets } from '../log/segment-rows.ts'
import type { NamedHead } from './chain-check.ts'

/** -1, which equals no number of the log, for what is no integer that JavaScript can hold. */
const integer = (column: string): string =>
  `iif(typeof(${column}) = 'integer' and abs(${column}) < 9007199254740992, ${column}, -1)`
/** Its bytes in hexadecimal; null for what is no text. */
const hexadecimal = (column: string): string => `iif(typeof(${column}) = 'text', hex(${column}), null)`
/** Empty for what is no blob. */
const blob = (column: string): string => `iif(typeof(${column}) = 'blob', ${column}, x'')`
/** The rows of a query as one value. */
const listOf = (columns: readonly string[], rows: string): string =>
  asBytes(`(select json_group_array(json_array(${columns.join()})) from (${rows}))`)

/** Valid names of chains. */
const soundName = /^[\x21-\x7e]*$/

const textOf = (hex: string | null): string | null => {
  const text = hex === null ? null : storedText(Buffer.from(hex, 'hex'))
  return text !== null && soundName.test(text) ? text : null
}
/** For display. */
const shownOf = (hex: string | null): string => Buffer.from(hex ?? '', 'hex').toString()

const jsonOf = (value: unknown): unknown => JSON.parse(Buffer.from(storedBytes(value) ?? []).toString() || 'null')

/** A block's row without its bytes. */
export interface BlockRow {
  first: number
  ordinal: number
  records: number
  bytes: number
  firstAt: number
  lastAt: number
}

/** A row of `segment_chains`; null for a chain or digest that is no text which the log writes. */
export interface ChainPartRow {
  chain: string | null
  first: number
  last: number
  digestBefore: string | null
}

/** The rows of a segment, whatever they say. */
export interface SegmentRows {
  first: number
  records: number
  receivedAt: number
  /** Null where it is damaged. */
  header: Header | null
  /** Null where they are damaged. */
  ids: Uint32Array | null
  chains: readonly ChainPartRow[]
  /** In the order of their positions. */
  blocks: readonly BlockRow[]
}

const hexOrNull = z.string().nullable()
const chainRows = z.array(z.tuple([hexOrNull, z.number(), z.number(), hexOrNull]))
const blockRows = z.array(z.tuple([z.number(), z.number(), z.number(), z.number(), z.number(), z.number()]))

const chainList = listOf(
  [hexadecimal('chain'), integer('first_seq'), integer('last_seq'), hexadecimal('digest_before')],
  'select * from segment_chains where segment = s.first_position order by first_seq',
)
const blockList = listOf(
  ['first_position', 'ordinal', 'records', 'bytes', 'first_at', 'last_at'].map(integer),
  'select * from event_blocks where segment = s.first_position order by first_position',
)

/** A segment whose row is selected by SQL after `from event_segments s`. */
async function readSegment(ledger: Reader, tail: string, args: Statement['args']): Promise<SegmentRows | null> {
  const [row] = await ledger.read(
    `select ${integer('first_position')} as first, ${integer('records')} as records,
      ${integer('received_at')} as received_at, ${blob('header')} as header, ${blob('ids')} as ids,
      ${chainList} as chains, ${blockList} as blocks from event_segments s ${tail} limit 1`,
    args,
  )
  if (row === undefined) return null
  return {
    first: Number(row.first),
    records: Number(row.records),
    receivedAt: Number(row.received_at),
    header: decodeHeader(storedBytes(row.header) ?? new Uint8Array()),
    ids: wordsOfBytes(storedBytes(row.ids) ?? new Uint8Array()),
    chains: chainRows.parse(jsonOf(row.chains)).map(([chain, first, last, digest]) => ({
      ...{ chain: textOf(chain), first, last, digestBefore: textOf(digest) },
    })),
    blocks: blockRows.parse(jsonOf(row.blocks)).map(([first, ordinal, records, bytes, firstAt, lastAt]) => ({
      ...{ first, ordinal, records, bytes, firstAt, lastAt },
    })),
  }
}

/** A segment elsewhere is beyond the end of the log (`hasSegmentsBeyond`), or before its beginning. */
const isPosition = `s.first_position between 0 and ${Number.MAX_SAFE_INTEGER}`

/** The segment that begins at a position or before it, or the first one; null if there is none. */
export const readSegmentAt = async (ledger: Reader, position: number): Promise<SegmentRows | null> =>
  (await readSegment(ledger, `where ${isPosition} and s.first_position <= ? order by s.first_position desc`, [
    position,
  ])) ?? (await readSegment(ledger, `where ${isPosition} order by s.first_position`, []))

/** The segment that begins behind a position; null if there is none. */
export const readSegmentBehind = (ledger: Reader, position: number): Promise<SegmentRows | null> =>
  readSegment(ledger, `where ${isPosition} and s.first_position > ? order by s.first_position`, [position])

/** Whether a segment is still there as it was read. Merging and retention remove it; nothing changes it. */
export async function isStillThere(
  ledger: Reader,
  { first, records }: Pick<SegmentRows, 'first' | 'records'>,
): Promise<boolean> {
  const rows = await ledger.read(
    `select 1 from event_segments where first_position = ? and ${integer('records')} = ?`,
    [first, records],
  )
  return rows.length > 0
}

/** A block of a segment; null where it is no longer there. */
export async function readBlock(ledger: Reader, segment: number, row: BlockRow): Promise<StoredBlock | null> {
  const [found] = await ledger.read(
    `select ${blob('places')} as places, ${blob('body')} as body from event_blocks
      where first_position = ? and segment = ?`,
    [row.first, segment],
  )
  if (found === undefined) return null
  return {
    ...{ records: row.records, bytes: row.bytes, first_at: row.firstAt, last_at: row.lastAt },
    places: storedBytes(found.places) ?? new Uint8Array(),
    body: storedBytes(found.body) ?? new Uint8Array(),
  }
}

/** The rows that the table of facets must have of a segment. */
export const facetsToStore = ({ header, records, blocks }: SegmentRows): ReturnType<typeof storedFacets> =>
  header === null ? [] : storedFacets({ facets: header.facets, records, blocks })

/** How many of these rows the table does not have. */
export async function facetsMissing(ledger: Reader, segment: SegmentRows): Promise<number> {
  const rows = facetsToStore(segment)
  const [found] = await ledger.read<{ same: number }>(
    `select count(*) as same from json_each(?) k cross join segment_facets f on f.facet = k.value ->> 0
      and f.value = k.value ->> 1 and f.segment = ?
      where f.events is k.value ->> 2 and f.blocks is k.value ->> 3
        and typeof(f.events) = 'integer' and typeof(f.blocks) = 'integer'`,
    [JSON.stringify(rows), segment.first],
  )
  return rows.length - (found?.same ?? 0)
}

/** What the ledger says of the whole log and of the ends of all chains, at one instant. */
export interface LogHeads {
  next: number
  removedUntil: number
  heads: ReadonlyMap<string, NamedHead>
  /** Names that no chain can have. */
  oddChains: readonly string[]
}

const headRows = z.array(z.tuple([hexOrNull, z.number(), hexOrNull, z.number()]))

export async function readHeads(ledger: Reader): Promise<LogHeads> {
  const list = listOf(
    [hexadecimal('chain'), integer('seq'), hexadecimal('digest'), integer('updated_at')],
    'select * from chains',
  )
  const [row] = await ledger.read(
    `select ${integer('next_position')} as next, ${integer('removed_until')} as removed_until, ${list} as chains
      from (select 1) left join event_log on true limit 1`,
  )
  const heads = new Map<string, NamedHead>()
  const oddChains: string[] = []
  for (const [hex, seq, digest, updatedAt] of headRows.parse(jsonOf(row?.chains))) {
    const chain = textOf(hex)
    if (chain === null) oddChains.push(shownOf(hex))
    else heads.set(chain, { seq: seq < 0 ? null : seq, digest: textOf(digest), updatedAt })
  }
  return { next: Number(row?.next), removedUntil: Number(row?.removed_until), heads, oddChains }
}

/** Where the log begins: grows with every removal. */
export async function readFirstPosition(ledger: Reader): Promise<number> {
  const [row] = await ledger.read(
    `select ${integer('first')} as first from (select coalesce((select min(first_position) from event_segments),
      (select next_position from event_log)) as first)`,
  )
  return Number(row?.first)
}

/** Whether segments are beyond where the log says that it ends. */
export async function hasSegmentsBeyond(ledger: Reader): Promise<boolean> {
  const rows = await ledger.read(
    `select 1 from (select first_position, records from event_segments order by first_position desc limit 1)
      where first_position + records > coalesce((select next_position from event_log), 1)`,
  )
  return rows.length > 0
}

/** Where the first record of a chain behind a number is; null where there is none. */
export async function segmentBehind(ledger: Reader, chain: string, seq: number): Promise<number | null> {
  const [row] = await ledger.read(
    `select ${integer('segment')} as segment from segment_chains where chain = ? and last_seq > ?
      order by first_seq limit 1`,
    [chain, seq],
  )
  return row === undefined ? null : Number(row.segment)
}

/** Tables whose rows belong to segments. */
export const tablesOfSegments = ['event_blocks', 'segment_chains', 'segment_facets'] as const
const rowsAtOnce = 2000

/** Some rows of such a table: how many belong to which segment, and whether that is there. */
export interface RowCounts {
  segment: number
  rows: number
  isThere: boolean
}

/** Counts the rows of a table, some at a time. */
export async function* countRows(
  ledger: Reader,
  table: (typeof tablesOfSegments)[number],
): AsyncGenerator<RowCounts[], void, undefined> {
  let after = '-9223372036854775808'
  for (;;) {
    const [end] = await ledger.read<{ id: string | null }>(
      `select cast(max(id) as text) as id from (select rowid as id from ${table}
        where rowid > cast(? as integer) order by rowid limit ${rowsAtOnce})`,
      [after],
    )
    if (end?.id == null) return
    const rows: Row[] = await ledger.read(
      `select ${integer('segment')} as segment, count(*) as rows,
        exists (select 1 from event_segments s where s.first_position = t.segment) as there
        from ${table} t where rowid > cast(? as integer) and rowid <= cast(? as integer) group by t.segment`,
      [after, end.id],
    )
    yield rows.map((row) => ({
      segment: Number(row.segment),
      rows: Number(row.rows),
      isThere: Number(row.there) === 1,
    }))
    after = end.id
  }
}

export const sameParts = (rows: readonly ChainPartRow[], parts: readonly ChainPart[]): boolean => {
  const keys = new Set(parts.map(({ chain, first, last, digestBefore }) => `${chain} ${first} ${last} ${digestBefore}`))
  return (
    rows.length === parts.length &&
    rows.every(({ chain, first, last, digestBefore }) => keys.has(`${chain} ${first} ${last} ${digestBefore}`))
  )
}
