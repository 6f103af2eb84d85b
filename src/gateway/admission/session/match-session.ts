/**
 * Says which client sent a request, and in which session. The gateway's own names count first: `session_id` of the body
 * and `x-session-id`, which must agree (gateway/README.md); the provider receives neither. Where neither is there, the
 * client's own name of its session counts (`known-clients.ts`); that is never refused, and is forwarded as it came.
 */

import { Failure } from '../../../failure.ts'
import { isTranslated, memberWith } from '../../../languages/families.ts'
import type { Gateway } from '../../context.ts'
import { type Exchange, required } from '../../exchange.ts'
import { calledTools } from './called-tools.ts'
import { clientOf, sessionOf } from './known-clients.ts'

/** Printable, so that events show it as it was sent, and short enough to store with each event. */
const sessionForm = /^[\x21-\x7e](?:[\x20-\x7e]{0,254}[\x21-\x7e])?$/

export function matchSession(exchange: Exchange, _gateway: Gateway): void {
  const { family } = exchange.dialect
  // Agents ask in languages of conversations.
  if (!isTranslated(family)) return
  const { headers } = exchange.request
  const body = required(exchange.parsed)
  const member = memberWith(family, 'session')
  const inHeader = headers.get('x-session-id')
  const inBody = required(exchange.facts).sessionId
  if (inHeader !== null) checkSessionId(inHeader, 'x-session-id')
  if (member !== undefined) {
    if (inBody !== null) checkSessionId(inBody, member)
    if (inBody !== null && inHeader !== null && inBody !== inHeader) {
      throw new Failure('session_id_mismatch', { param: member })
    }
    if (Object.hasOwn(body, member)) exchange.edits.set(member, null)
  }
  const client = clientOf(headers.get('user-agent'), body)
  exchange.client = client?.name ?? null
  exchange.sessionId = inBody ?? inHeader ?? (client === undefined ? null : formed(sessionOf(client, headers, body)))
  if (exchange.sessionId !== null) exchange.calledTools = calledTools(family, body)
}

const formed = (session: string | null): string | null =>
  session !== null && sessionForm.test(session) ? session : null

/** Throws `invalid_parameter` for an id that events could not show as it is. */
export function checkSessionId(value: string, param: string): void {
  if (sessionForm.test(value)) return
  const message = `${param} must be 1 to 256 printable ASCII characters`
  throw new Failure('invalid_parameter', { message, param })
}
