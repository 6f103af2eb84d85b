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
  readonly #sweeps: ReturnType<typeof setInterval> | null
  readonly #mostReceiving: number
  #receiving = 0

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
    this.#sweeps = this.#file === null ? null : setInterval(() => this.sweep(now(), clears()), sweepMilliseconds)
    this.#sweeps?.unref()
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

  put(key: string, answer: KeptAnswer): void {
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

  /** Removes what has expired or was cleared. A cleared answer is not found before that either: its key has changed. */
  sweep(now: number, clears: Clears): void {
    for (const [key, { expiresAt, model, stateVersion }] of [...(this.#memory?.entries() ?? [])]) {
      if (expiresAt <= now || stateVersion < clearedAt(clears, model)) this.#memory?.delete(key)
    }
    this.#file?.sweep(now, clears)
  }

  close(): void {
    if (this.#sweeps !== null) clearInterval(this.#sweeps)
    this.#file?.close()
  }
}
