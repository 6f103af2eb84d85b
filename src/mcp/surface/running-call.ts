/**
 * One request of a caller while it is answered. Its answer is plain JSON unless something has to be said before it, or
 * the caller takes nothing but a stream; from then on it is a stream, which survives the caller's connection.
 */
import type { RpcId } from '../../lib/json/json-rpc.ts'
import { logLevels } from '../protocol.ts'
import type { EventStream } from './streams/event-stream.ts'

/** What forms of an answer the caller takes (`Accept`). */
export type AnswerForm = 'json' | 'stream' | 'either'

export interface CallOptions {
  readonly id: RpcId
  /** Identifies it among the running calls of its session. */
  readonly key: string
  /** The caller's own, by which it knows the progress of this call; null where it asks for none. */
  readonly progressToken: RpcId | null
  readonly form: AnswerForm
  /** The least urgent log level that this call wants; null for none, or when the session has one of its own. */
  readonly logLevel: string | null
  /** Makes the stream, when one is needed. */
  openStream(): EventStream
}

export class RunningCall {
  readonly id: RpcId
  readonly key: string
  readonly progressToken: RpcId | null
  readonly logLevel: string | null
  /** Resolves with the stream when the answer becomes one. */
  readonly streaming: Promise<EventStream>
  /** The server that works on it; null while none does. */
  serverId: string | null = null
  cancelled = false
  /** Ends what runs of it; set while something does. */
  onCancel: (() => void) | null = null
  readonly #options: CallOptions
  #stream: EventStream | null = null
  readonly #begin: (stream: EventStream) => void

  constructor(options: CallOptions) {
    this.id = options.id
    this.key = options.key
    this.progressToken = options.progressToken
    this.logLevel = options.logLevel
    this.#options = options
    const { promise, resolve } = Promise.withResolvers<EventStream>()
    this.streaming = promise
    this.#begin = resolve
    if (options.form === 'stream') this.#open()
  }

  get stream(): EventStream | null {
    return this.#stream
  }

  /** Says something before the answer; false where the caller's answer has no room for it. */
  send(message: string): boolean {
    if (this.#options.form === 'json') return false
    this.#open().send(message)
    return true
  }

  /** A request gets no log unless it asks for one (2026-07-28, Logging). */
  wantsLog(level: unknown): boolean {
    if (this.logLevel === null || typeof level !== 'string') return false
    return logLevels.indexOf(level) >= logLevels.indexOf(this.logLevel)
  }

  cancel(): void {
    this.cancelled = true
    this.onCancel?.()
  }

  #open(): EventStream {
    if (this.#stream === null) {
      this.#stream = this.#options.openStream()
      this.#begin(this.#stream)
    }
    return this.#stream
  }
}
