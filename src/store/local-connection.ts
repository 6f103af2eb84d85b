/**
 * One connection to a libSQL file, which keeps the statements it has prepared. To prepare a statement and to ask for its
 * columns takes several times as long as to run it, and @libsql/client does both for every run; otherwise this behaves as
 * a client of one connection does: the same native library, values, and errors.
 *
 *   - Everything is done before a call returns, so no call finds a transaction of another.
 *   - Kept are the statements that were used last and that change no table's form; whatever else is run clears them.
 *   - What begins and ends a transaction is kept for good: a `begin` that found the file busy is under way for SQLite
 *     until it is run again, and no transaction could be committed beside it.
 *   - A kept statement still has the values of its last run: it is run with as many values or prepared anew, and not kept
 *     where they are large.
 */
import type Libsql from 'libsql'
import { LRUCache } from 'lru-cache'
import type { Row, Statement } from './statement.ts'

const keptAtMost = 200
const largestKeptCharacters = 262_144
const keepable = /^\s*(select|insert|update|delete|with|begin|commit|rollback)\b/i
const bounds = ['begin immediate', 'commit', 'rollback']

interface Prepared {
  native: Libsql.Statement<[Statement['args']]>
  /** Names of the columns it gives; null where it gives no rows. */
  columns: string[] | null
  /** How many values it is run with. */
  values: number
}

interface Rows {
  columns: readonly string[]
  rows: unknown[][]
}

/** Whether a commit waits for the disk; SQLite's own words. */
export type Synchronous = 'full' | 'normal'

type ErrorMaker = new (message: string, code: string, extendedCode?: string, rawCode?: number, cause?: Error) => Error

export interface LocalConnectionOptions {
  native: Libsql.Database
  /** libSQL's own class of what the native part throws, and what callers know it by. */
  NativeError: typeof Libsql.SqliteError
  LibsqlError: ErrorMaker
}

export class LocalConnection {
  readonly #options: LocalConnectionOptions
  readonly #kept = new LRUCache<string, Prepared>({ max: keptAtMost })
  readonly #bounds = new Map<string, Prepared>()
  #characters = 0
  #synchronous: Synchronous = 'full'

  constructor(options: LocalConnectionOptions) {
    this.#options = options
  }

  /** Characters of all values that statements were given until now. */
  get characters(): number {
    return this.#characters
  }

  /**
   * Runs statements in one write transaction and gives the rows of the last; any failure undoes all. `full` waits until
   * the disk has it, and all that was written before.
   */
  transact(statements: readonly Statement[], synchronous: Synchronous = 'full'): Row[] {
    const { native } = this.#options
    // Left by a failure whose undoing failed too.
    if (native.open && native.inTransaction) this.run('rollback')
    this.#wait(synchronous)
    this.run('begin immediate')
    try {
      let rows: Row[] = []
      for (const { sql, args } of statements) rows = this.run(sql, args)
      this.run('commit')
      return rows
    } catch (error) {
      this.#undo()
      throw error
    }
  }

  /** Runs one statement and gives its rows. Throws a LibsqlError. */
  run(sql: string, args: Statement['args'] = []): Row[] {
    const { columns, rows } = this.#run(sql, args)
    return rows.map((values) => {
      const row: Row = {}
      for (const [index, name] of columns.entries()) row[name] = values[index]
      return row
    })
  }

  /** The same with each row as a list of its values, in the order of the columns. */
  runForValues(sql: string, args: Statement['args']): unknown[][] {
    return this.#run(sql, args).rows
  }

  #run(sql: string, args: Statement['args']): Rows {
    const { native, NativeError, LibsqlError } = this.#options
    // Native code would take a closed one as it is.
    if (!native.open) throw new LibsqlError('The client is closed', 'CLIENT_CLOSED')
    const characters = requireValues(args)
    const large = characters > largestKeptCharacters
    this.#characters += characters
    try {
      return rowsOf(this.#prepared(sql, args.length), args)
    } catch (error) {
      if (!(error instanceof NativeError)) throw error
      const { message, code, rawCode } = error
      throw new LibsqlError(message, /^SQLITE_[A-Z]+/.exec(code)?.[0] ?? 'SQLITE_UNKNOWN', code, rawCode, error)
    } finally {
      if (large) this.#kept.delete(sql)
      if (!keepable.test(sql)) this.#kept.clear()
    }
  }

  close(): void {
    this.#kept.clear()
    this.#bounds.clear()
    if (this.#options.native.open) this.#options.native.close()
  }

  /** Past `run`: it takes effect when it is prepared, and statements that are kept stay as they are. */
  #wait(synchronous: Synchronous): void {
    if (synchronous === this.#synchronous || !this.#options.native.open) return
    this.#options.native.exec(`pragma synchronous = ${synchronous}`)
    this.#synchronous = synchronous
  }

  #undo(): void {
    try {
      if (this.#options.native.inTransaction) this.run('rollback')
    } catch {
      // What made the transaction fail is told; the next one undoes it before it begins.
    }
  }

  #prepared(sql: string, values: number): Prepared {
    const all = bounds.includes(sql) ? this.#bounds : this.#kept
    const kept = all.get(sql)
    if (kept?.values === values) return kept
    const native = this.#options.native.prepare<[Statement['args']]>(sql)
    const prepared = { native, columns: readerColumns(native), values }
    all.set(sql, prepared)
    return prepared
  }
}

function readerColumns(native: Prepared['native']): string[] | null {
  if (!native.reader) return null
  native.raw(true).safeIntegers(true)
  return native.columns().map(({ name }) => name)
}

function rowsOf({ native, columns }: Prepared, args: Statement['args']): Rows {
  if (columns === null) {
    native.run(args)
    return { columns: [], rows: [] }
  }
  const rows = native.all(args) as unknown[][]
  for (const values of rows) {
    for (const [index, value] of values.entries()) values[index] = plainValue(value)
  }
  return { columns, rows }
}

function plainValue(value: unknown): unknown {
  if (typeof value === 'bigint') {
    const number = Number(value)
    if (Number.isSafeInteger(number)) return number
    throw new RangeError('Received integer which cannot be safely represented as a JavaScript number')
  }
  return value instanceof Buffer ? value.buffer : value
}

/**
 * Gives the characters of all values together. Throws for what no database can hold: at a boolean, which a pending change
 * that somebody altered may have, native code would end the process.
 */
function requireValues(args: Statement['args']): number {
  let characters = 0
  for (const value of args) {
    if (typeof value === 'string') characters += value.length
    else if (typeof value === 'number') {
      if (!Number.isFinite(value)) throw new RangeError('Only finite numbers can be passed as arguments')
    } else if (value !== null) throw new TypeError(`No ${typeof value} can be passed as an argument`)
  }
  return characters
}
