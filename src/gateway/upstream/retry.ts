/**
 * Decides whether a path is retried before the next one is tried (gateway/README.md, Paths): as often as configured, if
 * the wait that the provider asks for, or a short backoff, is not longer than a request may wait. A timeout is not
 * retried on its path, because it has used up its time.
 */
import type { Exchange } from '../exchange.ts'
import { retryAfterSeconds } from '../request/headers.ts'

/** Temporary failures (RFC 9110 section 15): another attempt, here or on another path, may succeed. */
export const isTransient = (status: number): boolean =>
  status === 408 || status === 409 || status === 429 || status >= 500

/** What a provider says about calling it again. */
export interface RetryAdvice {
  /** Milliseconds to wait; null when it does not say. */
  after: number | null
  /** The provider says that the same request would fail again. */
  pointless: boolean
}

export const noAdvice: RetryAdvice = { after: null, pointless: false }

/** Reads `retry-after-ms`, `Retry-After` and `x-should-retry`; `now` is milliseconds since the epoch. */
export function retryAdvice(headers: Headers, now: number): RetryAdvice {
  const written = headers.get('retry-after-ms')
  const exact = written === null || written.trim() === '' ? Number.NaN : Number(written)
  const seconds = retryAfterSeconds(headers.get('retry-after'), now)
  const after = exact >= 0 && Number.isFinite(exact) ? exact : seconds === null ? null : seconds * 1000
  return { after, pointless: headers.get('x-should-retry') === 'false' }
}

export interface RetryRules {
  /** How often a path is retried. */
  retries: number
  /** The longest wait in milliseconds. */
  longestWait: number
}

const firstBackoff = 200

/**
 * Milliseconds to wait before the next attempt after `tries` attempts on one path; null when there is none. `jitter`,
 * from 0 to 1, spreads out requests that failed together.
 */
export function waitBeforeRetry(tries: number, advice: RetryAdvice, rules: RetryRules, jitter: number): number | null {
  if (tries > rules.retries || advice.pointless) return null
  if (advice.after !== null) return advice.after <= rules.longestWait ? advice.after : null
  return Math.min(firstBackoff * 2 ** (tries - 1) * (0.5 + jitter / 2), rules.longestWait)
}

/** Waits, or until the exchange is cut. */
export function pause(exchange: Pick<Exchange, 'onCut'>, milliseconds: number): Promise<void> {
  return new Promise((resolve) => {
    const end = () => {
      clearTimeout(timer)
      exchange.onCut = null
      resolve()
    }
    const timer = setTimeout(end, milliseconds)
    exchange.onCut = end
  })
}
