/**
 * What a provider's headers say of the rate limit of the key that was used, so that a key rests before it is refused.
 * Two forms: `x-ratelimit-{limit,remaining,reset}-{requests,tokens}` of OpenAI and those that imitate it, with a reset
 * such as `6m0s`, and `anthropic-ratelimit-{requests,tokens,input-tokens,output-tokens}-{limit,remaining,reset}` of
 * Anthropic, with a reset as an RFC 3339 time.
 */

/** A limit of which no more than this share is left counts as used up. */
const leastShare = 0.02

/** The headers of one limit. */
interface LimitNames {
  readonly counts: string
  readonly limit: string
  readonly remaining: string
  readonly reset: string
}

const limits: readonly LimitNames[] = [
  ...['requests', 'tokens'].map((counts) => ({
    counts,
    limit: `x-ratelimit-limit-${counts}`,
    remaining: `x-ratelimit-remaining-${counts}`,
    reset: `x-ratelimit-reset-${counts}`,
  })),
  ...['requests', 'tokens', 'input-tokens', 'output-tokens'].map((counts) => ({
    counts,
    limit: `anthropic-ratelimit-${counts}-limit`,
    remaining: `anthropic-ratelimit-${counts}-remaining`,
    reset: `anthropic-ratelimit-${counts}-reset`,
  })),
]

/** How long to wait where a provider does not say when a used-up limit is full again. */
const unknownReset = 1_000

/**
 * Milliseconds for which the key should rest, or null. `inFlight` is how many calls with the key still run: a limit of
 * requests must have room for them. `now` is milliseconds since the epoch.
 */
export function restByRateLimits(headers: Headers, inFlight: number, now: number): number | null {
  let rest: number | null = null
  for (const names of limits) {
    const written = headers.get(names.remaining)
    if (written === null) continue
    const remaining = Number(written)
    const limit = Number(headers.get(names.limit) ?? Number.NaN)
    if (Number.isNaN(remaining) || !isLow(remaining, limit, names.counts === 'requests' ? inFlight : 0)) continue
    rest = Math.max(rest ?? 0, resetAfter(headers.get(names.reset), now) ?? unknownReset)
  }
  return rest
}

const isLow = (remaining: number, limit: number, needed: number): boolean =>
  remaining <= needed || (limit > 0 && remaining / limit <= leastShare)

const units: Readonly<Record<string, number>> = { d: 86_400_000, h: 3_600_000, m: 60_000, s: 1000, ms: 1 }

/** Reads `1m30.5s`, `250ms`, plain seconds and RFC 3339 times; null for anything else. */
export function resetAfter(written: string | null, now: number): number | null {
  const text = written?.trim() ?? ''
  if (text === '') return null
  if (/^\d+(?:\.\d+)?$/.test(text)) return Number(text) * 1000
  if (/^(?:\d+(?:\.\d+)?(?:ms|[dhms]))+$/.test(text)) {
    let sum = 0
    for (const [, amount, unit] of text.matchAll(/(\d+(?:\.\d+)?)(ms|[dhms])/g)) {
      sum += Number(amount) * (units[unit ?? ''] ?? 0)
    }
    return sum
  }
  const at = /^\d{4}-\d\d-\d\dT/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(at) ? null : Math.max(0, at - now)
}
