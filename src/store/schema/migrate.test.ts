import { Database as BunDatabase } from 'bun:sqlite'
import { afterEach, expect, test } from 'bun:test'
import { cpSync, readdirSync, rmSync } from 'node:fs'
import { join, relative } from 'node:path'
import { z } from 'zod'
import { type Database, openDatabase } from '../open.ts'
import type { Row } from '../statement.ts'
import { temporaryDirectory } from '../testing/store.ts'
import { ledgerMigrations, migrate, migrateState, requireReadable, stateMigrations } from './migrate.ts'

const repository = join(import.meta.dir, '../../..')
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

const tablesOf = async (database: Database): Promise<string[]> => {
  const rows = await database.read<{ name: string }>(
    "select name from sqlite_master where type = 'table' and name not like 'sqlite_%' and name <> 'schema_migrations'",
  )
  return rows.map(({ name }) => name)
}

for (const [name, migrations] of [
  ['state', stateMigrations],
  ['ledger', ledgerMigrations],
] as const) {
  const folder = join(import.meta.dir, '../migrations', name)

  test(`the migrations of the ${name} make the tables that the schema declares: otherwise run bun run migrations`, () => {
    const copy = join(freshDirectory(), name)
    cpSync(folder, copy, { recursive: true })
    const schema = join('src/store/schema', name)
    const options = ['generate', '--dialect=sqlite', `--schema=${schema}`, `--out=${relative(repository, copy)}`]
    const run = Bun.spawnSync([process.execPath, '--bun', 'node_modules/.bin/drizzle-kit', ...options], {
      cwd: repository,
    })
    expect(run.stdout.toString() + run.stderr.toString()).toContain('No schema changes')
    expect(readdirSync(copy)).toEqual(readdirSync(folder))
  }, 20_000)

  test(`a start runs every migration of the ${name} that drizzle-kit knows of, in its order`, async () => {
    const journal = z.object({ entries: z.array(z.object({ tag: z.string() })) })
    const { entries } = journal.parse(await Bun.file(join(folder, 'meta/_journal.json')).json())
    expect(migrations.map((migration) => migration.name)).toEqual(entries.map(({ tag }) => tag))
    for (const migration of migrations) {
      expect(migration.sql).toBe(await Bun.file(join(folder, `${migration.name}.sql`)).text())
    }
  })
}

test('every migration has a breakpoint between two statements, because only the first of a text would run', async () => {
  for (const migrations of [stateMigrations, ledgerMigrations]) {
    const whole = new BunDatabase(':memory:')
    for (const { sql } of migrations) whole.run(sql)
    const database = await fresh()
    await migrate(database, migrations)
    const made = "select name from sqlite_schema where name not like '%schema_migrations%' order by name"
    expect(await database.read(made)).toEqual(whole.query<Row, []>(made).all())
    for (const name of await tablesOf(database)) {
      const count = `select count(*) as count from ${name}`
      expect(await database.read(count)).toEqual(whole.query<Row, []>(count).all())
    }
    database.close()
  }
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

test('rolls back a failed migration completely', async () => {
  const database = await fresh()
  const broken = [
    {
      name: 'broken',
      sql: 'create table first (a integer);\n--> statement-breakpoint\ncreate table first (a integer);',
    },
  ]
  await expect(migrate(database, broken)).rejects.toThrow('already exists')
  expect(await tablesOf(database)).toEqual([])
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

test('refuses a database whose migration was changed later, names the migration and leaves the data alone', async () => {
  const database = await fresh()
  await migrate(database, [first, second])
  const changed = { ...second, sql: 'create table second (a integer, b integer);' }
  const third = { name: 'third', sql: 'create table third (a integer);' }
  const attempts = [() => migrate(database, [first, changed, third]), () => requireReadable(database, [first, changed])]
  for (const attempt of attempts) {
    await expect(attempt()).rejects.toMatchObject({
      code: 'data_incompatible',
      message: expect.stringContaining('migration second differs'),
    })
  }
  expect(await tablesOf(database)).toEqual(['first', 'second'])
  await migrate(database, [first, second, third])
  expect(await tablesOf(database)).toEqual(['first', 'second', 'third'])
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
