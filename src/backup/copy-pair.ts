/**
 * Copies both databases of a running installation as they are at one moment. SQL text: attaching, reading the schema of
 * a database and copying whole tables cannot be built.
 *
 * A change is first pending in the ledger, then made in the state, then recorded in the ledger. While the write lock of
 * the state is held no change is between the last two, so the snapshots that are pinned under it fit each other. The
 * lock is held for as long as two snapshots take, which is a millisecond. Then the copies are made from the snapshots;
 * whoever writes meanwhile does not wait. `vacuum into` cannot read a pinned snapshot, so tables are copied one by one.
 */
import { Database } from 'bun:sqlite'
import { chmodSync, writeFileSync } from 'node:fs'
import { naming } from '../store/damage/damaged-file.ts'

export const databaseFiles = ['state.db', 'ledger.db'] as const

const busyMilliseconds = 10_000

/** Copies `state.db` and `ledger.db` of one directory into another. Throws `data_damaged` for a damaged file. */
export function copyPair(from: string, to: string): void {
  const lock = openFile(`${from}/state.db`)
  const pinned = databaseFiles.map((name) => ({ name, database: openCopy(`${from}/${name}`, `${to}/${name}`) }))
  try {
    lock.run('begin immediate')
    for (const { name, database } of pinned) naming(name, () => pin(database))
    lock.run('rollback')
    for (const { name, database } of pinned) naming(name, () => copyTables(database))
  } finally {
    lock.close()
    for (const { database } of pinned) database.close()
  }
}

function openFile(path: string): Database {
  const database = new Database(path, { readwrite: true, create: false })
  database.run(`pragma busy_timeout = ${busyMilliseconds}`)
  return database
}

function openCopy(from: string, to: string): Database {
  writeFileSync(to, '', { mode: 0o600 })
  chmodSync(to, 0o600)
  const database = openFile(from)
  database.run('attach ? as copy', [to])
  // Nobody reads a copy that is not complete.
  for (const pragma of ['copy.journal_mode = off', 'copy.synchronous = off', 'foreign_keys = off']) {
    database.run(`pragma ${pragma}`)
  }
  return database
}

/** Begins a read transaction; its snapshot is the one of the first read. */
function pin(database: Database): void {
  database.run('begin')
  database.query('select count(*) from main.sqlite_master').get()
}

interface Made {
  type: 'table' | 'index' | 'trigger' | 'view'
  name: string
  sql: string
}

/** Tables with their rows, then what is built over them. */
function copyTables(database: Database): void {
  const made = database
    .query<Made, []>(
      "select type, name, sql from main.sqlite_master where sql is not null and name not like 'sqlite_%'",
    )
    .all()
  const tables = made.filter(({ type }) => type === 'table')
  for (const { sql } of tables) database.run(inCopy(sql))
  for (const { name } of tables) {
    database.run(`insert into copy.${quoted(name)} select * from main.${quoted(name)}`)
  }
  if (database.query("select 1 from main.sqlite_master where name = 'sqlite_sequence'").get() !== null) {
    database.run('delete from copy.sqlite_sequence')
    database.run('insert into copy.sqlite_sequence select * from main.sqlite_sequence')
  }
  for (const type of ['index', 'view', 'trigger']) {
    for (const each of made) if (each.type === type) database.run(inCopy(each.sql))
  }
  database.run('commit')
}

/** SQLite keeps the text of a `create` in one form: the name follows the kind of thing that is made. */
const inCopy = (sql: string): string =>
  sql.replace(/^(create\s+(?:unique\s+)?(?:table|index|view|trigger)\s+)/i, '$1copy.')

const quoted = (name: string): string => `"${name.replaceAll('"', '""')}"`
