/**
 * Reads a libSQL database file beside a process that writes it, or without one: it writes nothing, and creates no
 * file if no process has the database open. It does not use libSQL's native part, which only one process opens for
 * writing (open.ts) and which may end a process that reads altered data.
 */
import { constants, Database as Sqlite } from 'bun:sqlite'
import { existsSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import { naming } from './damage/damaged-file.ts'
import type { Reader } from './open.ts'
import type { Statement } from './statement.ts'

/** Opens the file for reading without creating files beside it. Throws SQLite's error. */
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
