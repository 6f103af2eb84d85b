/**
 * Runs post_request policies on the answer of a provider in another language before it is translated
 * (policies/README.md), read by the dialect of the provider's language. pre_response then inspects the translation. For
 * a language without a dialect (Bedrock's) both stages inspect the translation. Errors are always inspected after
 * translation.
 *
 * - Usage, text length and first token are noted here, because the answer may be held or stopped before translation.
 * - A whole answer is read when it is requested and continues as the JSON that policies left. A stream continues frame
 *   by frame. When it is stopped or breaks, the text that may go out precedes the error.
 * - A policy decision breaks the body with its Failure. While a policy calls an outside service, the provider does not
 *   count as silent.
 */

import { Failure } from '../../failure.ts'
import { inParts } from '../../languages/chat/parts.ts'
import type { Dialect, StreamReader } from '../../languages/dialect.ts'
import { isFamily } from '../../languages/families.ts'
import { dialects } from '../../languages/index.ts'
import type { LanguageName } from '../../languages/neutral.ts'
import { isObject } from '../../languages/reading/json-value.ts'
import { readArgumentsExactly } from '../../languages/reading/texts/exact-arguments.ts'
import { RequestEcho } from '../../languages/reading/texts/request-echo.ts'
import { UnreadableAnswer } from '../../languages/translation/translate-response.ts'
import { type SseFrame, SseSplitter } from '../../lib/http/sse.ts'
import { parseExactly } from '../../lib/json/exact-json.ts'
import { isRepetitive } from '../../lib/json/json-members.ts'
import { withNumbersOf } from '../../lib/json/keep-numbers.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { type ByteReader, readBounded } from '../request/read-with-limit.ts'
import { providerLanguageOf } from '../request/translate.ts'
import { noteText, noteUsage } from '../response/note-frame.ts'
import { evaluateAnswer } from './evaluate-response.ts'
import type { Inspected } from './inspected-stream.ts'
import { PolicyStream } from './policy-stream.ts'

const stages = ['post_request'] as const
const encoder = new TextEncoder()

/** The provider's response after post_request policies; the response itself when none inspects it here. */
export function inspectedUpstream(
  exchange: Exchange,
  gateway: Gateway,
  upstream: Response,
  language: LanguageName,
): Response {
  const dialect = isFamily(language) ? dialects[language] : undefined
  const isAsked = exchange.chain !== null && exchange.chain.at('post_request').length > 0
  if (!isAsked || dialect === undefined || !upstream.ok || upstream.body === null) return upstream
  const isStream = (upstream.headers.get('content-type') ?? '').toLowerCase().startsWith('text/event-stream')
  if (isStream) exchange.call.inspectedUpstream = true
  const source = isStream
    ? new PolicedFrames(exchange, gateway, upstream, dialect)
    : new PolicedWhole(exchange, gateway, upstream, dialect, language)
  const headers = new Headers(upstream.headers)
  headers.delete('content-length')
  return new Response(new ReadableStream(source, { highWaterMark: 0 }), { status: upstream.status, headers })
}

interface Outlet {
  enqueue(bytes: Uint8Array): void
  close(): void
}

abstract class Policed implements Bun.UnderlyingSource<Uint8Array> {
  protected readonly exchange: Exchange
  protected readonly gateway: Gateway
  /** Referenced so that it is not garbage-collected while its body is read. */
  protected readonly upstream: Response
  protected readonly reader: ByteReader

  constructor(exchange: Exchange, gateway: Gateway, upstream: Response) {
    this.exchange = exchange
    this.gateway = gateway
    this.upstream = upstream
    this.reader = (upstream.body ?? new Blob([]).stream()).getReader()
  }

  abstract pull(outlet: Outlet): Promise<void>

  cancel(): Promise<void> {
    return this.reader.cancel()
  }

  protected noteActivity = (): void => {
    if (this.exchange.call.silentSince !== null) this.exchange.call.silentSince = this.gateway.clock.monotonic()
  }

  /** Waits for a policy that calls an outside service, which does not count as silence of the provider. */
  protected async asked<Value>(pending: Promise<Value>): Promise<Value> {
    const { exchange } = this
    const waited = exchange.call.silentSince !== null
    exchange.call.silentSince = null
    try {
      return await pending
    } finally {
      if (waited && exchange.outcomeCommitted === null && exchange.cut === null) {
        exchange.call.silentSince = this.gateway.clock.monotonic()
      }
    }
  }
}

class PolicedWhole extends Policed {
  readonly #dialect: Dialect
  readonly #language: LanguageName

  constructor(exchange: Exchange, gateway: Gateway, upstream: Response, dialect: Dialect, language: LanguageName) {
    super(exchange, gateway, upstream)
    this.#dialect = dialect
    this.#language = language
  }

