/** The part of a reader that is used here; platform types differ in the rest. */
export type ByteReader = Pick<ReadableStreamDefaultReader<Uint8Array>, 'read' | 'cancel'>

/**
 * Reads a whole stream. Returns null, and cancels the stream, as soon as it is longer than `limit` bytes. `onChunk`
 * gets the length so far; the next chunk is read after its promise has settled.
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
