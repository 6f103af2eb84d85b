/**
 * The exchanges that run, in one set: what a drain waits for, whose callers are watched, and what is held against the
 * deadlines. One sweep every few milliseconds serves all of them, where a timer and a listener for each request would
 * cost more than the rest of its admission; it stops while nothing runs.
 *
 * Three deadlines (contract section 2): the provider's first byte, its silence within an answer, the answer in all.
 */
import type { Settings } from '../config.ts'
import { Failure } from '../failure.ts'
import type { Clock } from '../lib/clock.ts'
import { cut, type Exchange } from './exchange.ts'
import { tokenRevoked } from './token-revoked.ts'

const sweepMilliseconds = 10

export interface Running {
  readonly size: number
  add(exchange: Exchange): void
  remove(exchange: Exchange): void
  /** Ends what runs for these tokens: their callers are told, their providers let go. */
  cutTokens(tokenHashes: readonly string[], organizationId: string): void
  /** Waits until none runs or `milliseconds` have passed; then cuts those left and waits for their outcomes. */
  drain(milliseconds: number): Promise<void>
}

/** `watch` is called once for each exchange that takes longer than a moment and has its request whole. */
export function createRunning(settings: Settings, clock: Clock, watch: (exchange: Exchange) => void): Running {
  const exchanges = new Set<Exchange>()
  let emptied: (() => void) | null = null
  let sweeping: ReturnType<typeof setInterval> | null = null
  const stopSweeping = () => {
    if (sweeping !== null) clearInterval(sweeping)
    sweeping = null
  }
  const sweep = () => {
    if (exchanges.size === 0) return stopSweeping()
    const now = clock.monotonic()
    for (const exchange of exchanges) {
      // Until then the server's own limit holds for a body that does not come.
      if (!exchange.watched && exchange.facts !== null) {
        exchange.watched = true
        watch(exchange)
      }
      checkDeadlines(exchange, settings, now)
    }
  }
  const whenEmpty = (milliseconds: number) =>
    new Promise<void>((resolve) => {
      if (exchanges.size === 0) return resolve()
      const timer = setTimeout(resolve, milliseconds)
      emptied = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  return {
    get size() {
      return exchanges.size
    },
    add(exchange) {
      exchanges.add(exchange)
      if (sweeping === null) {
        sweeping = setInterval(sweep, sweepMilliseconds)
        sweeping.unref()
      }
    },
    remove(exchange) {
      exchanges.delete(exchange)
      if (exchanges.size === 0) emptied?.()
    },
    cutTokens(tokenHashes, organizationId) {
      for (const exchange of exchanges) {
        const { token } = exchange
        if (token !== null && tokenHashes.includes(token.hash)) {
          cut(exchange, 'token.revoked', tokenRevoked(organizationId, token.id))
        }
      }
    },
    async drain(milliseconds) {
      await whenEmpty(milliseconds)
      for (const exchange of exchanges) cut(exchange, 'gateway.drained', new Failure('draining'))
      await whenEmpty(cutGraceMilliseconds)
      stopSweeping()
    },
  }
}

/** A cut exchange only has to write its outcome; a disk that takes longer than this will not take it at all. */
const cutGraceMilliseconds = 2000

function checkDeadlines(exchange: Exchange, settings: Settings, now: number): void {
  const attempt = exchange.attempts.at(-1)
  if (attempt === undefined || exchange.settled !== null) return
  const answering = attempt.firstByteMs !== null
  const patience = 1000 * (answering ? settings.idle_timeout_seconds : settings.first_byte_timeout_seconds)
  const silent = exchange.waitingSince !== null && now - exchange.waitingSince > patience
  const tooLong = now - attempt.startedMonotonic > 1000 * settings.total_timeout_seconds
  if (!silent && !tooLong) return
  const message = answering ? 'The provider did not finish its answer in time' : 'The provider did not answer in time'
  cut(exchange, 'provider.timeout', new Failure('provider_primary_path_error', { message }))
}
