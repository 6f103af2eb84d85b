/**
 * A request for embeddings as calls in the provider's own language, some at once, and their answers as one of OpenAI's.
 * After the first that fails no further one is begun, and its error is the answer, with what the others have cost.
 */
import { type JsonObject, parseObject } from '../dialects/json-value.ts'
import { envelope, Failure } from '../failure.ts'
import {
  type Embedded,
  type EmbeddingLanguage,
  embeddingUsage,
  readEmbeddings,
  writeEmbeddings,
} from '../translation/embeddings.ts'
import { writeOpenAiError } from '../translation/openai-words.ts'
import { unusable } from '../translation/refusals.ts'
import { heldBody } from './held-body.ts'
import { withoutLength } from './post.ts'
import type { UpstreamCall } from './provider.ts'

const callsAtOnce = 4

const encoder = new TextEncoder()

/** Sends one of the calls, `body` as JSON. */
type Ask = (body: Uint8Array) => Promise<Response>

export async function embed(language: EmbeddingLanguage, call: UpstreamCall, ask: Ask): Promise<Response> {
  const asked = parseObject(new TextDecoder().decode(call.body)) ?? {}
  const calls = new EmbeddingCalls(writeEmbeddings(asked, language), language, ask, call.answerLimit)
  try {
    const refusal = await calls.done()
    if (refusal === null) return json(200, calls.headers, readEmbeddings(calls.answered(), asked))
    const { status, headers, said } = refusal
    const error = writeOpenAiError(language.readError(status, said))
    return json(status, headers, { ...error, ...embeddingUsage(calls.answered()) })
  } catch (thrown) {
    // What the provider sent and cannot be used is its failure, told with what it cost, as is what breaks after that.
    const isPaid = calls.answered().length > 0 && !call.signal.aborted
    const failure =
      thrown instanceof Failure ? thrown : isPaid ? unusable('The provider did not answer all calls') : null
    if (failure === null) throw thrown
    const { error } = envelope(failure, '')
    return json(failure.status, new Headers(), { error, ...embeddingUsage(calls.answered()) })
  }
}

interface Refusal {
  status: number
  headers: Headers
  said: unknown
}

class EmbeddingCalls {
  /** Of the first answer. */
  headers = new Headers()
  readonly #bodies: readonly JsonObject[]
  readonly #language: EmbeddingLanguage
  readonly #ask: Ask
  readonly #answered: Embedded[] = []
  #refusal: Refusal | null = null
  #bytesLeft: number
  #next = 0
  #failed = false

  constructor(bodies: readonly JsonObject[], language: EmbeddingLanguage, ask: Ask, answerLimit: number) {
    this.#bodies = bodies
    this.#language = language
    this.#ask = ask
    this.#bytesLeft = answerLimit
  }

  /** What the provider refused; null where it answered all. Rejects with what failed, after all that was begun is over. */
  async done(): Promise<Refusal | null> {
    const ended = await Promise.allSettled(Array.from({ length: callsAtOnce }, () => this.#some()))
    for (const one of ended) if (one.status === 'rejected') throw one.reason
    return this.#refusal
  }

  /** Those that were answered, in their order. */
  answered(): Embedded[] {
    return this.#answered.filter((one) => one !== undefined)
  }

  /** One call after the other, until there are none left or one failed. */
  async #some(): Promise<void> {
    while (!this.#failed) {
      const index = this.#next++
      const body = this.#bodies[index]
      if (body === undefined) return
      try {
        await this.#one(index, encoder.encode(JSON.stringify(body)))
      } catch (thrown) {
        this.#failed = true
        throw thrown
      }
    }
  }

  async #one(index: number, body: Uint8Array): Promise<void> {
    const { text, answer } = await heldBody(await this.#ask(body), this.#bytesLeft)
    if (text === null) {
      await answer.body?.cancel()
      throw unusable("The provider's answer is too large")
    }
    this.#bytesLeft -= text.length
    const { ok, status, headers } = answer
    const said = parseObject(text) ?? text
    if (index === 0) this.headers = headers
    if (ok) this.#answered[index] = this.#language.read(said, headers)
    else {
      this.#failed = true
      this.#refusal ??= { status, headers, said }
    }
  }
}

function json(status: number, of: Headers, body: object): Response {
  const headers = withoutLength(of)
  headers.set('content-type', 'application/json')
  return new Response(JSON.stringify(body), { status, headers })
}
