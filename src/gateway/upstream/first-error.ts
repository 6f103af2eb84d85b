/**
 * A stream whose first event is the provider's error, before anything was passed on: a refusal like one by an HTTP
 * status, which decides whether another path is asked and what the caller is told (gateway/README.md, Paths).
 */
import { statusOfError } from '../../languages/reading/frames/error-status.ts'
import { isGiven, isObject, type JsonObject, parseObject } from '../../languages/reading/json-value.ts'

/** Thrown instead of what cannot be used: the refusal that the stream's first event is. */
export class FirstError extends Error {
  readonly refusal: Response

  constructor(refusal: Response) {
    super('The stream began with an error')
    this.refusal = refusal
  }
}

/** The refusal that a frame's data is, in its own language; null where it does not say which. */
export function refusalOf(data: string | null): Response | null {
  const event = data === null ? null : parseObject(data)
  if (event === null) return null
  const error = errorIn(event)
  const status = statusOfError(error)
  if (status === null) return null
  // Of the messages language it is a body already; of the others the error is.
  const body = event.type === 'error' && isObject(event.error) && !Object.hasOwn(event, 'sequence_number')
  return Response.json(body ? event : { error }, { status })
}

/** Of chat and messages `error`, of responses that, a failed response's, or the members of the event itself. */
function errorIn(event: JsonObject): unknown {
  if (isGiven(event.error)) return event.error
  if (isObject(event.response)) return event.response.error
  const { message, code, param = null } = event
  return { message, type: code, param, code }
}
