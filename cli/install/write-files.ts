/** Writes files into a directory that is made where it is missing. Nothing is overwritten. */
import { mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Failure } from '../../src/failure.ts'

/** `mode` is of each file and, with the right to enter, of each directory that is made. */
export function writeFiles(
  directory: string,
  files: readonly (readonly [name: string, content: string, mode: number])[],
) {
  makeDirectory(directory, files.some(([, , mode]) => (mode & 0o077) === 0) ? 0o700 : 0o755)
  for (const [name, content, mode] of files) {
    const path = join(directory, name)
    try {
      mkdirSync(dirname(path), { recursive: true })
      writeFileSync(path, content, { mode, flag: 'wx' })
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === 'EEXIST') {
        throw new Failure('conflict', { message: `${path} is there already: name another directory`, cause: error })
      }
      throw error
    }
  }
}

function makeDirectory(directory: string, mode: number): void {
  try {
    mkdirSync(directory, { recursive: true, mode })
  } catch (error) {
    const why = error instanceof Error && 'code' in error ? ` (${error.code})` : ''
    throw new Failure('usage', { message: `The directory "${directory}" cannot be created${why}`, cause: error })
  }
}
