/**
 * Reads events from the log in the order of their time. Blocks overlap in time where events arrived late, so reading is
 * a merge: blocks are opened in the order in which their first possible event comes, and an event is given once no block
 * that is still closed can hold an earlier one.
 *
 *   1. candidates: blocks in the window whose facets, and whose segment's id hashes, can match; some at a time
 *   2. a block is opened when its range reaches the best event at hand; its records are parsed only as they are needed
 *   3. events before the place where reading began, or not matching, are left out
 *
 * Events of the same millisecond are in the order of their positions. What arrives after reading began is not seen: its
 * position is not below the ceiling. Merging segments moves blocks but no event: reading begins again behind the last
 * event given.
 *
 * SQL text: the order, the bitmaps and the choice of the index are what makes this fast.
 */
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Database } from '../../store/open.ts'
import type { Row, Statement } from '../../store/statement.ts'
import type { Event } from '../event.ts'
import { hashOfId, mayHold } from './id-hashes.ts'
import { damagedEvent } from './quarantine.ts'
import { type FacetName, hasFacet } from './record.ts'
import { eventsOfRecord } from './record-events.ts'
import { type Block, recordBytes } from './segment.ts'
import { decodeBlock } from './segment-codec.ts'
import { blockColumns, type PlacedBlock, placedBlock, readLogHead } from './segment-rows.ts'

/** Where an event stands: its time, the position of its record, and its place among the events of the record. */
export interface Place {
  at: number
  position: number
  index: number
}

export interface FoundEvent extends Place {
  event: Event
  /** Its JSON, where the record is that one event and is shown as it was written. */
  json?: string | undefined
}

/** An event must have one of the values. */
export interface FacetFilter {
  facet: FacetName
  values: readonly string[]
}

export interface LogQuery {
  order: 'newest' | 'oldest'
  /** Milliseconds since the epoch: from `since`, before `until`. */
  since: number
  until: number
  /** Positions are below this one. */
  ceiling: number
  /** Behind this event, in the order asked for; null for all. */
  after: Place | null
  /** Each must hold. */
  facets: readonly FacetFilter[]
  /** Ids that a record must have (of request, exchange or session). */
  ids: readonly string[]
  /** Further conditions of an event, exact for the ids too; none where absent. */
  matches?(event: Event): boolean
}

/** How many rows of a facet's index are few enough to begin with them. */
const fewFacetRows = 500
const blocksAtOnce = 16
const mostInPart = 128
/** Segments whose id hashes are read at a time. */
const segmentsAtOnce = 64

/** Events that were read together, and where reading stands after them. */
export interface LogPart {
  events: FoundEvent[]
  /** What comes before this place has been given. A query goes on behind it; it need not be the place of an event. */
  reached: Place
}

/** The events that a query matches, in its order. */
export async function* readLog(ledger: Database, query: LogQuery): AsyncGenerator<FoundEvent, void, undefined> {
  for await (const { events } of readLogParts(ledger, query)) yield* events
}

/**
 * The same in parts of at most `mostInPart` events. A part ends where a block has to be opened, so that a reader can
 * end early although nothing was found. Other work goes on between two parts.
 */
export async function* readLogParts(ledger: Database, query: LogQuery): AsyncGenerator<LogPart, void, undefined> {
  let after = query.after
  for (;;) {
    const { merges } = await readLogHead(ledger)
    for await (const part of mergeBlocks(ledger, { ...query, after }, merges)) {
      if (part === 'merged') break
      after = part.reached
      yield part
    }
    if ((await readLogHead(ledger)).merges === merges) return
  }
}

async function* mergeBlocks(
  ledger: Database,
  query: LogQuery,
  merges: number,
): AsyncGenerator<LogPart | 'merged', void, undefined> {
  const candidates = new Candidates(ledger, query, await segmentsWithIds(ledger, query), merges)
  const open: OpenBlock[] = []
  for (;;) {
    const next = await candidates.peek()
    if (next === 'merged') {
      yield 'merged'
      return
    }
    // Everything that comes before what a closed block may hold.
    const events: FoundEvent[] = []
    let first = open[0]
    while (events.length < mostInPart && first?.head !== undefined) {
      if (next !== null && !isBefore(query, first.head.at, next)) break
      events.push(first.head)
      open.shift()
      first.advance()
      if (first.head !== undefined) insertSorted(open, first, query)
      first = open[0]
    }
    const last = events.at(-1)
    if (events.length === mostInPart && last !== undefined) {
      yield { events, reached: placeOf(last) }
      await yieldToEventLoop()
      continue
    }
    if (next === null) {
      if (last !== undefined) yield { events, reached: placeOf(last) }
      return
    }
    const reached = placeBefore(next, query)
    if (query.after === null || comparePlaces(query.after, reached, query.order) < 0) yield { events, reached }
    else if (last !== undefined) yield { events, reached: placeOf(last) }
    candidates.take()
    await yieldToEventLoop()
    const block = new OpenBlock(next, query)
    if (block.head !== undefined) insertSorted(open, block, query)
  }
}

const placeOf = ({ at, position, index }: Place): Place => ({ at, position, index })

/** A place before everything that a block can hold, in the order asked for. */
const placeBefore = ({ last_at, first_at }: PlacedBlock, { order }: LogQuery): Place =>
  order === 'newest'
    ? { at: last_at, position: Number.MAX_SAFE_INTEGER, index: 0 }
    : { at: first_at, position: 0, index: 0 }

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
    this.#events = eventsOfBlock(block, query)
    this.advance()
  }

  advance(): void {
    const next = this.#events.next()
    this.head = next.done ? undefined : next.value
  }
}

