/**
 * Records in ClickHouse, read below a position: what stands there at or above it is not part of the log, or is still in
 * the ledger too. Rows that were inserted twice come one after the other and are given once.
 *
 * SQL text: another database's own language.
 */
import type { ClickHouseClient } from '@clickhouse/client'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { ChainedRecord, ChainRange, PositionRange, StoredRecord } from '../engine/event-log.ts'
import { ChainWalk, chainStart } from '../log/chain.ts'
import type { FoundEvent, LogQuery, Place } from '../log/log-query.ts'
import { quarantineSchema } from '../log/quarantine.ts'
import { comparePlaces, isMatch, type LogPart } from '../log/read-log.ts'
import type { ChainRecord } from '../log/read-records.ts'
import { eventsOfRecord } from '../log/record-events.ts'
import { type RecordRow, rowOf } from './record-row.ts'
import { type Parameters, RecordsTable } from './records-table.ts'
import { recordsTable } from './schema.ts'

/** Rows of one answer: about a megabyte of texts. */
const rowsAtOnce = 1024
/** Of the first answer of a query, which often is all of a page. */
const fewestAtOnce = 128

interface Row {
  position: number
  at: number
  chain: string
  seq: number
  text: string
  note: string
}

/** All columns. */
interface StoredRow extends Row, RecordRow {
  position: number
  text: string
  received_at: number
  digest_before: string
  digest_after: string
}

const columns = 'position, at, chain, seq, text, note'
const columnsWithoutText = `position, at, chain, seq, '' AS text, note`

const noteOf = ({ note }: Row) => (note === '' ? undefined : quarantineSchema.parse(JSON.parse(note)))

/** Throws `dependency_unavailable` where ClickHouse does not answer. */
export class Archive {
  readonly table: RecordsTable

  constructor(client: ClickHouseClient) {
    this.table = new RecordsTable(client)
  }

  /** What a query matches, in its order. */
  async *parts(query: LogQuery, below: number): AsyncGenerator<LogPart, void, undefined> {
    const newest = query.order === 'newest'
    const { after, facets, ids } = query
    const conditions = [
      'position < {below:UInt64}',
      'at >= {since:Int64} AND at < {until:Int64}',
      ...facets.map(({ facet }, index) => `hasAny(${facet}, {facet${index}:Array(String)})`),
      ...(ids.length === 0 ? [] : ['hasAll(ids, {ids:Array(String)})']),
    ]
    const parameters: Parameters = {
      ...{ below: Math.min(below, query.ceiling), since: query.since, until: query.until },
      ...(ids.length === 0 ? {} : { ids }),
      ...Object.fromEntries(facets.map(({ values }, index) => [`facet${index}`, values])),
    }
    let limit = fewestAtOnce
    // The record of the place itself may have further events.
    let from: Pick<Place, 'at' | 'position'> | null = after
    let isGiven = false
    for (;;) {
      const comparison = `${newest ? '<' : '>'}${isGiven ? '' : '='}`
      const behind = from === null ? [] : [`(at, position) ${comparison} ({at:Int64}, {position:UInt64})`]
      const direction = newest ? 'DESC' : 'ASC'
      const rows: Row[] = await this.table.rows(
        `SELECT ${columns} FROM ${recordsTable} WHERE ${[...conditions, ...behind].join(' AND ')}
          ORDER BY at ${direction}, position ${direction} LIMIT ${limit}`,
        // A place between records may have a position beyond every number of ClickHouse.
        from === null ? parameters : { ...parameters, at: from.at, position: from.position },
      )
      const last = rows.at(-1)
      if (last === undefined) return
      const reached = placeBehind(last, query)
      if (after === null || comparePlaces(after, reached, query.order) < 0) {
        yield { events: eventsOfRows(rows, query), reached }
      }
      if (rows.length < limit) return
      from = last
      isGiven = true
      limit = rowsAtOnce
      await yieldToEventLoop()
    }
  }

