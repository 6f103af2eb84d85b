/**
 * Passes on an answer that is neither JSON nor events, such as audio: in pieces as they arrive, the last one held until
 * the outcome is committed (fleet/outbox/README.md rule 4), so that a client with the whole answer can find its event.
 *
 * 1. The answer begins with its second piece. A failure before that is an error answer of its own, and an answer in one
 *    piece is a whole one.
 * 2. Each pull by the client reads the provider once, so a slow client slows the provider.
 * 3. One piece is held. It goes out when the next one arrives, or after the outcome when none does.
 * 4. A later failure is recorded in the outcome, and the connection is aborted without an end, so that no client takes
 *    the part for the whole.
 */
import { Failure } from '../../failure.ts'
import { families } from '../../languages/families.ts'
import { finishExchange, logUnrecordedOutcome } from '../accounting/exchange-record.ts'
import { answeredOutcome } from '../accounting/outcome.ts'
import { cancelForDisconnect } from '../client-disconnect.ts'
import type { Gateway } from '../context.ts'
import type { Exchange, ReasonCode } from '../exchange.ts'
import { headersToCaller } from '../request/headers.ts'
import type { ByteReader } from '../request/read-with-limit.ts'
import { discardAnswer } from '../upstream/provider-failure.ts'

/** Of a transcript the bytes are its text; of sound nothing is. */
export const isTranscript = ({ dialect }: Exchange): boolean => families[dialect.family].takes === 'audio'

/** Makes the answer once its second piece, or its end, has arrived. */
export async function relayBinary(
  exchange: Exchange,
  gateway: Gateway,
  upstream: Response,
  limit = gateway.settings.answer_limit_bytes,
): Promise<void> {
  const relay = new BinaryRelay(exchange, gateway, (upstream.body ?? new Blob([]).stream()).getReader(), limit)
  const failed = await relay.begin()
  if (exchange.cut !== null) throw exchange.cut.failure
  if (failed !== null) throw discardAnswer(exchange, gateway, failed)
  const { whole } = relay
  if (whole !== null) await finishExchange(exchange, gateway, answeredOutcome(exchange, upstream.status))
  else exchange.streaming = true
  exchange.answer = new Response(whole ?? new ReadableStream(relay, { highWaterMark: 0 }), {
    status: upstream.status,
    headers: headersToCaller(exchange, upstream, gateway.clock.now()),
  })
}

/** The part of a stream's controller that is used. */
interface Outlet {
  enqueue(bytes: Uint8Array): void
  close(): void
  error(reason: unknown): void
}

class BinaryRelay implements Bun.UnderlyingSource<Uint8Array> {
  readonly #exchange: Exchange
  readonly #gateway: Gateway
  readonly #reader: ByteReader
  readonly #limit: number
  /** The whole answer, if it came in one piece. */
  whole: Uint8Array | null = null
  #first: Uint8Array | null = null
  #held: Uint8Array | null = null
  #outlet: Outlet | null = null
  #received = 0
  #ended = false

  constructor(exchange: Exchange, gateway: Gateway, reader: ByteReader, limit: number) {
    this.#limit = limit
    this.#exchange = exchange
    this.#gateway = gateway
    this.#reader = reader
  }

  /** Waits for two pieces or the end; returns the reason when neither comes. */
  async begin(): Promise<ReasonCode | null> {
    const first = await this.#read()
    if (typeof first === 'string') return first
    const second = first === null ? null : await this.#read()
    if (typeof second === 'string') return second
    if (second === null) {
      this.whole = first ?? new Uint8Array(0)
      return null
    }
    this.#first = first
    this.#held = second
    // While the client does not read, no pending read of the provider could be rejected by the abort.
    this.#exchange.onCut = () => {
      if (this.#exchange.call.silentSince === null) void this.#fail('gateway.interrupted')
    }
    return null
  }

  start(outlet: Outlet): void {
    this.#outlet = outlet
  }

  async pull(): Promise<void> {
    if (this.#first !== null) {
      this.#outlet?.enqueue(this.#first)
      this.#first = null
      return
    }
    const next = await this.#read()
    if (this.#ended) return
    if (next === null) return await this.#finish()
    if (typeof next === 'string') return await this.#fail(next)
    if (this.#held !== null) this.#outlet?.enqueue(this.#held)
    this.#held = next
  }

  cancel(): void {
    this.#end()
    cancelForDisconnect(this.#exchange, this.#gateway)
  }

  /** The next piece; null at the end, or the reason why there is none. */
  async #read(): Promise<Uint8Array | null | ReasonCode> {
    const exchange = this.#exchange
    exchange.call.silentSince = this.#gateway.clock.monotonic()
    try {
      const { done, value } = await this.#reader.read()
      if (done) return null
      this.#received += value.length
      if (isTranscript(exchange)) exchange.relayedCharacters += value.length
      return this.#received > this.#limit ? 'provider.answer_too_large' : value
    } catch {
      // A cut has its reason on the exchange; otherwise the connection broke.
      return 'provider.interrupted'
    } finally {
      exchange.call.silentSince = null
    }
  }

  /** The provider is done: writes the outcome, then the last piece. If it was not recorded the answer has no end. */
  async #finish(): Promise<void> {
    try {
      await finishExchange(this.#exchange, this.#gateway, answeredOutcome(this.#exchange, 200))
    } catch (thrown) {
      logUnrecordedOutcome(this.#exchange, this.#gateway, thrown)
      return this.#breakOff()
    }
    if (this.#ended) return
    if (this.#held !== null) this.#outlet?.enqueue(this.#held)
    this.#outlet?.close()
    this.#end()
  }

  /** Ends an answer that failed after it began. The reason of a cut takes precedence. */
  async #fail(reason: ReasonCode): Promise<void> {
    const { cut, call } = this.#exchange
    const settled = finishExchange(this.#exchange, this.#gateway, {
      verdict: 'error',
      reason: cut?.reason ?? reason,
      status: 200,
    })
    call.abort.abort()
    try {
      await settled
    } catch (thrown) {
      logUnrecordedOutcome(this.#exchange, this.#gateway, thrown)
    }
    this.#breakOff()
  }

  #breakOff(): void {
    if (!this.#ended) this.#outlet?.error(new Failure('upstream_provider_error'))
    this.#end()
  }

  #end(): void {
    this.#ended = true
    this.#held = null
    this.#exchange.onCut = null
    this.#gateway.running.remove(this.#exchange)
  }
}
