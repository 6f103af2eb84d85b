/** The part of a reader that is used here; the platform's types of it differ in what else it has. */
export type ByteReader = Pick<ReadableStreamDefaultReader<Uint8Array>, 'read' | 'cancel'>

/**
 * Reads a stream whole, or gives null, and cancels it, as soon as it is longer than `limit` bytes. `onChunk` is told how
 * long the stream is so far; the next chunk is not read before what it returns is settled.
 */
export async function readBounded(
  reader: ByteReader,
  limit: number,
  onChunk?: (length: number) => Promise<void> | void,
): Promise<Uint8Array | null> {
  const chunks: Uint8Array[] = []
  let length = 0
  for (;;) {
    const { done, value } = await reader.read()
    if (done) return chunks.length === 1 && chunks[0] ? chunks[0] : Buffer.concat(chunks, length)
    length += value.length
    if (length > limit) {
      await reader.cancel()
      return null
    }
    chunks.push(value)
    const waiting = onChunk?.(length)
    if (waiting !== undefined) await waiting
  }
}
