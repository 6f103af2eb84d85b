/**
 * Passes headers by an allow-list in both directions. Hop-by-hop headers, credentials, cookies and unknown headers are
 * not passed (RFC 9110 section 7.6.1). Compression ends here: bodies are requested as identity, and fetch decompresses
 * any other, so the encoding and length of the wire no longer apply.
 */

import { mustNotRetry } from '../../failure.ts'
import type { Family } from '../../languages/families.ts'
import type { TraceHeaders } from '../../telemetry/trace-context.ts'
import type { Exchange } from '../exchange.ts'
import { maskKeyInText } from '../upstream/mask-provider-key.ts'

const toProvider = [
  'accept',
  'user-agent',
  'idempotency-key',
  'openai-beta',
  'anthropic-version',
  'anthropic-beta',
] as const

const toEveryCaller = [
  'content-type',
  'openai-processing-ms',
  'openai-version',
  'x-ratelimit-limit-requests',
  'x-ratelimit-limit-tokens',
  'x-ratelimit-remaining-requests',
  'x-ratelimit-remaining-tokens',
  'x-ratelimit-reset-requests',
  'x-ratelimit-reset-tokens',
]

const anthropicLimits = ['requests', 'tokens', 'input-tokens', 'output-tokens'].flatMap((what) =>
  ['limit', 'remaining', 'reset'].map((which) => `anthropic-ratelimit-${what}-${which}`),
)

/** Provider headers that clients of one family read, in addition to those of all. */
const toCaller: Partial<Record<Family, readonly string[]>> = {
  messages: [...toEveryCaller, ...anthropicLimits],
  speech: [...toEveryCaller, 'content-disposition'],
  transcriptions: [...toEveryCaller, 'content-disposition'],
  translations: [...toEveryCaller, 'content-disposition'],
}

/** Headers of one language; a provider that is called in another does not get them. */
const ofLanguage = /^(?:openai|anthropic)-/

/**
 * The caller's headers for the provider, with its trace if it has one. `translated` is true when the provider is called
 * in another language than the caller's.
 */
export function headersToProvider(
  headers: Headers,
  trace: TraceHeaders | null,
  translated: boolean,
): Record<string, string> {
  const passed: Record<string, string> = {}
  for (const name of toProvider) {
    if (translated && ofLanguage.test(name)) continue
    const value = headers.get(name)
    if (value !== null) passed[name] = value
  }
  return trace === null ? passed : Object.assign(passed, trace)
}

/** The headers of a provider's answer, also of an error. */
export function headersToCaller(exchange: Exchange, upstream: Response, now: number): Record<string, string> {
  const failed = upstream.status >= 400
  const headers: Record<string, string> = {
    'x-request-id': exchange.requestId,
    'x-service-verdict': failed ? 'ERROR' : exchange.verdict.toUpperCase(),
  }
  // Clients of this dialect read the id here (handbook/reference/http.md).
  if (exchange.dialect.family === 'messages') headers['request-id'] = exchange.requestId
  for (const name of toCaller[exchange.dialect.family] ?? toEveryCaller) {
    const value = upstream.headers.get(name)
    if (value !== null) headers[name] = failed ? maskKeyInText(exchange, value) : value
  }
  if (exchange.maxOutputTokens !== null) {
    headers['x-service-max-output-tokens'] = String(exchange.maxOutputTokens)
  }
  if (failed) {
    headers['x-service-error-source'] = 'upstream'
    if (mustNotRetry(upstream.status, null)) headers['x-should-retry'] = 'false'
    const retryAfter = retryAfterSeconds(upstream.headers.get('retry-after'), now)
    if (retryAfter !== null) headers['retry-after'] = String(retryAfter)
  }
  return headers
}

/**
 * Retry-After in whole seconds from either of its forms (RFC 9110 section 10.2.3) or a fraction; null when unreadable.
 */
export function retryAfterSeconds(value: string | null, now: number): number | null {
  if (value === null || value.trim() === '') return null
  const seconds = Number(value)
  if (Number.isFinite(seconds)) return seconds < 0 ? null : Math.ceil(seconds)
  const instant = Date.parse(value)
  return Number.isNaN(instant) ? null : Math.max(0, Math.ceil((instant - now) / 1000))
}
