/**
 * Reads events from the log in the order of their time. Blocks overlap in time where events arrived late, so reading is a
 * merge: blocks are opened in the order in which their first possible event comes, and an event is given once no block
 * that is still closed can hold an earlier one.
 *
 *   1. candidates: blocks in the window whose facets, and whose segment's id hashes, can match; some at a time
 *   2. a block is opened when its range reaches the best event at hand; its records are parsed only as they are needed
 *   3. events before the place where reading began, or not matching, are left out
 *
 * Events of the same millisecond are in the order of their positions. What arrives after reading began is not seen: its
 * position is not below the ceiling. Merging segments moves blocks but no event: reading begins again behind the last
 * event given. SQL text: the order, the bitmaps and the choice of the index are what makes this fast.
 */
import type { Database } from '../../store/open.ts'
import type { Row, Statement } from '../../store/statement.ts'
import type { Event } from '../event.ts'
import { storedBytes } from '../../store/damage/stored-text.ts'
import { hashOfId, holdsHash } from './id-hashes.ts'
import { expandRecord, type FacetName, type LogRecord } from './record.ts'
import { recordTexts } from './segment.ts'
import { decodeBlock } from './segment-codec.ts'
import { blockColumns, type PlacedBlock, placedBlock } from './segment-rows.ts'
import { quarantinedType } from './quarantine.ts'
import { nobody } from '../event.ts'
import { timestamp } from '../../lib/clock.ts'

/** Where an event stands: its time, the position of its record, and its place among the events of the record. */
export interface Place {
  at: number
  position: number
  index: number
}

export interface FoundEvent extends Place {
  event: Event
}

export interface LogQuery {
  order: 'newest' | 'oldest'
  /** Milliseconds since the epoch: from `since`, before `until`. */
  since: number
  until: number
  /** Positions are below this one. */
  ceiling: number
  /** Behind this event, in the order asked for. */
  after: Place | null
  /** Each must have one of its values. */
  facets: readonly { facet: FacetName; values: readonly string[] }[]
  /** Ids that a record must have (of request, exchange or session). */
  ids: readonly string[]
  /** The exact filter, over what the index has found. */
  matches(event: Event): boolean
}

/** How many rows of a facet's index are few enough to begin with them. */
const fewFacetRows = 500
const blocksAtOnce = 16

/** The events that a query matches, in its order. */
export async function* readLog(ledger: Database, query: LogQuery): AsyncGenerator<FoundEvent> {
  let after = query.after
  for (;;) {
    const merges = await mergesOf(ledger)
    for await (const found of mergeBlocks(ledger, { ...query, after }, merges)) {
      if (found === 'merged') break
      after = found
      yield found
    }
    if ((await mergesOf(ledger)) === merges) return
  }
}

async function* mergeBlocks(
  ledger: Database,
  query: LogQuery,
  merges: number,
): AsyncGenerator<FoundEvent | 'merged'> {
  const candidates = new Candidates(ledger, query, await segmentsWithIds(ledger, query), merges)
  const open: OpenBlock[] = []
  for (;;) {
    // Everything that may come before the best event at hand is opened.
    for (;;) {
      const next = await candidates.peek()
      if (next === 'merged') {
        yield 'merged'
        return
      }
      const best = open[0]?.head
      if (next === null || (best !== undefined && isBefore(query, best.at, next))) break
      candidates.take()
      const block = new OpenBlock(next, query)
      if (block.head !== undefined) insertSorted(open, block, query)
    }
    const first = open.shift()
    if (first?.head === undefined) return
    yield first.head
    first.advance()
    if (first.head !== undefined) insertSorted(open, first, query)
  }
}

/** Whether an event of this time comes before everything that a block can hold. */
const isBefore = ({ order }: LogQuery, at: number, block: PlacedBlock): boolean =>
  order === 'newest' ? at > block.last_at : at < block.first_at

function insertSorted(open: OpenBlock[], block: OpenBlock, { order }: LogQuery): void {
  const { head } = block
  if (head === undefined) return
  let low = 0
  let high = open.length
  while (low < high) {
    const middle = (low + high) >>> 1
    const other = open[middle]?.head
    if (other !== undefined && comparePlaces(other, head, order) < 0) low = middle + 1
    else high = middle
  }
  open.splice(low, 0, block)
}

/** Below zero where the first comes first. */
export function comparePlaces(one: Place, other: Place, order: LogQuery['order']): number {
  const difference = one.at - other.at || one.position - other.position || one.index - other.index
  return order === 'newest' ? -difference : difference
}

