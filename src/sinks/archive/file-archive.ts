/** An archive in files: a folder that a bucket was copied to, or a file of lines with their proofs among them. */
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { archiveName } from '../kinds/s3.ts'
import { type Archive, objectArchive, streamArchive } from './archive.ts'
import { textOfObject } from './bucket-archive.ts'

/** The archive at a path. Throws where nothing is there, or nothing of an archive. */
export function fileArchive(path: string): Archive {
  if (!statSync(path).isDirectory()) return streamArchive(() => linesOfFile(path))
  const found = readdirSync(path, { recursive: true, encoding: 'utf8' })
    .flatMap((name) => {
      const of = archiveName(name)
      return of === null ? [] : [{ name, ...of }]
    })
    .toSorted(
      (one, other) => one.first - other.first || one.next - other.next || Number(one.isProof) - Number(other.isProof),
    )
  return objectArchive(
    async function* () {
      yield* found
    },
    async (name) => await textOfObject(name, await Bun.file(join(path, name)).bytes()),
  )
}

/** The lines of a file that may be larger than memory. */
async function* linesOfFile(path: string): AsyncGenerator<string, void, undefined> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const piece of Bun.file(path).stream()) {
    const lines = (rest + decoder.decode(piece, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    for (const line of lines) if (line !== '') yield line
  }
  if (rest !== '') yield rest
}
