/** The streams of one session: one for notifications, and one for each call that is answered by a stream. */
import { EventStream, eventIdOf, type StreamForm } from './event-stream.ts'

/** Streams that have ended are kept for callers that come back, up to so many, and so much. */
const mostEnded = 32
const mostEndedBytes = 1024 * 1024

export class SessionStreams {
  /** Messages to the client that belong to no call. */
  readonly notifications: EventStream
  readonly #form: StreamForm
  readonly #streams = new Map<number, EventStream>()
  #count = 0

  constructor(form: StreamForm) {
    this.#form = form
    this.notifications = this.open()
  }

  open(): EventStream {
    const stream = new EventStream(this.#count, this.#form)
    this.#streams.set(stream.id, stream)
    this.#count += 1
    return stream
  }

  /** The stream that an event is of, from after that event; null where it is not kept. */
  resume(lastEventId: string): ReadableStream<Uint8Array> | null {
    const asked = eventIdOf(lastEventId)
    return asked === null ? null : (this.#streams.get(asked.stream)?.attach(asked.event) ?? null)
  }

  keepAlive(): void {
    for (const stream of this.#streams.values()) stream.keepAlive()
  }

  /** Lets go of the oldest streams that have ended. */
  forgetOld(): void {
    const ended = [...this.#streams.values()].filter((stream) => stream.ended)
    if (this.#form === 'once') for (const { id } of ended) this.#streams.delete(id)
    let bytes = ended.reduce((sum, { size }) => sum + size, 0)
    let count = ended.length
    for (const stream of ended) {
      if (count <= 1 || (count <= mostEnded && bytes <= mostEndedBytes)) return
      this.#streams.delete(stream.id)
      bytes -= stream.size
      count -= 1
    }
  }

  close(): void {
    for (const stream of this.#streams.values()) stream.end()
  }
}
