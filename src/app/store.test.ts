import { Database as Sqlite } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { settingsSchema } from '../config.ts'
import { openStore } from './store.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-store-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const open = () => openStore(settingsSchema.parse({}), directory, Date.now)

function edit(sql: string): void {
  const ledger = new Sqlite(join(directory, 'ledger.db'))
  ledger.run(sql)
  ledger.close()
}

test('after an unclean end looks for text that would crash the process until there is none', async () => {
  const ended = await open()
  edit("insert into teams (id, name, created_at) values ('t', cast(x'ff' as text), 1)")
  for (const _start of [1, 2]) {
    await expect(open()).rejects.toMatchObject({
      code: 'data_damaged',
      message: expect.stringContaining('The table teams of the ledger database'),
    })
  }
  edit("update teams set name = 'mended'")
  const mended = await open()
  mended.close()
  ended.close()
})

test('a start after a clean end does not read the whole database', async () => {
  const first = await open()
  edit("insert into teams (id, name, created_at) values ('t', cast(x'ff' as text), 1)")
  first.close()
  const next = await open()
  next.close()
})

test.each(['state.db', 'ledger.db'])('names a damaged %s and the remedy', async (name) => {
  const first = await open()
  first.close()
  const file = join(directory, name)
  for (const end of ['-wal', '-shm']) rmSync(`${file}${end}`, { force: true })
  const told = { code: 'data_damaged', message: expect.stringContaining(`${name} of the data directory is damaged`) }
  truncateSync(file, 8192)
  await expect(open()).rejects.toMatchObject(told)
  writeFileSync(file, 'hello, this is no database at all: '.repeat(100))
  await expect(open()).rejects.toMatchObject(told)
})
