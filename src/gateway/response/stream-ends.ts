/**
 * The ends of a relayed stream, of which one happens and only once: the outcome is committed first, then the last
 * frames go to the client, so that a client that saw the end can find its event (fleet/outbox/README.md rule 4).
 */

import type { Failure } from '../../failure.ts'
import type { FrameFacts } from '../../languages/dialect.ts'
import { endAttempt, finishExchange, logUnrecordedOutcome } from '../accounting/exchange-record.ts'
import { answeredOutcome, verdictOf } from '../accounting/outcome.ts'
import { cancelForDisconnect } from '../client-disconnect.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type Outcome, type ReasonCode, required } from '../exchange.ts'
import { followResponse } from '../stored/background.ts'
import { isUnseen } from '../stored/stored-state.ts'
import { maskKey, maskWholeKey } from '../upstream/mask-provider-key.ts'
import { failureOfCall } from '../upstream/provider-failure.ts'
import { type FrameSource, lingerMilliseconds } from './frame-source.ts'
import { type FrameSteps, hasBytes, type Step } from './frame-steps.ts'

/** The part of a stream's controller that is used. */
export interface Outlet {
  enqueue(bytes: Uint8Array): void
  close(): void
}

export class StreamEnds {
  readonly #exchange: Exchange
  readonly #gateway: Gateway
  readonly #source: FrameSource
  readonly #steps: FrameSteps
  #outlet: Outlet | null = null
  /** Frames with data have been passed on. */
  begun = false
  /** The provider has sent an error frame, which was recorded and passed on; its own end may follow. */
  #failed = false
  /** The end is being recorded. */
  #ending = false
  /** Nothing more is passed on: the end is being sent, or the client disconnected. */
  #ended = false
  readonly #closed = Promise.withResolvers<void>()

  constructor(exchange: Exchange, gateway: Gateway, source: FrameSource, steps: FrameSteps) {
    this.#exchange = exchange
    this.#gateway = gateway
    this.#source = source
    this.#steps = steps
  }

  open(outlet: Outlet): void {
    this.#outlet = outlet
  }

  /** Nothing more is passed on. */
  get ended(): boolean {
    return this.#ended
  }

  /** The end is being recorded, or was sent. */
  get hasBegun(): boolean {
    return this.#ended || this.#ending
  }

  /** Resolves when nothing more is passed on. */
  get closed(): Promise<void> {
    return this.#closed.promise
  }

