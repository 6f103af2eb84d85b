/**
 * One response of a session, as a call to a provider: `response.create` is its request, and the events of the response
 * are its answer, an event stream. So the stages of every request govern it, and the relay of every stream passes it on.
 */
import { parseObject } from '../../languages/reading/json-value.ts'
import { eventId } from '../../languages/realtime/events.ts'
import type { UpstreamCall } from '../../providers/provider.ts'
import type { Exchange } from '../exchange.ts'

/** What a turn uses of its session. */
export interface TurnSession {
  /** The turn is about to be sent, so its response is the next that begins; false if the session is ending. */
  sending(turn: Turn): boolean
  /** A turn was given up before the provider said anything of it, so nobody knows which response begins next. */
  lost(): void
  /** Sends an event to the provider; false if the session with it has ended. */
  toProvider(event: object): boolean
  /** Something that waited here was read. */
  read(): void
}

const encoder = new TextEncoder()
const decoder = new TextDecoder()
const streamHeaders = { 'content-type': 'text/event-stream' }

export class Turn {
  /** The id of our `response.create`, which an error of the provider names. */
  readonly eventId: string
  /** It adds to the conversation, as the session's own responses do. */
  readonly inConversation: boolean
  /** Resolves when `response.create` was sent. */
  readonly sent = Promise.withResolvers<void>()
  /** The provider's id; null before it said so. */
  responseId: string | null = null
  /** The exchange of this response once it may call the provider. */
  exchange: Exchange | null = null
  /** Items of the conversation that this response makes. */
  readonly items = new Set<string>()
  readonly #session: TurnSession
  readonly #answered = Promise.withResolvers<Response>()
  /** The call was given up, so what still comes is dropped. */
  #abandoned = false
  #ended = false
  readonly #frames: Uint8Array[] = []
  #waitingBytes = 0
  #failure: Error | null = null
  #wake: (() => void) | null = null

  constructor(session: TurnSession, id: string, inConversation: boolean) {
    this.#session = session
    this.eventId = eventId(id)
    this.inConversation = inConversation
    // Without a listener a turn that is refused before it is sent would be an unhandled rejection.
    this.#answered.promise.catch(() => undefined)
  }

  /** Bytes that wait to be read. */
  get waitingBytes(): number {
    return this.#waitingBytes
  }

  /** Sends `response.create` (`Exchange.transport`). Resolves when the provider has begun or refused the response. */
  readonly send = ({ body, signal }: UpstreamCall): Promise<Response> => {
    const { model: _, ...response } = parseObject(decoder.decode(body)) ?? {}
    signal.addEventListener('abort', () => this.#abandon(signal.reason), { once: true })
    const event = { type: 'response.create', event_id: this.eventId, response }
    if (!this.#session.sending(this) || !this.#session.toProvider(event)) {
      this.fail(new Error('The session with the provider has ended'))
    }
    this.sent.resolve()
    return this.#answered.promise
  }

  /** The provider has begun the response. */
  begun(responseId: string): void {
    this.responseId = responseId
    if (this.#abandoned) {
      this.#cancel()
      return
    }
    const pull = (controller: ReadableStreamDefaultController<Uint8Array>) => this.#pull(controller)
    const cancel = () => this.#abandon(new Error('The answer is not read any more'))
    const body = new ReadableStream<Uint8Array>({ pull, cancel }, { highWaterMark: 0 })
    this.#answered.resolve(new Response(body, { headers: streamHeaders }))
  }

  /** The provider does not make the response. */
  refused(error: unknown): void {
    this.#ended = true
    this.#answered.resolve(Response.json({ error }, { status: 400 }))
  }

  /** An event of the response; `last`: it ends it. */
  push(event: string, last: boolean): void {
    if (this.#ended) return
    if (last) this.#ended = true
    if (this.#abandoned) return
    // A line end in JSON stands between its parts only.
    const frame = encoder.encode(`data: ${event.replace(/[\r\n]+/g, ' ')}\n\n`)
    this.#frames.push(frame)
    this.#waitingBytes += frame.length
    this.#wake?.()
  }

  /** The response broke off. */
  fail(error: Error): void {
    if (this.#ended) return
    this.#ended = true
    this.#failure = error
    this.#answered.reject(error)
    this.#wake?.()
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    if (this.#frames.length === 0 && !this.#ended) {
      await new Promise<void>((resolve) => {
        this.#wake = resolve
      })
      this.#wake = null
    }
    const [frame] = this.#frames.splice(0, 1)
    if (frame !== undefined) {
      this.#waitingBytes -= frame.length
      controller.enqueue(frame)
      this.#session.read()
    } else if (this.#failure !== null) controller.error(this.#failure)
    else controller.close()
  }

  #abandon(reason: unknown): void {
    if (this.#abandoned) return
    this.#abandoned = true
    this.#frames.length = 0
    this.#waitingBytes = 0
    this.#failure ??= reason instanceof Error ? reason : new Error('The call was cancelled')
    this.#answered.reject(this.#failure)
    if (this.responseId !== null) this.#cancel()
    else if (!this.#ended) this.#session.lost()
    this.#session.read()
    this.#wake?.()
  }

  #cancel(): void {
    if (!this.#ended) this.#session.toProvider({ type: 'response.cancel', response_id: this.responseId })
  }
}
