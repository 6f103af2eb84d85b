/**
 * How a protocol endpoint reads its parameters and answers: a form, as RFC 6749 has it, or JSON. Parameters in the
 * address are not looked at (RFC 6749 section 2.3.1). Whatever is wrong is answered in the form of RFC 6749 section 5.2.
 */
import { z } from 'zod'
import { failureOf, jsonResponse } from '../api/answer.ts'
import { parseJsonObject, readBytes, requireContentType } from '../api/body.ts'
import { asFailure } from '../failure.ts'
import { type Refusal, refuse } from './authorize/check.ts'
import { isText, type Parameters, parametersOf, parametersOfObject } from './authorize/parameters.ts'
import type { OAuthDependencies } from './dependencies.ts'
import { known } from './tokens/token-request.ts'

const formType = 'application/x-www-form-urlencoded'
const bodyLimitBytes = 64 * 1024
/** What a client waits where the failure itself does not say, such as while a primary is chosen. */
const retryAfterSeconds = 2

/** RFC 6749 section 5.2. */
export const refusalSchema = z.object({ error: z.string(), error_description: z.string() })

export async function answered(
  { log }: OAuthDependencies,
  request: Request,
  requestId: string,
  work: (parameters: Parameters) => Promise<object | Refusal>,
): Promise<Response> {
  try {
    const parameters = await readParameters(request)
    const result = parameters instanceof Map ? await work(parameters) : parameters
    return isRefusal(result) ? refusal(result) : success(result)
  } catch (thrown) {
    const failure = failureOf(thrown)
    log.error({ request_id: requestId, code: failure.code, error: causeOf(failure) }, 'A token request failed')
    // RFC 6749 section 5.2 names no error for a fault of the server; those of section 4.1.2.1 are understood.
    const unavailable = failure.status === 503
    const error = unavailable ? 'temporarily_unavailable' : 'server_error'
    const answer = errorAnswer(unavailable ? 503 : 500, error, 'The server could not answer: try again')
    if (unavailable) answer.headers.set('retry-after', String(failure.retryAfter ?? retryAfterSeconds))
    return answer
  }
}

const isRefusal = (result: object): result is Refusal => 'error' in result

const causeOf = (error: Error): string => (error.cause instanceof Error ? causeOf(error.cause) : error.message)

const noStore = { 'cache-control': 'no-store', pragma: 'no-cache' }

/** RFC 6749 section 5.1. */
const success = (reply: object): Response => jsonResponse(200, JSON.stringify(reply), noStore)

function refusal({ error, description, retryAfter }: Refusal): Response {
  if (retryAfter === undefined) return errorAnswer(400, error, description)
  const answer = errorAnswer(429, error, description)
  answer.headers.set('retry-after', String(retryAfter))
  return answer
}

/** RFC 6749 section 5.2. */
const errorAnswer = (status: number, error: string, description: string): Response =>
  jsonResponse(status, JSON.stringify({ error, error_description: description }), noStore)

/** The parameters of the body, or what is wrong with it. */
async function readParameters(request: Request): Promise<Parameters | Refusal> {
  const json = /^\s*application\/json\s*(?:;|$)/i.test(request.headers.get('content-type') ?? '')
  try {
    requireContentType(request, json ? 'application/json' : formType)
    const bytes = await readBytes(request, bodyLimitBytes)
    const text = new TextDecoder('utf-8', { fatal: true }).decode(bytes)
    return json ? parametersOfJson(parseJsonObject(bytes)) : parametersOf(new URLSearchParams(text))
  } catch (thrown) {
    // What a body is refused for says nothing of its content.
    const description = thrown instanceof TypeError ? 'The body is not UTF-8' : asFailure(thrown).message
    return refuse('invalid_request', description)
  }
}

/** What nobody knows is ignored whatever it is; what is known is text, as a form would have it. */
function parametersOfJson(body: object): Parameters | Refusal {
  const members = z.looseObject({}).parse(body)
  const odd = known.find((name) => !isText(members[name]))
  return odd === undefined ? parametersOfObject(members) : refuse('invalid_request', `${odd} must be text`)
}
