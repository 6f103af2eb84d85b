/**
 * A provider's answer in the caller's language, as a Response that the gateway takes like any other: its stages,
 * policies and usage see only the caller's language (gateway/README.md).
 *
 * - A stream is read when it is asked for, frame by frame as the bytes complete them, and written out at once; one that
 *   breaks off or ends without its end does so here too, since whoever relays it has to see that.
 * - A whole answer or an error is read to its end, and is then one piece. What grows past the limit goes on as it
 *   comes,
 *   for whoever bounds it to refuse. One that says it is short is read before it is given on: streams around it would
 *   cost ten times what its translation does.
 * - Of the headers only those that say when to try again are left: the others are of another language.
 *
 * What cannot be read as what the provider's language says breaks the body with `UnreadableAnswer`.
 */

import { announcedLength } from '../../lib/http/announced-length.ts'
import { type SseFrame, SseSplitter } from '../../lib/http/sse.ts'
import { parseExactly } from '../../lib/json/exact-json.ts'
import type { NeutralEvent } from '../neutral.ts'
import { statusOfError } from '../reading/frames/error-status.ts'
import { saysOnlyThatItLives } from '../reading/frames/unknown-frames.ts'
import { isGiven, isObject, type JsonObject } from '../reading/json-value.ts'
import type {
  AnswerStart,
  CallerLanguage,
  NeutralStreamReader,
  NeutralStreamWriter,
  ProviderLanguage,
} from '../translation-language.ts'
import { requireName } from './translation-errors.ts'

type Unreadable = 'provider.invalid_answer' | 'provider.answer_too_large'

/** The provider's answer is not valid in the language of the request, or is larger than the limit. */
export class UnreadableAnswer extends Error {
  readonly reason: Unreadable

  constructor(
    message: string,
    { reason = 'provider.invalid_answer', ...more }: ErrorOptions & { reason?: Unreadable } = {},
  ) {
    super(message, more)
    this.reason = reason
  }
}

export interface Translation {
  /** The provider's language. */
  from: ProviderLanguage
  /** The caller's. */
  to: CallerLanguage
  asked: AnswerStart
  /** The most bytes that are held of a whole answer, and of one frame of a stream. */
  limit: number
  /** Called for every piece from the provider, whether or not it makes a piece for the caller. */
  heard(): void
  /**
   * Called for each event of a stream at once: if the stream is cut off, its usage may not be in anything that was
   * written.
   */
  told?(event: NeutralEvent): void
}

const retryHeaders = ['retry-after', 'retry-after-ms', 'x-should-retry'] as const
const encoder = new TextEncoder()
const keepOpen = ':\n\n'

/** Statuses that are not answers are returned unchanged, among them redirects and those without a body. */
export function translated(upstream: Response, translation: Translation): Response | Promise<Response> {
  const { status } = upstream
  if (status < 200 || status === 204 || status === 205 || (status >= 300 && status < 400)) return upstream
  const type = (upstream.headers.get('content-type') ?? '').toLowerCase()
  const isStream = status < 300 && type.startsWith('text/event-stream')
  const headers: Record<string, string> = {
    'content-type': isStream ? 'text/event-stream; charset=utf-8' : 'application/json',
  }
  for (const name of retryHeaders) {
    const value = upstream.headers.get(name)
    if (value !== null) headers[name] = value
  }
  if (!isStream && isShort(upstream, translation)) return inOnePiece(upstream, translation, headers)
  const source = isStream ? new TranslatedStream(upstream, translation) : new TranslatedWhole(upstream, translation)
  return new Response(new ReadableStream(source, { highWaterMark: 0 }), { status, headers })
}

const shortBytes = 256 * 1024

function isShort({ headers }: Response, { limit }: Translation): boolean {
  const length = announcedLength(headers)
  return length !== null && length <= Math.min(limit, shortBytes)
}

async function inOnePiece(
  upstream: Response,
  translation: Translation,
  headers: Record<string, string>,
): Promise<Response> {
  const { status } = upstream
  try {
    const text = await upstream.text()
    translation.heard()
    const body = encoder.encode(JSON.stringify(translatedBody(status, text, translation)))
    return new Response(body, { status, headers: { ...headers, 'content-length': String(body.length) } })
  } catch (thrown) {
    // The reader of the body reports that it was cut off, or is not an answer.
    const broken = new ReadableStream<Uint8Array>({ pull: (controller) => controller.error(thrown) })
    return new Response(broken, { status, headers })
  }
}

interface Outlet {
  enqueue(bytes: Uint8Array): void
  close(): void
}

/** The provider's bytes, one piece a time. */
class Pieces {
  /** Kept so that it is not garbage-collected while its body is read. */
  readonly upstream: Response
  readonly #reader: Pick<ReadableStreamDefaultReader<Uint8Array>, 'read' | 'cancel'>
  readonly #heard: () => void

  constructor(upstream: Response, heard: () => void) {
    this.upstream = upstream
    this.#reader = (upstream.body ?? new Blob([]).stream()).getReader()
    this.#heard = heard
  }

  /** Null at the end. Rejects if the connection broke. */
  async next(): Promise<Uint8Array | null> {
    const { done, value } = await this.#reader.read()
    if (done) return null
    this.#heard()
    return value
  }

