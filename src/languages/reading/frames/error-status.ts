/**
 * The HTTP status that a provider's error stands for where it comes in a stream, whose own status was one of success: by
 * its number, or by the words that OpenAI, Anthropic (Errors), Google (google.rpc.Code) and AWS (ConverseStream) have.
 */
import { isObject, textOf } from '../json-value.ts'

const words: Readonly<Record<number, readonly string[]>> = {
  400: ['invalid_request_error', 'invalid_argument', 'failed_precondition', 'out_of_range', 'validationexception'],
  401: ['authentication_error', 'invalid_api_key', 'unauthenticated'],
  402: ['billing_error'],
  403: ['permission_error', 'permission_denied', 'accessdeniedexception'],
  404: ['not_found_error', 'not_found', 'model_not_found', 'resourcenotfoundexception'],
  408: ['modeltimeoutexception'],
  413: ['request_too_large'],
  429: ['rate_limit_error', 'rate_limit_exceeded', 'insufficient_quota', 'resource_exhausted', 'throttlingexception'],
  500: ['api_error', 'server_error', 'internal', 'internalserverexception'],
  503: ['service_unavailable', 'unavailable', 'serviceunavailableexception'],
  504: ['timeout_error', 'deadline_exceeded'],
  529: ['overloaded_error'],
}

const statuses: ReadonlyMap<string, number> = new Map(
  Object.entries(words).flatMap(([status, known]) => known.map((word): [string, number] => [word, Number(status)])),
)

/** The first status among `code`, `type` and `status`; null if none gives one. */
export function statusOfError(error: unknown): number | null {
  if (!isObject(error)) return null
  for (const said of [error.code, error.type, error.status]) {
    if (typeof said === 'number' && Number.isInteger(said) && said >= 400 && said < 600) return said
    const status = statuses.get(textOf(said)?.toLowerCase() ?? '')
    if (status !== undefined) return status
  }
  return null
}
