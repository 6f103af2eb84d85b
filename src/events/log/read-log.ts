/**
 * Reads events from the log in the order of their time. Blocks overlap in time where events arrived late, so reading is
 * a merge: blocks are opened in the order in which their first possible event comes, and an event is given once no block
 * that is still closed can hold an earlier one.
 *
 *   1. candidates: blocks in the window whose facets, and whose segment's id hashes, can match; some at a time
 *   2. of a candidate, what it says of its records is read; one without a record that can match is not opened
 *   3. a block is opened when its range reaches the best event at hand; its records are parsed only as they are needed
 *   4. events before the place where reading began, or not matching, are left out
 *
 * Events of the same millisecond are in the order of their positions. What arrives after reading began is not seen: its
 * position is not below the ceiling. Merging segments moves blocks but no event: reading begins again behind the last
 * event given.
 *
 * SQL text: the order, the bitmaps and the choice of the index are what makes this fast.
 */
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import { storedBytes } from '../../store/damage/stored-text.ts'
import type { Database } from '../../store/open.ts'
import type { Row, Statement } from '../../store/statement.ts'
import type { Event } from '../event.ts'
import { type BlockPlaces, mayHaveTags, tagOf } from './block-places.ts'
import { blocksWith, hashOfId } from './id-hashes.ts'
import { damagedEvent } from './quarantine.ts'
import { type FacetName, hasFacet } from './record.ts'
import { eventsOfRecord } from './record-events.ts'
import { recordBytes } from './segment.ts'
import { decodePlaces, decodeText } from './segment-codec.ts'
import { anyFacet, type PlacedBlock, placeColumns, placedBlock, readLogHead } from './segment-rows.ts'

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
/** Candidates are read in growing numbers, as many are needed where few match. */
const fewestAtOnce = 16
const mostAtOnce = 256
const bodiesAtOnce = 16
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
  const candidates = new Candidates(ledger, query, merges)
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
    if (next.ordinals.length === 0) continue
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

  constructor(block: Candidate, query: LogQuery) {
    this.#events = eventsOfBlock(block, query)
    this.advance()
  }

  advance(): void {
    const next = this.#events.next()
    this.head = next.done ? undefined : next.value
  }
}

function* eventsOfBlock(stored: Candidate, query: LogQuery): Generator<FoundEvent> {
  const { says, ordinals } = stored
  const text = says === null ? null : decodeText(stored)
  if (says === null || text === null) {
    const found = damagedPlace(stored, query.order)
    if (isWanted(found, query)) yield found
    return
  }
  const records = recordBytes({ text })
  for (const ordinal of ordinals) {
    const [at, bytes] = [says.times[ordinal], records[ordinal]]
    if (at === undefined || bytes === undefined) continue
    const position = stored.first_position + ordinal
    const quarantine = says.quarantined.get(ordinal)
    if (quarantine === undefined && !mayHaveIds(bytes, query)) continue
    const events = eventsOfRecord({ text: bytes.toString(), at, quarantine })
    const found = events.map((each, index) => ({ at, position, index, ...each }))
    if (query.order === 'newest') found.reverse()
    for (const each of found) if (isWanted(each, query) && isMatch(each.event, query)) yield each
  }
}

/** A block that can match. */
interface Candidate extends PlacedBlock {
  /** What it says of its records; null where that is damaged. */
  says: BlockPlaces | null
  /** Which of its records can match, in the order asked for; none where nothing has to be opened. */
  ordinals: readonly number[]
}

const damaged = [0]