  cancel(reason: unknown): Promise<void> {
    return this.#reader.cancel(reason)
  }
}

class TranslatedStream implements Bun.UnderlyingSource<Uint8Array> {
  readonly #pieces: Pieces
  readonly #splitter: SseSplitter
  readonly #from: NeutralStreamReader
  readonly #to: NeutralStreamWriter
  readonly #told: Translation['told']
  /** Part of the answer has gone out. */
  #begun = false
  /** The error of the next pull: pieces that came before it go out first. */
  #failure: UnreadableAnswer | null = null

  constructor(upstream: Response, { from, to, asked, limit, heard, told }: Translation) {
    this.#pieces = new Pieces(upstream, heard)
    this.#told = told
    this.#splitter = new SseSplitter(limit)
    this.#from = from.streamReader()
    this.#to = to.streamWriter(asked)
  }

  async pull(outlet: Outlet): Promise<void> {
    for (;;) {
      if (this.#failure !== null) throw this.#failure
      const piece = await this.#pieces.next()
      const text = piece === null ? this.#rest() : this.#through(() => this.#splitter.push(piece))
      if (text !== '') outlet.enqueue(encoder.encode(text))
      if (piece === null && this.#failure === null) return outlet.close()
      if (text !== '') return
    }
  }

  cancel(reason: unknown): Promise<void> {
    return this.#pieces.cancel(reason)
  }

  /**
   * The rest at the provider's end: a last frame that lacks only its blank line, and the events that the language
   * implies.
   */
  #rest(): string {
    const last = this.#splitter.end()
    const text = last === null ? '' : this.#through(() => [last])
    return this.#failure === null ? text + this.#written(() => this.#from.end()) : text
  }

  #through(frames: () => readonly SseFrame[]): string {
    let came: readonly SseFrame[]
    try {
      came = frames()
    } catch (thrown) {
      this.#failure = unreadable(thrown)
      return ''
    }
    let text = ''
    for (const frame of came) {
      if (this.#failure === null) text += this.#frame(frame)
    }
    return text
  }

  /** A frame without content, a ping, keeps the caller's connection alive as it would without translation. */
  #frame({ event, data }: SseFrame): string {
    let silent = true
    const text = this.#written(() => {
      const events = data === null || saysOnlyThatItLives(data) ? [] : this.#from.frame(event, data)
      silent = events.length === 0
      return events
    })
    if (text !== '') this.#begun = true
    return silent && this.#begun && this.#failure === null ? (this.#to.keepOpen ?? keepOpen) : text
  }

  #written(events: () => readonly NeutralEvent[]): string {
    let text = ''
    try {
      for (const event of events()) {
        if (event.type === 'part') requireName(event)
        this.#told?.(event)
        text += this.#to.event(this.#begun || text !== '' ? event : withStatus(event))
      }
    } catch (thrown) {
      this.#failure = unreadable(thrown)
    }
    return text
  }
}

/** An error at the start of a stream is a refusal, which has a status. */
const withStatus = (event: NeutralEvent): NeutralEvent =>
  event.type === 'error' && event.error.status === null
    ? { type: 'error', error: { ...event.error, status: statusOfError(event.error) } }
    : event

class TranslatedWhole implements Bun.UnderlyingSource<Uint8Array> {
  readonly #pieces: Pieces
  readonly #translation: Translation
  readonly #status: number
  readonly #held: Uint8Array[] = []
  #length = 0

  constructor(upstream: Response, translation: Translation) {
    this.#pieces = new Pieces(upstream, translation.heard)
    this.#translation = translation
    this.#status = upstream.status
  }

  async pull(outlet: Outlet): Promise<void> {
    const { limit } = this.#translation
    while (this.#length <= limit) {
      const piece = await this.#pieces.next()
      if (piece === null) {
        const text = new TextDecoder().decode(Buffer.concat(this.#held))
        outlet.enqueue(encoder.encode(JSON.stringify(translatedBody(this.#status, text, this.#translation))))
        return outlet.close()
      }
      this.#held.push(piece)
      this.#length += piece.length
    }
    if (this.#held.length > 0) return outlet.enqueue(Buffer.concat(this.#held.splice(0)))
    const piece = await this.#pieces.next()
    if (piece === null) outlet.close()
    else outlet.enqueue(piece)
  }

  cancel(reason: unknown): Promise<void> {
    return this.#pieces.cancel(reason)
  }
}

/**
 * The body of a whole answer or an error. An error with a success status keeps its status: the next reader knows the
 * caller's error form.
 */
function translatedBody(status: number, text: string, { from, to, asked }: Translation): JsonObject {
  const body = parsedOr(text)
  if (status >= 400) return to.writeError(from.readError(status, body))
  try {
    const answer = from.readAnswer(body)
    for (const part of answer.parts) requireName(part)
    return to.writeAnswer(answer, asked)
  } catch (thrown) {
    if (isObject(body) && isGiven(body.error)) return to.writeError(from.readError(status, body))
    throw unreadable(thrown)
  }
}

function parsedOr(text: string): unknown {
  try {
    return parseExactly(text)
  } catch {
    // An error may be plain text; the reader refuses an answer that is not valid.
    return text
  }
}

const unreadable = (thrown: unknown): UnreadableAnswer =>
  new UnreadableAnswer("The answer is none in its provider's language", { cause: thrown })
