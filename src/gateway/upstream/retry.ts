/**
 * When one path is tried again before the next one is (gateway/README.md, Paths): once or as often as configured, where
 * the wait that the provider asks for, or a short one of our own, is not longer than a request may wait. A timeout is
 * not tried again on its path: it has cost its time already.
 */
import { retryAfterSeconds } from '../request/headers.ts'

/** Failures of the moment (RFC 9110 section 15): another try, here or on another path, may succeed. */
export const isTransient = (status: number): boolean =>
  status === 408 || status === 409 || status === 429 || status >= 500

/** What a provider says about calling it again. */
export interface RetryAdvice {
  /** Milliseconds that it asks to wait; null where it does not say. */
  after: number | null
  /** It says that the same request would fail again. */
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
  /** How often a path is tried again. */
  retries: number
  /** The longest wait, in milliseconds. */
  longestWait: number
}

const firstBackoff = 200

/**
 * Milliseconds to wait before the try after `tries` of them on one path; null where there is none. `jitter`, from 0 to
 * 1, spreads out the requests that failed together.
 */
export function waitBeforeRetry(tries: number, advice: RetryAdvice, rules: RetryRules, jitter: number): number | null {
  if (tries > rules.retries || advice.pointless) return null
  if (advice.after !== null) return advice.after <= rules.longestWait ? advice.after : null
  return Math.min(firstBackoff * 2 ** (tries - 1) * (0.5 + jitter / 2), rules.longestWait)
}
