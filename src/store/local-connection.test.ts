import { afterAll, beforeAll, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { LibsqlError } from '@libsql/client'
import { brokenConstraint, isBusy } from '../events/log/append.ts'
import { type Database, openDatabase } from './open.ts'
import { temporaryDirectory } from './testing/store.ts'

let directory: string
let database: Database
beforeAll(async () => {
  directory = temporaryDirectory()
  database = await openDatabase(join(directory, 'local.db'), directory)
  await run("create table t (a integer primary key, b text check (b <> 'refused'), c blob)")
})
afterAll(() => {
  database.close()
  rmSync(directory, { recursive: true, force: true })
})

type Values = (string | number | null)[]
const run = (sql: string, ...args: Values) => database.write([{ sql, args }])
const insert = 'insert into t (a, b, c) values (?, ?, ?)'
const failureOf = (work: Promise<unknown>): Promise<unknown> =>
  work.then(
    () => null,
    (error: unknown) => error,
  )

test('a statement that failed runs again, and its failure is an error of libSQL with its code', async () => {
  for (const [values, broken] of [
    [[1, 'refused', null], 'check'],
    [[2, 'twice', null], 'unique'],
  ] as const) {
    const statement = { sql: insert, args: [...values] }
    const error = await failureOf(database.write([statement, statement]))
    expect(error).toBeInstanceOf(LibsqlError)
    expect(error).toMatchObject({ name: 'LibsqlError', code: 'SQLITE_CONSTRAINT' })
    expect(brokenConstraint(error)).toBe(broken)
  }
  expect(await database.read('select * from t')).toEqual([])
  await run(insert, 1, 'taken', null)
  expect(await database.read('select a, b from t')).toEqual([{ a: 1, b: 'taken' }])
  expect(await failureOf(database.read('select from'))).toMatchObject({ code: 'SQLITE_ERROR' })
})

test('binds null for a missing value, also after a run with a value', async () => {
  const sql = 'select ?1 as first, ?2 as second'
  expect(await database.read(sql, ['x', 'y'])).toEqual([{ first: 'x', second: 'y' }])
  expect(await database.read(sql, ['z'])).toEqual([{ first: 'z', second: null }])
  expect(await database.read(sql, ['x', 'y'])).toEqual([{ first: 'x', second: 'y' }])
})

test('a read that ran before a change of its table gives the columns of afterwards', async () => {
  await run('create table grows (a)')
  await run('insert into grows values (1)')
  expect(await database.read('select * from grows')).toEqual([{ a: 1 }])
  await run('alter table grows add column b')
  expect(await database.read('select * from grows')).toEqual([{ a: 1, b: null }])
  await run('drop table grows')
  expect(String(await failureOf(database.read('select * from grows')))).toContain('no such table')
})

test('returns any number of rows, keeps bytes, and rejects an integer that JavaScript cannot hold', async () => {
  const numbers = 'with recursive n (i) as (select 1 union all select i + 1 from n where i < ?) select i from n'
  for (const count of [0, 1, 99, 100, 101, 250]) {
    const rows = await database.read<{ i: number }>(`${numbers} limit ?`, [Math.max(1, count), count])
    expect(rows.map(({ i }) => i)).toEqual(Array.from({ length: count }, (_, index) => index + 1))
  }
  const [row] = await database.read<{ bytes: ArrayBuffer; real: number }>(
    "select cast('hé' as blob) as bytes, 1.5 as real",
  )
  expect(row).toEqual({ bytes: new TextEncoder().encode('hé').buffer, real: 1.5 })
  expect(await failureOf(database.read('select 9007199254740993 as beyond'))).toBeInstanceOf(RangeError)
  expect(await failureOf(database.read('select ? as number', [Number.NaN]))).toBeInstanceOf(RangeError)
})

test('a value that no statement can have is an error, not the end of the process', async () => {
  for (const text of ['[true]', '[{}]', '[["x"]]']) {
    expect(await failureOf(database.read('select ? as value', JSON.parse(text)))).toBeInstanceOf(TypeError)
  }
  const unset: Values = JSON.parse('[]')
  unset.length = 1
  expect(await failureOf(database.read('select ? as value', unset))).toBeInstanceOf(TypeError)
})

test('more statements than are kept, and values too large to be kept, run as any', async () => {
  for (const round of [1, 2]) {
    for (let index = 0; index < 250; index += 1) {
      expect(await database.read(`select ${index} + ? as sum`, [round])).toEqual([{ sum: index + round }])
    }
  }
  for (const text of ['a'.repeat(300_000), 'b', 'c'.repeat(300_000)]) {
    expect(await database.read('select length(?) as size', [text])).toEqual([{ size: text.length }])
  }
})

test("sees another connection's writes at once, and reports a locked file as busy", async () => {
  const file = join(directory, 'shared.db')
  const [one, other] = [await openDatabase(file, directory), await openDatabase(file, directory)]
  await one.write([{ sql: 'create table s (a)', args: [] }])
  for (const value of [1, 2, 3]) {
    await other.write([{ sql: 'insert into s values (?)', args: [value] }])
    expect(await one.read('select max(a) as last from s')).toEqual([{ last: value }])
  }
  await one.read('pragma busy_timeout = 1')
  // Held by a read that this process has no end of: a transaction begun by hand.
  await other.read('begin immediate')
  const busy = await failureOf(one.write([{ sql: 'insert into s values (4)', args: [] }]))
  expect(isBusy(busy)).toBe(true)
  await one.read('pragma busy_timeout = 100')
  for (let index = 0; index < 250; index += 1) await one.read(`select ${index}`)
  // A transaction that was left open is undone before the next begins.
  await other.write([{ sql: 'insert into s values (5)', args: [] }])
  await one.write([{ sql: 'insert into s values (6)', args: [] }])
  expect(await other.read('select a from s where a > 3')).toEqual([{ a: 5 }, { a: 6 }])
  one.close()
  other.close()
  expect(await failureOf(one.read('select 1'))).toMatchObject({ code: 'CLIENT_CLOSED' })
  expect(await failureOf(one.write([]))).toMatchObject({ code: 'CLIENT_CLOSED' })
})