function candidateOf(block: PlacedBlock, query: LogQuery, tags: readonly (readonly number[])[]): Candidate {
  const says = decodePlaces(block)
  if (says === null) return { ...block, says, ordinals: damaged }
  const { times } = says
  const ordinals: number[] = []
  for (const [ordinal, own] of says.tags.entries()) {
    const position = block.first_position + ordinal
    if (mayHaveEvents({ at: times[ordinal] ?? 0, position }, query) && mayHaveTags(own, tags)) ordinals.push(ordinal)
  }
  ordinals.sort((one, other) => (times[one] ?? 0) - (times[other] ?? 0) || one - other)
  if (query.order === 'newest') ordinals.reverse()
  return { ...block, says, ordinals }
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

/** Whether a record can have the ids, without parsing it. A text may write any character as `\\u…`. */
const mayHaveIds = (record: Buffer, { ids }: LogQuery): boolean =>
  ids.every((id) => !isPlain(id) || record.includes(id)) || record.includes('\\u')

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
  readonly #merges: number
  readonly #tags: readonly (readonly number[])[]
  #waiting: Candidate[] = []
  #atOnce = fewestAtOnce
  #last: PlacedBlock | null = null
  #done = false
  #index: readonly Statement[] | null = null

  constructor(ledger: Database, query: LogQuery, merges: number) {
    this.#ledger = ledger
    this.#query = query
    this.#merges = merges
    this.#tags = query.facets.map(({ facet, values }) => values.map((value) => tagOf(facet, value)))
  }

  async peek(): Promise<Candidate | null | 'merged'> {
    if (this.#waiting.length === 0 && !this.#done) {
      this.#index ??= await chooseIndex(this.#ledger, this.#query)
      const rows = await this.#read()
      if (rows.some(({ merges }) => merges !== this.#merges)) return 'merged'
      const blocks = rows.map(placedBlock)
      this.#done = rows.length < this.#atOnce
      this.#atOnce = Math.min(mostAtOnce, this.#atOnce * 2)
      this.#last = blocks.at(-1) ?? this.#last
      this.#waiting = blocks.map((block) => candidateOf(block, this.#query, this.#tags))
    }
    const [next] = this.#waiting
    if (next === undefined) return null
    if (next.ordinals.length > 0 && next.body.length === 0) return (await this.#readBodies()) ? next : 'merged'
    return next
  }

  take(): void {
    this.#waiting.shift()
  }

  /** Those of the next candidates; false where segments were merged meanwhile. */
  async #readBodies(): Promise<boolean> {
    const wanted = this.#waiting.filter(({ ordinals }) => ordinals.length > 0).slice(0, bodiesAtOnce)
    const rows = await this.#ledger.read(
      `select first_position, body, (select merges from event_log) as merges from event_blocks
        where first_position in (select value from json_each(?))`,
      [JSON.stringify(wanted.map((block) => block.first_position))],
    )
    const bodies = new Map(rows.map((row) => [Number(row.first_position), storedBytes(row.body)]))
    for (const block of wanted) block.body = bodies.get(block.first_position) ?? noBody
    return rows.every(({ merges }) => merges === this.#merges)
  }

  async #read(): Promise<Row[]> {
    const { order, since, until, ceiling, after } = this.#query
    const newest = order === 'newest'
    const last = this.#last
    const conditions: Statement[] = [
      { sql: 'c.first_position < ?', args: [ceiling] },
      { sql: 'c.last_at >= ? and c.first_at < ?', args: [since, until] },
      ...(this.#index ?? []),
    ]
    if (after !== null) conditions.push({ sql: newest ? 'c.first_at <= ?' : 'c.last_at >= ?', args: [after.at] })
    if (last !== null) {
      conditions.push(
        newest
          ? { sql: '(c.last_at, c.first_position) < (?, ?)', args: [last.last_at, last.first_position] }
          : { sql: '(c.first_at, c.first_position) > (?, ?)', args: [last.first_at, last.first_position] },
      )
    }
    const order_by = (table: 'b' | 'c') =>
      newest ? `${table}.last_at desc, ${table}.first_position desc` : `${table}.first_at, ${table}.first_position`
    // Chosen first, so that what is sorted is small.
    return await this.#ledger.read(
      `select ${placeColumns}, (select merges from event_log) as merges from event_blocks b where b.first_position in (
          select c.first_position from event_blocks c
          where ${conditions.map(({ sql }) => sql).join(' and ')} order by ${order_by('c')} limit ?)
        order by ${order_by('b')}`,
      [...conditions.flatMap(({ args }) => args), this.#atOnce],
    )
  }
}

/** In the place of one that is no longer there: it is damaged. */
const noBody = new Uint8Array(1)

/** `list`: the values, and that of a segment without an index of its values. */
interface FacetList {
  facet: string
  list: string
}

/** Conditions: the ids, or the facet with few rows if there is one, find the blocks, and the other facets are checked. */
async function chooseIndex(ledger: Database, query: LogQuery): Promise<Statement[]> {
  const { facets, ids } = query
  const counted = await Promise.all(
    facets.map(async ({ facet, values }) => {
      const list = JSON.stringify([...values, ''])
      const [row] = await ledger.read<{ rows: number }>(
        `select count(*) as rows from (select 1 from segment_facets
          where facet in (?, '${anyFacet}') and value in (select value from json_each(?)) limit ?)`,
        [facet, list, fewFacetRows + 1],
      )
      return { facet, list, rows: row?.rows ?? 0 }
    }),
  )
  const fewest = counted.toSorted((one, other) => one.rows - other.rows)[0]
  if (ids.length > 0) return [inBlocks(await blocksWithIds(ledger, query)), ...counted.map(checkedFor)]
  const finds = fewest !== undefined && fewest.rows <= fewFacetRows ? fewest : null
  return counted.map((each) => (each === finds ? foundBy(each) : checkedFor(each)))
}

const inBlocks = (segments: readonly [first: number, blocks: number][]): Statement => ({
  sql: `c.first_position in (select w.first_position from json_each(?) s
    cross join event_blocks w on w.segment = s.value ->> 0 and ((s.value ->> 1) >> w.ordinal) & 1)`,
  args: [JSON.stringify(segments)],
})

const foundBy = ({ facet, list }: FacetList): Statement => ({
  sql: `c.first_position in (select w.first_position from segment_facets f
    cross join event_blocks w on w.segment = f.segment and (f.blocks >> w.ordinal) & 1
    where f.facet in (?, '${anyFacet}') and f.value in (select value from json_each(?)))`,
  args: [facet, list],
})

const checkedFor = ({ facet, list }: FacetList): Statement => ({
  sql: `exists (select 1 from segment_facets f where f.facet in (?, '${anyFacet}') and f.value in (select value from json_each(?))
    and f.segment = c.segment and (f.blocks >> c.ordinal) & 1)`,
  args: [facet, list],
})

/**
 * Segments that may hold all ids, each with its blocks that may (bit n for block n). What happened since an instant was
 * received since then.
 */
async function blocksWithIds(ledger: Database, { ids, ceiling, since }: LogQuery): Promise<[number, number][]> {
  const hashes = ids.map(hashOfId)
  const found: [number, number][] = []
  let before = ceiling
  for (;;) {
    const rows = await ledger.read<{ first_position: number; ids: unknown }>(
      `select first_position, ids from event_segments where first_position < ? and received_at >= ?
        order by first_position desc limit ?`,
      [before, since, segmentsAtOnce],
    )
    await yieldToEventLoop()
    for (const { first_position: first, ids: stored } of rows) {
      const blocks = blocksWith(storedBytes(stored) ?? new Uint8Array(), hashes)
      if (blocks !== 0) found.push([first, blocks])
    }
    const last = rows.at(-1)
    if (last === undefined || rows.length < segmentsAtOnce) return found
    before = last.first_position
  }
}
