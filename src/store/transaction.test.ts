import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Sqld, startSqld } from '../../test/support/sqld.ts'
import { type Database, openDatabase } from './open.ts'
import { openRemoteDatabase } from './remote.ts'
import { temporaryDirectory } from './testing/store.ts'
import { collecting, emptyList, withCollected } from './transaction.ts'

const directory = temporaryDirectory()
let server: Sqld
const databases = new Map<string, Database>()

beforeAll(async () => {
  server = await startSqld()
  databases.set('a file', await openDatabase(join(directory, 'a.db'), directory))
  databases.set('a server', await openRemoteDatabase({ url: server.url, token: server.token, name: 'ledger' }))
  for (const database of databases.values()) {
    await database.write([{ sql: 'create table t (a integer primary key)', args: [] }])
  }
})
afterAll(async () => {
  for (const database of databases.values()) database.close()
  await server[Symbol.asyncDispose]()
  rmSync(directory, { recursive: true })
})

const add = (a: number) => ({ sql: 'insert into t values (?)', args: [a] })
const count = { sql: 'select count(*) as n from t', args: [] }

describe.each(['a file', 'a server'])('a database in %s', (where) => {
  const database = (): Database => {
    const found = databases.get(where)
    if (found === undefined) throw new Error('It is not open')
    return found
  }

  test('reads what statements would do, keeps nothing of them, and goes on after one that fails', async () => {
    expect(await database().readAfter([add(1), add(2)], count)).toEqual({ columns: ['n'], rows: [[2]] })
    await expect(database().readAfter([add(1), add(1)], count)).rejects.toThrow()
    expect(await database().read('select * from t')).toEqual([])
    expect(await database().readAfter([], count)).toMatchObject({ rows: [[0]] })
  })

  test('collects what work writes: the work reads it, and the database does not have it', async () => {
    const seen = withCollected(database(), 'ledger')
    const list = emptyList()
    const result = await collecting(async () => {
      await seen.write([add(3)])
      expect(await seen.writeAndRead([add(4), count])).toEqual([{ n: 2 }])
      return [
        await seen.read('select a from t'),
        await seen.readValues('select a from t'),
        await database().read(count.sql),
      ]
    }, list)
    expect(result).toEqual([[{ a: 3 }, { a: 4 }], [[3], [4]], [{ n: 0 }]])
    expect(list.beside.slice(0, 2)).toEqual([add(3), add(4)])
    await seen.write([add(5)])
    expect(await database().read('select a from t')).toEqual([{ a: 5 }])
    await database().write([{ sql: 'delete from t', args: [] }])
  })
})
