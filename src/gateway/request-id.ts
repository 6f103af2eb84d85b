/** The caller's label of its request: `x-request-id` (contract section 2). */
import { Failure } from '../failure.ts'
import type { NewId } from '../lib/ids.ts'
import type { Exchange } from './exchange.ts'

const requestIdForm = /^[A-Za-z0-9._:-]{1,128}$/

/** The caller's own label where it has the form of one, otherwise a new one. */
export function requestIdOf(request: Request, newId: NewId): string {
  const given = request.headers.get('x-request-id')
  return given !== null && requestIdForm.test(given) ? given : newId()
}

/** On messages a label that has not the form of one is refused instead of replaced. */
export function checkRequestId({ dialect, request }: Exchange): void {
  if (!dialect.strictRequestId) return
  const given = request.headers.get('x-request-id')
  if (given !== null && !requestIdForm.test(given)) throw new Failure('invalid_request_id')
}
