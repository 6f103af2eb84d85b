/**
 * The answers that the workers of a host share, in one SQLite file (mode 0600) of bounded size. It is a cache: what
 * cannot be read or written counts as missing and fails no request. A damaged file is removed and begun anew; on a full
 * disk nothing is kept.
 *
 * Answers are written together, a moment after they were given. SQLite holds the file to its size: when it is full, the
 * oldest tenth goes.
 *
 * SQL text: each statement is prepared once and runs beside requests.
 */
import { Database, type Statement } from 'bun:sqlite'
import { chmodSync, closeSync, existsSync, openSync, rmSync } from 'node:fs'
import type { Log } from '../../lib/log/log.ts'

/** A provider's answer as it came, before any policy looked at it. */
export interface KeptAnswer {
  /** The model's id, by which answers are cleared. */
  readonly model: string
  readonly contentType: string
  readonly body: Uint8Array
  /** Milliseconds since the epoch. */
  readonly keptAt: number
  readonly expiresAt: number
  /** The version of the state when it was asked for. */
  readonly stateVersion: number
}

/** When the answers of models were cleared: the version of the state by model id, `*` for all models. */
export type Clears = ReadonlyMap<string, number>

/** When the answers of a model were last cleared; 0 if never. */
export const clearedAt = (clears: Clears, model: string): number =>
  clears.size === 0 ? 0 : Math.max(clears.get('*') ?? 0, clears.get(model) ?? 0)

interface Row {
  model: string
  content_type: string
  body: Uint8Array
  digest: string
  kept_at: number
  expires_at: number
  state_version: number
}

interface Opened {
  readonly database: Database
  readonly read: Statement<Row, [string]>
  readonly write: Statement<unknown, [string, string, string, Uint8Array, string, number, number, number]>
}

const pageBytes = 4096
/** A write that another worker is in the way of is given up after this; a request waits behind it. */
const busyMilliseconds = 20
const writeAfterMilliseconds = 50
const mostWaitingBytes = 16 * 1024 * 1024
/** How often room is made for one write. */
const mostEvictions = 3
const warnEveryMilliseconds = 60_000

const schema = `create table if not exists answers (key text primary key, model text not null,
  content_type text not null, body blob not null, digest text not null, kept_at integer not null,
  expires_at integer not null, state_version integer not null);
  create index if not exists answers_kept on answers (kept_at);
  create index if not exists answers_expire on answers (expires_at);
  create index if not exists answers_model on answers (model, state_version)`

const evictOldest = `delete from answers where key in (select key from answers order by kept_at
  limit 1 + (select count(*) / 10 from answers))`

export class CacheFile {
  readonly #path: string
  readonly #mostBytes: number
  readonly #log: Log
  readonly #waiting = new Map<string, KeptAnswer>()
  #waitingBytes = 0
  #opened: Opened | null = null
  #swept: Clears | null = null
  #timer: ReturnType<typeof setTimeout> | null = null
  #warnedAt = Number.NEGATIVE_INFINITY

  constructor(path: string, mostBytes: number, log: Log) {
    this.#path = path
    this.#mostBytes = mostBytes
    this.#log = log
  }

