import { afterEach, expect, test } from 'bun:test'
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from './open.ts'
import { temporaryDirectory } from './testing/store.ts'

const directories: string[] = []
afterEach(() => {
  for (const directory of directories.splice(0)) rmSync(directory, { recursive: true, force: true })
})

const fresh = async () => {
  const directory = temporaryDirectory()
  directories.push(directory)
  const file = join(directory, 'a b%20.db')
  return { file, database: await openDatabase(file, directory) }
}

test('a database is opened in WAL, fully synchronous, with a timeout, readable by its owner only', async () => {
  const { file, database } = await fresh()
  const value = async (pragma: string) => Object.values((await database.read(`pragma ${pragma}`))[0] ?? {})[0]
  expect(await value('journal_mode')).toBe('wal')
  expect(await value('synchronous')).toBe(2)
  expect(await value('busy_timeout')).toBe(5000)
  expect(await value('foreign_keys')).toBe(1)
  expect(statSync(file).mode & 0o777).toBe(0o600)
  database.close()
})

test('the settings hold on the connection that is used after a transaction and after a failure', async () => {
  const { database } = await fresh()
  await database.write([{ sql: 'create table t (a integer primary key)', args: [] }])
  await expect(database.write([{ sql: 'insert into nowhere values (1)', args: [] }])).rejects.toThrow()
  expect(await database.read('pragma synchronous')).toEqual([{ synchronous: 2 }])
  database.close()
})

test('a write does its statements in order, and undoes all of them where one fails', async () => {
  const { database } = await fresh()
  await database.write([{ sql: 'create table t (a integer primary key)', args: [] }])
  await database.write([
    { sql: 'insert into t values (?)', args: [1] },
    { sql: 'update t set a = 2', args: [] },
  ])
  const twice = database.write([
    { sql: 'insert into t values (?)', args: [7] },
    { sql: 'insert into t values (?)', args: [7] },
  ])
  await expect(twice).rejects.toThrow('UNIQUE')
  expect(await database.read('select a from t')).toEqual([{ a: 2 }])
  database.close()
})

test('writes that are asked for at once run one after the other', async () => {
  const { database } = await fresh()
  await database.write([{ sql: 'create table t (n integer)', args: [] }])
  await database.write([{ sql: 'insert into t values (0)', args: [] }])
  await Promise.all(Array.from({ length: 50 }, () => database.write([{ sql: 'update t set n = n + 1', args: [] }])))
  expect(await database.read('select n from t')).toEqual([{ n: 50 }])
  database.close()
})
