/**
 * What a local database file has its write-ahead log wait for the disk with, off the thread that writes
 * (store/README.md): a disk takes from one to hundreds of milliseconds to have something safe, in which nothing else is
 * done where a transaction waits for it.
 *
 *   - `flush` waits until all that was committed before is safe from a crash of the host. For what is committed without
 *     waiting, and acknowledged only then; a file that was cut off there is sound, and ends with an earlier transaction.
 *   - A checkpoint, which takes the log's pages into the database, is made by a second connection after so much was
 *     written; SQLite would make it within the commit that reaches 1000 pages. Only by connections of libSQL, in this
 *     process: its locks hold between them. Patient writers wait for it, so that it reaches the log's end and the log
 *     begins anew; where others keep it from that, SQLite makes one at four times the size.
 */
import { closeSync, fdatasync, openSync } from 'node:fs'

/** The second connection; its calls run on libSQL's own threads. */
export interface CheckpointConnection {
  exec(sql: string): Promise<unknown>
  close(): void
}

export interface WriteAheadLogOptions {
  /** The database's. */
  file: string
  connect(): Promise<CheckpointConnection>
  /** Writes what is in the log into the database at once, and waits for the disk; whether that was all of it. */
  takeIn(): boolean
  /** Characters of values after which a checkpoint is made. */
  charactersAtMost?: number
  /** Resolves when the disk has a file's content. */
  flushFile?(descriptor: number): Promise<void>
}

/** Some 1000 pages of events with their indexes. */
const usualCharacters = 1_000_000

/** Pages at which SQLite makes a checkpoint itself. */
export const pagesAtMost = 4000

export class WriteAheadLog {
  readonly #options: WriteAheadLogOptions
  #connection: Promise<CheckpointConnection> | null = null
  #checkpoint: Promise<void> | null = null
  #checkpointed = 0
  #unflushed = false
  /** What the disk said when the log could not be written; null where all of it was written since. */
  #failure: unknown = null
  #flushes: Promise<void> = Promise.resolve()
  #descriptor: number | null = null

  constructor(options: WriteAheadLogOptions) {
    this.#options = options
  }

  /** Resolves when the checkpoint that is being made is; null where none is. */
  get checkpoint(): Promise<void> | null {
    return this.#checkpoint
  }

  /** A transaction was committed. `characters` is how many were written since the file was opened. */
  wrote(characters: number, flushed: boolean): void {
    if (!flushed) this.#unflushed = true
    if (this.#checkpoint !== null) return
    if (characters - this.#checkpointed < (this.#options.charactersAtMost ?? usualCharacters)) return
    this.#checkpointed = characters
    this.#checkpoint = this.#makeCheckpoint().finally(() => {
      this.#checkpoint = null
    })
  }

  /**
   * Resolves when what was committed until now is safe; one wait for all who ask meanwhile. Throws what the disk says, and
   * from then on until the log is in the database: a system may forget what it could not write, and call a second attempt
   * a success.
   */
  async flush(): Promise<void> {
    const flush = this.#flushes.then(() => this.#flushLog())
    // The next one finds out for itself; its own caller is told.
    this.#flushes = flush.catch(() => undefined)
    await flush
  }

  /** What is under way ends by itself. */
  close(): void {
    void this.#flushes.then(() => {
      if (this.#descriptor !== null) closeSync(this.#descriptor)
      this.#descriptor = null
    })
    const closed = this.#connection?.then(async (connection) => {
      await this.#checkpoint
      connection.close()
    })
    // One that could not be opened needs no closing.
    closed?.catch(() => undefined)
  }

  async #makeCheckpoint(): Promise<void> {
    try {
      this.#connection ??= this.#options.connect()
      const connection = await this.#connection
      await connection.exec('pragma wal_checkpoint(passive)')
    } catch {
      // The log goes on, and SQLite's own checkpoint says what is wrong to whoever writes then.
      this.#connection = null
    }
  }

  async #flushLog(): Promise<void> {
    if (!this.#unflushed) return
    if (this.#failure !== null) {
      if (!this.#options.takeIn()) throw this.#failure
      this.#failure = null
      this.#unflushed = false
      return
    }
    this.#unflushed = false
    try {
      await this.#flushFile()
    } catch (error) {
      this.#failure = error
      this.#unflushed = true
      throw error
    }
  }

  async #flushFile(): Promise<void> {
    // The log's file stays the same while a connection is open, and SQLite holds no lock on it that closing would drop.
    this.#descriptor ??= openSync(`${this.#options.file}-wal`, 'r')
    await (this.#options.flushFile ?? offTheThread)(this.#descriptor)
  }
}

const offTheThread = (descriptor: number): Promise<void> =>
  new Promise((resolve, reject) => fdatasync(descriptor, (error) => (error ? reject(error) : resolve())))
