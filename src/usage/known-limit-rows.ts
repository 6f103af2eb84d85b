/**
 * The rows of limits for decisions: the state's own where it answers within a fifth of a second, otherwise those that
 * were read before. The state cannot change while it does not answer, so a row that was read before is still true,
 * unless the control plane has heard of a newer version and has not yet read what that version changed.
 *
 *   - Each row is kept with the version of the state that was known before it was read.
 *   - `check` reads which rows a newer version changed, and reads these again. It also reads the newest limits when the
 *     control plane starts, so that limits nobody has used yet are known as well.
 *   - While an answer is late, no other question is sent: what is not kept is unknown at once.
 */
import { LRUCache } from 'lru-cache'
import { inTime } from '../lib/in-time.ts'
import type { Log } from '../lib/log/log.ts'
import { changedLimitRows, type LimitKey, type LimitRow, type LimitRows, readLimitRows } from '../store/limit-rows.ts'
import type { Reader } from '../store/open.ts'

export interface KnownLimitRowsOptions {
  state: Reader
  log: Log
  /** The newest version of the state that this control plane has read or heard of. */
  newestVersion(): number
  /** How many milliseconds a decision waits for the state. */
  waitMs?: number
  /** How many rows are kept. */
  most?: number
}

interface KeptRow {
  row: LimitRow | null
  /** The row was read when at least this version was committed. */
  version: number
}

/** A gateway gives up an ask after a second. */
export const stateWaitMs = 200
const maxRows = 10_000
const rowsInRead = 1000

export class KnownLimitRows implements LimitRows {
  readonly #options: KnownLimitRowsOptions
  readonly #most: number
  readonly #kept: LRUCache<LimitKey, KeptRow>
  /** Every kept row holds up to this version. */
  #checked = 0
  #checking: Promise<void> | null = null
  /** Rows that were changed and have not been read since. */
  #unread = new Set<LimitKey>()
  /** Another history of the state is another epoch. */
  #epoch = 0
  /** Reads that have not been answered in time and are still on their way. */
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

  /** Rows that newer versions have changed are read again. Rejects where the state cannot be read. */
  check(): Promise<void> {
    this.#checking ??= this.#check().finally(() => {
      this.#checking = null
    })
    return this.#checking
  }

  /** The change that made this version changed these rows, and no others. */
  passed(version: number, keys: readonly LimitKey[]): void {
    if (this.#checked !== version - 1) return
    this.#checked = version
    for (const key of keys) {
      this.#kept.delete(key)
      this.#unread.add(key)
    }
  }

  /** The state was restored or replaced: nothing that was read before counts. */
  forget(): void {
    this.#epoch += 1
    this.#kept.clear()
    this.#unread.clear()
    this.#checked = 0
  }

  /** Null where the state fails, or does not answer in time. */
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
    // What a check has passed over meanwhile may have changed a row after it was read.
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
      // A version that the state does not have is looked for with the next check.
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
