/** How the control plane answers: headers that every answer has, replies as JSON, failures in the envelope. */
import { asFailure, envelope, Failure, mustNotRetry } from '../failure.ts'
import { challengeOf } from '../identity/challenge.ts'
import { holdsSecret } from '../identity/secret.ts'
import { isRequestId } from '../lib/http/request-id.ts'
import type { NewId } from '../lib/ids.ts'
import { hostFaultAdvice, hostFaultOf } from '../lib/log/host-fault.ts'
import type { Log } from '../lib/log/log.ts'

/** Nothing that the API answers may be kept, sniffed, framed or run as a page. */
const securityHeaders: Readonly<Record<string, string>> = {
  'cache-control': 'no-store',
  'content-security-policy': "default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
}

/**
 * The client's `x-request-id` where it has the right form and is no secret, otherwise a new one
 * (handbook/reference/http.md).
 */
export function requestIdOf(request: Request, newId: NewId): string {
  const sent = request.headers.get('x-request-id')
  return sent !== null && isRequestId(sent) && !holdsSecret(sent) ? sent : newId()
}

/** Sets the headers that every answer has; headers that a route has set stay. */
export function finished(response: Response, requestId: string): Response {
  for (const [name, value] of Object.entries(securityHeaders)) {
    if (!response.headers.has(name)) response.headers.set(name, value)
  }
  response.headers.set('x-request-id', requestId)
  return response
}

export const jsonResponse = (status: number, body: string, headers: Record<string, string> = {}): Response =>
  new Response(body, { status, headers: { ...headers, 'content-type': 'application/json; charset=utf-8' } })

export interface AnswerContext {
  requestId: string
  log: Log
  /** Where this API is reached, and says how to get a token for it. */
  origin: string
}

/** The one place where something thrown becomes an answer. Failures that are ours are logged with the request id. */
export function failureResponse(
  thrown: unknown,
  { requestId, log, origin, allow }: AnswerContext & { allow?: readonly string[] },
): Response {
  const failure = failureOf(thrown)
  if (failure.status >= 500) {
    const { message, stack } = rootCause(failure)
    log.error({ request_id: requestId, code: failure.code, error: message, stack }, 'A request failed')
  }
  const headers: Record<string, string> = {}
  if (mustNotRetry(failure.status, failure.code)) headers['x-should-retry'] = 'false'
  if (failure.retryAfter !== null) headers['retry-after'] = String(failure.retryAfter)
  const challenge = challengeOf(failure, origin)
  if (challenge !== null) headers['www-authenticate'] = challenge
  if (allow !== undefined) headers.allow = allow.join(', ')
  return jsonResponse(failure.status, JSON.stringify(envelope(failure, requestId)), headers)
}

/** What was thrown as a Failure: a store that fails is `dependency_unavailable`, and says so where its disk is full. */
export function failureOf(thrown: unknown): Failure {
  const failure = databaseFailed(thrown) ? new Failure('dependency_unavailable', { cause: thrown }) : asFailure(thrown)
  if (failure.code !== 'dependency_unavailable' && failure.code !== 'internal') return failure
  const fault = hostFaultOf(failure)
  if (fault === null) return failure
  const code = fault === 'disk_full' ? 'dependency_unavailable' : fault
  return new Failure(code, { message: hostFaultAdvice[fault], cause: failure.cause })
}

/** What failed first. Errors around it, such as those of a query builder, may quote the values that were sent. */
const rootCause = (error: Error): Error => (error.cause instanceof Error ? rootCause(error.cause) : error)

/**
 * A store that fails is never the caller's fault (handbook/reference/http.md); a broken constraint is a defect of ours.
 */
function databaseFailed(thrown: unknown): boolean {
  if (!(thrown instanceof Error)) return false
  if (thrown.name === 'LibsqlError') return !/constraint failed/i.test(thrown.message)
  return databaseFailed(thrown.cause)
}
