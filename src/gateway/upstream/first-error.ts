/**
 * A stream that begins with a provider error, before anything was passed on. It is handled like an HTTP error status,
 * which decides whether another path is tried and what the caller gets (gateway/README.md, Paths).
 */
import { statusOfError } from '../../languages/reading/frames/error-status.ts'
import { isGiven, isObject, type JsonObject, parseObject } from '../../languages/reading/json-value.ts'

/** Thrown for a stream whose first event is an error. */
export class FirstError extends Error {
  readonly refusal: Response

  constructor(refusal: Response) {
    super('The stream began with an error')
    this.refusal = refusal
  }
}

/** The refusal in a frame's data, in its own language; null when it names none. */
export function refusalOf(data: string | null): Response | null {
  const event = data === null ? null : parseObject(data)
  if (event === null) return null
  const error = errorIn(event)
  const status = statusOfError(error)
  if (status === null) return null
  // In the messages language the event is the body already; in the others the error is.
  const body = event.type === 'error' && isObject(event.error) && !Object.hasOwn(event, 'sequence_number')
  return Response.json(body ? event : { error }, { status })
}

/** Chat and messages have `error`; responses have it in the event, in a failed response, or as members of the event. */
function errorIn(event: JsonObject): unknown {
  if (isGiven(event.error)) return event.error
  if (isObject(event.response)) return event.response.error
  const { message, code, param = null } = event
  return { message, type: code, param, code }
}
