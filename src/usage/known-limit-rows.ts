/**
 * The rows of limits for decisions: from the state if it answers within 200 ms, otherwise from a cache. The state
 * cannot change while it does not answer, so a cached row is still true unless the control plane knows of a newer
 * version and has not read what that version changed.
 *
 *  - Each row is cached with the state version that was known before it was read.
 *  - `check` finds the rows that newer versions changed and reads them again. At the start of a control plane it also
 *    reads the newest limits, so that limits nobody has used yet are cached too.
 *  - While an answer is late, no other query is sent: what is not cached is unknown at once.
 */
import { LRUCache } from 'lru-cache'
import { inTime } from '../lib/in-time.ts'
import type { Log } from '../lib/log/log.ts'
import { changedLimitRows, type LimitKey, type LimitRow, type LimitRows, readLimitRows } from '../store/limit-rows.ts'
import type { Reader } from '../store/open.ts'

export interface KnownLimitRowsOptions {
  state: Reader
  log: Log
  /** The newest state version that this control plane has read or was told. */
  newestVersion(): number
  /** How many milliseconds a decision waits for the state. */
  waitMs?: number
  /** How many rows are cached. */
  most?: number
}

interface KeptRow {
  row: LimitRow | null
  /** The state had at least this version when the row was read. */
  version: number
}

/** Less than the second after which a gateway gives up an ask. */
export const stateWaitMs = 200
const maxRows = 10_000
const rowsInRead = 1000

export class KnownLimitRows implements LimitRows {
  readonly #options: KnownLimitRowsOptions
  readonly #most: number
  readonly #kept: LRUCache<LimitKey, KeptRow>
  /** Every cached row is valid up to this version. */
  #checked = 0
  #checking: Promise<void> | null = null
  /** Rows that were changed and have not been read since. */
  #unread = new Set<LimitKey>()
  /** Raised when the state gets another history. */
  #epoch = 0
  /** Late reads that are still running. */
  #late = 0
  #failing = false

  constructor(options: KnownLimitRowsOptions) {
    this.#options = options
    this.#most = options.most ?? maxRows
    this.#kept = new LRUCache({ max: this.#most })
  }

  async read(keys: readonly LimitKey[]): Promise<ReadonlyMap<LimitKey, LimitRow | null>> {
    return (this.#late > 0 ? null : await this.#readInTime(keys)) ?? this.#keptRows(keys)
  }

  /** Reads rows again that newer versions changed. Rejects if the state cannot be read. */
  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = null
    })
    return this.#checking
  }

  /** The change that made this version changed exactly these rows. */
  passed(version: number, keys: readonly LimitKey[]): void {
    if (this.#checked !== version - 1) return
    this.#checked = version
    for (const key of keys) {
      this.#kept.delete(key)
      this.#unread.add(key)
    }
  }

  /** The state was restored or replaced: drops everything. */
  forget(): void {
    this.#epoch += 1
    this.#kept.clear()
    this.#unread.clear()
    this.#checked = 0
  }

  /** Null if the state fails or does not answer in time. */
  async #readInTime(keys: readonly LimitKey[]): Promise<ReadonlyMap<LimitKey, LimitRow | null> | null> {
    let isDone = false
    const reading = this.#readRows(keys).then(
      (rows) => {
        this.#failing = false
        return rows
      },
      (error: unknown) => {
        if (!this.#failing) this.#options.log.warn({ error: String(error) }, 'Limits could not be read from the state')
        this.#failing = true
        return null
      },
    )
    const done = reading.finally(() => {
      isDone = true
    })
    const rows = await inTime(done, this.#options.waitMs ?? stateWaitMs)
    if (!isDone) {
      this.#late += 1
      void done.then(() => {
        this.#late -= 1
      })
    }
    return rows
  }

  async #readRows(keys: readonly LimitKey[]): Promise<Map<LimitKey, LimitRow | null>> {
    const { state, newestVersion } = this.#options
    const [epoch, version] = [this.#epoch, newestVersion()]
    const rows = await readLimitRows(state, keys)
    // A check that ran meanwhile may have passed a change of a row after it was read.
    if (epoch === this.#epoch && version >= this.#checked) {
      for (const [key, row] of rows) this.#kept.set(key, { row, version })
    } else if (epoch === this.#epoch) {
      for (const key of rows.keys()) if (!this.#kept.has(key)) this.#unread.add(key)
    }
    return rows
  }

  #keptRows(keys: readonly LimitKey[]): Map<LimitKey, LimitRow | null> {
    const newest = this.#options.newestVersion()
    const known = new Map<LimitKey, LimitRow | null>()
    for (const key of keys) {
      const kept = this.#kept.get(key)
      if (kept !== undefined && Math.max(this.#checked, kept.version) >= newest) known.set(key, kept.row)
    }
    return known
  }

  async #check(): Promise<void> {
    for (;;) {
      await this.#readUnread()
      const before = this.#checked
      if (before >= this.#options.newestVersion()) return
      await this.#checkOnce()
      // The state does not have that version yet. The next check looks for it.
      if (this.#checked <= before) return
    }
  }

  async #checkOnce(): Promise<void> {
    const epoch = this.#epoch
    const changed = await changedLimitRows(this.#options.state, this.#checked, this.#most)
    if (changed === null || epoch !== this.#epoch) return
    const { head, keys } = changed
    if (keys.length > this.#most) this.#kept.clear()
    for (const key of keys) this.#kept.delete(key)
    this.#checked = Math.max(this.#checked, head)
    for (const key of keys.slice(0, this.#most)) this.#unread.add(key)
    await this.#readUnread()
  }

  async #readUnread(): Promise<void> {
    while (this.#unread.size > 0) {
      const keys = [...this.#unread].slice(0, rowsInRead)
      for (const key of keys) this.#unread.delete(key)
      await this.#readRows(keys)
    }
  }
}
