/** The trace that a request belongs to, as `traceparent` says it (W3C Trace Context, section 3.2). */

export interface TraceContext {
  /** 32 hexadecimal digits. */
  traceId: string
  /** The caller's span, 16 hexadecimal digits. */
  spanId: string
  /** Whether the caller records its part of the trace. */
  sampled: boolean
}

const form = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/
const nothing = /^0+$/

/** Null where there is no header, or one that must be ignored: a wrong form, version ff, ids of zeros. */
export function parseTraceparent(header: string | null): TraceContext | null {
  if (header === null) return null
  const [, version, traceId, spanId, flags, more] = form.exec(header.trim()) ?? []
  if (version === undefined || traceId === undefined || spanId === undefined || flags === undefined) return null
  // Of later versions the first four fields mean the same; version 00 has no more than these.
  if (version === 'ff' || (version === '00' && more !== undefined)) return null
  if (nothing.test(traceId) || nothing.test(spanId)) return null
  return { traceId, spanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

/** The header by which who is called knows its parent, which is recorded. */
export const traceparentOf = (traceId: string, spanId: string): string => `00-${traceId}-${spanId}-01`
