/** Reads a batch of a worker's records as it was posted (fleet/protocol/wire.ts), byte for byte. */
import { isUtf8 } from 'node:buffer'
import { promisify } from 'node:util'
import { constants, type ZstdOptions, zstdDecompress } from 'node:zlib'
import type { Line, ShippedBatch } from '../../../events/ingest/read-batch.ts'
import { lineFeed } from '../../../events/log/segment.ts'
import { Failure } from '../../../failure.ts'
import { batchHeadForm, eventBatchBytes, eventBatchLimit } from '../../protocol/wire.ts'

const decompress: (bytes: Uint8Array, options: ZstdOptions) => Promise<Buffer> = promisify(zstdDecompress)
const options: ZstdOptions = {
  maxOutputLength: eventBatchBytes,
  // No frame may ask for more memory than a batch has bytes.
  params: { [constants.ZSTD_d_windowLogMax]: Math.log2(eventBatchBytes) },
}
/** How much shorter a full batch becomes at most, as a rule. */
const usualRatio = 48
const [leastChunk, mostChunk] = [16 * 1024, 1024 * 1024]
/** An empty body: it asks for the head. */
const nothing: ShippedBatch = { first: 1, lines: [], digest: '' }

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
    // A batch should fit one chunk: each further one is a call of the thread pool, and all are copied then.
    const chunkSize = Math.min(mostChunk, Math.max(leastChunk, usualRatio * body.byteLength))
    return await decompress(body, { ...options, chunkSize })
  } catch (cause) {
    if (cause instanceof Error && 'code' in cause && cause.code === 'ERR_BUFFER_TOO_LARGE') {
      throw new Failure('request_too_large', { cause })
    }
    throw malformed('The batch is not valid zstd', cause)
  }
}

/** Splits a batch into its lines without reading the records. */
export function parseBatch(batch: Uint8Array): ShippedBatch {
  const bytes = Buffer.from(batch.buffer, batch.byteOffset, batch.byteLength)
  if (!isUtf8(bytes)) throw malformed('The batch is not valid UTF-8')
  const text = bytes.toString()
  const head = text.slice(0, Math.max(0, text.indexOf('\n')))
  const [, first, records, digest] = batchHeadForm.exec(head) ?? []
  if (first === undefined || digest === undefined) {
    throw malformed('The first line is not {"first":<n>,"records":<k>,"digest":"<hex>"}')
  }
  if (Number(records) > eventBatchLimit) throw malformed(`A batch has at most ${eventBatchLimit} records`)
  if (bytes.at(-1) !== lineFeed) throw malformed('The last line of the batch does not end')
  // The first line is ASCII. Of too many lines only one is taken, because each takes memory.
  const lines = linesOf({ text, bytes }, head.length + 1, Number(records) + 1)
  if (lines.length !== Number(records)) {
    throw malformed(`The batch holds ${text.split('\n').length - 2} lines after the first, which announces ${records}`)
  }
  return { first: Number(first), lines, digest }
}

/**
 * So many lines at most of those that end with a line feed, from an offset that is the same in both. They are parts of
 * the text: a string of its own for each costs more than everything else that is done here.
 */
function linesOf({ text, bytes }: Line, offset: number, most: number): Line[] {
  const lines: Line[] = []
  let [from, textFrom] = [offset, offset]
  while (lines.length < most) {
    const [end, textEnd] = [bytes.indexOf(lineFeed, from), text.indexOf('\n', textFrom)]
    if (end < 0) break
    lines.push({ text: text.slice(textFrom, textEnd), bytes: bytes.subarray(from, end) })
    from = end + 1
    textFrom = textEnd + 1
  }
  return lines
}

const malformed = (message: string, cause?: unknown): Failure => new Failure('invalid_parameter', { message, cause })
