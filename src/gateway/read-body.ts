/**
 * Receives a request's body within its limits: bytes (at once where Content-Length says so, otherwise while they are
 * counted) and its length once it is decompressed (RFC 9110 section 8.4); `running.ts` holds it to the time it may take
 * in all, however it trickles in. What leaves here is never encoded, so that what is read is what is forwarded.
 */
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib'
import { Failure } from '../failure.ts'
import { readBounded } from './bounded.ts'
import type { Exchange, Gateway, ReasonCode } from './exchange.ts'
import { liftIdleLimit } from './idle-limit.ts'

type Decompress = (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Uint8Array>

const decompressors: ReadonlyMap<string, Decompress> = new Map<string, Decompress>([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
  ['zstd', promisify(zstdDecompress)],
])

/** What of an exchange is needed while its body comes. */
type Arriving = Pick<Exchange, 'request' | 'cut' | 'onCut'>

/** The body's bytes; `limit` holds before and after decompression. Rejects with why the exchange was cut meanwhile. */
export function readBody(exchange: Arriving, limit: number): Promise<Uint8Array> {
  const decompress = decompressorOf(exchange.request.headers.get('content-encoding'))
  const bytes = receive(exchange, limit)
  return decompress === null ? bytes : bytes.then((encoded) => decompressed(decompress, encoded, limit))
}

/**
 * As `readBody` within the gateway's limits, for a request that is no exchange yet, which `running.ts` would watch: its
 * time is kept here, and a drain waits for it. The server's limit for idle connections is lifted (`idle-limit.ts`), for
 * the wait for the answer too.
 */
export async function readBodyWithin(
  { settings, running }: Pick<Gateway, 'settings' | 'running'>,
  arrived: Pick<Exchange, 'request' | 'connection'>,
): Promise<Uint8Array> {
  liftIdleLimit(arrived)
  const arriving: Arriving = { request: arrived.request, cut: null, onCut: null }
  const end = (reason: ReasonCode, failure: Failure) => {
    arriving.cut = { reason, failure }
    arriving.onCut?.()
  }
  const late = () => end('request_timeout', new Failure('request_timeout'))
  const timer = setTimeout(late, 1000 * settings.body_timeout_seconds)
  try {
    const reading = readBody(arriving, settings.body_limit_bytes)
    running.waitFor(reading, () => end('gateway.drained', new Failure('draining')))
    const bytes = await reading
    // Cut while it was decompressed: nothing would end what begins now.
    if (arriving.cut !== null) throw arriving.cut.failure
    return bytes
  } finally {
    clearTimeout(timer)
  }
}

function decompressorOf(encoding: string | null): Decompress | null {
  if (encoding === null) return null
  const name = encoding.trim().toLowerCase()
  if (name === '' || name === 'identity') return null
  const decompress = decompressors.get(name)
  if (decompress !== undefined) return decompress
  throw new Failure('unsupported_media_type', {
    message: 'Content-Encoding is none of gzip, deflate, br, zstd and identity, of which one may be used',
  })
}

const tooLarge = (limit: number) =>
  new Failure('request_too_large', { message: `The request body is larger than the limit of ${limit} bytes` })

function receive(exchange: Arriving, limit: number): Promise<Uint8Array> {
  const { request } = exchange
  const declared = request.headers.get('content-length')
  if (declared !== null) {
    if (Number(declared) > limit) throw tooLarge(limit)
    return received(exchange, request.bytes())
  }
  if (request.body === null) return Promise.resolve(new Uint8Array(0))
  return received(exchange, readBounded(request.body.getReader(), limit)).then((bytes) => {
    if (bytes === null) throw tooLarge(limit)
    return bytes
  })
}

/** What comes after a cut is let go of with the connection; a body that breaks off has nobody behind it any more. */
function received<Bytes>(exchange: Arriving, reading: Promise<Bytes>): Promise<Bytes> {
  const { promise, resolve, reject } = Promise.withResolvers<Bytes>()
  exchange.onCut = () => reject(exchange.cut?.failure)
  reading.then(resolve, (thrown) => reject(new Failure('client_left', { cause: thrown })))
  return promise
}

async function decompressed(decompress: Decompress, bytes: Uint8Array, limit: number): Promise<Uint8Array> {
  try {
    return await decompress(bytes, { maxOutputLength: limit })
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ERR_BUFFER_TOO_LARGE') throw tooLarge(limit)
    throw new Failure('invalid_encoding', { cause: thrown })
  }
}
