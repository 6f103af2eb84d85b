/**
 * The server ends a connection on which nothing happens for ten seconds. Where a request takes longer, the gateway's
 * own deadlines hold instead. Once it is answered the connection has a limit again: a caller that is gone without a
 * word would keep it for ever.
 */
import type { Exchange } from './exchange.ts'

type Asked = Pick<Exchange, 'request' | 'connection'>

/** Time for a caller that is slow to read its answer, too. */
const afterAnswerSeconds = 120

/** Holds until `restoreIdleLimit`, or the connection's next request. */
export function liftIdleLimit({ request, connection }: Asked): void {
  connection?.timeout(request, 0)
}

/** To be called before the answer has left; afterwards it does nothing. */
export function restoreIdleLimit({ request, connection }: Asked): void {
  connection?.timeout(request, afterAnswerSeconds)
}