/** An opened block: its matching events, one after another. */
class OpenBlock {
  head: FoundEvent | undefined
  readonly #events: Iterator<FoundEvent>

  constructor(block: PlacedBlock, query: LogQuery) {
    this.#events = eventsOf(block, query)
    this.advance()
  }

  advance(): void {
    const next = this.#events.next()
    this.head = next.done ? undefined : next.value
  }
}

function* eventsOf(stored: PlacedBlock, query: LogQuery): Generator<FoundEvent> {
  const block = decodeBlock(stored)
  if (block === null) {
    const found = damagedBlock(stored, query.order)
    if (isWanted(found, query)) yield found
    return
  }
  const texts = [...recordTexts(block)]
  const places = texts.map((_, index) => ({
    at: block.times[index] ?? 0,
    position: stored.first_position + index,
    index: 0,
  }))
  places.sort((one, other) => comparePlaces(one, other, query.order))
  const { since, until, ceiling, after, order } = query
  for (const { at, position } of places) {
    if (at < since || at >= until || position >= ceiling) continue
    // Of the record that reading stopped in, some events may still come.
    if (after !== null && (order === 'newest' ? at > after.at : at < after.at)) continue
    const ordinal = position - stored.first_position
    const text = texts[ordinal] ?? ''
    if (!mayMatch(text, query)) continue
    const aside = block.aside.get(ordinal)
    const events = aside === undefined ? eventsOfText(text, at) : [asideEvent(aside, at, text)]
    const found = events.map((event, index) => ({ at, position, index, event }))
    if (order === 'newest') found.reverse()
    for (const each of found) if (isWanted(each, query) && query.matches(each.event)) yield each
  }
}

const isWanted = (place: Place, { after, order, since, until, ceiling }: LogQuery): boolean =>
  place.at >= since &&
  place.at < until &&
  place.position < ceiling &&
  (after === null || comparePlaces(after, place, order) < 0)

/**
 * Whether the text of a record can match, without reading it: it must have one of the values of each facet. A text may
 * write any character as `\u…`, so one that does so is read.
 */
function mayMatch(text: string, { facets, ids }: LogQuery): boolean {
  const has = (value: string) => !isPlain(value) || text.includes(value)
  const mayHave = facets.every(({ facet, values }) => facet === 'status' || facet === 'type' || values.some(has)) && ids.every(has)
  return mayHave || text.includes('\\u')
}

/** Whether JSON writes these characters as they are. */
const isPlain = (value: string): boolean => /^[\w.:\-/ ]*$/.test(value)

function eventsOfText(text: string, at: number): Event[] {
  // Ingest has read it, and the block's checksum holds.
  const record: LogRecord = JSON.parse(text)
  const events = expandRecord(record)
  // No event is later than its receipt, whatever a worker's clock has said.
  if (Date.parse(record.timestamp) === at) return events
  return events.map((event) => ({ ...event, timestamp: timestamp(at) }))
}

function asideEvent(aside: { reason: string; event_id: string; gateway_id: string }, at: number, text: string): Event {
  return {
    ...emptyEvent(at),
    event_id: aside.event_id,
    reason_code: aside.reason,
    event_attribution: { ...nobody, gateway_id: aside.gateway_id },
    details: { bytes: Buffer.byteLength(text) },
  }
}

/** Stands for all events of a block that cannot be read. */
function damagedBlock(block: PlacedBlock, order: LogQuery['order']): FoundEvent {
  const at = order === 'newest' ? block.last_at : block.first_at
  const { first_position, records } = block
  const event = { ...emptyEvent(at), reason_code: 'event.damaged', details: { first_position, records } }
  return { at, position: first_position, index: 0, event }
}

const emptyEvent = (at: number): Event => ({
  event_id: '00000000-0000-0000-0000-000000000000',
  event_type: quarantinedType,
  request_id: null,
  timestamp: timestamp(at),
  verdict: 'error',
  reason_code: '',
  config_version: 0,
  event_attribution: nobody,
})

/** Blocks that can match, in the order in which their first possible event comes. */
class Candidates {
  readonly #ledger: Database
  readonly #query: LogQuery
  readonly #segments: readonly number[] | null
  readonly #merges: number
  #waiting: PlacedBlock[] = []
  #last: PlacedBlock | null = null
  #done = false
  #index: { driver: Statement | null; others: readonly Statement[] } | null = null

  constructor(ledger: Database, query: LogQuery, segments: readonly number[] | null, merges: number) {
    this.#ledger = ledger
    this.#query = query
    this.#segments = segments
    this.#merges = merges
  }

