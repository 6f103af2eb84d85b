/**
 * A request for embeddings as calls in the provider's own language, some at once, and their answers as one of OpenAI's.
 * After the first that fails no further one is begun, and its error is the answer. The cost is reported after each call,
 * because the caller may leave, or the next call may fail.
 *
 * Vectors are written as they come, some at a time: those of one request may be megabytes, and others wait meanwhile.
 */

import {
  aroundItems,
  type EmbeddingCall,
  type EmbeddingLanguage,
  writeEmbeddings,
  writeItem,
} from '../languages/embeddings/translation.ts'
import { type JsonObject, parseObject } from '../languages/reading/json-value.ts'
import { writeOpenAiError } from '../languages/translation/openai-shared.ts'
import { UnreadableAnswer } from '../languages/translation/translate-response.ts'
import { yieldToEventLoop } from '../lib/yield-to-event-loop.ts'
import { heldBody } from './held-body.ts'
import type { UpstreamCall } from './provider.ts'
import { withoutLength } from './send-request.ts'

const callsAtOnce = 4

/** Numbers that are written before others have their turn: some milliseconds. */
const numbersAtOnce = 32_768

/** Characters of an answer before whose reading others have their turn. */
const longAnswer = 65_536

const encoder = new TextEncoder()

/** Sends one of the calls, `body` as JSON. */
type Ask = (body: Uint8Array) => Promise<Response>

/** Rejects with `UnreadableAnswer` for invalid answers, and with the error if a call failed. */
export async function embed(language: EmbeddingLanguage, call: UpstreamCall, ask: Ask): Promise<Response> {
  const asked = parseObject(new TextDecoder().decode(call.body)) ?? {}
  const calls = new EmbeddingCalls(asked, language, ask, call)
  const refusal = await calls.done()
  if (refusal === null) return json(200, calls.headers, calls.answer())
  const { status, headers, said } = refusal
  return json(status, headers, [encoder.encode(JSON.stringify(writeOpenAiError(language.readError(status, said))))])
}

interface Refusal {
  status: number
  headers: Headers
  said: unknown
}

class EmbeddingCalls {
  /** Of the first answer. */
  headers = new Headers()
  readonly #asked: Readonly<JsonObject>
  readonly #calls: readonly EmbeddingCall[]
  readonly #language: EmbeddingLanguage
  readonly #ask: Ask
  readonly #counted: UpstreamCall['counted']
  /** The answer's `data` as JSON, by the call that brought it. */
  readonly #data: Uint8Array[][] = []
  /** How long each vector is; null before the first. */
  #size: number | null = null
  /** Reported tokens; null if none were reported. */
  #reported: number | null = null
  /** Estimated tokens of calls that did not report any. */
  #unreported = 0
  #numbers = 0
  /** Answers are read one after the other, though they may come together. */
  #reading: Promise<void> = Promise.resolve()
  #refusal: Refusal | null = null
  #bytesLeft: number
  #next = 0
  #failed = false

  constructor(asked: Readonly<JsonObject>, language: EmbeddingLanguage, ask: Ask, call: UpstreamCall) {
    this.#asked = asked
    this.#calls = writeEmbeddings(asked, language)
    this.#language = language
    this.#ask = ask
    this.#counted = call.counted
    this.#bytesLeft = call.answerLimit
  }

  /**
   * The provider's refusal; null if it answered every call. Rejects with the first error, after all started calls have
   * ended.
   */
  async done(): Promise<Refusal | null> {
    const ended = await Promise.allSettled(Array.from({ length: callsAtOnce }, () => this.#some()))
    for (const one of ended) if (one.status === 'rejected') throw one.reason
    return this.#refusal
  }

  /** The answer's bytes. */
  answer(): Uint8Array[] {
    const { before, after } = aroundItems(this.#asked, (this.#reported ?? 0) + this.#unreported)
    return [encoder.encode(before), ...this.#data.flat(), encoder.encode(after)]
  }

  /** One call after the other, until there are none left or one failed. */
  async #some(): Promise<void> {
    while (!this.#failed) {
      const index = this.#next++
      const call = this.#calls[index]
      if (call === undefined) return
      try {
        await this.#one(index, call)
      } catch (thrown) {
        this.#failed = true
        throw thrown
      }
    }
  }

  async #one(index: number, call: EmbeddingCall): Promise<void> {
    this.#count(call.estimate, null)
    const { text, answer } = await heldBody(await this.#ask(encoder.encode(JSON.stringify(call.body))), this.#bytesLeft)
    if (text === null) {
      await answer.body?.cancel()
      throw new UnreadableAnswer('The answer is too large', { reason: 'provider.answer_too_large' })
    }
    this.#bytesLeft -= text.length
    // The caller that asked for the earlier one gets its failure.
    this.#reading = this.#reading.catch(() => undefined).then(() => this.#read(index, call, text, answer))
    await this.#reading
  }

  async #read(index: number, call: EmbeddingCall, text: string, { ok, status, headers }: Response): Promise<void> {
    if (text.length > longAnswer) await yieldToEventLoop()
    const said = parseObject(text) ?? text
    if (index === 0) this.headers = headers
    if (!ok) {
      this.#failed = true
      this.#refusal ??= { status, headers, said }
      return this.#count(-call.estimate, null)
    }
    const { vectors, tokens } = this.#language.read(said, headers)
    this.#count(tokens === null ? 0 : -call.estimate, tokens)
    if (vectors.length !== call.texts) throw new UnreadableAnswer('The provider sent another number of vectors')
    await this.#write(index, vectors)
  }

  #count(unreported: number, reported: number | null): void {
    this.#unreported += unreported
    if (reported !== null) this.#reported = (this.#reported ?? 0) + reported
    this.#counted?.(this.#reported, this.#unreported)
  }

  async #write(call: number, vectors: readonly unknown[]): Promise<void> {
    const pieces: Uint8Array[] = []
    let index = this.#calls.slice(0, call).reduce((sum, { texts }) => sum + texts, 0)
    let written = ''
    for (const vector of vectors) {
      const { text, size } = writeItem(vector, index, this.#asked)
      this.#size ??= size
      if (size !== this.#size) throw new UnreadableAnswer('The provider sent vectors of different lengths')
      written += index++ === 0 ? text : `,${text}`
      this.#numbers += size
      if (this.#numbers < numbersAtOnce) continue
      this.#numbers = 0
      pieces.push(encoder.encode(written))
      written = ''
      await yieldToEventLoop()
    }
    pieces.push(encoder.encode(written))
    this.#data[call] = pieces
  }
}

function json(status: number, of: Headers, pieces: Iterable<Uint8Array>): Response {
  const headers = withoutLength(of)
  headers.set('content-type', 'application/json')
  const left = pieces[Symbol.iterator]()
  const body = new ReadableStream<Uint8Array>({
    pull(controller) {
      const { done, value } = left.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
  })
  return new Response(body, { status, headers })
}
