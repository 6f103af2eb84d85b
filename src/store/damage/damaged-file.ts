/** SQLite's errors about a damaged database file, in words for the operator. */
import { basename } from 'node:path'
import { Failure } from '../../failure.ts'

/** Throws `data_damaged`, with the file's name, for an error that means a damaged database. */
export function naming<Result>(file: string, work: () => Result): Result {
  try {
    return work()
  } catch (error) {
    // Both codes: if the file ends too early, only the longer one shows it.
    const codes = error instanceof Error ? ['code', 'extendedCode'].map((name) => String(Reflect.get(error, name))) : []
    if (!codes.some((code) => /^SQLITE_(CORRUPT|NOTADB|IOERR_SHORT_READ)/.test(code))) throw error
    throw new Failure('data_damaged', {
      message: `${basename(file)} of the data directory is damaged: stop what runs, put a backup in its place, and start again`,
      cause: error,
    })
  }
}
