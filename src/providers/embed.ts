/**
 * A request for embeddings as calls in the provider's own language, some at once, and their answers as one of OpenAI's.
 * After the first that fails no further one is begun, and its error is the answer, with what the others have cost.
 */
import { parseObject } from '../dialects/json-value.ts'
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

/** Sends one of the calls, `body` as JSON. */
type Ask = (body: Uint8Array) => Promise<Response>

export async function embed(language: EmbeddingLanguage, call: UpstreamCall, ask: Ask): Promise<Response> {
  const asked = parseObject(new TextDecoder().decode(call.body)) ?? {}
  const bodies = writeEmbeddings(asked, language).map((body) => encoder.encode(JSON.stringify(body)))
  const calls = new EmbeddingCalls(bodies, language, ask, call.answerLimit)
  const refused = await calls.done()
  const answered = calls.answered.filter((one) => one !== undefined)
  return unlessUnusable(answered, () => {
    if (refused === null) return json(200, calls.headers, readEmbeddings(answered, asked))
    const { status, headers, said } = refused()
    const error = writeOpenAiError(language.readError(status, said))
    return json(status, headers, { ...error, ...embeddingUsage(answered) })
  })
}

const encoder = new TextEncoder()

interface Refusal {
  status: number
  headers: Headers
  said: unknown
}

class EmbeddingCalls {
  readonly answered: (Embedded | undefined)[] = []
  /** Of the first answer. */
  headers = new Headers()
  readonly #bodies: readonly Uint8Array[]
  readonly #language: EmbeddingLanguage
  readonly #ask: Ask
  #bytesLeft: number
  #next = 0
  /** Gives the refusal that ended it, or throws what did. */
  #ended: (() => Refusal) | null = null

  constructor(bodies: readonly Uint8Array[], language: EmbeddingLanguage, ask: Ask, answerLimit: number) {
    this.#bodies = bodies
    this.#language = language
    this.#ask = ask
    this.#bytesLeft = answerLimit
  }

  /** Null where all were answered. */
  async done(): Promise<(() => Refusal) | null> {
    await Promise.all(Array.from({ length: callsAtOnce }, () => this.#some()))
    return this.#ended
  }

  /** One call after the other, until there are none left or one failed. */
  async #some(): Promise<void> {
    for (;;) {
      const index = this.#next++
      const body = this.#bodies[index]
      if (body === undefined || this.#ended !== null) return
      try {
        await this.#one(index, body)
      } catch (thrown) {
        this.#ended ??= () => {
          throw thrown
        }
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
    const said = parseObject(text)
    if (ok) this.answered[index] = this.#language.read(said, headers)
    else this.#ended ??= () => ({ status, headers, said })
    if (index === 0) this.headers = headers
  }
}

/** What the provider sent and cannot be used is its failure, told with what it cost; anything else is thrown. */
function unlessUnusable(answered: readonly Embedded[], respond: () => Response): Response {
  try {
    return respond()
  } catch (thrown) {
    if (!(thrown instanceof Failure)) throw thrown
    const { error } = envelope(thrown, '')
    return json(thrown.status, new Headers(), { error, ...embeddingUsage(answered) })
  }
}

function json(status: number, of: Headers, body: object): Response {
  const headers = withoutLength(of)
  headers.set('content-type', 'application/json')
  return new Response(JSON.stringify(body), { status, headers })
}
