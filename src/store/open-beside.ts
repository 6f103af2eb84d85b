/**
 * Reads a libSQL database file beside whoever writes it, or while nobody does: nothing is written, and nothing is made
 * where nobody has it open. Not by libSQL's native part, which one process alone opens for writing (open.ts) and which
 * may end a process that reads what somebody altered.
 */
import { constants, Database as Sqlite } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { naming } from './damage/damaged-file.ts'
import type { Reader } from './open.ts'
import type { Statement } from './statement.ts'

/** Opens the file for reading; one that nobody has open is read so that nothing is made beside it. Throws SQLite's error. */
export function openReadOnly(file: string): Sqlite {
  const closed = !existsSync(`${file}-wal`)
  const name = closed ? `${pathToFileURL(file).href}?immutable=1` : file
  return new Sqlite(name, constants.SQLITE_OPEN_READONLY | (closed ? constants.SQLITE_OPEN_URI : 0))
}

/** The same for who reads as of any database; a read throws `data_damaged` where the file is no sound one. */
export function openBeside(file: string): Reader & { close(): void } {
  const database = openReadOnly(file)
  return {
    async read<Shape>(sql: string, args: Statement['args'] = []) {
      return naming(file, () => database.query<Shape, Statement['args']>(sql).all(...args))
    },
    async readValues(sql, args = []) {
      return naming(file, () => database.query<unknown, Statement['args']>(sql).values(...args))
    },
    close: () => database.close(),
  }
}
