import type { Gateway } from '../context.ts'
import type { Exchange } from '../exchange.ts'
import { interruptedRecord } from './exchange-record.ts'

export async function openRecord(exchange: Exchange, gateway: Gateway): Promise<void> {
  const interrupted = interruptedRecord(exchange, gateway)
  await gateway.worker.journal.open(exchange.id, interrupted, innerEvents(exchange, gateway), exchange.rates?.uses())
  exchange.opened = true
}

/** How many events its record may hold beside the outcome: each retry of each path, and the policy decisions. */
function innerEvents({ paths, chain, policyResults }: Exchange, { settings }: Gateway): number {
  let tries = paths.length * (1 + settings.path_retries)
  // Each further key of a provider may be tried once.
  for (let index = 0; index < paths.length; index++) tries += (paths[index]?.provider.keys?.length ?? 1) - 1
  if (chain === null || chain.size === 0) return tries
  return tries + policyResults.length + chain.at('post_request').length + chain.at('pre_response').length
}