  /**
   * Rows by position, each once. It asks for so many positions, not for so many rows: the index then says which granules
   * have them, and ClickHouse need not look through all that follows.
   */
  async *#byPosition<Shape extends Row>(names: string, { from, before }: PositionRange): AsyncGenerator<Shape, void> {
    let next = from
    while (next < before) {
      const upTo = Math.min(before, next + rowsAtOnce)
      const rows: Shape[] = await this.table.rows(
        `SELECT ${names} FROM ${recordsTable} WHERE position >= {next:UInt64} AND position < {upTo:UInt64} ORDER BY position`,
        { next, upTo },
      )
      for (const row of rows) {
        if (row.position < next) continue
        yield row
        next = row.position + 1
      }
      next = rows.length > 0 ? upTo : ((await this.#least('position', 'position >= {upTo:UInt64}', { upTo })) ?? before)
      await yieldToEventLoop()
    }
  }

  /** The least value of a column; null where no row has it. */
  async #least(column: string, condition: string, parameters: Parameters): Promise<number | null> {
    const query = `SELECT minOrNull(${column}) AS least FROM ${recordsTable} WHERE ${condition}`
    const [row] = await this.table.rows<{ least: number | null }>(query, parameters)
    return row?.least ?? null
  }

  /** By position, each record with its chain and number. */
  async *chained({ from, before }: PositionRange, below: number): AsyncGenerator<ChainedRecord, void, undefined> {
    for await (const row of this.#byPosition<Row>(columns, { from, before: Math.min(before, below) })) {
      const { position, at, chain, seq, text } = row
      yield { position, at, chain, seq, text, quarantine: noteOf(row) }
    }
  }

  /** Those of a chain, in order; ends where a number is missing. */
  async *ofChain(chain: string, range: ChainRange, below: number): AsyncGenerator<ChainRecord, void, undefined> {
    let { after } = range
    while (after < range.upTo) {
      const upTo = Math.min(range.upTo, after + rowsAtOnce)
      const rows: Row[] = await this.table.rows(
        `SELECT ${range.bodies ? columns : columnsWithoutText} FROM ${recordsTable}
          WHERE (at, position) IN (SELECT at, position FROM ${recordsTable}
            WHERE chain = {chain:String} AND seq > {after:UInt64} AND seq <= {upTo:UInt64} AND position < {below:UInt64})
          ORDER BY seq`,
        { chain, after, upTo, below },
      )
      for (const row of rows) {
        const { seq, position, at, text } = row
        if (seq <= after) continue
        if (seq !== after + 1) return
        yield { seq, position, at, quarantine: noteOf(row), body: Buffer.from(text) }
        after = seq
      }
      if (after < upTo) return
      await yieldToEventLoop()
    }
  }

  /** The digest of a chain after number `seq`; null where it cannot be told from what is here. */
  async digestAt(chain: string, seq: number, below: number): Promise<string | null> {
    const [named] = await this.points(chain, [seq], below)
    const from = named ?? { seq: 0, digest: chainStart(chain) }
    const walk = new ChainWalk(from.digest)
    let walked = from.seq
    for await (const { seq: next, body } of this.ofChain(chain, { after: walked, upTo: seq, bodies: true }, below)) {
      walk.step(next, body)
      walked = next
    }
    return walked === seq && seq > 0 ? walk.digest : null
  }

  /** For each number, the last one up to it behind which the digest was named. A worker that connects waits for it. */
  async points(chain: string, seqs: readonly number[], below: number): Promise<{ seq: number; digest: string }[]> {
    const wanted = seqs.filter((seq) => seq > 0).map((seq) => seq + 1)
    if (wanted.length === 0) return []
    return await this.table.quickRows(
      `SELECT r.seq - 1 AS seq, any(r.digest_before) AS digest FROM
        (SELECT {chain:String} AS chain, arrayJoin({wanted:Array(UInt64)}) AS next) AS w
        ASOF JOIN (SELECT chain, seq, digest_before FROM ${recordsTable}
          WHERE chain = {chain:String} AND seq > 1 AND digest_before <> '' AND position < {below:UInt64}) AS r
        ON w.chain = r.chain AND w.next >= r.seq
        GROUP BY r.seq ORDER BY r.seq`,
      { chain, wanted, below },
    )
  }

