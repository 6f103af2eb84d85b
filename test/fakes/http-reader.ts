/**
 * Reads HTTP/1.1 requests off a socket byte by byte (RFC 9112), for a fake that must see exactly what was sent. Knows
 * Content-Length and chunked bodies and pipelined requests; deliberately nothing else.
 */
export interface ReadRequest {
  method: string
  path: string
  /** Names in lower case; of repeated headers the last. */
  headers: Readonly<Record<string, string>>
  body: Buffer
}

const endOfHead = Buffer.from('\r\n\r\n')
const lineEnd = Buffer.from('\r\n')

/** Keeps what has arrived of a connection and gives whole requests as they complete. */
export function createHttpReader(): { push(bytes: Uint8Array): ReadRequest[] } {
  let held: Buffer = Buffer.alloc(0)
  return {
    push(bytes) {
      held = Buffer.concat([held, bytes])
      const requests: ReadRequest[] = []
      for (let next = readRequest(held); next; next = readRequest(held)) {
        requests.push(next.request)
        held = held.subarray(next.length)
      }
      return requests
    },
  }
}

function readRequest(bytes: Buffer): { request: ReadRequest; length: number } | null {
  const head = bytes.indexOf(endOfHead)
  if (head < 0) return null
  const [start = '', ...lines] = bytes.subarray(0, head).toString('latin1').split('\r\n')
  const [method = '', path = ''] = start.split(' ')
  const headers = Object.fromEntries(
    lines.map((line) => {
      const colon = line.indexOf(':')
      return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()]
    }),
  )
  const bodyAt = head + endOfHead.length
  const body = headers['transfer-encoding']?.toLowerCase().includes('chunked')
    ? readChunks(bytes, bodyAt)
    : readLength(bytes, bodyAt, Number(headers['content-length'] ?? 0))
  return body && { request: { method, path, headers, body: body.content }, length: body.end }
}

interface ReadBody {
  content: Buffer
  end: number
}

function readLength(bytes: Buffer, from: number, length: number): ReadBody | null {
  if (bytes.length < from + length) return null
  return { content: Buffer.from(bytes.subarray(from, from + length)), end: from + length }
}

function readChunks(bytes: Buffer, from: number): ReadBody | null {
  const parts: Buffer[] = []
  let at = from
  for (;;) {
    const sizeEnd = bytes.indexOf(lineEnd, at)
    if (sizeEnd < 0) return null
    const size = Number.parseInt(bytes.subarray(at, sizeEnd).toString('latin1'), 16)
    const contentAt = sizeEnd + lineEnd.length
    const end = contentAt + size + lineEnd.length
    if (bytes.length < end) return null
    if (size === 0) return { content: Buffer.concat(parts), end }
    parts.push(Buffer.from(bytes.subarray(contentAt, contentAt + size)))
    at = end
  }
}
