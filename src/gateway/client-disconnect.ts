/**
 * The caller's connection, once an exchange takes longer than a moment. Watching it costs as much as the rest of an
 * admission, so an exchange that is over sooner is never watched; `in-flight.ts` begins it at its first sweep.
 */
import { Failure } from '../failure.ts'
import { settleUnwatched } from './accounting/exchange-record.ts'
import type { Gateway } from './context.ts'
import { cut, type Exchange } from './exchange.ts'
import { liftIdleLimit } from './idle-timeout.ts'

/** From here the gateway's own deadlines hold, not the server's for idle connections, and a leaving caller is noticed. */
export function watchCaller(exchange: Exchange, gateway: Gateway): void {
  liftIdleLimit(exchange)
  const { signal } = exchange.request
  const left = () => callerLeft(exchange, gateway)
  if (signal.aborted) left()
  else signal.addEventListener('abort', left, { once: true })
}

/** The caller's leaving cancels the upstream call at once and is recorded in the same tick. */
export function callerLeft(exchange: Exchange, gateway: Gateway): void {
  if (exchange.settled !== null) return
  cut(exchange, 'client.left', new Failure('client_left'))
  if (exchange.opened) settleUnwatched(exchange, gateway, { verdict: 'error', reason: 'client.left', status: null })
}
