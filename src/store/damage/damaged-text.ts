/**
 * Looks for text that is no UTF-8 in the tables of a database file, at which libSQL's native part ends the process that
 * reads it (stored-text.ts). Only tables of which every read is of bytes are left out: those of the events and their
 * proof, whose damage `gatehouse events verify` names, and those of the sums that charts show.
 */
import { isUtf8 } from 'node:buffer'
import { Failure } from '../../failure.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Reader } from '../open.ts'
import { asBytes, storedBytes } from './stored-text.ts'

/** Tables whose text is only ever read as bytes. */
const readAsBytes = [
  ...['event_segments', 'event_blocks', 'segment_facets', 'segment_chains'],
  ...['chains', 'chain_floors', 'checkpoints', 'checkpoint_keys', 'event_rollups'],
]

const rowsAtOnce = 500

/** Throws `data_damaged`, which names the first place; `name` is the database's name. */
export async function requireSoundText(database: Reader, name: string): Promise<void> {
  const columns = await database.read<{ table: string; column: string }>(
    `select t.name as "table", c.name as "column" from sqlite_schema t, pragma_table_info(t.name) c
      where t.type = 'table' and t.name not like 'sqlite_%' and t.name not in (select value from json_each(?))
        and c.type like 'text' order by 1, c.cid`,
    [JSON.stringify(readAsBytes)],
  )
  for (const [table, of] of Map.groupBy(columns, (each) => each.table)) {
    const row = await firstDamaged(
      database,
      table,
      of.map(({ column }) => column),
    )
    if (row === null) continue
    throw new Failure('data_damaged', {
      message: `The table ${table} of the ${name} database holds bytes that are no text, in ${row.column} of row ${row.id}: put a copy of the database in its place, or correct that row with sqlite3`,
    })
  }
}

async function firstDamaged(database: Reader, table: string, columns: readonly string[]) {
  let behind = '-9223372036854775808'
  const quoted = columns.map((column) => `"${column}"`)
  const together = asBytes(quoted.map((column) => `coalesce(${column}, '')`).join(' || char(10) || '))
  for (;;) {
    const rows = await database.read<{ id: string; bytes: unknown }>(
      `select cast(rowid as text) as id, ${together} as bytes from "${table}" where rowid > cast(? as integer)
        order by rowid limit ${rowsAtOnce}`,
      [behind],
    )
    const damaged = rows.find(({ bytes }) => !isUtf8(storedBytes(bytes) ?? new Uint8Array()))
    if (damaged !== undefined) return { id: damaged.id, column: await columnOf(database, table, damaged.id, quoted) }
    const last = rows.at(-1)
    if (last === undefined || rows.length < rowsAtOnce) return null
    behind = last.id
    await yieldToEventLoop()
  }
}

async function columnOf(database: Reader, table: string, id: string, quoted: readonly string[]): Promise<string> {
  for (const column of quoted) {
    const [row] = await database.read(
      `select ${asBytes(column)} as bytes from "${table}" where rowid = cast(? as integer)`,
      [id],
    )
    if (!isUtf8(storedBytes(row?.bytes) ?? new Uint8Array())) return column.slice(1, -1)
  }
  return 'a column'
}
