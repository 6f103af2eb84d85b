import { Database as BunDatabase } from 'bun:sqlite'
import { afterEach, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { getTableConfig, SQLiteTable } from 'drizzle-orm/sqlite-core'
import { type Database, openDatabase } from '../open.ts'
import { temporaryDirectory } from '../testing/store.ts'
import * as ledgerTables from './ledger.ts'
import { ledgerMigrations, migrate, migrateState, requireReadable, stateMigrations } from './migrate.ts'
import * as stateTables from './state.ts'

const directories: string[] = []
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
})
const freshDirectory = () => {
  const directory = temporaryDirectory()
  directories.push(directory)
  return directory
}
const fresh = async () => {
  const directory = freshDirectory()
  return openDatabase(join(directory, 'fresh.db'), directory)
}

interface ColumnInfo {
  name: string
  type: string
  notnull: number
  pk: number
}

async function made(database: Database): Promise<Record<string, string[]>> {
  const tables = await database.read<{ name: string }>(
    "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' and name <> 'schema_migrations'",
  )
  const entries = await Promise.all(
    tables.map(async ({ name }) => {
      const columns = await database.read<ColumnInfo>(`pragma table_info (${name})`)
      return [name, columns.map((column) => described(column.name, column.type, column.notnull === 1, column.pk > 0))]
    }),
  )
  return Object.fromEntries(entries)
}

// SQLite says of a primary key column that it may be null unless told otherwise; drizzle says that it may not.
const described = (name: string, type: string, notNull: boolean, key: boolean) =>
  `${name} ${type.toLowerCase()}${key ? ' key' : notNull ? ' not null' : ''}`

const defined = (module: Record<string, unknown>): Record<string, string[]> =>
  Object.fromEntries(
    Object.values(module)
      .filter((table) => table instanceof SQLiteTable)
      .map((table) => {
        const { name, columns, primaryKeys } = getTableConfig(table)
        const keys = new Set(primaryKeys.flatMap((key) => key.columns.map((column) => column.name)))
        return [
          name,
          columns.map((column) =>
            described(column.name, column.getSQLType(), column.notNull, column.primary || keys.has(column.name)),
          ),
        ]
      }),
  )

test('the state definitions say exactly what the migrations make', async () => {
  const database = await fresh()
  await migrate(database, stateMigrations)
  expect(defined(stateTables)).toEqual(await made(database))
  database.close()
})

test('the ledger definitions say exactly what the migrations make', async () => {
  const database = await fresh()
  await migrate(database, ledgerMigrations)
  expect(defined(ledgerTables)).toEqual(await made(database))
  database.close()
})

test('every state of the migrations is readable by the SQLite that gateways read with', async () => {
  for (const migrations of [stateMigrations, ledgerMigrations]) {
    for (const [index] of migrations.entries()) {
      const directory = freshDirectory()
      const file = join(directory, 'made.db')
      const database = await openDatabase(file, directory)
      await migrate(database, migrations.slice(0, index + 1))
      database.close()
      const reader = new BunDatabase(file, { readonly: true })
      const tables = reader
        .query<{ name: string }, []>("select name from sqlite_master where type = 'table' and name not like 'sqlite_%'")
        .all()
      expect(tables.length).toBeGreaterThan(1)
      for (const { name } of tables) reader.query(`select * from ${name}`).all()
      reader.close()
    }
  }
})

test('migrating again changes nothing', async () => {
  const database = await fresh()
  await migrateState(database)
  const before = await database.read('select * from state_head')
  await migrateState(database)
  expect(await database.read('select * from state_head')).toEqual(before)
  expect(before).toMatchObject([{ id: 1, version: 0 }])
  database.close()
})

