/**
 * Receives a request body within its limits: memory (`gateway/admission/memory-budget.ts`), bytes (by Content-Length,
 * or while reading) and decompressed length (RFC 9110 section 8.4). `gateway/in-flight.ts` enforces the total time, so
 * a slow trickle ends too. The body is decompressed here, so that what is read is what is forwarded.
 */
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib'
import { Failure } from '../../failure.ts'
import { type BodyMemory, smallBodyBytes } from '../admission/memory-budget.ts'
import type { Gateway } from '../context.ts'
import type { Exchange, ReasonCode } from '../exchange.ts'
import { liftIdleTimeout } from '../idle-timeout.ts'
import { type ByteReader, readBounded } from './read-with-limit.ts'

type Decompress = (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Uint8Array>

const decompressors: ReadonlyMap<string, Decompress> = new Map<string, Decompress>([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
  ['zstd', promisify(zstdDecompress)],
])

/** The part of an exchange that is needed while its body arrives. */
type Arriving = Pick<Exchange, 'request' | 'connection' | 'cut' | 'onCut'> & { memory: BodyMemory }

/** The bytes of the body; `limit` applies before and after decompression. Rejects with the failure of a cut. */
export function readBody(exchange: Arriving, limit: number): Promise<Uint8Array> {
  const decompress = decompressorOf(exchange.request.headers.get('content-encoding'))
  const bytes = receive(exchange, limit)
  return decompress === null ? bytes : bytes.then((encoded) => decompressed(exchange, decompress, encoded, limit))
}

/**
 * As `readBody` within the gateway's limits, for a request that is no exchange yet and so is not watched by
 * `gateway/in-flight.ts`. The time is kept here, and a drain waits for it. The server's idle timeout is lifted
 * (`gateway/idle-timeout.ts`), also while the answer is awaited.
 */
export async function readBodyWithin(
  { settings, running }: Pick<Gateway, 'settings' | 'running'>,
  arrived: Pick<Exchange, 'request' | 'connection' | 'memory'>,
): Promise<Uint8Array> {
  liftIdleTimeout(arrived)
  const { request, connection, memory } = arrived
  const arriving: Arriving = { request, connection, memory, cut: null, onCut: null }
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
    // The exchange was cut during decompression, and nothing would end work that begins now.
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
  const { request, memory } = exchange
  const declared = request.headers.get('content-length')
  if (declared !== null) {
    const length = Number(declared)
    if (length > limit) throw tooLarge(limit)
    if (length > smallBodyBytes && request.body !== null) {
      return received(exchange, receiveCounted(request.body.getReader(), memory, limit, length))
    }
    const waiting = memory.admit(length)
    if (waiting === undefined) return received(exchange, request.bytes())
    liftIdleTimeout(exchange)
    return received(exchange, bytesAfter(waiting, request))
  }
  if (request.body === null) return Promise.resolve(new Uint8Array(0))
  return received(exchange, receiveCounted(request.body.getReader(), memory, limit, limit))
}

async function bytesAfter(waiting: Promise<void>, request: Request): Promise<Uint8Array> {
  await waiting
  return await request.bytes()
}

/** Receives a body of up to `most` bytes. A body that sends nothing holds no more memory than a small one. */
async function receiveCounted(
  reader: ByteReader,
  memory: BodyMemory,
  limit: number,
  maxBytes: number,
): Promise<Uint8Array> {
  await memory.admit(Math.min(smallBodyBytes, limit))
  let isLarge = false
  const bytes = await readBounded(reader, limit, (length) => {
    if (isLarge || length <= smallBodyBytes) return
    isLarge = true
    return memory.admit(maxBytes)
  })
  if (bytes === null) throw tooLarge(limit)
  memory.shrink(bytes.length)
  return bytes
}

/** After a cut the connection frees the rest. A body that breaks off has no client any more. */
function received<Bytes>(exchange: Arriving, reading: Promise<Bytes>): Promise<Bytes> {
  const { promise, resolve, reject } = Promise.withResolvers<Bytes>()
  exchange.onCut = () => reject(exchange.cut?.failure)
  reading.then(resolve, (thrown) =>
    reject(thrown instanceof Failure ? thrown : new Failure('client_left', { cause: thrown })),
  )
  return promise
}

/**
 * The size of a compressed body is known only afterwards. It is admitted as a small body, and again as the largest if
 * it grows beyond that.
 */
async function decompressed(
  { memory }: Arriving,
  decompress: Decompress,
  bytes: Uint8Array,
  limit: number,
): Promise<Uint8Array> {
  const small = Math.min(smallBodyBytes, limit)
  const first = await decompressedWithin(decompress, bytes, small)
  if (first !== null) return first
  if (small === limit) throw tooLarge(limit)
  await memory.admit(limit)
  const decoded = await decompressedWithin(decompress, bytes, limit)
  if (decoded === null) throw tooLarge(limit)
  memory.shrink(decoded.length)
  return decoded
}

/** Returns null when it is longer. */
async function decompressedWithin(
  decompress: Decompress,
  bytes: Uint8Array,
  limit: number,
): Promise<Uint8Array | null> {
  try {
    return await decompress(bytes, { maxOutputLength: limit })
  } catch (thrown) {
    if (thrown instanceof Error && 'code' in thrown && thrown.code === 'ERR_BUFFER_TOO_LARGE') return null
    throw new Failure('invalid_encoding', { cause: thrown })
  }
}
