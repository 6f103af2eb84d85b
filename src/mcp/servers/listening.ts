/**
 * Hears what changes at a server without sessions, by `subscriptions/listen` (2026-07-28, Subscriptions): its lists, and the
 * resources that the caller has subscribed to. A stream that ends is opened again, with a growing delay, and the caller
 * is told to list again, because something may have changed meanwhile.
 */
import type { Json } from '../connection.ts'
import { McpError } from '../mcp-error.ts'
import { isJson } from '../protocol.ts'
import type { Peer } from './peer.ts'

const firstRestMilliseconds = 1000
const longestRestMilliseconds = 30_000
const mostResources = 1000

export interface ListeningOptions {
  readonly peer: Pick<Peer, 'request' | 'over'>
  readonly capabilities: Json
  /** Called when changes may have been missed, with the notifications that say so. */
  missed(methods: readonly string[]): void
  random(): number
}

const kinds = ['tools', 'prompts', 'resources'] as const

export class Listening {
  readonly #options: ListeningOptions
  readonly #resources = new Set<string>()
  readonly #kinds: readonly string[]
  #current: AbortController | null = null
  #rest: Timer | null = null
  #fails = 0
  #over = false

  constructor(options: ListeningOptions) {
    this.#options = options
    this.#kinds = kinds.filter((kind) => {
      const capability = options.capabilities[kind]
      return isJson(capability) && capability.listChanged === true
    })
    this.#open()
  }

  subscribe(uri: unknown): void {
    if (typeof uri !== 'string' || this.#resources.has(uri) || this.#resources.size >= mostResources) return
    this.#resources.add(uri)
    this.#open()
  }

  unsubscribe(uri: unknown): void {
    if (typeof uri === 'string' && this.#resources.delete(uri)) this.#open()
  }

  close(): void {
    this.#over = true
    if (this.#rest !== null) clearTimeout(this.#rest)
    this.#current?.abort()
  }

  /** Opens a stream for what is to be heard now; the one before ends after it, so that nothing is missed. */
  #open(): void {
    if (this.#over) return
    if (this.#rest !== null) clearTimeout(this.#rest)
    const before = this.#current
    const changes = this.#kinds.map((kind) => [`${kind}ListChanged`, true] as const)
    if (changes.length === 0 && this.#resources.size === 0) this.#current = null
    else {
      const notifications = {
        ...Object.fromEntries(changes),
        ...(this.#resources.size > 0 && { resourceSubscriptions: [...this.#resources] }),
      }
      this.#current = new AbortController()
      void this.#listen(this.#current, notifications)
    }
    before?.abort()
  }

  async #listen(own: AbortController, notifications: Json): Promise<void> {
    const { peer, random, missed } = this.#options
    const began = performance.now()
    try {
      await peer.request('subscriptions/listen', { notifications }, { signal: own.signal, endless: true })
    } catch (error) {
      // It has no such streams.
      if (error instanceof McpError) return
    }
    if (this.#over || this.#current !== own || peer.over !== null) return
    this.#fails = performance.now() - began > longestRestMilliseconds ? 0 : Math.min(this.#fails + 1, 10)
    const rest = Math.min(longestRestMilliseconds, firstRestMilliseconds * 2 ** this.#fails)
    this.#rest = setTimeout(
      () => {
        this.#open()
        missed(this.#kinds.map((kind) => `notifications/${kind}/list_changed`))
      },
      rest * (0.5 + random() / 2),
    )
    this.#rest.unref()
  }
}
