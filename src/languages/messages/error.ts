/**
 * Errors in the form of the messages language (handbook/reference/errors.md): `type: error`, an error with
 * type, message and code, and the request id. The type follows from the status.
 */
import { envelope, Failure } from '../../failure.ts'
import { isObject, type JsonObject, textOf } from '../reading/json-value.ts'

const types: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  402: 'billing_error',
  403: 'permission_error',
  404: 'not_found_error',
  409: 'conflict_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  504: 'timeout_error',
  529: 'overloaded_error',
}

export function errorTypeOf(status: number, code: string | null): string {
  if (status === 503 && code === 'usage_authorization_rate_limited') return 'rate_limit_error'
  return types[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error')
}

/** An error from the gateway itself. */
export function errorBody(failure: Failure, requestId: string): JsonObject {
  const shown = failure.code === 'provider_primary_path_error' ? new Failure('upstream_error') : failure
  const { error, ...rest } = envelope(shown, requestId)
  const { type: _, param, ...told } = error
  return {
    type: 'error',
    error: { type: errorTypeOf(shown.status, shown.code), ...told, ...(param !== null && { param }) },
    ...rest,
  }
}

/** A provider's error in chat form, rewritten; null if it has this language's form already, or an unknown form. */
export function rewrittenError(status: number, body: unknown, requestId: string): JsonObject | null {
  if (!isObject(body)) return null
  const { error, ...rest } = body
  const isOurs = body.type === 'error' && isObject(error)
  if (isOurs || !(isObject(error) || typeof error === 'string')) return null
  const said = isObject(error) ? error : { message: error }
  const code = textOf(said.code) ?? textOf(said.type) ?? 'upstream_error'
  const message = textOf(said.message) ?? 'The provider refused the request'
  const { request_id: _, type: __, ...others } = rest
  return { type: 'error', error: { type: errorTypeOf(status, code), message, code }, request_id: requestId, ...others }
}
