/**
 * Watches for client disconnects in exchanges that take longer than a moment. Watching costs as much as the rest of an
 * admission, so a shorter exchange is never watched; `in-flight.ts` starts it in its first sweep.
 */
import { Failure } from '../failure.ts'
import { finishInBackground } from './accounting/exchange-record.ts'
import type { Gateway } from './context.ts'
import { cutExchange, type Exchange } from './exchange.ts'
import { liftIdleTimeout } from './idle-timeout.ts'
import { isUnseen } from './stored/stored-state.ts'

/** From here the gateway's own deadlines replace the server's idle timeout, and a disconnect is noticed. */
export function watchForDisconnect(exchange: Exchange, gateway: Gateway): void {
  liftIdleTimeout(exchange)
  const { signal } = exchange.request
  const left = () => cancelForDisconnect(exchange, gateway)
  if (signal.aborted) left()
  else signal.addEventListener('abort', left, { once: true })
}

/**
 * Cancels the upstream call at once and records the disconnect in the same tick. A provider goes on with a batch, and
 * with a response in the background. Its call is never cancelled: the stages end as if the caller were still there, and the relay of its
 * stream follows it (`stored/background.ts`).
 */
export function cancelForDisconnect(exchange: Exchange, gateway: Gateway): void {
  const { stored } = exchange
  const makes = stored !== null && (stored.isBackground || stored.batch !== null)
  const isAwaited = exchange.opened && makes && !exchange.streaming
  if (exchange.outcomeCommitted !== null || isAwaited || isUnseen(exchange)) return
  cutExchange(exchange, 'client.left', new Failure('client_left'))
  if (exchange.opened) finishInBackground(exchange, gateway, { verdict: 'error', reason: 'client.left', status: null })
}
