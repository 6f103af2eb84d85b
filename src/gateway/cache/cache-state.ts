/** What an exchange and a call hold of the answer cache. */
import type { CacheRule } from '../../policies/kinds/kind.ts'
import { type AnswerCache, longestAnswerBytes } from './answer-cache.ts'

/** How an exchange uses the cache. */
export interface CacheUse {
  readonly rule: CacheRule
  /** `bypass`: the caller asked for an answer of the provider itself. */
  result: 'hit' | 'miss' | 'bypass'
  /** Whether the answer of the provider may be kept. */
  readonly keeps: boolean
}

/** The bytes of an answer so far, and what it will be found by. */
export class ReceivedAnswer {
  readonly key: string
  readonly model: string
  readonly stateVersion: number
  contentType = ''
  readonly #cache: AnswerCache
  #chunks: Uint8Array[] | null = []
  #length = 0

  constructor(key: string, model: string, stateVersion: number, cache: AnswerCache) {
    this.key = key
    this.model = model
    this.stateVersion = stateVersion
    this.#cache = cache
  }

  /** Drops everything if it gets too long, or if too much is being received. */
  add(chunk: Uint8Array): void {
    if (this.#chunks === null) return
    if (this.#length + chunk.length > longestAnswerBytes || !this.#cache.receive(chunk.length)) this.drop()
    else {
      this.#length += chunk.length
      // The reader may use its buffer again.
      this.#chunks.push(chunk.slice())
    }
  }

  drop(): void {
    this.#chunks = null
    this.#cache.received(this.#length)
    this.#length = 0
  }

  /** The bytes so far; null if they were dropped, or there are none. */
  bytes(): Uint8Array | null {
    return this.#chunks === null || this.#length === 0 ? null : Buffer.concat(this.#chunks, this.#length)
  }
}
