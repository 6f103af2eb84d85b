/**
 * Detects a ledger that was restored from an older copy. Each control plane counts its own transactions that others
 * rely on (grants, settlements, registrations) in a row of its own, and reads the rows of the others every second. A
 * ledger with a lower count than a remembered one has lost transactions. Each has its own row because in a shared row
 * the first write after a restore would hide the loss.
 *
 * The comparison is part of the SQL statements themselves, both of reads that decide and of transactions that write.
 * Gateways get the counts with each heartbeat and with each grant, and send them when they connect, for control planes
 * that start meanwhile.
 */
import { type Database, databaseTime } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'

export interface TransactionCount {
  writer: string
  written: number
}

/** The counts of both; of each writer the higher one. */
export function mergeCounts(
  some: readonly TransactionCount[],
  others: readonly TransactionCount[],
): TransactionCount[] {
  const merged = new Map(some.map(({ writer, written }) => [writer, written]))
  for (const { writer, written } of others) merged.set(writer, Math.max(written, merged.get(writer) ?? 0))
  return [...merged].map(([writer, written]) => ({ writer, written }))
}

/** How long an unchanged row is still remembered, and how many of the latest rows. */
const readWithinMs = 86_400_000
const maxRead = 50
/**
 * How long an unchanged row is kept in the ledger. No running control plane or gateway remembers it by then, except a
 * gateway that was disconnected for longer: it takes the ledger for restored, which costs one registration of each
 * worker.
 */
const keptMs = 30 * 86_400_000

/** An SQL expression over the counts as `known` gives them: whether the ledger has a lower count of any writer. */
export const isBehind = (epoch: string): string => `exists (select 1 from json_each(${epoch}) known
  left join ledger_epoch m on m.writer = known.value ->> 'writer'
  where coalesce(m.written, 0) < known.value ->> 'written')`

export class LedgerEpoch {
  readonly #writer: string
  /** Transactions of this process that are known to be committed. There may be more whose answer was lost. */
  #made = 0
  #read: readonly TransactionCount[] = []

  constructor(writer: string) {
    this.#writer = writer
  }

  /** The counts that the ledger must have at least. */
  get known(): TransactionCount[] {
    const own = Math.max(
      this.#made,
      ...this.#read.map(({ writer, written }) => (writer === this.#writer ? written : 0)),
    )
    const others = this.#read.filter(({ writer }) => writer !== this.#writer)
    return own === 0 ? others : [...others, { writer: this.#writer, written: own }]
  }

  /** The counts as the SQL expressions take them. */
  get text(): string {
    return JSON.stringify(this.known)
  }

  /**
   * Counts the transaction that contains this statement. Call `made` after the commit. Counts nothing in a ledger that
   * is behind, since that would hide the loss.
   */
  count(): Statement {
    return {
      sql: `insert into ledger_epoch (writer, written, at) select ?1, 1, ${databaseTime} where not ${isBehind('?2')}
        on conflict (writer) do update set written = written + 1, at = excluded.at`,
      args: [this.#writer, this.text],
    }
  }

  made(): void {
    this.#made += 1
  }

  /**
   * Deletes rows of control planes that ended long ago. Run it every few days or more often: it also keeps the own
   * row.
   */
  tidy(): Statement[] {
    return [
      { sql: `update ledger_epoch set at = ${databaseTime} where writer = ?`, args: [this.#writer] },
      { sql: `delete from ledger_epoch where at < ${databaseTime} - ?`, args: [keptMs] },
    ]
  }

  /** Reads the counts. Returns false, and keeps the known ones, if the ledger has less. */
  async read(ledger: Pick<Database, 'read'>): Promise<boolean> {
    const rows = await ledger.read<{ behind: number; writer: string | null; written: number }>(
      `select ${isBehind('?1')} as behind, writer, written from (select 1) left join (
        select writer, written from ledger_epoch where at > ${databaseTime} - ${readWithinMs}
          order by at desc limit ${maxRead}) on true`,
      [this.text],
    )
    if (rows[0]?.behind !== 0) return false
    this.#read = rows.flatMap(({ writer, written }) => (writer === null ? [] : [{ writer, written }]))
    return true
  }
}
