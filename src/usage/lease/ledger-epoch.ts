/**
 * What a control plane remembers of the ledger, by which an older copy that was put in its place is known: each counts
 * the transactions it made that others rest on (grants, settlements, hellos) in a row of its own, and reads those of the others
 * every second. A ledger that has fewer of anybody's than are remembered has lost some. A row each, because in one that
 * all share the first to write after a restore would make up for what the others have lost.
 *
 * The comparison is part of the statements themselves, of the reads that decide as of the transactions that write.
 * Gateways are told the counts with each heartbeat and say them when they connect, for control planes that start meanwhile.
 */
import { type Database, databaseTime } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'

export interface TransactionCount {
  writer: string
  written: number
}

/** Rows that have not grown for so long are not remembered any more, nor those beyond so many that have grown since. */
const readWithinMs = 86_400_000
const maxRead = 50
/**
 * Rows that have not grown for so long are deleted. Whoever is connected, or runs, has not remembered them for days; a
 * gateway that was cut off for longer and still runs takes the ledger for restored, which costs a hello of each.
 */
const keptMs = 30 * 86_400_000

/** An SQL expression of a list of epoch, as `known` gives it: whether the ledger has fewer of anybody's. */
export const isBehind = (epoch: string): string => `exists (select 1 from json_each(${epoch}) known
  left join ledger_marks m on m.writer = known.value ->> 'writer'
  where coalesce(m.written, 0) < known.value ->> 'written')`

export class LedgerEpoch {
  readonly #writer: string
  /** How many transactions of this process are known to have been made: there may be more, of which no answer came. */
  #made = 0
  #read: readonly TransactionCount[] = []

  constructor(writer: string) {
    this.#writer = writer
  }

  /** What the ledger must have, or more. */
  get known(): TransactionCount[] {
    const own = Math.max(
      this.#made,
      ...this.#read.map(({ writer, written }) => (writer === this.#writer ? written : 0)),
    )
    const others = this.#read.filter(({ writer }) => writer !== this.#writer)
    return own === 0 ? others : [...others, { writer: this.#writer, written: own }]
  }

  /** As SQL expressions take it. */
  get text(): string {
    return JSON.stringify(this.known)
  }

  /**
   * Counts the transaction that it is part of; after one that was made `made` is to be called. In a ledger that lacks some
   * nothing is counted, which would make up for them.
   */
  count(): Statement {
    return {
      sql: `insert into ledger_marks (writer, written, at) select ?1, 1, ${databaseTime} where not ${isBehind('?2')}
        on conflict (writer) do update set written = written + 1, at = excluded.at`,
      args: [this.#writer, this.text],
    }
  }

  made(): void {
    this.#made += 1
  }

  /** Removes rows of control planes that ended long ago; to be run every few days or more often, which keeps its own. */
  tidy(): Statement[] {
    return [
      { sql: `update ledger_marks set at = ${databaseTime} where writer = ?`, args: [this.#writer] },
      { sql: `delete from ledger_marks where at < ${databaseTime} - ?`, args: [keptMs] },
    ]
  }

  /** Reads what the ledger has; false where that is less than was known, which stays known then. */
  async read(ledger: Pick<Database, 'read'>): Promise<boolean> {
    const rows = await ledger.read<{ behind: number; writer: string | null; written: number }>(
      `select ${isBehind('?1')} as behind, writer, written from (select 1) left join (
        select writer, written from ledger_marks where at > ${databaseTime} - ${readWithinMs}
          order by at desc limit ${maxRead}) on true`,
      [this.text],
    )
    if (rows[0]?.behind !== 0) return false
    this.#read = rows.flatMap(({ writer, written }) => (writer === null ? [] : [{ writer, written }]))
    return true
  }
}
