/** The archive of a sink in its bucket. */
import { archiveName, createBucket } from '../kinds/s3.ts'
import type { ReceiverTools, Sink } from '../sink.ts'
import { type Archive, objectArchive } from './archive.ts'

export function bucketArchive(sink: Sink, tools: ReceiverTools, signal: AbortSignal): Archive {
  const bucket = createBucket(sink, tools)
  const names = async function* () {
    for await (const name of bucket.list(signal)) {
      const of = archiveName(name)
      if (of !== null) yield { name, ...of }
    }
  }
  return objectArchive(names, async (name) => textOfObject(name, await bucket.get(name, signal)))
}

/** The text of an object, uncompressed; empty where its bytes are damaged, so that its lines are found missing. */
export async function textOfObject(name: string, bytes: Uint8Array): Promise<string> {
  if (!name.endsWith('.zst')) return Buffer.from(bytes).toString()
  return await Bun.zstdDecompress(new Uint8Array(bytes)).then(
    (text) => text.toString(),
    () => '',
  )
}
