/**
 * How many bytes come of an answer that was fetched, by its own headers: no more than these. Null where none are
 * announced, and where something else ends the body than their number: chunks, whatever length stands beside them (RFC
 * 9112 section 6.3), or the end of what is unpacked here.
 */
export function announcedLength(headers: Headers): number | null {
  const length = headers.get('content-length')
  if (length === null || headers.has('transfer-encoding') || headers.has('content-encoding')) return null
  return Number(length)
}
