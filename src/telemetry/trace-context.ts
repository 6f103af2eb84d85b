/**
 * The trace that a request belongs to, as `traceparent` and `tracestate` say it (W3C Trace Context, sections 3.2, 3.3).
 */

interface TraceContext {
  /** 32 hexadecimal digits. */
  traceId: string
  /** The caller's span, 16 hexadecimal digits. */
  spanId: string
  /** Whether the caller records its part of the trace. */
  sampled: boolean
}

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-[\x20-\x7e]*)?$/
const nothing = /^0+$/

/** Null without a header, or if it must be ignored: an invalid form, version ff, ids of zeros. */
export function parseTraceparent(header: string | null): TraceContext | null {
  if (header === null) return null
  const [, version, traceId, spanId, flags, more] = form.exec(header) ?? []
  if (version === undefined || traceId === undefined || spanId === undefined || flags === undefined) return null
  // Of later versions the first four fields mean the same; version 00 has no more than these.
  if (version === 'ff' || (version === '00' && more !== undefined)) return null
  if (nothing.test(traceId) || nothing.test(spanId)) return null
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** The header by which who is called knows its parent, which is recorded. */
export const traceparentOf = (traceId: string, spanId: string): string => `00-${traceId}-${spanId}-01`

/** What tells who is called of its parent: headers, or members of `_meta` in MCP. */
export interface TraceHeaders {
  traceparent: string
  tracestate?: string
}

const mostMembers = 32
const member = /^([a-z0-9][a-z0-9_\-*/@]{0,255})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{0,255}[\x21-\x2b\x2d-\x3c\x3e-\x7e]$/

/**
 * The list of a `tracestate` that may be passed on; null where it is empty or must be left out: a member of a wrong
 * form, or more than 32. Of a key that is given twice the first holds, which is the latest. To be read only where
 * `traceparent` could be.
 */
export function parseTracestate(header: string | null): string | null {
  if (header === null) return null
  const kept = new Map<string, string>()
  let count = 0
  for (const part of header.split(',')) {
    // Spaces before a value belong to it; spaces around a member are ignored.
    const text = part.replace(/^[ \t]+|[ \t]+$/g, '')
    if (text === '') continue
    const key = member.exec(text)?.[1]
    count += 1
    if (key === undefined || count > mostMembers) return null
    if (!kept.has(key)) kept.set(key, text)
  }
  return kept.size === 0 ? null : [...kept.values()].join(',')
}
