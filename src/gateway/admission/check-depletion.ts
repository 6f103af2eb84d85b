/**
 * Checks whether a disposable token is used up, for requests that cost nothing and therefore reserve nothing. A worker
 * that does not know asks the control plane. An amount reserved by running requests is not used up.
 */
import { type Reservation, UsageRefused } from '../../usage/usage-limits.ts'
import type { Gateway } from '../context.ts'
import type { Exchange } from '../exchange.ts'
import { depletableAccounts, depletionFailure } from './depleted-token.ts'

export function checkDepletion(exchange: Exchange, gateway: Gateway): Promise<void> | void {
  const accounts = depletableAccounts(exchange)
  if (accounts.length === 0) return
  const refuse = (thrown: unknown) => {
    if (thrown instanceof UsageRefused && thrown.reason === 'held') return
    throw depletionFailure(thrown, exchange, gateway)
  }
  const demands = accounts.map((account) => ({ account, want: 1, min: 1 }))
  let reserved: Reservation | Promise<Reservation>
  try {
    reserved = gateway.worker.usageLimits.reserve(demands, exchange.call.abort.signal)
  } catch (thrown) {
    return refuse(thrown)
  }
  if (!(reserved instanceof Promise)) return reserved.release()
  return reserved.then((reservation) => reservation.release(), refuse)
}
