/**
 * Errors in Google's form (google.rpc.Status in JSON; AIP-193): the HTTP status, its canonical word, and details. The
 * gateway's own code is the `reason` of an ErrorInfo, and a time to wait a RetryInfo, which Google's clients follow.
 */
import { Failure } from '../../failure.ts'
import type { NeutralError } from '../neutral.ts'
import { isObject, type JsonObject, textOf } from '../reading/json-value.ts'

/** google.rpc.Code, by HTTP status. */
const words: Readonly<Record<number, string>> = {
  401: 'UNAUTHENTICATED',
  402: 'FAILED_PRECONDITION',
  403: 'PERMISSION_DENIED',
  404: 'NOT_FOUND',
  408: 'DEADLINE_EXCEEDED',
  409: 'ABORTED',
  429: 'RESOURCE_EXHAUSTED',
  499: 'CANCELLED',
  500: 'INTERNAL',
  501: 'UNIMPLEMENTED',
  504: 'DEADLINE_EXCEEDED',
}

export const statusWord = (status: number): string =>
  words[status] ?? (status >= 500 ? 'UNAVAILABLE' : 'INVALID_ARGUMENT')

const infoType = 'type.googleapis.com/google.rpc.ErrorInfo'
const retryType = 'type.googleapis.com/google.rpc.RetryInfo'

/** An error from the gateway itself. */
export function errorBody(failure: Failure, requestId: string): JsonObject {
  const shown = failure.code === 'provider_primary_path_error' ? new Failure('upstream_error') : failure
  const { status, code, message, param, retryAfter, verdictan, extra } = shown
  const metadata = { request_id: requestId, ...(param !== null && { param }), ...strings(extra) }
  return {
    error: {
      code: status,
      message,
      status: statusWord(status),
      details: [
        { '@type': infoType, reason: code, domain: 'gatehouse', metadata },
        ...(retryAfter === null ? [] : [{ '@type': retryType, retryDelay: `${retryAfter}s` }]),
      ],
    },
    request_id: requestId,
    ...(verdictan !== null && { verdictan }),
  }
}

/** The metadata of an ErrorInfo holds texts. */
const strings = (extra: Failure['extra']): Record<string, string> =>
  Object.fromEntries(Object.entries(extra).map(([name, value]) => [name, String(value)]))

/** A translated error, whose status is that of the answer, or unknown within a stream. */
export function writeGeminiError({ status, code, message }: NeutralError): JsonObject {
  const shown = status ?? 500
  const details = code === null ? [] : [{ '@type': infoType, reason: code, domain: 'provider', metadata: {} }]
  return { error: { code: shown, message, status: statusWord(shown), details } }
}

/** A provider's error in another form, rewritten; null if it has Google's form already, or an unknown form. */
export function rewrittenError(status: number, body: unknown): JsonObject | null {
  if (!isObject(body)) return null
  const { error } = body
  if (typeof error === 'string') return writeGeminiError({ status, code: null, message: error })
  if (!isObject(error) || (typeof error.code === 'number' && typeof error.status === 'string')) return null
  const code = textOf(error.code) ?? textOf(error.type)
  return writeGeminiError({ status, code, message: textOf(error.message) ?? 'The provider refused the request' })
}
