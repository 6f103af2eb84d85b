/**
 * One WebSocket of an application: its text frames are requests, answered one after the other like requests of their
 * own (gateway/README.md, WebSocket).
 *
 * - Frames that arrive while one is answered wait in order, up to a number and a size. Beyond that the connection is
 *   closed with 1013, because a WebSocket peer cannot be told to pause.
 * - A peer that reads slowly slows its provider: the answer is read on once the sent bytes have left.
 * - The end of the connection aborts the running request. Waiting frames were never admitted and leave no event.
 * - Close codes (RFC 6455 section 7.4.1): 1001 the gateway stops, 1003 a binary frame, 1007 a frame that is no JSON
 *   object, 1008 the token is refused, 1009 a frame over the body limit (by the server itself), 1011 a defect.
 */
import type { GovernedToken } from '../../tokens/governed-token.ts'
import type { Conversation } from './conversation.ts'
import { type Ending, endingAfter } from './endings.ts'
import { providerErrorFrame } from './frame.ts'
import { Outlet, type Peer, passEvents } from './outlet.ts'

const mostWaiting = 256
const encoder = new TextEncoder()

export interface FrameArrival {
  /** The headers of the handshake with a signal of the frame's own, which is aborted when the connection ends. */
  request: Request
  requestId: string
  body: Uint8Array
}

export interface ConnectionOptions {
  url: string
  headers: Headers
  requestId: string
  /** The token at the handshake, by which a revocation finds the connection. */
  token: Pick<GovernedToken, 'id' | 'hash'>
  /** The bytes that waiting frames may take. */
  waitingLimit: number
  /** What is kept between frames; null where the language has nothing like it. */
  conversation: Conversation | null
  /** Runs one frame through its stages; never rejects. */
  govern(arrival: FrameArrival): Promise<Response>
  onClosed(connection: SocketConnection): void
}

export class SocketConnection {
  readonly token: ConnectionOptions['token']
  readonly requestId: string
  readonly #options: ConnectionOptions
  readonly #waiting: string[] = []
  #waitingSize = 0
  #frames = 0
  readonly #outlet = new Outlet()
  #answering = false
  #ending: Ending | null = null
  /** Aborts the frame that is being answered. */
  #leaving: AbortController | null = null

  constructor(options: ConnectionOptions) {
    this.#options = options
    this.token = options.token
    this.requestId = options.requestId
  }

  opened(peer: Peer): void {
    this.#outlet.open(peer)
    if (this.#ending !== null) this.#close(this.#ending)
  }

  received(message: string | Buffer): void {
    if (this.#ending !== null || this.#outlet.isClosed) return
    if (typeof message !== 'string') this.#close({ code: 1003, reason: 'Only text frames are accepted' })
    else if (!this.#enqueue(message)) this.#close({ code: 1013, reason: 'Too many frames wait for their answer' })
    else if (!this.#answering) void this.#answerAll()
  }

  /** What was sent has left, at least in part. */
  drained(): void {
    this.#outlet.drained()
  }

  /** The connection has ended, by either side. */
  closed(): void {
    this.#outlet.closed()
    this.#waiting.length = 0
    this.#leaving?.abort()
    this.#options.conversation?.close()
    this.#options.onClosed(this)
  }

  /** Ends the connection once the running frame is answered; if none runs, `frame` is sent first. */
  end(ending: Ending, frame: string | null = null): void {
    if (this.#ending !== null) return
    this.#waiting.length = 0
    this.#ending = ending
    if (this.#answering || !this.#outlet.isOpen) return
    if (frame !== null) void this.#outlet.send(frame)
    this.#close(ending)
  }

  /** False when too much waits already. */
  #enqueue(text: string): boolean {
    this.#waiting.push(text)
    this.#waitingSize += text.length
    return this.#waiting.length <= mostWaiting && this.#waitingSize <= this.#options.waitingLimit
  }

  async #answerAll(): Promise<void> {
    this.#answering = true
    for (let text = this.#waiting.shift(); text !== undefined; text = this.#waiting.shift()) {
      this.#waitingSize -= text.length
      const refused = await this.#answer(text)
      const ending = refused ?? this.#ending
      if (ending !== null) {
        this.#close(ending)
        break
      }
    }
    this.#answering = false
  }

  /** Answers one frame; returns how the connection must end because of it, if it must. */
  async #answer(text: string): Promise<Ending | null> {
    const { url, headers, govern } = this.#options
    this.#frames += 1
    const requestId = `${this.requestId}.${this.#frames}`
    const leaving = new AbortController()
    this.#leaving = leaving
    try {
      const request = new Request(url, { headers, signal: leaving.signal })
      return await this.#pass(
        await govern({ request, requestId, body: encoder.encode(text) }),
        requestId,
        leaving.signal,
      )
    } catch {
      // A provider's stream ends in frames, never in an error, so an exception is a defect, which the peer is told.
      return { code: 1011, reason: 'Internal error' }
    } finally {
      this.#leaving = null
      this.#options.conversation?.end()
    }
  }

  async #pass(response: Response, requestId: string, left: AbortSignal): Promise<Ending | null> {
    const isStream = response.headers.get('content-type')?.startsWith('text/event-stream') === true
    if (isStream && response.body !== null) {
      await passEvents(response.body, left, (data) => this.#sendEvent(data))
      return null
    }
    const body = await response.text()
    const isOurs = response.headers.get('x-service-error-source') !== 'upstream'
    await this.#outlet.send(isOurs ? body : providerErrorFrame(response.status, body, requestId))
    return isOurs ? endingAfter(response.status, body) : null
  }

  #sendEvent(data: string): Promise<void> | void {
    this.#options.conversation?.sent(data)
    return this.#outlet.send(data)
  }

  #close({ code, reason }: Ending): void {
    this.#ending ??= { code, reason }
    this.#waiting.length = 0
    this.#outlet.close(code, reason)
  }
}
