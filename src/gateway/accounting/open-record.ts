/**
 * Writes the open record before anything is sent to a provider. From then on a gateway that is killed still leaves an
 * outcome, because recovery writes the `interrupted` one (fleet/outbox/README.md rule 4). The outbox sets space aside
 * for everything that may end the exchange, so a full disk refuses the request here and not after it was paid for.
 */
import { checkToken } from '../admission/authenticate.ts'
import type { Gateway } from '../context.ts'
import type { Exchange } from '../exchange.ts'
import { interruptedRecord } from './exchange-record.ts'

export async function openRecord(exchange: Exchange, gateway: Gateway): Promise<void> {
  const interrupted = interruptedRecord(exchange, gateway)
  await gateway.worker.journal.open(exchange.id, interrupted, innerEvents(exchange, gateway), exchange.rates?.uses())
  exchange.opened = true
  if (exchange.cut !== null) throw exchange.cut.failure
  checkToken(exchange, gateway)
}

/** How many events its record may hold beside the outcome: each retry of each path, and the policy decisions. */
function innerEvents({ paths, chain, policyResults }: Exchange, { settings }: Gateway): number {
  const tries = paths.length * (1 + settings.path_retries)
  if (chain === null || chain.size === 0) return tries
  return tries + policyResults.length + chain.at('post_request').length + chain.at('pre_response').length
}
