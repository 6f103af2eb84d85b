/**
 * Passes headers by the rows of `header-rules.ts` in both directions. Hop-by-hop headers, credentials, cookies and
 * unknown headers are not passed (RFC 9110 section 7.6.1). Compression ends here: bodies are requested as identity, and
 * fetch decompresses any other, so the encoding and length of the wire no longer apply.
 */

import { mustNotRetry } from '../../failure.ts'
import { type Family, familyNames } from '../../languages/families.ts'
import type { TraceHeaders } from '../../telemetry/trace-context.ts'
import type { Exchange } from '../exchange.ts'
import { maskKeyInText } from '../upstream/mask-provider-key.ts'
import { type HeaderRule, neverPassed, toCaller, toProvider } from './header-rules.ts'

/** The rows of one family, made once: exact names, and the beginnings of names. */
interface Passed {
  readonly names: readonly HeaderRule[]
  readonly beginnings: readonly HeaderRule[]
}

const rowsFor = (rules: readonly HeaderRule[]): ReadonlyMap<Family, Passed> =>
  new Map(
    familyNames.map((family) => {
      const own = rules.filter(({ families }) => families?.includes(family) ?? true)
      const isBeginning = ({ name }: HeaderRule) => name.endsWith('*')
      return [family, { names: own.filter((rule) => !isBeginning(rule)), beginnings: own.filter(isBeginning) }]
    }),
  )

const providerRows = rowsFor(toProvider)
const callerRows = rowsFor(toCaller)
const noRows: Passed = { names: [], beginnings: [] }

/** The headers that rows with `*` pass, of which a family usually has none. */
function passByBeginning(headers: Headers, rules: readonly HeaderRule[], passed: Record<string, string>): void {
  if (rules.length === 0) return
  const nominated = (headers.get('connection') ?? '').toLowerCase().split(/[\s,]+/)
  headers.forEach((value, name) => {
    if (!rules.some((rule) => name.startsWith(rule.name.slice(0, -1)))) return
    if (nominated.includes(name) || neverPassed.some(({ names }) => names.test(name))) return
    passed[name] = value
  })
}

/**
 * The caller's headers for the provider, with its trace if it has one. `translated` is true when the provider is called
 * in another language than the caller's.
 */
export function headersToProvider(
  headers: Headers,
  family: Family,
  trace: TraceHeaders | null,
  translated: boolean,
): Record<string, string> {
  const passed: Record<string, string> = {}
  const rows = providerRows.get(family) ?? noRows
  for (const { name, ofLanguage } of rows.names) {
    if (translated && ofLanguage) continue
    const value = headers.get(name)
    if (value !== null) passed[name] = value
  }
  const beginnings = translated ? rows.beginnings.filter(({ ofLanguage }) => !ofLanguage) : rows.beginnings
  passByBeginning(headers, beginnings, passed)
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
  const passed: Record<string, string> = {}
  const rows = callerRows.get(exchange.dialect.family) ?? noRows
  for (const { name } of rows.names) {
    const value = upstream.headers.get(name)
    if (value !== null) passed[name] = value
  }
  passByBeginning(upstream.headers, rows.beginnings, passed)
  for (const [name, value] of Object.entries(passed)) headers[name] = failed ? maskKeyInText(exchange, value) : value
  if (exchange.maxOutputTokens !== null) {
    headers['x-service-max-output-tokens'] = String(exchange.maxOutputTokens)
  }
  if (exchange.cache !== null) headers['x-service-cache'] = exchange.cache.result
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
