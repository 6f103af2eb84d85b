/**
 * The event log of a ledger whose older records were moved to ClickHouse (move.ts): those below the first segment of
 * the ledger are read there, all others in the ledger. While something reads, records may move: then it reads again
 * where it was, by the new boundary.
 */
import { Failure } from '../../failure.ts'
import type { Reader } from '../../store/open.ts'
import type { ChainedRecord, ChainReader, EventLog, PositionRange } from '../engine/event-log.ts'
import { segmentLog } from '../engine/segment-log.ts'
import type { FoundEvent, LogQuery, Place } from '../log/log-query.ts'
import { comparePlaces, type LogPart, mergeBlocks } from '../log/read-log.ts'
import type { ReadRecord } from '../log/read-records.ts'
import { readLogHead } from '../log/segment-rows.ts'
import type { Archive } from './archive.ts'

/** The position from which on the records are in the ledger. */
export async function movedUpTo(ledger: Reader): Promise<number> {
  const [row] = await ledger.read<{ first: number | null }>(
    `select coalesce((select min(first_position) from event_segments), (select next_position from event_log)) as first`,
  )
  return row?.first ?? 1
}

export function movedLog(ledger: Reader, archive: Archive): EventLog {
  const recent = segmentLog(ledger)
  const archived = (range: PositionRange, below: number) => archive.chained(range, below)
  return {
    outside: {
      boundary: () => movedUpTo(ledger),
      oldest: async () => (await archive.bounds(await movedUpTo(ledger)))?.oldest ?? null,
      holdsReceivedBefore: (instant) => archive.holdsReceivedBefore(instant),
      firstBehind: async (chain, seq) => await archive.firstBehind(chain, seq, await movedUpTo(ledger)),
      stored: (range) => archive.stored(range),
      remove: (before) => archive.table.remove(before),
    },
    parts: (query) => partsOfBoth(ledger, archive, query),
    records: (range) => inOrder<ReadRecord>(ledger, range, archived, recent.records),
    chained: (range) => inOrder<ChainedRecord>(ledger, range, archived, recent.chained),
    chains: () => chainsOfBoth(ledger, archive, recent),
    async oldest() {
      return (await archive.bounds(await movedUpTo(ledger)))?.oldest ?? (await recent.oldest())
    },
    async times() {
      const both = [await recent.times(), await archive.bounds(await movedUpTo(ledger))].filter((each) => each !== null)
      if (both.length === 0) return null
      return { first: Math.min(...both.map(({ first }) => first)), last: Math.max(...both.map(({ last }) => last)) }
    },
    async nextTime(from) {
      const inLedger = await recent.nextTime(from)
      const moved = await archive.nextTime(from, await movedUpTo(ledger))
      return inLedger === null || moved === null ? (inLedger ?? moved) : Math.min(inLedger, moved)
    },
    async arrived(behind, window) {
      const found = await recent.arrived(behind, window)
      const boundary = await movedUpTo(ledger)
      if (behind + 1 >= boundary) return found
      return { first: behind + 1, last: Math.max(boundary - 1, found?.last ?? 0) }
    },
  }
}

type Read<Item> = (range: PositionRange, below: number) => AsyncGenerator<Item, void, undefined>

/** Where a record, or the stretch that it stands for, ends. */
const behind = ({ position, damaged }: ReadRecord): number => position + (damaged?.records ?? 1)

async function* inOrder<Item extends ReadRecord & { chain?: string }>(
  ledger: Reader,
  { from, before }: PositionRange,
  moved: Read<Item>,
  recent: (range: PositionRange) => AsyncGenerator<Item, void, undefined>,
): AsyncGenerator<Item, void, undefined> {
  let next = from
  while (next < before) {
    const boundary = await movedUpTo(ledger)
    if (next < boundary) {
      for await (const record of moved({ from: next, before }, boundary)) {
        yield record
        next = behind(record)
      }
      // Retention has removed what is missing.
      next = Math.max(next, Math.min(boundary, before))
      continue
    }
    for await (const record of recent({ from: next, before })) {
      // A gap, or a record without its chain: its segment may have moved between two reads.
      const isOdd = record.position > next || record.chain === ''
      if (isOdd && (await movedUpTo(ledger)) > next) break
      yield record
      next = behind(record)
    }
    if ((await movedUpTo(ledger)) <= next) return
  }
}

