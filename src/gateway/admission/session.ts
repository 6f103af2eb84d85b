/**
 * Matches the session of a request: `session_id` of the body and `x-session-id` must agree (gateway/README.md). Only
 * the gateway uses it; the provider receives neither.
 */

import { Failure } from '../../failure.ts'
import { memberWith } from '../../languages/families.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'

/** Printable, so that events show it as it was sent, and short enough to store with each event. */
const sessionForm = /^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/

export function matchSession(exchange: Exchange, _gateway: Gateway): void {
  const member = memberWith(exchange.dialect.family, 'session')
  if (member === undefined) return
  const inHeader = exchange.request.headers.get('x-session-id')
  const inBody = required(exchange.facts).sessionId
  if (inHeader !== null) checkSessionId(inHeader, 'x-session-id')
  if (inBody !== null) checkSessionId(inBody, member)
  if (inBody !== null && inHeader !== null && inBody !== inHeader) {
    throw new Failure('session_id_mismatch', { param: member })
  }
  exchange.sessionId = inBody ?? inHeader
  if (Object.hasOwn(required(exchange.parsed), member)) exchange.edits.set(member, null)
}

/** Throws `invalid_parameter` for an id that events could not show as it is. */
export function checkSessionId(value: string, param: string): void {
  if (sessionForm.test(value)) return
  const message = `${param} must be 1 to 256 printable ASCII characters`
  throw new Failure('invalid_parameter', { message, param })
}
