/** Takes a backup apart into a directory, and checks that everything in it is what its manifest says. */
import { createReadStream, createWriteStream } from 'node:fs'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { createZstdDecompress } from 'node:zlib'
import { extract } from 'tar-stream'
import { Failure } from '../failure.ts'
import { databaseFiles } from './copy-pair.ts'
import { digestOf } from './make-backup.ts'
import { type Manifest, manifestName, manifestSchema } from './manifest.ts'

const longestManifest = 64 * 1024

/** Throws `invalid_parameter` for a file that is no whole backup, or of a later format; else the file system's error. */
export async function readBackup(file: string, into: string): Promise<Manifest> {
  let manifest: Manifest | null = null
  const archive = extract()
  const reading = pipeline(createReadStream(file), createZstdDecompress(), archive)
  // Awaited at the end; until then an entry may fail first.
  reading.catch(() => undefined)
  try {
    for await (const entry of archive) {
      if (manifest === null) {
        if (entry.header.name !== manifestName) throw new Error('It does not begin with a manifest')
        manifest = manifestSchema.parse(JSON.parse(await textOf(entry)))
        continue
      }
      const { name } = entry.header
      const known = manifest.files.find((each) => each.name === name)
      if (known === undefined) throw new Error('It holds a file that its manifest does not name')
      // Before anything of it is written: a small archive can unpack to more than the disk holds.
      if (entry.header.size !== known.bytes) throw new Error(`${name} is not as long as the manifest says`)
      // The name is one of those that the schema of the manifest knows, so it leads nowhere else.
      await pipeline(entry, createWriteStream(join(into, known.name), { mode: 0o600, flags: 'wx' }))
    }
    await reading
    if (manifest === null) throw new Error('It is empty')
    const { files } = manifest
    const missing = databaseFiles.find((name) => !files.some((file) => file.name === name))
    if (missing !== undefined) throw new Error(`It holds no ${missing}`)
    for (const { name, bytes, sha256 } of manifest.files) {
      const found = await digestOf(join(into, name))
      if (found.bytes !== bytes || found.sha256 !== sha256) throw new Error(`${name} is not what the manifest says`)
    }
    return manifest
  } catch (cause) {
    // The file system's own errors are about this host, not about the backup.
    if (cause instanceof Error && 'syscall' in cause && !('code' in cause && cause.code === 'EEXIST')) throw cause
    const why = cause instanceof Error ? cause.message : String(cause)
    throw new Failure('invalid_parameter', {
      param: 'file',
      message: `${file} is no whole backup of Gatehouse: ${why}`,
      cause,
    })
  }
}

async function textOf(entry: AsyncIterable<unknown>): Promise<string> {
  const pieces: Uint8Array[] = []
  let length = 0
  for await (const piece of entry) {
    if (!(piece instanceof Uint8Array)) throw new TypeError('A piece of an archive is bytes')
    length += piece.length
    if (length > longestManifest) throw new Error('Its manifest is too long')
    pieces.push(piece)
  }
  return Buffer.concat(pieces).toString()
}
