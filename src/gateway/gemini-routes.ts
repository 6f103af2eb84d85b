/**
 * The routes of the Gemini language, whose address holds the model and what is asked of it:
 * `POST /v1beta/models/{model}:generateContent`, `:streamGenerateContent` and `:countTokens`, and the same under `/v1`.
 *
 * A token in the address (`?key=`) is refused, because addresses are kept in logs. A stream is answered as server-sent
 * events with `alt=sse`, and otherwise as a JSON array of the same responses, as Google does.
 */
import { Failure } from '../failure.ts'
import { countTokens } from '../languages/gemini/count-tokens.ts'
import { gemini } from '../languages/gemini/dialect.ts'
import { askedIn, geminiModelsPath } from '../languages/gemini/request-form.ts'
import { saysOnlyThatItLives } from '../languages/reading/frames/unknown-frames.ts'
import { SseSplitter } from '../lib/http/sse.ts'
import type { GovernedRoute } from './govern.ts'
import { inferenceStages, tokenCountStages } from './pipeline.ts'

const routeOf = (method: string): string => `POST ${geminiModelsPath}/{model}:${method}`

const inference = (method: string): GovernedRoute => ({
  route: routeOf(method),
  family: 'gemini',
  dialect: gemini,
  stages: inferenceStages,
})

export const geminiRoutes: Readonly<Record<string, GovernedRoute>> = {
  generateContent: inference('generateContent'),
  streamGenerateContent: inference('streamGenerateContent'),
  countTokens: {
    route: routeOf('countTokens'),
    family: 'count_tokens',
    dialect: countTokens,
    stages: tokenCountStages,
  },
}

const plainName = /^[a-zA-Z]{1,40}$/

/** The route of a path; throws `not_found` for a method that the gateway does not have. */
export function geminiRoute({ pathname }: URL): GovernedRoute {
  const method = askedIn(pathname)?.method ?? ''
  const route = Object.hasOwn(geminiRoutes, method) ? geminiRoutes[method] : undefined
  if (route !== undefined) return route
  const asked = plainName.test(method) ? `The gateway has no method ${method}` : 'The address names no known method'
  const known = Object.keys(geminiRoutes).join(', :')
  throw new Failure('not_found', { message: `${asked}: end the address with one of :${known}` })
}

/** Throws for a token in the address, and for a form of answers that the gateway does not have. */
export function checkQuery({ searchParams }: URL): void {
  if (searchParams.has('key')) {
    const message = 'Send the token in the header x-goog-api-key or as Authorization: Bearer, not in the address'
    throw new Failure('bad_request', { param: 'key', message })
  }
  const alt = searchParams.get('alt') ?? 'json'
  if (alt !== 'sse' && alt !== 'json') {
    throw new Failure('bad_request', { param: 'alt', message: 'alt must be sse or json' })
  }
}

/** The answer to a stream in the form that was asked for. */
export function inAskedForm(answer: Response, url: URL, frameLimit: number): Response {
  const isStream = (answer.headers.get('content-type') ?? '').startsWith('text/event-stream')
  if (!isStream || answer.body === null || url.searchParams.get('alt') === 'sse') return answer
  const headers = new Headers(answer.headers)
  headers.set('content-type', 'application/json; charset=UTF-8')
  const array = new JsonArray(answer.body.getReader(), frameLimit)
  return new Response(new ReadableStream(array, { highWaterMark: 0 }), { status: answer.status, headers })
}

interface Outlet {
  enqueue(bytes: Uint8Array): void
  close(): void
}

const encoder = new TextEncoder()

/** The data of each frame as an element of one array; what only keeps the stream open is left out. */
class JsonArray implements Bun.UnderlyingSource<Uint8Array> {
  readonly #frames: Pick<ReadableStreamDefaultReader<Uint8Array>, 'read' | 'cancel'>
  readonly #splitter: SseSplitter
  #begun = false

  constructor(frames: Pick<ReadableStreamDefaultReader<Uint8Array>, 'read' | 'cancel'>, frameLimit: number) {
    this.#frames = frames
    this.#splitter = new SseSplitter(frameLimit)
  }

  async pull(outlet: Outlet): Promise<void> {
    for (;;) {
      const { done, value } = await this.#frames.read()
      let text = ''
      for (const { data } of done ? [] : this.#splitter.push(value)) {
        if (data === null || saysOnlyThatItLives(data)) continue
        text += `${this.#begun ? ',\r\n' : '['}${data}`
        this.#begun = true
      }
      if (done) text = this.#begun ? ']' : '[]'
      if (text !== '') outlet.enqueue(encoder.encode(text))
      if (done) return outlet.close()
      if (text !== '') return
    }
  }

  cancel(reason: unknown): Promise<void> {
    return this.#frames.cancel(reason)
  }
}
