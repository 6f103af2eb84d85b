/**
 * Counts the input of a request with its model's tokenizer, for requests that would otherwise be refused for lack of
 * money. It uses a thread, because loading and counting would block the gateway's own for more than 20 ms.
 *
 * 1. The thread starts with the first count, works on one body at a time, and ends after 10 s without work, which frees
 *    its memory.
 * 2. A count that takes longer than 3 s is given up and ends the thread. So is a count that waited that long for
 *    others: nobody can delay the refusals of others for long.
 */
import { z } from 'zod'
import type { Encoding } from './text-tokens.ts'

/** Larger bodies are not counted, in bytes. */
export const maxCountedBytes = 1_048_576

export interface TokenCounter {
  /** The tokens of a JSON body; null if it has more than text, or no count was made in time. */
  count(encoding: Encoding, body: Uint8Array): Promise<number | null>
}

/** The part of a `Worker` that is used here. */
export type TokenizerThread = Pick<Worker, 'postMessage' | 'terminate' | 'addEventListener'>

const answerSchema = z.union([z.object({ tokens: z.number().nullable() }), z.object({ error: z.string() })])

interface Times {
  countMs: number
  idleMs: number
}

export class ThreadTokenCounter implements TokenCounter {
  readonly #start: () => TokenizerThread
  readonly #times: Times
  #thread: TokenizerThread | null = null
  #idle: Timer | undefined
  #waiting = 0
  #last: Promise<unknown> = Promise.resolve()

  constructor(start = startThread, times: Times = { countMs: 3000, idleMs: 10_000 }) {
    this.#start = start
    this.#times = times
  }

  async count(encoding: Encoding, body: Uint8Array): Promise<number | null> {
    if (body.length > maxCountedBytes) return null
    const arrived = performance.now()
    this.#waiting += 1
    const counted = this.#last.then(() => {
      const isLate = performance.now() - arrived > this.#times.countMs
      return isLate ? null : this.#ask(encoding, body)
    })
    this.#last = counted.catch(() => undefined)
    try {
      return await counted
    } finally {
      this.#waiting -= 1
      if (this.#waiting === 0) this.#endWhenIdle()
    }
  }

  #ask(encoding: Encoding, body: Uint8Array): Promise<number | null> {
    clearTimeout(this.#idle)
    this.#thread ??= this.#start()
    const thread = this.#thread
    const { promise, resolve, reject } = Promise.withResolvers<number | null>()
    const listeners = new AbortController()
    const { signal } = listeners
    const late = setTimeout(() => {
      this.#end()
      resolve(null)
    }, this.#times.countMs)
    thread.addEventListener(
      'message',
      ({ data }) => {
        const answer = answerSchema.parse(data)
        if ('error' in answer) reject(new Error(answer.error))
        else resolve(answer.tokens)
      },
      { signal },
    )
    thread.addEventListener(
      'error',
      ({ message }) => {
        this.#end()
        reject(new Error(message))
      },
      { signal },
    )
    thread.postMessage({ encoding, body })
    return promise.finally(() => {
      clearTimeout(late)
      listeners.abort()
    })
  }

  #endWhenIdle(): void {
    clearTimeout(this.#idle)
    this.#idle = setTimeout(() => this.#end(), this.#times.idleMs)
    this.#idle.unref()
  }

  #end(): void {
    this.#thread?.terminate()
    this.#thread = null
  }
}

/** In the executable, where code is in chunks, the thread's file has the same path as in the source. */
function startThread(): TokenizerThread {
  const isCompiled = import.meta.url.includes('/$bunfs/')
  const file = isCompiled ? './src/usage/pricing/tokenizer-thread.ts' : './tokenizer-thread.ts'
  const thread = new Worker(new URL(file, import.meta.url).href)
  // It keeps no process alive.
  thread.unref()
  return thread
}
