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
 */
import { LRUCache } from 'lru-cache'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Reader } from '../../store/open.ts'
import type { Event } from '../event.ts'
import { type Candidate, Candidates, mayHaveEvents } from './candidates.ts'
import type { FoundEvent, LogQuery, Place } from './log-query.ts'
import { damagedEvent } from './quarantine.ts'
import { hasFacet } from './record.ts'
import { eventsOfRecord } from './record-events.ts'
import { recordBytes } from './segment.ts'
import { decodeText } from './segment-codec.ts'
import { type PlacedBlock, readLogHead } from './segment-rows.ts'

const mostInPart = 128
/** Blocks whose records are held decoded. */
const mostDecoded = 32

/** Events that were read together, and where reading stands after them. */
export interface LogPart {
  events: FoundEvent[]
  /** What comes before this place has been given. A query goes on behind it; it need not be the place of an event. */
  reached: Place
}

/**
 * The events that a query matches, in its order and in parts of at most `mostInPart` events. A part ends where a block
 * has to be opened, so that a reader can end early although nothing was found. Other work goes on between two parts.
 */
export async function* readLogParts(ledger: Reader, query: LogQuery): AsyncGenerator<LogPart, void, undefined> {
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

/** The same as long as `merges` is what it was: at the end of this, and nothing more, once segments were merged. */
export async function* mergeBlocks(
  ledger: Reader,
  query: LogQuery,
  merges: number,
): AsyncGenerator<LogPart | 'merged', void, undefined> {
  const candidates = new Candidates(ledger, query, merges)
  const texts = new BlockTexts()
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
    const block = new OpenBlock(next, query, texts)
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

  constructor(block: Candidate, query: LogQuery, texts: BlockTexts) {
    this.#events = eventsOfBlock(block, query, texts)
    this.advance()
  }

  advance(): void {
    const next = this.#events.next()
    this.head = next.done ? undefined : next.value
  }
}

/** The records of the blocks that were used last. Where very many overlap in time, the others are decoded again. */
class BlockTexts {
  readonly #used = new LRUCache<Candidate, Buffer[]>({ max: mostDecoded })

  /** Null where they are damaged. */
  of(block: Candidate): Buffer[] | null {
    const known = this.#used.get(block)
    if (known !== undefined) return known
    const text = decodeText(block)
    if (text === null) return null
    const records = recordBytes({ text })
    this.#used.set(block, records)
    return records
  }
}

function* eventsOfBlock(stored: Candidate, query: LogQuery, texts: BlockTexts): Generator<FoundEvent> {
  const { says, ordinals } = stored
  if (says === null || texts.of(stored) === null) {
    const found = damagedPlace(stored, query)
    if (isWanted(found, query)) yield found
    return
  }
  for (const ordinal of ordinals) {
    const [at, bytes] = [says.times[ordinal], texts.of(stored)?.[ordinal]]
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

const isWanted = (place: Place, query: LogQuery): boolean =>
  mayHaveEvents(place, query) && (query.after === null || comparePlaces(query.after, place, query.order) < 0)

/** Whether an event meets all conditions of its own. */
export const isMatch = (event: Event, { facets, matches }: Pick<LogQuery, 'facets' | 'matches'>): boolean =>
  facets.every(({ facet, values }) => hasFacet(event, facet, values)) && (matches?.(event) ?? true)

/** Whether a record can have the ids, without parsing it. A text may write any character as `\\u…`. */
const mayHaveIds = (record: Buffer, { ids }: LogQuery): boolean =>
  ids.every((id) => !isPlain(id) || record.includes(id)) || record.includes('\\u')

/** Whether JSON writes these characters as they are. */
const isPlain = (value: string): boolean => /^[\w.:\- ]*$/.test(value)

/** Stands for all events of a block that cannot be read, at the first of its times that is in the window. */
function damagedPlace({ first_at, last_at, first_position, records }: Candidate, query: LogQuery): FoundEvent {
  const at = query.order === 'newest' ? Math.min(last_at, query.until - 1) : Math.max(first_at, query.since)
  return { at, position: first_position, index: 0, event: damagedEvent(at, { first_position, records }) }
}
