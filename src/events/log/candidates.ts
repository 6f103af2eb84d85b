/**
 * The blocks that can match a query, in the order in which their first possible event comes (read-log.ts).
 *
 * SQL text: the order, the bitmaps and the choice of the index are what makes this fast.
 */
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import { storedBytes } from '../../store/damage/stored-text.ts'
import type { Reader } from '../../store/open.ts'
import type { Row, Statement } from '../../store/statement.ts'
import { type BlockPlaces, mayHaveTags, tagOf } from './block-places.ts'
import { blocksWith, hashOfId } from './id-hashes.ts'
import type { LogQuery, Place } from './log-query.ts'
import { decodePlaces } from './segment-codec.ts'
import { anyFacet, mergesNow, type PlacedBlock, placeColumns, placedBlock } from './segment-rows.ts'

/** How many rows of a facet's index are few enough to begin with them. */
const fewFacetRows = 500
/** Candidates are read in growing numbers, as many are needed where few match. */
const fewestAtOnce = 16
const mostAtOnce = 64
const bodiesAtOnce = 16
/** Segments whose id hashes are read at a time. */
const segmentsAtOnce = 64

/** A block that can match. */
export interface Candidate extends PlacedBlock {
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
  for (const [ordinal, at] of times.entries()) {
    const position = block.first_position + ordinal
    if (mayHaveTags(says.tags, ordinal, tags) && mayHaveEvents({ at, position }, query)) ordinals.push(ordinal)
  }
  ordinals.sort((one, other) => (times[one] ?? 0) - (times[other] ?? 0) || one - other)
  if (query.order === 'newest') ordinals.reverse()
  return { ...block, says, ordinals }
}

/** Whether a record is in the window, and not before the place where reading began; of its own record some may come. */
export const mayHaveEvents = (
  { at, position }: Pick<Place, 'at' | 'position'>,
  { since, until, ceiling, after, order }: LogQuery,
): boolean =>
  at >= since &&
  at < until &&
  position < ceiling &&
  (after === null || (order === 'newest' ? at <= after.at : at >= after.at))

/** Blocks that can match, in the order in which their first possible event comes. */
export class Candidates {
  readonly #ledger: Reader
  readonly #query: LogQuery
  readonly #merges: number
  readonly #tags: readonly (readonly number[])[]
  #waiting: Candidate[] = []
  #atOnce = fewestAtOnce
  #last: PlacedBlock | null = null
  #done = false
  #index: readonly Statement[] | null = null

  constructor(ledger: Reader, query: LogQuery, merges: number) {
    this.#ledger = ledger
    this.#query = query
    this.#merges = merges
    this.#tags = query.facets.map(({ facet, values }) => values.map((value) => tagOf(facet, value)))
  }

  async peek(): Promise<Candidate | null | 'merged'> {
    if (this.#waiting.length === 0 && !this.#done) {
      this.#index ??= await chooseIndex(this.#ledger, this.#query)
      const rows = await this.#read()
      // What they say of their records is read at once: a few milliseconds.
      await yieldToEventLoop()
      if (rows.some(({ merges }) => merges !== this.#merges)) return 'merged'
      const blocks = rows.map(placedBlock)
      this.#done = rows.length < this.#atOnce
      this.#atOnce = Math.min(mostAtOnce, this.#atOnce * 2)
      this.#last = blocks.at(-1) ?? this.#last
      this.#waiting = blocks.map((block) => candidateOf(block, this.#query, this.#tags))
    }
    const [next] = this.#waiting
    if (next === undefined) return null
    if (next.ordinals.length === 0 || next.body.length > 0) return next
    if (!(await this.#readBodies())) return 'merged'
    return this.#waiting[0] === next ? next : await this.peek()
  }

  take(): void {
    this.#waiting.shift()
  }

  /** Those of the next candidates; false where segments were merged meanwhile. What retention has removed is left out. */
  async #readBodies(): Promise<boolean> {
    const wanted = this.#waiting.filter(({ ordinals }) => ordinals.length > 0).slice(0, bodiesAtOnce)
    // One row at least: it says whether segments were merged.
    const rows = await this.#ledger.read(
      `select b.first_position, b.body, ${mergesNow} as merges from (select 1) left join event_blocks b
        on b.first_position in (select value from json_each(?))`,
      [JSON.stringify(wanted.map((block) => block.first_position))],
    )
    if (rows.some(({ merges }) => merges !== this.#merges)) return false
    const bodies = new Map(rows.map((row) => [row.first_position, storedBytes(row.body) ?? noBody]))
    for (const block of wanted) block.body = bodies.get(block.first_position) ?? noBody
    const removed = new Set(wanted.filter(({ first_position: first }) => !bodies.has(first)))
    this.#waiting = this.#waiting.filter((block) => !removed.has(block))
    return true
  }

  async #read(): Promise<Row[]> {
    const { order, since, until, ceiling, after } = this.#query
    const newest = order === 'newest'
    const last = this.#last
    const conditions: Statement[] = [
      { sql: 'c.first_position < ?', args: [ceiling] },
      { sql: 'c.last_at >= ? and c.first_at < ?', args: [since, until] },
      // An altered time that is no such number has no place in any order; `gatehouse events verify` names it.
      { sql: `${isTime('c.first_at')} and ${isTime('c.last_at')}`, args: [] },
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
      `select ${placeColumns}, ${mergesNow} as merges from event_blocks b where b.first_position in (
          select c.first_position from event_blocks c
          where ${conditions.map(({ sql }) => sql).join(' and ')} order by ${order_by('c')} limit ?)
        order by ${order_by('b')}`,
      [...conditions.flatMap(({ args }) => args), this.#atOnce],
    )
  }
}

const isTime = (column: string): string =>
  `typeof(${column}) = 'integer' and ${column} between 0 and ${Number.MAX_SAFE_INTEGER}`

/** In the place of one that is no blob: it is damaged. */
const noBody = new Uint8Array(1)

/** `list`: the values, and that of a segment without an index of its values. */
interface FacetList {
  facet: string
  list: string
}

/** Conditions: the ids, or the facet with few rows if there is one, find the blocks, and the other facets are checked. */
async function chooseIndex(ledger: Reader, query: LogQuery): Promise<Statement[]> {
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
async function blocksWithIds(ledger: Reader, { ids, ceiling, since }: LogQuery): Promise<[number, number][]> {
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