  async peek(): Promise<PlacedBlock | null | 'merged'> {
    if (this.#waiting.length === 0 && !this.#done) {
      this.#index ??= await chooseIndex(this.#ledger, this.#query)
      const rows = await this.#read()
      if (rows.some(({ merges }) => merges !== this.#merges)) return 'merged'
      this.#done = rows.length < blocksAtOnce
      this.#waiting = rows.map(placedBlock)
      this.#last = this.#waiting.at(-1) ?? this.#last
    }
    return this.#waiting[0] ?? null
  }

  take(): void {
    this.#waiting.shift()
  }

  async #read(): Promise<Row[]> {
    const { order, since, until, ceiling, after } = this.#query
    const newest = order === 'newest'
    const last = this.#last
    const conditions: Statement[] = [
      { sql: 'b.first_position < ?', args: [ceiling] },
      { sql: 'b.last_at >= ? and b.first_at < ?', args: [since, until] },
      ...(this.#index?.driver ? [this.#index.driver] : []),
      ...(this.#index?.others ?? []),
    ]
    if (this.#segments !== null) {
      conditions.push({ sql: 'b.segment in (select value from json_each(?))', args: [JSON.stringify(this.#segments)] })
    }
    if (after !== null) conditions.push({ sql: newest ? 'b.first_at <= ?' : 'b.last_at >= ?', args: [after.at] })
    if (last !== null) {
      conditions.push(
        newest
          ? { sql: '(b.last_at, b.first_position) < (?, ?)', args: [last.last_at, last.first_position] }
          : { sql: '(b.first_at, b.first_position) > (?, ?)', args: [last.first_at, last.first_position] },
      )
    }
    const direction = newest ? 'b.last_at desc, b.first_position desc' : 'b.first_at, b.first_position'
    return await this.#ledger.read(
      `select ${blockColumns}, (select merges from event_log) as merges from event_blocks b
        where ${conditions.map(({ sql }) => sql).join(' and ')} order by ${direction} limit ?`,
      [...conditions.flatMap(({ args }) => args), blocksAtOnce],
    )
  }
}

/** Whether to begin with the rows of a facet that has few, or with the blocks of the window. */
async function chooseIndex(ledger: Database, { facets }: LogQuery) {
  const counted = await Promise.all(
    facets.map(async ({ facet, values }) => {
      const list = JSON.stringify(values)
      const [row] = await ledger.read<{ rows: number }>(
        `select count(*) as rows from (select 1 from segment_facets
          where facet = ? and value in (select value from json_each(?)) limit ?)`,
        [facet, list, fewFacetRows + 1],
      )
      return { facet, list, rows: row?.rows ?? 0 }
    }),
  )
  const fewest = counted.toSorted((one, other) => one.rows - other.rows)[0]
  const driving = fewest !== undefined && fewest.rows <= fewFacetRows ? fewest : null
  return {
    driver: driving && {
      sql: `b.first_position in (select w.first_position from segment_facets f
        cross join event_blocks w on w.segment = f.segment and (f.blocks >> w.ordinal) & 1
        where f.facet = ? and f.value in (select value from json_each(?)))`,
      args: [driving.facet, driving.list],
    },
    others: counted
      .filter((each) => each !== driving)
      .map(({ facet, list }) => ({
        sql: `exists (select 1 from segment_facets f where f.facet = ? and f.value in (select value from json_each(?))
          and f.segment = b.segment and (f.blocks >> b.ordinal) & 1)`,
        args: [facet, list],
      })),
  }
}

/** Segments in the window whose hashes hold all ids; null where no id is asked for. */
async function segmentsWithIds(ledger: Database, { ids, ceiling }: LogQuery): Promise<number[] | null> {
  if (ids.length === 0) return null
  const hashes = ids.map(hashOfId)
  const found: number[] = []
  let before = ceiling
  for (;;) {
    const rows = await ledger.read<{ first_position: number; ids: unknown }>(
      'select first_position, ids from event_segments where first_position < ? order by first_position desc limit 64',
      [before],
    )
    for (const row of rows) {
      const stored = storedBytes(row.ids)
      if (stored !== null && hashes.every((hash) => holdsHash(stored, hash))) found.push(row.first_position)
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length < 64) return found
    before = last.first_position
  }
}

const mergesOf = async (ledger: Database): Promise<number> => {
  const [row] = await ledger.read<{ merges: number }>('select merges from event_log')
  return row?.merges ?? 0
}
