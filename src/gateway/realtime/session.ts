/**
 * One realtime session: the WebSocket of an application on one side, that of the provider on the other. This file holds
 * its life, from the handshake to the close; `client-events.ts` and `provider-events.ts` say what happens to each event.
 * It is longer than most because both connections, and who waits for whom, are one state.
 *
 * 1. The provider's session is opened, and its own responses are turned off, before an event of the client is read.
 * 2. Four times a second the session is checked: its token, its length, its idle time. Each event checks the token too.
 * 3. Whoever sends faster than the other side reads is paused.
 * 4. An end is told by an error event, then by the close code. Running responses may finish first, unless the session
 *    is too long or the client has gone. Each has its outcome, whatever ends the session.
 */
import { asFailure, Failure, type FailureCode } from '../../failure.ts'
import { isObject, type JsonObject, parseObject, textOf } from '../../languages/reading/json-value.ts'
import { transcriptionModel } from '../../languages/realtime/session-settings.ts'
import type { ClientSocket } from '../../lib/http/dial-socket.ts'
import type { Gateway } from '../context.ts'
import { answerFailure } from '../error-response.ts'
import { cutExchange, type Exchange, required } from '../exchange.ts'
import { headersToProvider } from '../request/headers.ts'
import { type Ending, endingOf } from '../websocket/endings.ts'
import { Outlet, type Peer } from '../websocket/outlet.ts'
import { type Guards, guardsNow } from './admission.ts'
import { ClientEvents } from './client-events.ts'
import type { GovernSession, LiveSession, SessionArrival } from './live-session.ts'
import { ProviderEvents } from './provider-events.ts'
import { RecentIds } from './recent-ids.ts'
import { Setup } from './setup.ts'
import type { SessionFacts } from './stages.ts'
import { limitReached } from './time-limits.ts'
import { Transcripts } from './transcripts.ts'
import type { Turn } from './turn.ts'
import { Turns } from './turns.ts'

/** How often a session is checked. */
const checkMilliseconds = 250
/** For the last frames to leave. */
const lastFramesMilliseconds = 1500
const ended = { code: 1011, reason: 'The session with the provider has ended' }

export interface SessionOptions {
  gateway: Gateway
  /** The handshake, admitted. */
  exchange: Exchange
  govern: GovernSession
  onClosed(session: RealtimeSession): void
}

export class RealtimeSession implements LiveSession {
  readonly gateway: Gateway
  readonly exchange: Exchange
  readonly govern: GovernSession
  readonly facts: SessionFacts
  readonly outlet = new Outlet()
  readonly turns = new Turns()
  readonly transcripts: Transcripts
  readonly ownItems = new RecentIds()
  /** Aborted when the client has gone. */
  readonly left = new AbortController()
  heardSeconds = 0
  /** The settings of the session as the provider stated them last. */
  settings: JsonObject = {}
  /** The client wants each turn of speech to be answered by itself. */
  answersTurns = true
  readonly #onClosed: SessionOptions['onClosed']
  readonly #client: ClientEvents
  readonly #provider: ProviderEvents
  #peer: Peer | null = null
  #socket: ClientSocket | null = null
  readonly #setup: Setup
  #isReady = false
  #ending: Ending | null = null
  #check: ReturnType<typeof setInterval> | null = null
  #requests = 0
  #openedAt = 0
  #lastEventAt = 0
  #isClientPaused = false
  #isProviderPaused = false

  constructor({ gateway, exchange, govern, onClosed }: SessionOptions) {
    this.gateway = gateway
    this.exchange = exchange
    this.govern = govern
    this.#onClosed = onClosed
    const sessionId = exchange.request.headers.get('x-session-id') ?? exchange.requestId
    this.facts = {
      path: required(exchange.model),
      sessionId,
      placeholders: null,
      context: { tokens: 0, sound: 0 },
    }
    this.transcripts = new Transcripts(this)
    this.#setup = new Setup(exchange)
    this.#client = new ClientEvents(this)
    this.#provider = new ProviderEvents(this, this.#client)
  }

  get token() {
    return required(this.exchange.token)
  }

  get requestId(): string {
    return this.exchange.requestId
  }

  get isEnding(): boolean {
    return this.#ending !== null || this.outlet.isClosed
  }

  /** The model that writes transcripts of what is said; null where none does. */
  get transcriptionModel(): string | null {
    return transcriptionModel(this.settings)
  }