function chainsOfBoth(ledger: Reader, archive: Archive, recent: EventLog): ChainReader {
  const inLedger = recent.chains()
  return {
    async *records(chain, range) {
      let { after } = range
      for (;;) {
        const began = after
        const first = await inLedger.firstSince(chain, Number.MIN_SAFE_INTEGER)
        const isMoved = first === null || after + 1 < first
        const upTo = isMoved ? Math.min(range.upTo, (first ?? Number.MAX_SAFE_INTEGER) - 1) : range.upTo
        const records = isMoved
          ? archive.ofChain(chain, { ...range, after, upTo }, await movedUpTo(ledger))
          : inLedger.records(chain, { ...range, after })
        for await (const record of records) {
          yield record
          if (record === null) return
          after = record.seq
        }
        if (after === began || after >= range.upTo) return
      }
    },
    async digestAt(chain, seq) {
      return (await inLedger.digestAt(chain, seq)) ?? (await archive.digestAt(chain, seq, await movedUpTo(ledger)))
    },
    async firstSince(chain, receivedAt) {
      const first = await inLedger.firstSince(chain, receivedAt)
      return (await archive.firstSince(chain, receivedAt, await movedUpTo(ledger))) ?? first
    },
    async points(chain, seqs) {
      const near = await inLedger.points(chain, seqs)
      // A worker that starts must learn its head while ClickHouse is away too.
      const far = await archive.points(chain, seqs, await movedUpTo(ledger)).catch(noneWhereAway)
      const all = new Map([...far, ...near].map((point) => [point.seq, point]))
      return [...all.values()].toSorted((one, other) => one.seq - other.seq)
    },
  }
}

function noneWhereAway(error: unknown): [] {
  if (error instanceof Failure && error.code === 'dependency_unavailable') return []
  throw error
}

async function* partsOfBoth(
  ledger: Reader,
  archive: Archive,
  query: LogQuery,
): AsyncGenerator<LogPart, void, undefined> {
  let after = query.after
  for (;;) {
    const { merges } = await readLogHead(ledger)
    const rest = { ...query, after }
    const boundary = await movedUpTo(ledger)
    const moved = new Side(archive.parts(rest, boundary), query)
    const recent = new Side(mergeBlocks(ledger, rest, merges), query)
    for (;;) {
      await Promise.all([moved.fill(), recent.fill()])
      if (moved.isStale || recent.isStale) break
      const part = partOf(moved, recent, query)
      if (part === null) break
      after = part.reached
      yield part
    }
    await Promise.all([moved.end(), recent.end()])
    if ((await readLogHead(ledger)).merges === merges) return
  }
}

/** One of the two, as far as it has been read. */
class Side {
  events: FoundEvent[] = []
  /** All before this has been read; null once everything has been. */
  reached: Place | null = null
  isStale = false
  #isFilled = false
  readonly #parts: AsyncGenerator<LogPart | 'merged', void, undefined>
  readonly #query: LogQuery

  constructor(parts: AsyncGenerator<LogPart | 'merged', void, undefined>, query: LogQuery) {
    this.#parts = parts
    this.#query = query
  }

  /** Reads on where all that was read has been given. */
  async fill(): Promise<void> {
    if (this.#isFilled) return
    this.#isFilled = true
    const { done, value } = await this.#parts.next()
    if (value === 'merged') this.isStale = true
    else if (done || value === undefined) this.reached = null
    else {
      this.events.push(...value.events)
      this.reached = value.reached
    }
  }

  /** The events up to a place, which are given now; all where it is null. */
  take(upTo: Place | null): FoundEvent[] {
    const { order } = this.#query
    const end = upTo === null ? -1 : this.events.findIndex((event) => comparePlaces(event, upTo, order) > 0)
    const taken = this.events.splice(0, end === -1 ? this.events.length : end)
    if (this.reached !== null && upTo !== null && comparePlaces(this.reached, upTo, order) <= 0) this.#isFilled = false
    return taken
  }

  async end(): Promise<void> {
    await this.#parts.return(undefined)
  }
}

/** What comes before both of the places that were reached; null where nothing is left. */
function partOf(one: Side, other: Side, { order }: LogQuery): LogPart | null {
  const places = [one.reached, other.reached].filter((place) => place !== null)
  const reached = places.toSorted((a, b) => comparePlaces(a, b, order))[0] ?? null
  const events = [...one.take(reached), ...other.take(reached)].toSorted((a, b) => comparePlaces(a, b, order))
  const last = reached ?? events.at(-1)
  if (last === undefined) return null
  const { at, position, index } = last
  return { events, reached: { at, position, index } }
}
