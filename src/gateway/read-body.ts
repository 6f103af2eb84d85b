/**
 * Receives a request's body within its limits: bytes (at once where Content-Length says so, otherwise while they are
 * counted), the time it may take in all, however it trickles in, and its length once it is decompressed (RFC 9110
 * section 8.4). What leaves here is never encoded, so that what is read is what is forwarded.
 */
import { promisify } from 'node:util'
import { brotliDecompress, gunzip, inflate, zstdDecompress } from 'node:zlib'
import { Failure } from '../failure.ts'
import { readBounded } from './bounded.ts'

type Decompress = (bytes: Uint8Array, options: { maxOutputLength: number }) => Promise<Uint8Array>

const decompressors: ReadonlyMap<string, Decompress> = new Map<string, Decompress>([
  ['gzip', promisify(gunzip)],
  ['x-gzip', promisify(gunzip)],
  ['deflate', promisify(inflate)],
  ['br', promisify(brotliDecompress)],
  ['zstd', promisify(zstdDecompress)],
])

/** The body's bytes; `limit` holds before and after decompression, `patience` is in milliseconds. */
export async function readBody(request: Request, limit: number, patience: number): Promise<Uint8Array> {
  const decompress = decompressorOf(request.headers.get('content-encoding'))
  const bytes = await inTime(receive(request, limit), patience)
  return decompress === null ? bytes : await decompressed(decompress, bytes, limit)
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

async function receive(request: Request, limit: number): Promise<Uint8Array> {
  const declared = request.headers.get('content-length')
  if (declared !== null) {
    if (Number(declared) > limit) throw tooLarge(limit)
    return received(request.bytes())
  }
  if (request.body === null) return new Uint8Array(0)
  const bytes = await received(readBounded(request.body.getReader(), limit))
  if (bytes === null) throw tooLarge(limit)
  return bytes
}

/** A body that breaks off has nobody behind it any more. */
async function received<Bytes>(reading: Promise<Bytes>): Promise<Bytes> {
  try {
    return await reading
  } catch (thrown) {
    throw new Failure('client_left', { cause: thrown })
  }
}

/** What comes after the deadline is let go of with the connection. */
function inTime<Bytes>(reading: Promise<Bytes>, patience: number): Promise<Bytes> {
  const { promise, resolve, reject } = Promise.withResolvers<Bytes>()
  const timer = setTimeout(() => reject(new Failure('request_timeout')), patience)
  const settled = (settle: () => void) => {
    clearTimeout(timer)
    settle()
  }
  reading.then(
    (bytes) => settled(() => resolve(bytes)),
    (thrown) => settled(() => reject(thrown)),
  )
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
