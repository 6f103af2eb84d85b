/**
 * Passes on an answer that is neither JSON nor events, such as audio: in pieces as they come, with the last one held back
 * until the outcome is committed (fleet/outbox/README.md rule 4), so that whoever has the whole of it can
 * find its event.
 *
 * 1. Nothing can go out before the second piece is there, so the answer begins only then: what goes wrong until then is
 *    an error of its own, and an answer of one piece is a whole one.
 * 2. Each pull of the caller's side reads the provider once; a slow caller slows the provider.
 * 3. One piece is held: it goes out when the next one has come, or after the outcome when none comes.
 * 4. What goes wrong later cannot be said any more: the outcome says it, and the connection is broken off without an
 *    end, so that nobody takes the part for the whole.
 */
import { Failure } from '../../failure.ts'
import { families } from '../../languages/families.ts'
import { logUnrecorded, settle } from '../accounting/exchange-record.ts'
import { answered } from '../accounting/outcome.ts'
import { callerLeft } from '../client-disconnect.ts'
import type { Gateway } from '../context.ts'
import type { Exchange, ReasonCode } from '../exchange.ts'
import { headersToCaller } from '../request/headers.ts'
import type { ByteReader } from '../request/read-with-limit.ts'
import { unusable } from '../upstream/provider-failure.ts'

/** Of a transcript the bytes are its text; of sound nothing is. */
export const isTranscript = ({ dialect }: Exchange): boolean => families[dialect.family].takes === 'sound'

/** Makes the answer once its second piece is there, or its end. */
export async function relayPlain(exchange: Exchange, gateway: Gateway, upstream: Response): Promise<void> {
  const relay = new PlainRelay(exchange, gateway, (upstream.body ?? new Blob([]).stream()).getReader())
  const failed = await relay.begin()
  if (exchange.cut !== null) throw exchange.cut.failure
  if (failed !== null) throw unusable(exchange, gateway, failed)
  const { whole } = relay
  if (whole !== null) await settle(exchange, gateway, answered(exchange, upstream.status))
  else exchange.streaming = true
  exchange.answer = new Response(whole ?? new ReadableStream(relay, { highWaterMark: 0 }), {
    status: upstream.status,
    headers: headersToCaller(exchange, upstream, gateway.clock.now()),
  })
}

/** What is used of a stream's controller. */
interface Outlet {
  enqueue(bytes: Uint8Array): void
  close(): void
  error(reason: unknown): void
}

class PlainRelay implements Bun.UnderlyingSource<Uint8Array> {
  readonly #exchange: Exchange
  readonly #gateway: Gateway
  readonly #reader: ByteReader
  /** The whole answer, where it came in one piece. */
  whole: Uint8Array | null = null
  #first: Uint8Array | null = null
  #held: Uint8Array | null = null
  #outlet: Outlet | null = null
  #received = 0
  #ended = false

  constructor(exchange: Exchange, gateway: Gateway, reader: ByteReader) {
    this.#exchange = exchange
    this.#gateway = gateway
    this.#reader = reader
  }

  /** Waits for two pieces, or the end; gives why neither came. */
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
    // While the caller does not read, no read of the provider is there to be rejected by the abort.
    this.#exchange.onCut = () => {
      if (this.#exchange.waitingSince === null) void this.#fail('gateway.interrupted')
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
    callerLeft(this.#exchange, this.#gateway)
  }

  /** The next piece; null at the end, or why there is none. */
  async #read(): Promise<Uint8Array | null | ReasonCode> {
    const exchange = this.#exchange
    exchange.waitingSince = this.#gateway.clock.monotonic()
    try {
      const { done, value } = await this.#reader.read()
      if (done) return null
      this.#received += value.length
      if (isTranscript(exchange)) exchange.relayedText += value.length
      return this.#received > this.#gateway.settings.answer_limit_bytes ? 'provider.answer_too_large' : value
    } catch {
      // Why it broke is on the exchange where it was cut; otherwise the connection did, and the outcome says so.
      return 'provider.interrupted'
    } finally {
      exchange.waitingSince = null
    }
  }

  /** The provider is done: the outcome, then the last piece. Where it was not recorded the answer has no end. */
  async #finish(): Promise<void> {
    try {
      await settle(this.#exchange, this.#gateway, answered(this.#exchange, 200))
    } catch (thrown) {
      logUnrecorded(this.#exchange, this.#gateway, thrown)
      return this.#breakOff()
    }
    if (this.#ended) return
    if (this.#held !== null) this.#outlet?.enqueue(this.#held)
    this.#outlet?.close()
    this.#end()
  }

  /** Ends an answer that went wrong after it began. Where the exchange was cut, that is the reason. */
  async #fail(reason: ReasonCode): Promise<void> {
    const { cut, abort } = this.#exchange
    const settled = settle(this.#exchange, this.#gateway, {
      verdict: 'error',
      reason: cut?.reason ?? reason,
      status: 200,
    })
    abort.abort()
    try {
      await settled
    } catch (thrown) {
      logUnrecorded(this.#exchange, this.#gateway, thrown)
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