  opened(peer: Peer): void {
    this.#peer = peer
    this.outlet.open(peer)
    const now = this.gateway.clock.monotonic()
    this.#openedAt = now
    this.#lastEventAt = now
    this.#check = setInterval(() => this.#checkNow(), checkMilliseconds)
    if (this.#ending !== null) {
      this.#close()
      return
    }
    const { provider, kind, upstreamModel } = this.facts.path
    const headers = headersToProvider(this.exchange.request.headers, 'realtime', null, false)
    try {
      const handlers = {
        received: (text: string) => this.#received(text),
        closed: (reason: string) => this.#providerClosed(reason),
      }
      this.#socket = kind.openSession?.(provider, { model: upstreamModel, headers }, handlers) ?? null
    } catch (thrown) {
      this.#providerClosed(String(thrown))
    }
  }

  /** An event of the client. */
  received(message: string | Buffer): void {
    if (this.isEnding) return
    this.#lastEventAt = this.gateway.clock.monotonic()
    if (typeof message !== 'string') {
      this.endWith({ code: 1003, reason: 'Only text frames are accepted' })
      return
    }
    const limit = this.gateway.settings.realtime_frame_bytes
    if (message.length > limit) {
      const failure = new Failure('request_too_large', {
        message: `An event is larger than the limit of ${limit} bytes`,
      })
      this.fail(failure)
      return
    }
    this.#client.take(message)
    this.balance()
  }

  /** What was sent to the client has left, at least in part. */
  drained(): void {
    this.outlet.drained()
    this.balance()
  }

