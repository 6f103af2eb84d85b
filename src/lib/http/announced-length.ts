/**
 * The most bytes of a fetched answer, by its own headers. Null if no length is announced, and if the length does not
 * end the body: with chunked encoding, whatever the length header says (RFC 9112 section 6.3), or with a compressed
 * body, which is unpacked here.
 */
export function announcedLength(headers: Headers): number | null {
  const length = headers.get('content-length')
  if (length === null || headers.has('transfer-encoding') || headers.has('content-encoding')) return null
  return Number(length)
}
