/**
 * Writes the open record before anything is sent to a provider: from here on a gateway killed at any instant leaves an
 * outcome all the same, because its restart writes the `interrupted` one (protocols section 3).
 */
import { Failure } from '../failure.ts'
import { lookAtToken } from './authenticate.ts'
import { cut, type Exchange, type Gateway, given } from './exchange.ts'
import { interruptedEvent, settleUnwatched } from './record.ts'

export async function openRecord(exchange: Exchange, gateway: Gateway): Promise<void> {
  watchCaller(exchange, gateway)
  // A provider may take longer than a connection may be idle: from here the gateway's own deadlines hold.
  exchange.connection?.timeout(exchange.request, 0)
  exchange.promptHash = gateway.lane.standing.promptHash(given(exchange.body))
  await gateway.lane.journal.open(exchange.id, interruptedEvent(exchange, gateway))
  exchange.opened = true
  if (exchange.cut !== null) throw exchange.cut.failure
  lookAtToken(exchange, gateway)
}

/** The caller's leaving cancels the upstream call at once and is recorded in the same tick. */
function watchCaller(exchange: Exchange, gateway: Gateway): void {
  const { signal } = exchange.request
  const left = () => callerLeft(exchange, gateway)
  if (signal.aborted) left()
  else signal.addEventListener('abort', left, { once: true })
}

export function callerLeft(exchange: Exchange, gateway: Gateway): void {
  if (exchange.settled !== null) return
  cut(exchange, 'client.left', new Failure('client_left'))
  if (exchange.opened) settleUnwatched(exchange, gateway, { verdict: 'error', reason: 'client.left', status: null })
}
