/** The caller's id of its request: `x-request-id` (handbook/reference/http.md). */
import { Failure } from '../failure.ts'
import { families } from '../languages/families.ts'
import { isRequestId } from '../lib/http/request-id.ts'
import type { NewId } from '../lib/ids.ts'
import { maskSecrets } from './accounting/redaction.ts'
import type { Exchange } from './exchange.ts'

/** Returns the caller's id when it has the right form and is no secret, otherwise a new one. */
export function requestIdOf(request: Request, newId: NewId): string {
  const given = request.headers.get('x-request-id')
  return given !== null && isRequestId(given) && maskSecrets(given) === given ? given : newId()
}

/** Some families, as messages, refuse a label of another form instead of replacing it. */
export function checkRequestId({ dialect, request }: Exchange): void {
  if (families[dialect.family].strictRequestId !== true) return
  const given = request.headers.get('x-request-id')
  if (given !== null && !isRequestId(given)) throw new Failure('invalid_request_id')
}
