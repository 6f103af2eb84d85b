/** Calls of the public API, as every operator command makes them. The token goes nowhere but into its header. */
import { z } from 'zod'
import { Failure, type FailureCode } from '../../src/failure.ts'
import { version } from '../../src/version.ts'
import type { Connection } from './profile.ts'
import { type References, withIds, withoutMarks } from './record-names.ts'
import { ApiRefusal } from './report.ts'

export interface ApiRequest {
  method?: 'GET' | 'POST' | 'PATCH' | 'PUT' | 'DELETE'
  /** From the root: `/v1/tokens`. A segment in braces is an id or a name (record-names.ts). */
  path: string
  query?: Readonly<Record<string, string | undefined>>
  body?: unknown
  /** Which fields of body and query hold an id or a name. */
  references?: References
  /** Beside those that every call has. */
  headers?: Readonly<Record<string, string>>
  /** Called with the answer's headers if it is not a refusal. */
  onHeaders?(headers: Headers): void
}

export interface Api {
  /** The answer's JSON, checked against the members that the command needs. Throws ApiRefusal, or `api_unreachable`. */
  json<Reply>(request: ApiRequest, reply: z.ZodType<Reply>): Promise<Reply>
  /** The answer unread, for data that is passed on as bytes. */
  response(request: ApiRequest): Promise<Response>
}

const envelopeSchema = z.object({
  error: z.object({ message: z.string(), code: z.string(), param: z.string().nullish() }),
  request_id: z.string().nullish(),
})

export function createApi({ apiUrl, apiToken }: Connection, fetch: typeof globalThis.fetch): Api {
  async function send({
    method = 'GET',
    path,
    query = {},
    body,
    headers: own = {},
    onHeaders,
  }: ApiRequest): Promise<Response> {
    const url = new URL(apiUrl + withoutMarks(path))
    for (const [name, value] of Object.entries(query)) if (value !== undefined) url.searchParams.set(name, value)
    const headers = new Headers({ ...own, accept: 'application/json', 'user-agent': `gatehouse/${version}` })
    if (apiToken !== null) headers.set('authorization', `Bearer ${apiToken}`)
    if (body !== undefined) headers.set('content-type', 'application/json')
    let answer: Response
    try {
      // A redirect would carry the token to somebody else.
      const content = body === undefined ? null : JSON.stringify(body)
      answer = await fetch(url, { method, headers, body: content, redirect: 'manual' })
    } catch (error) {
      throw new Failure('api_unreachable', {
        message: `The control plane at ${apiUrl} could not be reached`,
        cause: error,
      })
    }
    if (!answer.ok) throw await refusal(answer, apiUrl)
    onHeaders?.(answer.headers)
    return answer
  }
  const api: Api = {
    response: (request) =>
      send(request).catch(async (error: unknown) => {
        if (!(error instanceof ApiRefusal) || !mayBeName.has(error.code)) throw error
        const named = await withIds(request, error, api)
        if (named === null) throw error
        return await send(named)
      }),
    async json(request, reply) {
      const answer = await api.response(request)
      const parsed = reply.safeParse(await answer.json().catch(() => undefined))
      if (!parsed.success) throw unintelligible(answer, apiUrl)
      return parsed.data
    },
  }
  return api
}

/** How the control plane refuses a name in the place of an id. */
const mayBeName: ReadonlySet<string> = new Set<FailureCode>(['not_found', 'invalid_parameter'])

async function refusal(answer: Response, apiUrl: string): Promise<ApiRefusal> {
  const parsed = envelopeSchema.safeParse(await answer.json().catch(() => undefined))
  if (!parsed.success) return unintelligible(answer, apiUrl)
  const { error, request_id } = parsed.data
  const requestId = request_id ?? answer.headers.get('x-request-id')
  const { code, message, param = null } = error
  return new ApiRefusal({ status: answer.status, code, message, param, requestId })
}

const unintelligible = (answer: Response, apiUrl: string): ApiRefusal =>
  new ApiRefusal({
    status: answer.status,
    code: 'unexpected_answer',
    message: `What answers at ${apiUrl} is not a Gatehouse control plane, or another version of it`,
    requestId: answer.headers.get('x-request-id'),
  })