test('processes that migrate at once make everything once', async () => {
  const directory = freshDirectory()
  const file = join(directory, 'shared.db')
  const worker = join(directory, 'worker.ts')
  await Bun.write(
    worker,
    `import { openDatabase } from '${import.meta.dir}/../open.ts'
     import { migrateState } from '${import.meta.dir}/migrate.ts'
     const database = await openDatabase(${JSON.stringify(file)}, ${JSON.stringify(directory)})
     await migrateState(database)
     console.log(JSON.stringify(await database.read('select history from state_head')))
     database.close()`,
  )
  const runs = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const child = Bun.spawn([process.execPath, worker], { stdout: 'pipe', stderr: 'pipe', cwd: import.meta.dir })
      const [out, errors, code] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
        child.exited,
      ])
      return { out, errors, code }
    }),
  )
  expect(runs.map(({ code, errors }) => ({ code, errors }))).toEqual(runs.map(() => ({ code: 0, errors: '' })))
  expect(new Set(runs.map(({ out }) => out)).size).toBe(1)
}, 20_000)

test('a migration that fails leaves nothing of itself', async () => {
  const database = await fresh()
  const broken = [{ name: 'broken', sql: 'create table first (a integer); create table first (a integer);' }]
  await expect(migrate(database, broken)).rejects.toThrow('already exists')
  expect(await made(database)).toEqual({})
  expect(await database.read('select * from schema_migrations')).toEqual([])
  database.close()
})

test('a database of a newer version is refused', async () => {
  const database = await fresh()
  await migrate(database, [...stateMigrations, { name: 'state-9999', sql: 'create table later (a integer);' }])
  await expect(migrateState(database)).rejects.toMatchObject({ code: 'data_incompatible' })
  database.close()
})

const first = { name: 'first', sql: 'create table first (a integer);' }
const second = { name: 'second', sql: 'create table second (a integer);' }

test('data of a migration that was changed afterwards is refused with its name, and nothing is done to it', async () => {
  const database = await fresh()
  await migrate(database, [first, second])
  const changed = { ...second, sql: 'create table second (a integer, b integer);' }
  const third = { name: 'third', sql: 'create table third (a integer);' }
  const attempts = [() => migrate(database, [first, changed, third]), () => requireReadable(database, [first, changed])]
  for (const attempt of attempts) {
    await expect(attempt()).rejects.toMatchObject({
      code: 'data_incompatible',
      message: expect.stringContaining('migration second is another'),
    })
  }
  expect(Object.keys(await made(database))).toEqual(['first', 'second'])
  await migrate(database, [first, second, third])
  expect(Object.keys(await made(database))).toEqual(['first', 'second', 'third'])
  database.close()
})

test('data from before there were checksums is taken over once, and then held to them', async () => {
  const database = await fresh()
  await database.write([
    { sql: 'create table schema_migrations (name text primary key, applied_at integer not null)', args: [] },
    { sql: "insert into schema_migrations values ('first', 1)", args: [] },
    { sql: first.sql, args: [] },
  ])
  await requireReadable(database, [first, second])
  await migrate(database, [first, second])
  expect(Object.keys(await made(database))).toEqual(['first', 'second'])
  await expect(migrate(database, [{ ...first, sql: '-- another' }, second])).rejects.toThrow('migration first')
  database.close()
})

test('providers that earlier starts made are known by their origin, also a renamed simulator', async () => {
  const database = await fresh()
  await migrate(database, stateMigrations.slice(0, 9))
  const columns = '(id, name, kind, position, deleted, version)'
  const rows = [
    "('a', 'practice', 'simulator', 1, 0, 1)",
    "('b', 'openai', 'openai', 2, 1, 1)",
    "('c', 'openai', 'openai', 3, 0, 1)",
    "('d', 'spare', 'openai', 4, 0, 1)",
    "('e', 'second', 'simulator', 5, 0, 1)",
  ]
  await database.write([{ sql: `insert into providers ${columns} values ${rows.join(', ')}`, args: [] }])
  await migrateState(database)
  expect(await database.read('select id, origin from providers where origin is not null order by id')).toEqual([
    { id: 'a', origin: 'simulator' },
    { id: 'c', origin: 'OPENAI_API_KEY' },
  ])
  database.close()
})

test('a new token without limits touches at most seven trees of the state, of which each gateway copies a page each', async () => {
  const state = await fresh()
  await migrateState(state)
  const trees = await state.read<{ name: string }>(
    `select name from sqlite_schema where rootpage > 0 and tbl_name in ('state_head', 'change_log', 'tokens')`,
  )
  expect(trees.length).toBeLessThanOrEqual(7)
  state.close()
})
