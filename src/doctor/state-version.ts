/** The version of a state database, and from which of the product on it can be read, read beside whoever writes it. */
import { constants, Database } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'

export type StateFacts = { kind: 'read'; version: number; readsFrom: string } | { kind: 'unreadable'; reason: string }

/** Opens the file for reading; one that nobody has open is read so that nothing is made beside it. */
export function readVersion(file: string): StateFacts {
  const closed = !existsSync(`${file}-wal`)
  const name = closed ? `${pathToFileURL(file).href}?immutable=1` : file
  const flags = constants.SQLITE_OPEN_READONLY | (closed ? constants.SQLITE_OPEN_URI : 0)
  try {
    using database = new Database(name, flags)
    const head = database
      .query<{ version: number; readsFrom: string }, []>(
        'select version, reads_from as readsFrom from state_head where id = 1',
      )
      .get()
    return head === null ? { kind: 'unreadable', reason: 'it has no head' } : { kind: 'read', ...head }
  } catch (error) {
    return { kind: 'unreadable', reason: error instanceof Error ? error.message : 'it cannot be opened' }
  }
}