  /** The first number of a chain that was received since an instant; null if there is none. */
  firstSince(chain: string, receivedAt: number, below: number): Promise<number | null> {
    const condition = 'chain = {chain:String} AND received_at >= {receivedAt:Int64} AND position < {below:UInt64}'
    return this.#least('seq', condition, { chain, receivedAt, below })
  }

  /** Whether something was received before an instant: an index of the table says it. */
  async holdsReceivedBefore(instant: number): Promise<boolean> {
    const query = `SELECT position FROM ${recordsTable} WHERE received_at < {instant:Int64} LIMIT 1`
    return (await this.table.rows(query, { instant })).length > 0
  }

  /** Where the first record of a chain behind a number is; null where there is none. */
  firstBehind(chain: string, seq: number, below: number): Promise<number | null> {
    const condition = 'chain = {chain:String} AND seq > {seq:UInt64} AND position < {below:UInt64}'
    return this.#least('position', condition, { chain, seq, below })
  }

  /** Whatever is stored, by position, compared with what would be stored of the text. */
  async *stored(range: PositionRange): AsyncGenerator<StoredRecord, void, undefined> {
    for await (const row of this.#byPosition<StoredRow>('*', range)) yield storedRecord(row)
  }

  /** The first position and the times of all that is here; null where nothing is. */
  async bounds(below: number): Promise<{ oldest: number; first: number; last: number } | null> {
    const [row] = await this.table.rows<{ oldest: number; first: number; last: number; records: number }>(
      `SELECT min(position) AS oldest, min(at) AS first, max(at) AS last, count() AS records FROM ${recordsTable}
        WHERE position < {below:UInt64}`,
      { below },
    )
    return row === undefined || row.records === 0 ? null : row
  }

  /** The first time from `from` on; null where there is none. */
  async nextTime(from: number, below: number): Promise<number | null> {
    const [row] = await this.table.rows<{ at: number }>(
      `SELECT at FROM ${recordsTable} WHERE at >= {from:Int64} AND position < {below:UInt64} ORDER BY at LIMIT 1`,
      { from, below },
    )
    return row?.at ?? null
  }

  /** When the record at a position happened; null where it is not here. Metrics ask it, so it does not wait long. */
  async timeAt(position: number): Promise<number | null> {
    const [row] = await this.table.quickRows<{ at: number }>(
      `SELECT at FROM ${recordsTable} WHERE position = {position:UInt64} LIMIT 1`,
      { position },
    )
    return row?.at ?? null
  }
}

function storedRecord(row: StoredRow): StoredRecord {
  const { position, at, chain, seq, text, received_at: receivedAt } = row
  const { digest_before: digestBefore, digest_after: digestAfter } = row
  const named = (digest: string): string | null => (digest === '' ? null : digest)
  const own = {
    ...{ position, at, chain, seq, text, receivedAt },
    ...{ digestBefore: named(digestBefore), digestAfter: named(digestAfter) },
  }
  try {
    const quarantine = noteOf(row)
    const expected = rowOf({ ...own, quarantine, digestBefore, digestAfter })
    const altered = Object.keys(expected).filter((name) => !Bun.deepEquals(row[name], expected[name]))
    return { ...own, quarantine, altered }
  } catch {
    // The note or the text is no JSON of its form.
    return { ...own, quarantine: undefined, altered: ['note'] }
  }
}

/** Everything that a record holds is given. */
const placeBehind = ({ at, position }: Row, { order }: LogQuery): Place => ({
  at,
  position,
  index: order === 'newest' ? 0 : Number.MAX_SAFE_INTEGER,
})

function eventsOfRows(rows: readonly Row[], query: LogQuery): FoundEvent[] {
  const found: FoundEvent[] = []
  let former = -1
  for (const row of rows) {
    const { position, at, text } = row
    if (position === former) continue
    former = position
    const events = eventsOfRecord({ text, at, quarantine: noteOf(row) }).map((each, index) => ({
      ...{ at, position, index },
      ...each,
    }))
    if (query.order === 'newest') events.reverse()
    for (const each of events) if (isWanted(each, query) && isMatch(each.event, query)) found.push(each)
  }
  return found
}

const isWanted = (place: Place, { after, order }: LogQuery): boolean =>
  after === null || comparePlaces(after, place, order) < 0
