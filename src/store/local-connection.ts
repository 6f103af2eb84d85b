/**
 * One connection to a libSQL file, which keeps prepared statements. Preparing a statement and asking for its columns
 * takes several times as long as running it, and @libsql/client does both for every run. Otherwise this behaves like
 * a client with one connection: the same native library, values, and errors.
 *
 * - Everything is done before a call returns, so no call sees a transaction of another.
 * - The most recently used statements that do not change a table's form are kept; any other statement clears them.
 * - Statements that begin and end a transaction are always kept: a `begin` that found the file busy stays active for
 *   SQLite until it is run again, and meanwhile no transaction could be committed.
 * - A kept statement still holds the values of its last run: it is run with as many values or prepared again, and not
 *   kept if they are large.
 */
import type Libsql from 'libsql'
import { LRUCache } from 'lru-cache'
import type { Row, Statement, Values } from './statement.ts'

const keptAtMost = 200
/** How long the transaction of an attempt stays open for another one that goes on from it. */
const attemptMilliseconds = 20
const largestKeptCharacters = 262_144
const keepable = /^\s*(select|insert|update|delete|with|begin|commit|rollback)\b/i
const onlyReads = /^\s*select\b/i
const bounds = ['begin immediate', 'commit', 'rollback']

interface Prepared {
  native: Libsql.Statement<[Statement['args']]>
  /** Names of the columns it returns; null if it returns no rows. */
  columns: string[] | null
  /** How many values it is run with. */
  values: number
}

/** Whether a commit waits for the disk; SQLite's own words. */
export type Synchronous = 'full' | 'normal'

type ErrorMaker = new (message: string, code: string, extendedCode?: string, rawCode?: number, cause?: Error) => Error

export interface LocalConnectionOptions {
  native: Libsql.Database
  /** libSQL's own class for errors of the native part, which callers expect. */
  NativeError: typeof Libsql.SqliteError
  LibsqlError: ErrorMaker
}

export class LocalConnection {
  readonly #options: LocalConnectionOptions
  readonly #kept = new LRUCache<string, Prepared>({ max: keptAtMost })
  readonly #bounds = new Map<string, Prepared>()
  #characters = 0
  /** The statements that an attempt has done, whose transaction is still open. */
  #attempted: Statement[] | null = null
  #attemptEnd: Timer | null = null
  #synchronous: Synchronous = 'full'

  constructor(options: LocalConnectionOptions) {
    this.#options = options
  }

  /** Characters of all values that statements were given until now. */
  get characters(): number {
    return this.#characters
  }

  /**
   * Runs statements in one write transaction and returns the rows of the last; any failure undoes all. `full` waits
   * until the disk has it, and everything written before.
   */
  transact(statements: readonly Statement[], synchronous: Synchronous = 'full'): Row[] {
    const { native } = this.#options
    if (this.#attempted !== null) this.#endAttempt()
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

  /**
   * What a statement finds after others, in a transaction that is undone: by whatever comes next, apart from another
   * attempt that goes on from it, or soon.
   */
  attempt(statements: readonly Statement[], read: Statement): Values {
    if (!this.#goesOn(statements)) {
      this.#endAttempt()
      this.#run('begin immediate', [])
    }
    const done = this.#attempted ?? []
    this.#attempted = done
    try {
      for (const statement of statements.slice(done.length)) {
        this.#run(statement.sql, statement.args)
        done.push(statement)
      }
      const found = this.#run(read.sql, read.args)
      // What writes and is no part of the list must not be there for the next one.
      if (onlyReads.test(read.sql)) this.#attemptEnd ??= setTimeout(() => this.#endAttempt(), attemptMilliseconds)
      else this.#endAttempt()
      return found
    } catch (error) {
      this.#endAttempt()
      throw error
    }
  }

  /** Whether the open attempt has done the first of these statements and no other. */
  #goesOn(statements: readonly Statement[]): boolean {
    return this.#attempted?.every((statement, index) => statement === statements[index]) === true
  }

  #endAttempt(): void {
    clearTimeout(this.#attemptEnd ?? undefined)
    this.#attemptEnd = null
    this.#attempted = null
    this.#undo()
  }

  /** Runs one statement and returns its rows. Throws a LibsqlError. */
  run(sql: string, args: Statement['args'] = []): Row[] {
    if (this.#attempted !== null) this.#endAttempt()
    const { columns, rows } = this.#run(sql, args)
    return rows.map((values) => {
      const row: Row = {}
      for (const [index, name] of columns.entries()) row[name] = values[index]
      return row
    })
  }

  /** The same with each row as a list of its values, in the order of the columns. */
  runForValues(sql: string, args: Statement['args']): unknown[][] {
    if (this.#attempted !== null) this.#endAttempt()
    return this.#run(sql, args).rows
  }

  #run(sql: string, args: Statement['args']): Values {
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
    this.#endAttempt()
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
      const { native } = this.#options
      if (native.open && native.inTransaction) this.run('rollback')
    } catch {
      // The cause of the failure is thrown; the next transaction undoes this one before it begins.
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

function rowsOf({ native, columns }: Prepared, args: Statement['args']): Values {
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
 * Returns the characters of all values together. Throws for a value that no database can hold: a boolean, which an
 * altered pending change may contain, would make native code end the process.
 */
function requireValues(args: Statement['args']): number {
  let characters = 0
  for (const value of args) {
    if (typeof value === 'string') characters += value.length
    else if (value instanceof Uint8Array) characters += value.byteLength
    else if (typeof value === 'number') {
      if (!Number.isFinite(value)) throw new RangeError('Only finite numbers can be passed as arguments')
    } else if (value !== null) throw new TypeError(`No ${typeof value} can be passed as an argument`)
  }
  return characters
}