function* eventsOfBlock(stored: PlacedBlock, query: LogQuery): Generator<FoundEvent> {
  const block = decodeBlock(stored)
  if (block === null) {
    const found = damagedPlace(stored, query.order)
    if (isWanted(found, query)) yield found
    return
  }
  const records = recordBytes(block)
  for (const ordinal of orderOf(block, query.order)) {
    const [at, bytes] = [block.times[ordinal], records[ordinal]]
    if (at === undefined || bytes === undefined) continue
    const position = stored.first_position + ordinal
    if (!mayHaveEvents({ at, position }, query)) continue
    const text = bytes.toString()
    const quarantine = block.quarantined.get(ordinal)
    if (quarantine === undefined && !mayMatch(text, query)) continue
    const events = eventsOfRecord({ text, at, quarantine })
    const found = events.map((each, index) => ({ at, position, index, ...each }))
    if (query.order === 'newest') found.reverse()
    for (const each of found) if (isWanted(each, query) && isMatch(each.event, query)) yield each
  }
}

/** The places of a block's records in the order in which they happened. */
function orderOf({ times }: Pick<Block, 'times'>, order: LogQuery['order']): number[] {
  const ordinals = Array.from(times, (_, ordinal) => ordinal)
  ordinals.sort((one, other) => (times[one] ?? 0) - (times[other] ?? 0) || one - other)
  return order === 'newest' ? ordinals.reverse() : ordinals
}

/** Whether a record is in the window, and not before the place where reading began; of its own record some may come. */
const mayHaveEvents = (
  { at, position }: Pick<Place, 'at' | 'position'>,
  { since, until, ceiling, after, order }: LogQuery,
): boolean =>
  at >= since &&
  at < until &&
  position < ceiling &&
  (after === null || (order === 'newest' ? at <= after.at : at >= after.at))

const isWanted = (place: Place, query: LogQuery): boolean =>
  mayHaveEvents(place, query) && (query.after === null || comparePlaces(query.after, place, query.order) < 0)

const isMatch = (event: Event, { facets, matches }: LogQuery): boolean =>
  facets.every(({ facet, values }) => hasFacet(event, facet, values)) && (matches?.(event) ?? true)

/**
 * Whether the text of a record can match, without parsing it: it must have one of the values of each facet. A text may
 * write any character as `\u…`, so one that does so is parsed. Statuses are numbers, and types may be implied.
 */
function mayMatch(text: string, { facets, ids }: LogQuery): boolean {
  const has = (value: string) => !isPlain(value) || text.includes(value)
  const mayHave = facets.every(
    ({ facet, values }) => facet === 'status' || facet === 'type' || values.some((value) => has(value)),
  )
  return (mayHave && ids.every(has)) || text.includes('\\u')
}

/** Whether JSON writes these characters as they are. */
const isPlain = (value: string): boolean => /^[\w.:\- ]*$/.test(value)

/** Stands for all events of a block that cannot be read. */
function damagedPlace(block: PlacedBlock, order: LogQuery['order']): FoundEvent {
  const at = order === 'newest' ? block.last_at : block.first_at
  const { first_position, records } = block
  return { at, position: first_position, index: 0, event: damagedEvent(at, { first_position, records }) }
}

/** Blocks that can match, in the order in which their first possible event comes. */
class Candidates {
  readonly #ledger: Database
  readonly #query: LogQuery
  readonly #segments: readonly number[] | null
  readonly #merges: number
  #waiting: PlacedBlock[] = []
  #last: PlacedBlock | null = null
  #done = false
  #index: readonly Statement[] | null = null

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
      ...(this.#index ?? []),
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

/** Conditions of the facets: the one with few rows, if there is one, finds the blocks, and the others are checked. */
async function chooseIndex(ledger: Database, { facets }: LogQuery): Promise<Statement[]> {
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
  const finds = fewest !== undefined && fewest.rows <= fewFacetRows ? fewest : null
  return counted.map((each) => (each === finds ? foundBy(each) : checkedFor(each)))
}

const foundBy = ({ facet, list }: { facet: string; list: string }): Statement => ({
  sql: `b.first_position in (select w.first_position from segment_facets f
    cross join event_blocks w on w.segment = f.segment and (f.blocks >> w.ordinal) & 1
    where f.facet = ? and f.value in (select value from json_each(?)))`,
  args: [facet, list],
})

const checkedFor = ({ facet, list }: { facet: string; list: string }): Statement => ({
  sql: `exists (select 1 from segment_facets f where f.facet = ? and f.value in (select value from json_each(?))
    and f.segment = b.segment and (f.blocks >> b.ordinal) & 1)`,
  args: [facet, list],
})

/**
 * Segments whose hashes may hold all ids; null where no id is asked for. What happened since an instant was received
 * since then.
 */
async function segmentsWithIds(ledger: Database, { ids, ceiling, since }: LogQuery): Promise<number[] | null> {
  if (ids.length === 0) return null
  const hashes = ids.map(hashOfId)
  const found: number[] = []
  let before = ceiling
  for (;;) {
    const rows = await ledger.read<{ first_position: number; ids: unknown }>(
      `select first_position, ids from event_segments where first_position < ? and received_at >= ?
        order by first_position desc limit ?`,
      [before, since, segmentsAtOnce],
    )
    await yieldToEventLoop()
    for (const { first_position: first, ids: stored } of rows) {
      if (mayHold(stored instanceof ArrayBuffer ? new Uint8Array(stored) : new Uint8Array(), hashes)) found.push(first)
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length < segmentsAtOnce) return found
    before = last.first_position
  }
}
