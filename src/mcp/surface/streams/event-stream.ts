/**
 * One stream of server-sent events to a caller (Streamable HTTP): the answer to one request, or messages that the
 * server side sends on its own. It outlives its connection: sent events are kept, up to a number and a size, and a
 * caller that returns with `Last-Event-ID` gets what followed. Unread data is not buffered beyond that: a connection
 * that falls behind is ended and may be resumed. A stream of 2026-07-28 cannot be resumed: its events have no ids, and
 * nothing is kept of what a connected caller was sent.
 */
const mostEvents = 256
const mostBytes = 1024 * 1024
/** The limit of written but unread bytes. */
const mostUnreadBytes = 4 * 1024 * 1024
const retryMilliseconds = 1000
const encoder = new TextEncoder()
/** A comment (WHATWG HTML section 9.2.6). */
const silence = encoder.encode(': \n\n')

/** `primed`: it begins with an event without data, so that it can be resumed from its start (2025-11-25). */
export type StreamForm = 'resumable' | 'primed' | 'once'

interface Kept {
  readonly number: number
  readonly bytes: Uint8Array
}

export class EventStream {
  /** The first part of its events' ids, unique within the session. */
  readonly id: number
  readonly #form: StreamForm
  readonly #kept: Kept[] = []
  #bytes = 0
  #last = 0
  /** The last event that a connected caller got. */
  #given = 0
  #ended = false
  #controller: ReadableStreamDefaultController<Uint8Array> | null = null

  /** Called when the caller leaves the stream, or reads it too slowly and cannot come back for it. */
  onLeave: () => void = () => undefined

  constructor(id: number, form: StreamForm) {
    this.id = id
    this.#form = form
    if (form === 'primed') this.#keep(`retry: ${retryMilliseconds}\ndata: \n\n`)
  }

  get ended(): boolean {
    return this.#ended
  }

  /** The size of the kept events in bytes. */
  get size(): number {
    return this.#bytes
  }

  /** Whether a caller is connected to it. */
  get attached(): boolean {
    return this.#controller !== null
  }

  /** Sends one message, which is one line of JSON. */
  send(message: string): void {
    if (this.#ended) return
    this.#write(this.#keep(`event: message\ndata: ${message}\n\n`))
  }

  /** Sends a comment that keeps the connection open. */
  keepAlive(): void {
    this.#write(silence)
  }

  /** Ends the stream; sent events can still be resumed. */
  end(): void {
    this.#ended = true
    this.#detach()
  }

  /**
   * Connects a caller: sends the events after this number, then new ones; null when one between is no longer kept.
   * Without a number it sends the kept events that no caller got yet. An earlier connection is ended.
   */
  attach(event: number | null = null): ReadableStream<Uint8Array> | null {
    const gone = (this.#kept[0]?.number ?? this.#last + 1) - 1
    const after = event ?? Math.max(this.#given, gone)
    if (after > this.#last || after < gone) return null
    this.#detach()
    let own: ReadableStreamDefaultController<Uint8Array> | null = null
    return new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          own = controller
          for (const { number, bytes } of this.#kept) if (number > after) controller.enqueue(bytes)
          // Headers leave with the first bytes, so the caller would wait for them.
          if (after === this.#last && !this.#ended) controller.enqueue(silence)
          this.#given = this.#last
          if (this.#ended) controller.close()
          else this.#controller = controller
        },
        cancel: () => {
          if (this.#controller === own) this.#controller = null
          this.onLeave()
        },
      },
      new ByteLengthQueuingStrategy({ highWaterMark: mostUnreadBytes }),
    )
  }

  #keep(fields: string): Uint8Array {
    this.#last += 1
    const id = this.#form === 'once' ? '' : `id: ${this.id}-${this.#last}\n`
    const bytes = encoder.encode(id + fields)
    if (this.#form === 'once' && this.#controller !== null) return bytes
    this.#kept.push({ number: this.#last, bytes })
    this.#bytes += bytes.length
    // The newest is kept whatever its size, because it may be the result.
    while (this.#kept.length > 1 && (this.#kept.length > mostEvents || this.#bytes > mostBytes)) {
      this.#bytes -= this.#kept.shift()?.bytes.length ?? 0
    }
    return bytes
  }

  #write(bytes: Uint8Array): void {
    const controller = this.#controller
    if (controller === null) return
    controller.enqueue(bytes)
    this.#given = this.#last
    if ((controller.desiredSize ?? 0) >= -bytes.length) return
    this.#detach()
    // Nobody can come back for it.
    if (this.#form === 'once') this.onLeave()
  }

  #detach(): void {
    this.#controller?.close()
    this.#controller = null
  }
}

/** The stream and event of a `Last-Event-ID`; null when it is malformed. */
export function eventIdOf(text: string): { stream: number; event: number } | null {
  const [, stream, event] = /^(\d{1,10})-(\d{1,10})$/.exec(text) ?? []
  return stream === undefined || event === undefined ? null : { stream: Number(stream), event: Number(event) }
}
