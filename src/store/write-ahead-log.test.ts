import { afterAll, expect, test } from 'bun:test'
import { copyFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { openDatabase } from './open.ts'
import { temporaryDirectory } from './testing/store.ts'
import { WriteAheadLog } from './write-ahead-log.ts'

const directory = temporaryDirectory()
const file = join(directory, 'some.db')
writeFileSync(`${file}-wal`, '')
afterAll(() => rmSync(directory, { recursive: true, force: true }))

const takeIn = () => false
const noConnection = () => Promise.reject(new RangeError('No checkpoint is due'))

test('a flush that succeeds has the disk asked after everything that was written before it, however they overlap', async () => {
  const steps = fc.array(fc.constantFrom('write', 'flush', 'disk', 'disk fails', 'disk mends'), { maxLength: 40 })
  await fc.assert(
    fc.asyncProperty(steps, async (taken) => {
      let [written, safe, mended] = [0, 0, false]
      const asked: { answer(fails: boolean): void }[] = []
      const log = new WriteAheadLog({
        file,
        connect: noConnection,
        takeIn() {
          if (mended) safe = written
          return mended
        },
        flushFile() {
          const before = written
          const { promise, resolve, reject } = Promise.withResolvers<void>()
          asked.push({
            answer(fails) {
              if (fails) return reject(new Error('EIO'))
              safe = Math.max(safe, before)
              resolve()
            },
          })
          return promise
        },
      })
      const flushes: Promise<void>[] = []
      for (const step of taken) {
        if (step === 'write') {
          written += 1
          log.wrote(0, false)
        } else if (step === 'flush') {
          const before = written
          const seen = log.flush().then(
            () => expect(safe).toBeGreaterThanOrEqual(before),
            (error: Error) => expect(error.message).toBe('EIO'),
          )
          flushes.push(seen)
        } else if (step === 'disk mends') {
          mended = true
        } else {
          if (step === 'disk fails') mended = false
          asked.shift()?.answer(step === 'disk fails')
        }
        await Bun.sleep(0)
        expect(asked.length).toBeLessThanOrEqual(1)
      }
      const all = Promise.all(flushes)
      while (Bun.peek.status(all) === 'pending') {
        asked.shift()?.answer(false)
        await Bun.sleep(0)
      }
      await all
      log.close()
    }),
    { numRuns: 50 },
  )
})

test('flushes once for all waiting writers, and not at all if everything is flushed', async () => {
  let asked = 0
  const log = new WriteAheadLog({
    file,
    ...{ connect: noConnection, takeIn },
    async flushFile() {
      asked += 1
    },
  })
  log.wrote(0, true)
  await log.flush()
  expect(asked).toBe(0)
  log.wrote(0, false)
  await Promise.all([log.flush(), log.flush(), log.flush()])
  expect(asked).toBe(1)
  log.close()
})

test('reports nothing as durable after a failed flush until the whole log is in the database', async () => {
  let [asked, isWhole] = [0, false]
  const log = new WriteAheadLog({
    file,
    connect: noConnection,
    takeIn: () => isWhole,
    async flushFile() {
      asked += 1
      if (asked === 1) throw new Error('EIO')
    },
  })
  log.wrote(0, false)
  await expect(log.flush()).rejects.toThrow('EIO')
  await expect(log.flush()).rejects.toThrow('EIO')
  log.wrote(0, false)
  await expect(log.flush()).rejects.toThrow('EIO')
  isWhole = true
  await log.flush()
  expect(asked).toBe(1)
  log.wrote(0, false)
  await log.flush()
  expect(asked).toBe(2)
  log.close()
})

test('checkpoints after a number of characters, one at a time, and survives a failed checkpoint', async () => {
  const made: PromiseWithResolvers<void>[] = []
  const log = new WriteAheadLog({
    file,
    charactersAtMost: 100,
    takeIn,
    connect: async () => ({
      exec() {
        const checkpoint = Promise.withResolvers<void>()
        made.push(checkpoint)
        return checkpoint.promise
      },
      close: () => undefined,
    }),
  })
  const after = async (characters: number) => {
    log.wrote(characters, true)
    await Bun.sleep(0)
    return made.length
  }
  expect([await after(99), await after(100), await after(900)]).toEqual([0, 1, 1])
  const [first] = made
  first?.reject(new Error('SQLITE_IOERR'))
  await log.checkpoint
  expect(log.checkpoint).toBeNull()
  expect([await after(901), await after(950)]).toEqual([2, 2])
  log.close()
})

test('moves low priority writes into the database before closing it and restarts the log each time', async () => {
  const database = await openDatabase(join(directory, 'real.db'), directory)
  await database.write([{ sql: 'create table t (n integer primary key, text text)', args: [] }])
  let longest = 0
  for (let n = 0; n < 60; n += 1) {
    await database.write([{ sql: 'insert into t (text) values (?)', args: ['x'.repeat(200_000)] }], {})
    longest = Math.max(longest, statSync(join(directory, 'real.db-wal')).size)
  }
  await database.flush()
  expect(longest).toBeLessThan(4_000_000)
  expect(statSync(join(directory, 'real.db')).size).toBeGreaterThan(6_000_000)
  expect(await database.read('select count(*) as n from t')).toEqual([{ n: 60 }])
  expect(await database.read('pragma integrity_check')).toEqual([{ integrity_check: 'ok' }])
  database.close()
})

test('data of a log that cannot be flushed is durable once it is in the database', async () => {
  const database = await openDatabase(join(directory, 'lost.db'), directory)
  await database.write([{ sql: 'create table t (n integer)', args: [] }])
  await database.write([{ sql: 'insert into t values (7)', args: [] }], {})
  // The database goes on in the file that has no name any more.
  rmSync(join(directory, 'lost.db-wal'))
  await expect(database.flush()).rejects.toThrow('ENOENT')
  await database.flush()
  copyFileSync(join(directory, 'lost.db'), join(directory, 'found.db'))
  const found = await openDatabase(join(directory, 'found.db'), directory)
  expect(await found.read('select n from t')).toEqual([{ n: 7 }])
  found.close()
  database.close()
})
