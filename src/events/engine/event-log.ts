/**
 * The event log as everything outside of its adapters reads it. Records are appended in a transaction of the ledger
 * (log/append.ts) and get their positions there. Where they are kept after that is the adapter's concern.
 */
import type { LogQuery } from '../log/log-query.ts'
import type { LogPart } from '../log/read-log.ts'
import type { ChainRecord, ReadRecord } from '../log/read-records.ts'

/** Positions: `from` is the first, `before` is behind the last. */
export interface PositionRange {
  from: number
  before: number
}

/** A record with its chain and its number there. */
export interface ChainedRecord extends ReadRecord {
  /** Empty where it is not known, because what says it is damaged. */
  chain: string
  seq: number
}

/** Numbers of a chain: behind `after`, up to `upTo`. `bodies`: with the texts. */
export interface ChainRange {
  after: number
  upTo: number
  bodies: boolean
}

/** Reads chains, one after another. It may hold what it read last, so one is made for each piece of work. */
export interface ChainReader {
  /** In order. Ends early where a number is missing, and with null where a record cannot be read. */
  records(chain: string, range: ChainRange): AsyncGenerator<ChainRecord | null, void, undefined>
  /** The digest of a chain after number `seq`; null if the log does not have it. */
  digestAt(chain: string, seq: number): Promise<string | null>
  /**
   * A number of the chain from which all records can be read that were received since an instant, and perhaps some
   * before; null if there is none. From 0 on: the first that is kept.
   */
  firstSince(chain: string, receivedAt: number): Promise<number | null>
  /**
   * For each number, a point of the chain at most as far, where the log names a digest without reading records: as many
   * of them as can be read now.
   */
  points(chain: string, seqs: readonly number[]): Promise<{ seq: number; digest: string }[]>
}

/** A record as it is stored outside of the ledger. */
export interface StoredRecord extends ChainedRecord {
  /** When the newest record that came to the ledger with it was received, in milliseconds since the epoch. */
  receivedAt: number
  /** The chain's digest before it, where one was named. */
  digestBefore: string | null
  /** The chain's digest behind it, where one was named: at the end of what came together. */
  digestAfter: string | null
  /** What is stored beside the text and is not what the text says. */
  altered: readonly string[]
}

/** What an adapter keeps outside of the ledger's segments: the records below a position. */
export interface OutsideRecords {
  /** All records from this position on are in segments of the ledger. */
  boundary(): Promise<number>
  /** The first position that is there; null where nothing is. */
  oldest(): Promise<number | null>
  /** Whether something is there that was received before an instant, in milliseconds since the epoch. */
  holdsReceivedBefore(instant: number): Promise<boolean>
  /** Where the first record of a chain behind a number is; null where none is there. */
  firstBehind(chain: string, seq: number): Promise<number | null>
  /** By position, whatever is stored. */
  stored(range: PositionRange): AsyncGenerator<StoredRecord, void, undefined>
  /** Removes those below a position. */
  remove(before: number): Promise<void>
}

export interface EventLog {
  /** Null where the ledger holds the whole log. */
  outside: OutsideRecords | null
  /** What a query matches, in its order and in parts: between two of them other work goes on. */
  parts(query: LogQuery): AsyncGenerator<LogPart, void, undefined>
  /** By position; one record for all of a stretch that cannot be read. */
  records(range: PositionRange): AsyncGenerator<ReadRecord, void, undefined>
  /** The same, each with its chain and number. */
  chained(range: PositionRange): AsyncGenerator<ChainedRecord, void, undefined>
  chains(): ChainReader
  /** The position of the oldest record that is kept; null where the log is empty. */
  oldest(): Promise<number | null>
  /** When the first and the last record happened, in milliseconds since the epoch; null where the log is empty. */
  times(): Promise<{ first: number; last: number } | null>
  /** The first instant from `from` on at which there may be a record; null where there is none. */
  nextTime(from: number): Promise<number | null>
  /** When the record at a position happened; null where the log has none there. */
  timeAt(position: number): Promise<number | null>
  /** Positions between which all records lie that are behind a position and may have happened in a window. */
  arrived(behind: number, window: { from: number; until: number }): Promise<{ first: number; last: number } | null>
}
