/**
 * The head of the state as this control plane last read it from the primary. A heartbeat may be answered as fresh only
 * if that was within the last second (fleet/README.md rule R3). An own change counts as known when it is announced.
 *
 * A read overrides what was known. If the primary has less than it had before the read began, or another nonce for the
 * same version, it was restored or replaced, and the listener is called.
 */
import { Failure } from '../../failure.ts'
import type { Clock } from '../../lib/clock.ts'
import { inTime } from '../../lib/in-time.ts'
import type { Database } from '../../store/open.ts'
import type { Head } from '../../store/propagation.ts'
import { Stalls } from '../coordinator/stalls.ts'

const freshMs = 1000
const maxRemembered = 1000
/** Nonces are the ids of the changes that made the versions. Other forms are from earlier releases. */
const changeNonce = /^(lost-)?[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

export class StateHead {
  readonly #state: Database
  readonly #clock: Clock
  readonly #onRestored: (head: Head) => void
  readonly #onMisled: (head: Head) => void
  #head: Head | null = null
  /** The newest head that was read from the primary or committed here. */
  #sure: Head | null = null
  #announcedAt = Number.NEGATIVE_INFINITY
  #readAt = Number.NEGATIVE_INFINITY
  #reading: Promise<Head> | null = null
  /** Whether a pair of version and nonce belongs to this primary's history. */
  readonly #pairs = new Map<string, boolean>()
  readonly stalls = new Stalls()

  /** `onForeignLog` is called if only an announcement of another control plane was wrong. */
  constructor(
    { state, clock }: { state: Database; clock: Clock },
    { onRestored, onForeignLog }: { onRestored(head: Head): void; onForeignLog(head: Head): void },
  ) {
    this.#state = state
    this.#clock = clock
    this.#onRestored = onRestored
    this.#onMisled = onForeignLog
  }

  /** A change was committed here: the primary has, or just had, this head. */
  announced(head: Head): void {
    if (this.#head !== null && this.#head.history !== head.history) this.#restored(head)
    if (isNewer(head, this.#sure)) this.#sure = head
    this.#take(head)
  }

  /**
   * Another control plane announces a change. The primary may have lost it since, so no read is compared with it, and
   * the next read, within a second, overrides it.
   */
  heard(head: Head): void {
    if (this.#head === null || this.#head.history === head.history) this.#take(head)
  }

  #take(head: Head): void {
    if (!isNewer(head, this.#head)) return
    this.#head = head
    this.#announcedAt = this.#clock.monotonic()
  }

  /** The newest known version; 0 if none is known. */
  get newestVersion(): number {
    return this.#head?.version ?? 0
  }

  /** Milliseconds since it was last read from the primary. */
  get ageMs(): number {
    return this.#clock.monotonic() - this.#readAt
  }

  /** The head, and whether it was read within the last second. Throws `dependency_unavailable` if none is known. */
  async recent(): Promise<{ head: Head; fresh: boolean }> {
    if (this.#head !== null && this.#clock.monotonic() - this.#readAt < freshMs)
      return { head: this.#head, fresh: true }
    try {
      return { head: await this.read(), fresh: true }
    } catch (error) {
      // The primary is unreachable: workers get the last known head, marked as not fresh.
      if (this.#head === null) throw error
      return { head: this.#head, fresh: false }
    }
  }

  /** The same, but returns the last known head if the primary does not answer within this time. */
  async recentWithin(milliseconds: number): Promise<Head> {
    const reading = this.recent()
    // The caller did not wait for it and need not learn that it failed.
    reading.catch(() => undefined)
    const read = this.#head === null ? await reading : await inTime(reading, milliseconds)
    return read?.head ?? this.#head ?? (await reading).head
  }

  /** Reads the head from the primary. Calls during a read get a later read that began after them. */
  async read(): Promise<Head> {
    if (this.#reading !== null) await this.#reading.catch(() => undefined)
    this.#reading ??= this.#readNow().finally(() => {
      this.#reading = null
    })
    return this.#reading
  }

  /** Whether a version with its nonce belongs to this primary's history; true if unknown. */
  async knows({ version, nonce, history }: Head): Promise<boolean> {
    if (version === 0) return true
    let { head, fresh } = await this.recent()
    // Another control plane may have made that version after the last read.
    if (fresh && version > head.version) head = await this.read()
    if (!fresh) return true
    if (history !== head.history || version > head.version) return false
    if (nonce === '' || !changeNonce.test(nonce)) return true
    if (version === head.version) return nonce === head.nonce
    const pair = `${version} ${nonce}`
    const known = this.#pairs.get(pair) ?? (await this.#isLogged(version, nonce))
    if (this.#pairs.size >= maxRemembered) this.#pairs.clear()
    this.#pairs.set(pair, known)
    return known
  }

  async #isLogged(version: number, nonce: string): Promise<boolean> {
    const [row] = await this.#state.read<{ version: number; applied: number }>(
      'select version, applied from change_log where event_id = ?',
      [nonce.replace(/^lost-/, '')],
    )
    return row?.version === version && (row.applied === 0) === nonce.startsWith('lost-')
  }

  async #readNow(): Promise<Head> {
    const began = this.#clock.monotonic()
    const [known, sure] = [this.#head, this.#sure]
    const sql = 'select version, nonce, history from state_head where id = 1'
    const [row] = await this.#state.read<Head>(sql).catch((error: unknown) => {
      throw new Failure('dependency_unavailable', { cause: error })
    })
    if (row === undefined) throw new Failure('dependency_unavailable', { message: 'The state has no head' })
    const now = this.#clock.monotonic()
    this.stalls.readAfter(now - this.#readAt, now)
    this.#readAt = began
    if (sure !== null && isOlder(row, sure)) this.#restored(row)
    // An announcement during the read may be newer than its result.
    else if (this.#announcedAt < began || isNewer(row, this.#head)) {
      this.#head = row
      if (known !== null && isOlder(row, known)) this.#onMisled(row)
    }
    if (isNewer(row, this.#sure)) this.#sure = row
    return this.#head ?? row
  }

  #restored(head: Head): void {
    this.#head = head
    this.#sure = head
    this.#pairs.clear()
    this.#onRestored(head)
  }
}

/** Whether a head that was read cannot follow a head that was known before. */
const isOlder = (read: Head, known: Head): boolean =>
  read.history !== known.history ||
  read.version < known.version ||
  (read.version === known.version && read.nonce !== known.nonce)

const isNewer = (head: Head, known: Head | null): boolean => known === null || head.version > known.version