  async pull(outlet: Outlet): Promise<void> {
    const bytes = await readBounded(this.reader, this.gateway.settings.answer_limit_bytes, this.noteActivity)
    if (bytes === null) {
      throw new UnreadableAnswer('The answer is too long to be held for the policies', {
        reason: 'provider.answer_too_large',
      })
    }
    const text = new TextDecoder().decode(bytes)
    const body = parsedOrNull(text)
    const evaluated = isObject(body) && this.#isAnswer(text) ? await this.#evaluated(body, text) : null
    outlet.enqueue(evaluated === null ? bytes : encoder.encode(evaluated))
    outlet.close()
  }

  /** Translation reports what is no answer, also an error with a success status. */
  #isAnswer(text: string): boolean {
    try {
      return providerLanguageOf(this.#language).readAnswer(parseExactly(text)).finish !== 'error'
    } catch {
      return false
    }
  }

  async #evaluated(body: Record<string, unknown>, text: string): Promise<string> {
    const { exchange } = this
    const { usage, textLength } = this.#dialect.readAnswer(body)
    exchange.call.usage = usage
    exchange.relayedCharacters = textLength
    exchange.call.inspectedUpstream = true
    readArgumentsExactly(body, text)
    const answer = { status: this.upstream.status, body }
    const pending = evaluateAnswer(exchange, this.gateway, answer, { dialect: this.#dialect, stages })
    const changed = pending instanceof Promise ? await this.asked(pending) : pending
    return changed === null && !isRepetitive(text, body) ? text : withNumbersOf(text, changed ?? body)
  }
}

function parsedOrNull(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Translation reports that it is no answer.
    return null
  }
}

class PolicedFrames extends Policed {
  readonly #splitter: SseSplitter
  readonly #frames: StreamReader
  readonly #inspection: PolicyStream
  /** The failure of the next pull; text that may go out precedes it. */
  #failure: { readonly thrown: unknown } | null = null
  /** The provider's last frame has arrived or a policy stopped it: what follows is dropped. */
  #over = false

  constructor(exchange: Exchange, gateway: Gateway, upstream: Response, dialect: Dialect) {
    super(exchange, gateway, upstream)
    const { model } = required(exchange.facts)
    this.#splitter = new SseSplitter(gateway.settings.answer_limit_bytes)
    this.#frames = dialect.reader({
      model,
      exchangeId: exchange.id,
      usageAdded: false,
      asked: new RequestEcho(exchange.parsed),
    })
    const channels = dialect.family === 'chat' ? inParts(this.#frames) : this.#frames
    this.#inspection = new PolicyStream(exchange, gateway, channels, stages)
  }

  async pull(outlet: Outlet): Promise<void> {
    for (;;) {
      if (this.#failure !== null) throw this.#failure.thrown
      const piece = await this.#piece()
      const passed: Uint8Array[] = []
      try {
        if (piece === null) await this.#passRest(passed)
        else await this.#pass(this.#splitter.push(piece), passed)
      } catch (thrown) {
        this.#failure = { thrown: thrown instanceof Failure ? thrown : unreadable(thrown) }
      }
      if (passed.length > 0) outlet.enqueue(Buffer.concat(passed))
      if (piece === null && this.#failure === null) return outlet.close()
      if (passed.length > 0) return
    }
  }

  /** The next bytes of the provider; null at its end or break. A break is reported after the held text. */
  async #piece(): Promise<Uint8Array | null> {
    try {
      const { done, value } = await this.reader.read()
      if (done) return null
      this.noteActivity()
      return value
    } catch (thrown) {
      if (this.exchange.cut !== null) throw thrown
      this.#failure = { thrown }
      return null
    }
  }

  async #pass(frames: readonly SseFrame[], passed: Uint8Array[]): Promise<void> {
    for (const frame of frames) {
      if (this.#over) return
      const { event, data } = frame
      const facts = data === null ? null : this.#frames.frame({ event, data })
      if (facts !== null) {
        noteText(this.exchange, this.gateway, facts)
        noteUsage(this.exchange, facts)
      }
      const inspected = this.#inspection.take(frame, facts)
      this.#take(inspected instanceof Promise ? await this.asked(inspected) : inspected, passed)
      this.#over ||= facts?.terminal === true
    }
  }

  /** Passes what is left at the provider's end: a last frame without its blank line, and held text. */
  async #passRest(passed: Uint8Array[]): Promise<void> {
    if (this.#over) return
    const last = this.#failure === null ? this.#splitter.end() : null
    if (last !== null) {
      await this.#pass([last], passed)
      passed.push(blankLine)
    }
    if (this.#over) return
    const inspected = this.#inspection.end()
    this.#take(inspected instanceof Promise ? await this.asked(inspected) : inspected, passed)
  }

  #take({ bytes, stop }: Inspected, passed: Uint8Array[]): void {
    if (bytes !== null && bytes.length > 0) passed.push(bytes)
    if (stop === null) return
    this.#over = true
    this.#failure = { thrown: stop }
    this.exchange.call.abort.abort()
  }
}

const blankLine = encoder.encode('\n\n')

const unreadable = (cause: unknown): UnreadableAnswer =>
  new UnreadableAnswer("A frame is none in its provider's language", { cause })