  /** The client's connection has ended, by either side. */
  closed(): void {
    if (this.#check !== null) clearInterval(this.#check)
    this.#check = null
    this.#ending ??= { code: 1001, reason: 'The client has gone' }
    this.outlet.closed()
    this.left.abort()
    this.#client.clear()
    this.transcripts.clear()
    this.#socket?.close()
    this.turns.failAll(new Error('The session has ended'))
    this.#onClosed(this)
  }

  /** Ends the session once its running responses have ended (`Sockets`). */
  end(ending: Ending, frame: string | null = null): void {
    if (frame !== null && !this.isEnding) void this.outlet.send(frame)
    this.endWith(ending, true)
  }

  /** Refuses what comes from now on, and closes: at once, but for the last frames, or when no response runs. */
  endWith(ending: Ending, waits = false): void {
    if (this.#ending !== null) return
    this.#ending = ending
    this.#client.clear()
    if (this.#peer === null) return
    const idle = this.turns.whenIdle()
    void (waits ? idle : Promise.race([idle, Bun.sleep(lastFramesMilliseconds)])).then(() => this.#close())
  }

  /** Tells a failure that ends the session. */
  fail(failure: Failure, ending = endingOf(failure.code) ?? ended, waits = false): void {
    if (this.isEnding) return
    this.refuse(failure, null)
    this.endWith(ending, waits)
  }

  /** Tells the client that an event of its was refused. */
  refuse(failure: Failure, eventId: unknown): void {
    const event: unknown = this.exchange.dialect.errorBody(failure, this.requestId)
    if (isObject(event)) this.tellError(event, eventId)
  }

  tellError(event: JsonObject, eventId: unknown): void {
    const error = isObject(event.error) ? event.error : {}
    this.tell(JSON.stringify({ ...event, error: { ...error, event_id: textOf(eventId) } }))
  }

  /** Sends an event to the client. */
  tell(text: string): Promise<void> | void {
    const sending = this.outlet.send(text)
    this.balance()
    return sending
  }

  toProvider(event: object): boolean {
    if (this.#socket === null || this.outlet.isClosed) return false
    this.#socket.send(JSON.stringify(event))
    this.balance()
    return true
  }

  sending(turn: Turn): boolean {
    if (this.isEnding) return false
    this.turns.await(turn)
    return true
  }

  /** A response was given up before it began, so nobody knows which one begins next. */
  lost(): void {
    this.fail(new Failure('realtime_session_ended'), ended)
  }

  read(): void {
    this.balance()
  }

  /** Makes the request of an event or a response. */
  arrivalOf(body: JsonObject): SessionArrival {
    this.#requests += 1
    const { url, headers } = this.exchange.request
    return {
      request: new Request(url, { headers, signal: this.left.signal }),
      requestId: `${this.requestId}.${this.#requests}`,
      body: new TextEncoder().encode(JSON.stringify({ ...body, model: required(this.exchange.facts).model })),
    }
  }

  /** What the policies ask for now; null if the token is not valid any more, which ends the session. */
  guards(): Guards | null {
    try {
      return guardsNow(this.exchange, this.gateway)
    } catch (thrown) {
      const failure = asFailure(thrown)
      this.fail(failure, endingOf(failure.code) ?? { code: 1008, reason: 'The token is refused' }, true)
      return null
    }
  }

  /** Pauses whoever sends faster than the other side reads. */
  balance(): void {
    const { realtime_buffer_bytes: most } = this.gateway.settings
    const toClient = this.outlet.isFull || this.turns.waitingBytes > most
    if (toClient !== this.#isProviderPaused && this.#socket !== null) {
      this.#isProviderPaused = toClient
      if (toClient) this.#socket.pause()
      else this.#socket.resume()
    }
    const toProvider = this.#client.waitingBytes + (this.#socket?.bufferedAmount ?? 0) > most
    if (toProvider !== this.#isClientPaused && this.#peer !== null && this.outlet.isOpen) {
      this.#isClientPaused = toProvider
      if (toProvider) this.#peer.pause()
      else this.#peer.resume()
    }
  }

  /** A provider that breaks the protocol: what it says belongs to no request that was admitted. */
  breach(what: string): void {
    const { exchange, gateway } = this
    gateway.log.warn({ request_id: exchange.requestId, what }, 'A provider broke the realtime protocol')
    this.turns.failAll(new Error(what))
    const message = `The provider broke the protocol, so the session ends: ${what}`
    this.fail(new Failure('upstream_provider_error', { message }), ended)
  }

  #received(text: string): void {
    if (this.outlet.isClosed) return
    if (text.length > this.gateway.settings.realtime_frame_bytes) {
      this.breach('it sent an event over the limit')
      return
    }
    const event = parseObject(text)
    if (event === null) {
      this.breach('it sent something that is no event')
      return
    }
    try {
      if (this.#isReady) this.#provider.take(event, text)
      else this.#setUp(event, text)
    } catch (thrown) {
      // Nothing here refuses an event of the provider, so an exception is a defect.
      this.gateway.log.error({ request_id: this.requestId, error: String(thrown) }, 'An event was not handled')
      this.fail(asFailure(thrown))
    }
    this.balance()
  }

  #setUp(event: JsonObject, text: string): void {
    const step = this.#setup.take(event, text)
    if (event.type !== 'error' && isObject(event.session)) this.settings = event.session
    if (step === null) return
    if (step instanceof Failure) {
      this.#refuseSession(step)
      return
    }
    if ('update' in step) {
      this.toProvider(step.update)
      return
    }
    this.answersTurns = step.answersTurns
    this.#isReady = true
    void this.tell(step.created)
    this.#client.begin()
  }

  /** The session never began: refused like a request, with its event. */
  #refuseSession(failure: Failure): void {
    if (this.isEnding) return
    this.#ending = ended
    void answerFailure(this.exchange, this.gateway, failure).then(async (answer) => {
      const event = parseObject(await answer.text())
      if (event !== null) this.tellError(event, null)
      this.#close()
    })
  }

  #providerClosed(reason: string): void {
    const { exchange, gateway } = this
    gateway.log.warn({ request_id: exchange.requestId, reason }, 'The provider ended a realtime session')
    this.#socket = null
    this.turns.failAll(new Error('The provider ended the session'))
    const status = /status code: (\d{3})/.exec(reason)?.[1]
    const code: FailureCode = this.#isReady ? 'upstream_provider_error' : 'provider_primary_path_error'
    const why = status === undefined ? '' : ` with status ${status}`
    const message = this.#isReady ? 'The provider ended the session' : `The provider refused the session${why}`
    const failure = new Failure(code, { message })
    if (this.#isReady) this.fail(failure, ended)
    else this.#refuseSession(failure)
  }

  #checkNow(): void {
    this.balance()
    const { settings, clock } = this.gateway
    const now = clock.monotonic()
    const [age, idle] = [now - this.#openedAt, now - this.#lastEventAt].map((milliseconds) => milliseconds / 1000)
    const times = { age, idle, isReady: this.#isReady, isAnswering: this.turns.size > 0 }
    const over = limitReached(settings, this.facts.path.provider, times)
    if (over === null) {
      if (this.#isReady && !this.isEnding) this.guards()
      return
    }
    const { failure, ending } = over
    if (this.isEnding) {
      this.#close()
      return
    }
    if (!this.#isReady) {
      this.#refuseSession(failure)
      return
    }
    this.fail(failure, ending)
    for (const { exchange } of this.turns) if (exchange !== null) cutExchange(exchange, failure.code, failure)
  }

  #close(): void {
    const { code, reason } = this.#ending ?? ended
    this.#socket?.close()
    this.outlet.close(code, reason)
    // A peer that reads nothing does not hear of the close either.
    setTimeout(() => {
      if (!this.outlet.isClosed) this.#peer?.terminate()
    }, lastFramesMilliseconds).unref()
  }
}