  get(key: string): KeptAnswer | null {
    const waiting = this.#waiting.get(key)
    if (waiting !== undefined) return waiting
    if (this.#opened === null && !existsSync(this.#path)) return null
    const row = this.#trying(({ read }) => read.get(key))
    if (!row || digestOf(row.body) !== row.digest) return null
    return {
      model: row.model,
      contentType: row.content_type,
      body: row.body,
      keptAt: row.kept_at,
      expiresAt: row.expires_at,
      stateVersion: row.state_version,
    }
  }

  put(key: string, answer: KeptAnswer): void {
    this.#removeWaiting(key)
    if (this.#waitingBytes + answer.body.length > mostWaitingBytes) return
    this.#waitingBytes += answer.body.length
    this.#waiting.set(key, answer)
    this.#timer ??= setTimeout(() => this.write(), writeAfterMilliseconds)
  }

  delete(key: string): void {
    this.#removeWaiting(key)
    if (this.#opened !== null) this.#trying(({ database }) => database.run('delete from answers where key = ?', [key]))
  }

  #removeWaiting(key: string): void {
    this.#waitingBytes -= this.#waiting.get(key)?.body.length ?? 0
    this.#waiting.delete(key)
  }

  /** Writes what waits, now. */
  write(): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#timer = null
    if (this.#waiting.size === 0) return
    const answers = [...this.#waiting]
    this.#waiting.clear()
    this.#waitingBytes = 0
    this.#trying((opened) => {
      for (let evictions = 0; ; evictions++) {
        try {
          return opened.database.transaction(() => writeRows(opened, answers)).immediate()
        } catch (error) {
          if (codeOf(error) !== 'SQLITE_FULL' || evictions === mostEvictions) throw error
          opened.database.run(evictOldest)
        }
      }
    })
  }

  /** Removes what has expired, and what was cleared since it was asked for, if `clears` are others than the last. */
  sweep(now: number, clears: Clears): void {
    this.write()
    if (this.#opened === null && !existsSync(this.#path)) return
    this.#trying(({ database }) => {
      let { changes } = database.run('delete from answers where expires_at <= ?', [now])
      for (const [model, at] of this.#swept === clears ? [] : clears) {
        changes +=
          model === '*'
            ? database.run('delete from answers where state_version < ?', [at]).changes
            : database.run('delete from answers where model = ? and state_version < ?', [model, at]).changes
      }
      this.#swept = clears
      // SQLite's log still has the text.
      if (changes > 0) database.run('pragma wal_checkpoint(truncate)')
    })
  }

  close(): void {
    this.write()
    this.#opened?.database.close()
    this.#opened = null
  }

  /** Runs `work`; a fault is no more than a missing answer. */
  #trying<Result>(work: (opened: Opened) => Result): Result | null {
    try {
      this.#opened ??= this.#open()
      return work(this.#opened)
    } catch (error) {
      const code = codeOf(error)
      if (code.startsWith('SQLITE_BUSY')) return null
      this.#warn(error)
      if (/^SQLITE_(CORRUPT|NOTADB)/.test(code)) this.#removeDamaged()
      return null
    }
  }

  #open(): Opened {
    // The file exists with its mode before SQLite writes to it; the files beside it get the same.
    closeSync(openSync(this.#path, 'a', 0o600))
    chmodSync(this.#path, 0o600)
    const database = new Database(this.#path)
    try {
      database.run(`pragma busy_timeout = ${busyMilliseconds}`)
      database.run(`pragma page_size = ${pageBytes}`)
      database.run('pragma auto_vacuum = none')
      database.run('pragma journal_mode = wal')
      database.run('pragma synchronous = normal')
      database.run('pragma secure_delete = on')
      database.run(`pragma journal_size_limit = ${1024 * pageBytes}`)
      database.run(`pragma max_page_count = ${Math.floor(this.#mostBytes / pageBytes)}`)
      for (const statement of schema.split(';')) database.run(statement)
      return {
        database,
        read: database.query(
          'select model, content_type, body, digest, kept_at, expires_at, state_version from answers where key = ?',
        ),
        write: database.query('insert or replace into answers values (?, ?, ?, ?, ?, ?, ?, ?)'),
      }
    } catch (error) {
      database.close()
      throw error
    }
  }

  #removeDamaged(): void {
    this.#opened?.database.close()
    this.#opened = null
    for (const end of ['', '-wal', '-shm']) rmSync(`${this.#path}${end}`, { force: true })
  }

  #warn(error: unknown): void {
    const now = performance.now()
    if (now - this.#warnedAt < warnEveryMilliseconds) return
    this.#warnedAt = now
    this.#log.warn({ file: this.#path, error: String(error) }, 'The file of cached answers cannot be used')
  }
}

function writeRows({ write }: Opened, answers: readonly (readonly [string, KeptAnswer])[]): void {
  for (const [key, { model, contentType, body, keptAt, expiresAt, stateVersion }] of answers) {
    write.run(key, model, contentType, body, digestOf(body), keptAt, expiresAt, stateVersion)
  }
}

/** Tells a body that was damaged on disk. */
const digestOf = (body: Uint8Array): string => Bun.hash.xxHash64(body).toString(36)

const codeOf = (error: unknown): string => (error instanceof Error && 'code' in error ? String(error.code) : '')
