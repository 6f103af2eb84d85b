import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { settingsSchema } from '../config.ts'
import { openStore } from './store.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-lost-'))
})
afterEach(() => rmSync(directory, { recursive: true, force: true }))

const open = () => openStore(settingsSchema.parse({}), directory, Date.now)
const used = [
  'update state_head set version = 3',
  "insert into known_state_head (id, version, nonce, history) values (1, 3, 'n', 'h')",
] as const

async function useBoth(): Promise<void> {
  const store = await open()
  await store.state.write([{ sql: used[0], args: [] }])
  await store.ledger.write([{ sql: used[1], args: [] }])
  store.close()
}

const remove = (name: string) => {
  for (const end of ['', '-wal', '-shm']) rmSync(join(directory, `${name}.db${end}`), { force: true })
}

test.each(['state', 'ledger'])('refuses to start with an emptied %s database beside a full one', async (name) => {
  await useBoth()
  remove(name)
  for (const _attempt of [1, 2]) {
    await expect(open()).rejects.toMatchObject({
      code: 'conflict',
      message: expect.stringContaining(`The ${name} database is empty`),
    })
  }
})

test('finishes a first start that stopped between the two databases', async () => {
  const store = await open()
  store.close()
  remove('ledger')
  ;(await open()).close()
  remove('state')
  ;(await open()).close()
})
