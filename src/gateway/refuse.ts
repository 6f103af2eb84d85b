/** The one place that turns a Failure into an answer in the caller's dialect, recorded before its first byte. */
import type { Dialect } from '../dialects/dialect.ts'
import type { Verdict } from '../events/event.ts'
import { asFailure, Failure, mustNotRetry } from '../failure.ts'
import type { Exchange, Gateway } from './exchange.ts'
import { settle } from './record.ts'

const defaultRetrySeconds = 1

/** Answers what a stage threw. Where not even the refusal can be recorded, the answer is 503 `event_outbox_full`. */
export async function refuse(exchange: Exchange, gateway: Gateway, thrown: unknown): Promise<Response> {
  const failure = exchange.cut?.failure ?? asFailure(thrown)
  if (failure.code === 'internal' || failure.code === 'dependency_unavailable') logCause(exchange, gateway, failure)
  const verdict = failure.status >= 500 || failure.code === 'client_left' ? 'error' : 'deny'
  try {
    await settle(exchange, gateway, { verdict, reason: reasonOf(exchange, failure), status: failure.status })
  } catch (unrecorded) {
    const full = asFailure(unrecorded)
    const told = full.code === 'internal' ? new Failure('event_outbox_full', { cause: unrecorded }) : full
    return failureAnswer(exchange.dialect, told, exchange.requestId, 'error')
  }
  return failureAnswer(exchange.dialect, failure, exchange.requestId, verdict)
}

/** What went wrong with the provider says more than the code the caller is told. */
function reasonOf(exchange: Exchange, failure: Failure): string {
  if (exchange.cut !== null) return exchange.cut.reason
  if (failure.code === 'client_left') return 'client.left'
  const attempt = exchange.attempts.at(-1)
  return attempt !== undefined && attempt.latencyMs !== null && attempt.reason !== 'ok' ? attempt.reason : failure.code
}

function logCause(exchange: Exchange, { log }: Gateway, failure: Failure): void {
  const cause = failure.cause instanceof Error ? (failure.cause.stack ?? failure.cause.message) : String(failure.cause)
  log.error({ request_id: exchange.requestId, exchange_id: exchange.id, code: failure.code, cause }, failure.message)
}

/** An error answer of the gateway's own. `verdict` is null on routes that govern nothing. */
export function failureAnswer(
  dialect: Pick<Dialect, 'errorBody'>,
  failure: Failure,
  requestId: string,
  verdict: Verdict | null,
): Response {
  const headers: Record<string, string> = {
    'content-type': 'application/json',
    'x-request-id': requestId,
    'x-service-error-source': 'gateway',
  }
  if (verdict !== null) headers['x-service-verdict'] = verdict.toUpperCase()
  if (mustNotRetry(failure.status, failure.code)) headers['x-should-retry'] = 'false'
  const retryAfter = failure.retryAfter ?? (failure.status === 503 ? defaultRetrySeconds : null)
  if (retryAfter !== null) headers['retry-after'] = String(retryAfter)
  // RFC 6750 section 3: no error code where no credential was shown.
  if (failure.code === 'missing_api_key') headers['www-authenticate'] = 'Bearer'
  else if (failure.status === 401) headers['www-authenticate'] = 'Bearer error="invalid_token"'
  return new Response(JSON.stringify(dialect.errorBody(failure, requestId)), { status: failure.status, headers })
}
