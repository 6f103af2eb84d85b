/**
 * The answers that a gateway keeps: in the memory of each worker, and in a file that the workers of a host share. Both
 * are bounded in bytes and time. Nothing is opened or held before the first answer is kept.
 */
import { LRUCache } from 'lru-cache'
import type { Settings } from '../../config.ts'
import type { Log } from '../../lib/log/log.ts'
import { CacheFile, type Clears, clearedAt, type KeptAnswer } from './cache-file.ts'

/** A longer answer is not kept. */
export const longestAnswerBytes = 4 * 1024 * 1024
/** Answers that are being received take at most this part of the memory of kept ones besides. */
const receivingPart = 0.5
/** What an entry takes beside its body. */
const entryBytes = 512
const sweepMilliseconds = 10_000

type CacheSettings = Pick<Settings, 'cache_memory_bytes' | 'cache_file_bytes'>

export class AnswerCache {
  readonly #memory: LRUCache<string, KeptAnswer> | null
  readonly #file: CacheFile | null
  readonly #sweeps: ReturnType<typeof setInterval>
  readonly #clears: () => Clears
  readonly #mostReceiving: number
  #receiving = 0
  #swept: Clears | null = null

  /** `file`: null where there is none; `clears` gives what was cleared as of now. */
  constructor(
    { cache_memory_bytes: memory, cache_file_bytes: most }: CacheSettings,
    file: string | null,
    { log, now, clears }: { log: Log; now: () => number; clears: () => Clears },
  ) {
    this.#mostReceiving = Math.max(longestAnswerBytes, memory * receivingPart)
    this.#memory =
      memory === 0 ? null : new LRUCache({ maxSize: memory, sizeCalculation: ({ body }) => body.length + entryBytes })
    this.#file = file === null || most === 0 ? null : new CacheFile(file, most, log)
    this.#clears = clears
    this.#sweeps = setInterval(() => this.#sweep(now(), clears()), sweepMilliseconds)
    this.#sweeps.unref()
  }

  /** Bytes of the answers in memory. */
  get memoryBytes(): number {
    return this.#memory?.calculatedSize ?? 0
  }

  /** An answer that is still in force; null if there is none. */
  get(key: string, now: number): KeptAnswer | null {
    const known = this.#memory?.get(key) ?? null
    if (known !== null && known.expiresAt > now) return known
    const read = this.#file?.get(key) ?? null
    if (read === null || read.expiresAt <= now) return null
    this.#memory?.set(key, read)
    return read
  }

  /** An answer that was cleared while it was received is not kept. */
  put(key: string, answer: KeptAnswer): void {
    if (answer.stateVersion < clearedAt(this.#clears(), answer.model)) return
    this.#memory?.set(key, answer)
    this.#file?.put(key, answer)
  }

  delete(key: string): void {
    this.#memory?.delete(key)
    this.#file?.delete(key)
  }

  /** Sets memory aside for bytes that are being received; false if there is none. */
  receive(bytes: number): boolean {
    if (this.#receiving + bytes > this.#mostReceiving) return false
    this.#receiving += bytes
    return true
  }

  received(bytes: number): void {
    this.#receiving -= bytes
  }

  /** Removes what was cleared, which is not found before either: its key has changed. The file drops the expired. */
  #sweep(now: number, clears: Clears): void {
    this.#file?.sweep(now, clears)
    if (this.#swept === clears) return
    this.#swept = clears
    for (const [key, { model, stateVersion }] of [...(this.#memory?.entries() ?? [])]) {
      if (stateVersion < clearedAt(clears, model)) this.#memory?.delete(key)
    }
  }

  close(): void {
    clearInterval(this.#sweeps)
    this.#file?.close()
  }
}