  pass(bytes: Uint8Array): void {
    if (!this.#ended && bytes.length > 0) this.#outlet?.enqueue(maskWholeKey(this.#exchange, bytes))
  }

  /**
   * The client disconnected: upstream is cancelled and the outcome written in the same tick. A response in the
   * background is followed. Its policies that still decide are not cancelled, because their results are recorded.
   */
  leave(): void {
    if (this.#ended) return
    if (isUnseen(this.#exchange) && !this.hasBegun) {
      void followResponse(this.#exchange, this.#gateway, 200)
      this.#source.cancel()
    }
    this.#end()
    cancelForDisconnect(this.#exchange, this.#gateway)
  }

  /** Ends at a step that stops the stream, or at the provider's last frame or error. */
  at({ bytes, stop, facts }: Step): Promise<void> {
    if (stop !== null) return this.stop(bytes, stop)
    return facts === null ? Promise.resolve() : this.#finish(bytes, facts)
  }

  /** Ends at the provider's last frame or error: the outcome first. */
  async #finish(frame: Uint8Array | null, { error, terminal }: FrameFacts): Promise<void> {
    if (this.#ended) return
    const exchange = this.#exchange
    const last = frame === null || error === null ? frame : maskKey(exchange, frame)
    const { reader } = exchange.call
    const passLast = () => {
      if (last !== null) this.pass(last)
      if (error !== null) this.pass(required(reader).endFrames())
    }
    if (isUnseen(exchange)) return this.#follow(error === null ? 'ok' : 'provider.error', passLast)
    this.#ending = terminal
    const outcome: Outcome =
      error === null ? answeredOutcome(exchange, 200) : { verdict: 'error', reason: 'provider.error', status: 200 }
    const settled = finishExchange(exchange, this.#gateway, outcome)
    if (!terminal) return this.#passError(settled, last)
    await this.#close(settled, passLast)
    void this.#source.linger()
  }

  /** The stream of a response in the background ends without the end of the response, which is followed. */
  #follow(reason: ReasonCode, passEnd: () => void): Promise<void> {
    const exchange = this.#exchange
    this.#ending = true
    endAttempt(exchange, this.#gateway, reason)
    exchange.call.abort.abort()
    return this.#close(followResponse(exchange, this.#gateway, 200), passEnd)
  }

  /** After an error frame the provider may still end its stream itself, for a moment. */
  async #passError(settled: Promise<void>, last: Uint8Array | null): Promise<void> {
    try {
      await settled
    } catch {
      // `#close` awaits the same promise, logs its failure and passes nothing on.
      return this.#close(settled, () => {})
    }
    if (last !== null) this.pass(last)
    if (this.#failed) return
    this.#failed = true
    setTimeout(() => this.#exchange.call.abort.abort(), lingerMilliseconds)
  }

  /** Ends the stream for a policy. */
  async stop(bytes: Uint8Array | null, failure: Failure): Promise<void> {
    if (this.#ended) return
    const exchange = this.#exchange
    const reader = required(exchange.call.reader)
    const verdict = verdictOf(failure)
    const { verdictan } = failure
    this.#ending = true
    const reason = verdictan?.reason_code ?? failure.code
    const settled = finishExchange(exchange, this.#gateway, { verdict, reason, status: 200 })
    exchange.call.abort.abort()
    if (hasBytes(bytes)) this.begun = true
    await this.#close(settled, () => {
      if (bytes !== null) this.pass(bytes)
      const isEscalation = verdict === 'escalate' && verdictan !== null
      this.pass(
        isEscalation ? reader.escalationFrames(verdictan, this.begun) : reader.errorFrames(failure, exchange.requestId),
      )
    })
  }

  /** The provider's side has ended; the rest may be a last frame without its blank line. */
  async withoutEnd(): Promise<void> {
    const { rest, endsForSure } = this.#source
    const step = rest === null ? await this.#steps.ownEnd(endsForSure) : await this.#steps.ofRest(rest)
    return step === null ? this.fail('provider.interrupted') : this.at(step)
  }

  /** Ends a stream that failed after it began. The reason of a cut takes precedence. */
  async fail(reason: ReasonCode): Promise<void> {
    if (this.hasBegun) return
    this.#ending = true
    const exchange = this.#exchange
    const { cut } = exchange
    const reader = required(exchange.call.reader)
    if (exchange.outcomeCommitted !== null && this.#failed) {
      return this.#close(exchange.outcomeCommitted, () => this.pass(reader.endFrames()))
    }
    const { bytes: held, stop } = await this.#steps.held(reason)
    if (stop !== null) return this.stop(held, stop)
    const broken = cut ?? failureOfCall(exchange, reason)
    const passEnd = () => {
      if (held !== null) this.pass(held)
      this.pass(reader.errorFrames(broken.failure, exchange.requestId))
    }
    if (isUnseen(exchange)) return this.#follow(broken.reason, passEnd)
    const settled = finishExchange(exchange, this.#gateway, { verdict: 'error', reason: broken.reason, status: 200 })
    exchange.call.abort.abort()
    await this.#close(settled, passEnd)
  }

  /** Waits for the outcome, passes the end on and closes. If it was not recorded the answer has no end. */
  async #close(settled: Promise<void>, passEnd: () => void): Promise<void> {
    try {
      await settled
      passEnd()
    } catch (thrown) {
      logUnrecordedOutcome(this.#exchange, this.#gateway, thrown)
    }
    if (!this.#ended) this.#outlet?.close()
    this.#end()
  }

  #end(): void {
    this.#ended = true
    this.#closed.resolve()
    // A response in the background goes on without its caller.
    if (this.#exchange.stored?.isFollowed) return
    this.#exchange.onCut = null
    this.#gateway.running.remove(this.#exchange)
  }
}
