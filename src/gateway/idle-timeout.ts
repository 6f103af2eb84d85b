/**
 * Replaces the server's idle timeout of ten seconds by the gateway's own deadlines while a request runs. After the
 * answer the connection gets a timeout again; otherwise a client that vanished would keep it open for ever.
 */
import type { Exchange } from './exchange.ts'

type ConnectedRequest = Pick<Exchange, 'request' | 'connection'>

/** Includes time for a client that reads its answer slowly. */
const afterAnswerSeconds = 120

/** Applies until `restoreIdleTimeout`, or until the next request of the connection. */
export function liftIdleTimeout({ request, connection }: ConnectedRequest): void {
  connection?.timeout(request, 0)
}

/** Call it before the answer has left; afterwards it has no effect. */
export function restoreIdleTimeout({ request, connection }: ConnectedRequest): void {
  connection?.timeout(request, afterAnswerSeconds)
}
