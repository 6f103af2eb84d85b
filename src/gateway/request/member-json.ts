/** Writes a changed member of a request with its numbers as the caller spelled them. */
import { withNumbersOf } from '../../lib/json/keep-numbers.ts'
import type { Exchange } from '../exchange.ts'

/** `value` is the changed member of the body and is not undefined. */
export function memberJson(
  { body, members }: Pick<Exchange, 'body' | 'members'>,
  name: string,
  value: unknown,
): string {
  if (body === null || members === null || 'parts' in members) return JSON.stringify(value)
  const span = members.spans[members.names.indexOf(name)]
  if (span === undefined) return JSON.stringify(value)
  return withNumbersOf(new TextDecoder('utf-8', { ignoreBOM: true }).decode(body).slice(...span), value)
}
