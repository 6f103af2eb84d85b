/** Reads a batch of a worker's records as it was posted (fleet/protocol/wire.ts), byte for byte. */
import { promisify } from 'node:util'
import { constants, type ZstdOptions, zstdDecompress } from 'node:zlib'
import type { ShippedBatch } from '../../../events/ingest/read-batch.ts'
import { Failure } from '../../../failure.ts'
import { batchHeadForm, eventBatchBytes, eventBatchLimit } from '../../protocol/wire.ts'

const decompress: (bytes: Uint8Array, options: ZstdOptions) => Promise<Buffer> = promisify(zstdDecompress)
const options: ZstdOptions = {
  maxOutputLength: eventBatchBytes,
  // No frame may ask for more memory than a batch has bytes.
  params: { [constants.ZSTD_d_windowLogMax]: Math.log2(eventBatchBytes) },
}
/** How much shorter records become at most, as a rule. */
const usualRatio = 8
const [leastChunk, mostChunk] = [16 * 1024, 1024 * 1024]
/** An empty body: it asks for the head. */
const nothing: ShippedBatch = { first: 1, texts: [], digest: '' }

/**
 * The batch in a body. Throws `request_too_large`, `unsupported_media_type`, and `invalid_parameter` with what is wrong.
 */
export async function readBatch(body: Uint8Array, encoding: string | null): Promise<ShippedBatch> {
  if (body.byteLength === 0) return nothing
  if (body.byteLength > eventBatchBytes) throw new Failure('request_too_large')
  if (encoding?.trim().toLowerCase() !== 'zstd') {
    throw new Failure('unsupported_media_type', { message: 'Send a batch with Content-Encoding: zstd' })
  }
  return parseBatch(await expand(body))
}

/** Throws `request_too_large` before more than a batch may have is expanded. */
async function expand(body: Uint8Array): Promise<Uint8Array> {
  try {
    // A batch should fit one chunk: each further one is a call of the thread pool.
    const chunkSize = Math.min(mostChunk, Math.max(leastChunk, usualRatio * body.byteLength))
    return await decompress(body, { ...options, chunkSize })
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE') {
      throw new Failure('request_too_large', { cause })
    }
    throw malformed('The batch is not valid zstd', cause)
  }
}

/** Splits a batch into its lines without parsing the records. */
export function parseBatch(bytes: Uint8Array): ShippedBatch {
  const [head = '', ...texts] = decode(bytes).split('\n')
  const [, first, records, digest] = batchHeadForm.exec(head) ?? []
  if (first === undefined || digest === undefined) {
    throw malformed('The first line is not {"first":<n>,"records":<k>,"digest":"<hex>"}')
  }
  if (Number(records) > eventBatchLimit) throw malformed(`A batch has at most ${eventBatchLimit} records`)
  if (texts.pop() !== '') throw malformed('The last line of the batch does not end')
  if (texts.length !== Number(records)) {
    throw malformed(`The batch holds ${texts.length} lines after the first, which announces ${records}`)
  }
  return { first: Number(first), texts, digest }
}

function decode(bytes: Uint8Array): string {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes)
  } catch (cause) {
    throw malformed('The batch is not valid UTF-8', cause)
  }
}

const malformed = (message: string, cause?: unknown): Failure => new Failure('invalid_parameter', { message, cause })
