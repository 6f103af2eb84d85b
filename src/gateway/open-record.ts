/**
 * Writes the open record before anything is sent to a provider: from here on a gateway killed at any instant leaves an
 * outcome all the same, because its restart writes the `interrupted` one (protocols section 3).
 */
import { lookAtToken } from './authenticate.ts'
import { type Exchange, type Gateway, given } from './exchange.ts'
import { interruptedEvent } from './record.ts'

export async function openRecord(exchange: Exchange, gateway: Gateway): Promise<void> {
  exchange.promptHash = gateway.lane.standing.promptHash(given(exchange.body))
  await gateway.lane.journal.open(exchange.id, interruptedEvent(exchange, gateway))
  exchange.opened = true
  if (exchange.cut !== null) throw exchange.cut.failure
  lookAtToken(exchange, gateway)
}
