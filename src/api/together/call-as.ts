/** A call of the API within a call, made and answered as if its caller made it alone. */
import { z } from 'zod'
import { Failure, isFailureCode } from '../../failure.ts'

/** Answers a request as the API does. */
export type Answers = (request: Request) => Promise<Response>

interface Call {
  method: string
  path: string
  body?: object | undefined
  /** The version that is changed. */
  version?: number | undefined
}

export async function callAs(answers: Answers, asked: Request, call: Call): Promise<Response> {
  const { method, path, body, version } = call
  const headers = new Headers()
  for (const name of ['authorization', 'cookie', 'x-csrf-token', 'sec-fetch-site', 'origin']) {
    const value = asked.headers.get(name)
    if (value !== null) headers.set(name, value)
  }
  if (version !== undefined) headers.set('if-match', `"${version}"`)
  if (body !== undefined) headers.set('content-type', 'application/json')
  const content = body === undefined ? null : JSON.stringify(body)
  return await answers(new Request(new URL(path, asked.url).href, { method, headers, body: content }))
}

const refusalSchema = z.object({
  error: z.object({ message: z.string(), code: z.string(), param: z.string().nullish() }),
})

/** The refusal that such a call was answered with. `paramOf` names the field for the caller. */
export async function refusalOf(answer: Response, paramOf: (param: string | null) => string | null): Promise<Failure> {
  const { error } = refusalSchema.parse(await answer.json())
  const param = paramOf(error.param ?? null)
  const retryAfter = answer.headers.get('retry-after')
  return new Failure(isFailureCode(error.code) ? error.code : 'internal', {
    message: error.message,
    ...(param !== null && { param }),
    ...(retryAfter !== null && { retryAfter: Number(retryAfter) }),
  })
}
