/**
 * The set of running exchanges: a drain waits for them, their clients are watched, and their deadlines are checked. One
 * sweep every few milliseconds serves all of them. A timer and a listener for each request would cost more than the
 * rest of its admission. The sweep stops while nothing runs.
 *
 * There are five deadlines (handbook/reference/http.md): the request body, the connection, the provider's first byte,
 * its silence within an answer, and the whole answer. The second and third end a call, after which another path may be
 * tried. The others end the exchange, the last two only once the answer has begun.
 */

import type { Settings } from '../config.ts'
import { Failure } from '../failure.ts'
import type { Clock } from '../lib/clock.ts'
import { Slots } from '../lib/http/slots.ts'
import { ShortLivedSet } from '../lib/short-lived.ts'
import { endAttempt } from './accounting/exchange-record.ts'
import { tokenRevoked } from './admission/token-revoked.ts'
import type { InFlight } from './context.ts'
import { cutExchange, type Exchange, type ReasonCode } from './exchange.ts'
import { liftIdleTimeout, restoreIdleTimeout } from './idle-timeout.ts'
import { interruptedFailure } from './upstream/provider-failure.ts'
import { dialTcp, Reachability, usesProxy } from './upstream/reachability.ts'
import { deadlinesOf } from './upstream/timeouts.ts'

const sweepMilliseconds = 10
/**
 * How long an exchange runs before its client is watched, which costs as much as the rest of an admission. The call of
 * a client that disconnects sooner is cancelled then, or has finished.
 */
const momentMilliseconds = 50
/**
 * Deadlines are seconds long. With ten thousand streams, checking each in every sweep would use a tenth of a processor.
 */
const sweepsForDeadlines = 5

/** `watch` is called once for each exchange that runs longer than a moment and whose request was read whole. */
export function createInFlight(settings: Settings, clock: Clock, watch: (exchange: Exchange) => void): InFlight {
  const reachability = usesProxy(process.env) ? null : new Reachability(clock, dialTcp)
  const exchanges = new ShortLivedSet<Exchange>()
  const slots = new Slots()
  const awaited = new Set<{ cut: (() => void) | undefined }>()
  let waitUntilEmpty: (() => void) | null = null
  const isEmpty = () => exchanges.size === 0 && awaited.size === 0
  let sweeping: ReturnType<typeof setInterval> | null = null
  const stopSweeping = () => {
    if (sweeping !== null) clearInterval(sweeping)
    sweeping = null
  }
  let sweeps = 0
  const sweep = () => {
    if (exchanges.size === 0) return stopSweeping()
    sweeps = (sweeps + 1) % sweepsForDeadlines
    const now = clock.monotonic()
    for (const exchange of exchanges) {
      if (!exchange.watched && exchange.facts !== null && now - exchange.startedMonotonic > momentMilliseconds) {
        exchange.watched = true
        exchange.idleTimeoutLifted = true
        watch(exchange)
      }
      if (sweeps === 0) checkDeadlines(exchange, now, { settings, clock, reachability })
    }
  }
  const whenEmpty = (milliseconds: number) =>
    new Promise<void>((resolve) => {
      if (isEmpty()) return resolve()
      const timer = setTimeout(resolve, milliseconds)
      waitUntilEmpty = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  return {
    get size() {
      return exchanges.size
    },
    [Symbol.iterator]: () => exchanges[Symbol.iterator](),
    add(exchange) {
      if (!exchanges.has(exchange)) exchange.slot = slots.take()
      exchanges.add(exchange)
      if (sweeping === null) {
        sweeping = setInterval(sweep, sweepMilliseconds)
        sweeping.unref()
      }
    },
    remove(exchange) {
      if (exchanges.has(exchange)) slots.give(exchange.slot)
      exchanges.delete(exchange)
      exchange.memory.release()
      exchange.answerMemory.release()
      if (exchange.idleTimeoutLifted) restoreIdleTimeout(exchange)
      if (waitUntilEmpty !== null && isEmpty()) waitUntilEmpty()
    },
    waitFor(ended, cut) {
      const waiting = { cut }
      awaited.add(waiting)
      const over = () => {
        awaited.delete(waiting)
        if (waitUntilEmpty !== null && isEmpty()) waitUntilEmpty()
      }
      ended.then(over, over)
    },
    cutTokens(tokenHashes, organizationId) {
      for (const exchange of exchanges) {
        const { token } = exchange
        if (token !== null && tokenHashes.includes(token.hash)) {
          cutExchange(exchange, 'token.revoked', tokenRevoked(organizationId, token.id))
        }
      }
    },
    async drain(milliseconds) {
      await whenEmpty(milliseconds)
      for (const exchange of exchanges) cutExchange(exchange, 'gateway.drained', new Failure('draining'))
      for (const waiting of awaited) waiting.cut?.()
      await whenEmpty(cutGraceMilliseconds)
      stopSweeping()
    },
  }
}

interface Watch {
  settings: Settings
  clock: Clock
  reachability: Reachability | null
}

/** A cut exchange only writes its outcome. A disk that takes longer than this will not take it at all. */
const cutGraceMilliseconds = 2000

function checkDeadlines(exchange: Exchange, now: number, { settings, clock, reachability }: Watch): void {
  if (exchange.bodyDeadline !== null && now > exchange.bodyDeadline) {
    cutExchange(exchange, 'request_timeout', new Failure('request_timeout'))
    return
  }
  if (exchange.bodyDeadline !== null) {
    exchange.idleTimeoutLifted = true
    liftIdleTimeout(exchange)
  }
  const [first] = exchange.attempts
  const attempt = exchange.attempts.at(-1)
  if (first === undefined || attempt === undefined || exchange.outcomeCommitted !== null) return
  const deadlines = deadlinesOf(exchange.model?.provider ?? null, settings)
  const answering = attempt.firstByteMs !== null
  if (now - first.startedMonotonic > deadlines.total) {
    cutLate(exchange, answering)
    return
  }
  if (exchange.call.silentSince === null || attempt.latencyMs !== null) return
  const since = exchange.call.silentSince
  if (!answering && hasNoConnection(exchange, since, deadlines.connect, reachability)) {
    endLate(exchange, clock, 'provider.unreachable')
    return
  }
  if (now - since <= (answering ? deadlines.idle : deadlines.firstByte)) return
  const begun = answering && (exchange.call.reader === null || exchange.streaming)
  if (begun) cutLate(exchange, answering)
  else endLate(exchange, clock, 'provider.timeout')
}

function hasNoConnection(
  { model }: Exchange,
  since: number,
  deadline: number,
  reachability: Reachability | null,
): boolean {
  const address = model?.kind.address?.(model.provider) ?? null
  return address !== null && reachability?.unreachable(address, since, deadline) === true
}

/** Nothing was passed on, so only this call ends and another path may answer. */
function endLate(exchange: Exchange, clock: Clock, reason: ReasonCode): void {
  endAttempt(exchange, { clock }, reason)
  exchange.call.abort.abort()
}

function cutLate(exchange: Exchange, answering: boolean): void {
  const none = () => new Failure('provider_primary_path_error', { message: 'The provider did not answer in time' })
  cutExchange(exchange, 'provider.timeout', answering ? interruptedFailure() : none())
}
