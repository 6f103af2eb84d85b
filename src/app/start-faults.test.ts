import { Database } from 'bun:sqlite'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { settingsSchema } from '../config.ts'
import { loadSigningKey, publishKey } from '../events/proof/checkpoint-key.ts'
import { loadMasterKey } from '../store/keys/load-master-key.ts'
import { findStartFaults } from './start-faults.ts'
import { openStore } from './store.ts'

let data: string
beforeEach(() => {
  data = mkdtempSync(join(tmpdir(), 'gatehouse-faults-'))
})
afterEach(() => rmSync(data, { recursive: true, force: true }))

const settings = (more: object = {}) => settingsSchema.parse({ data, ...more })
const path = (name: string) => join(data, name)
/** Of all files but the index that readers of a database share. */
const content = () =>
  Object.fromEntries(
    readdirSync(data)
      .filter((name) => name !== 'native' && !name.endsWith('-shm'))
      .map((name) => [name, hashOf(path(name))]),
  )
const hashOf = (file: string) => Bun.hash(readFileSync(file)).toString(16)

/** What a control plane leaves that ran here and closed its databases. */
async function useDirectory(): Promise<void> {
  const { state, ledger, close } = await openStore(settings(), data, Date.now)
  await loadMasterKey({ settings: {}, dataDirectory: data, ledger, randomBytes })
  await ledger.write([
    publishKey(loadSigningKey(path('checkpoint-key')), 1),
    { sql: "insert into known_state_head (id, version, nonce, history) values (1, 3, 'n', 'h')", args: [] },
  ])
  await state.write([{ sql: 'update state_head set version = 3', args: [] }])
  close()
  for (const name of ['state.db', 'ledger.db']) {
    using database = new Database(path(name))
    database.run('pragma wal_checkpoint(truncate)')
  }
}

/** `level what`, each fault; nothing in the directory may change. */
async function faults(more: object = {}, isHeld = false): Promise<string[]> {
  const before = content()
  const found = await findStartFaults(settings(more), isHeld)
  expect(content()).toEqual(before)
  expect(found.every(({ todo }) => todo !== '')).toBe(true)
  return found.map(({ level, what }) => `${level} ${what}`)
}

test('finds no fault in a cleanly stopped or an empty directory', async () => {
  expect(await faults()).toEqual([])
  await useDirectory()
  expect(await faults()).toEqual([])
})

test.each(['state', 'ledger'])('reports a damaged or emptied %s database as a start would', async (name) => {
  await useDirectory()
  const sound = readFileSync(path(`${name}.db`))
  writeFileSync(path(`${name}.db`), randomBytes(sound.length))
  expect(await faults()).toEqual([expect.stringContaining(`fail A start would be refused: ${name}.db of the data`)])
  for (const end of ['', '-wal', '-shm']) rmSync(path(`${name}.db${end}`), { force: true })
  expect(await faults()).toEqual([expect.stringContaining(`refused: The ${name} database is empty`)])
})

test('reports a missing master key, an invalid one and one of another ledger', async () => {
  await useDirectory()
  const former = readFileSync(path('master-key'), 'utf8').trim()
  rmSync(path('master-key'))
  expect(await faults()).toEqual([expect.stringMatching(/^fail A start .*master-key is missing/)])
  expect(await faults({ master_key: former })).toEqual([])
  writeFileSync(path('master-key'), 'garbage', { mode: 0o600 })
  expect(await faults()).toEqual([expect.stringContaining('must hold 32 bytes in base64')])
  writeFileSync(path('master-key'), randomBytes(32).toString('base64'), { mode: 0o600 })
  expect(await faults()).toEqual([expect.stringContaining('does not open the secrets of this ledger')])
})

test('reports a missing or damaged signing key and a damaged mark', async () => {
  await useDirectory()
  writeFileSync(path('checkpoint.json'), '{', { mode: 0o600 })
  expect(await faults()).toEqual([expect.stringContaining('warn checkpoint.json is damaged')])
  rmSync(path('checkpoint.json'))
  writeFileSync(path('checkpoint-key'), 'garbage', { mode: 0o600 })
  expect(await faults()).toEqual([expect.stringContaining('must hold an Ed25519 private key')])
  rmSync(path('checkpoint-key'))
  expect(await faults()).toEqual([expect.stringMatching(/^warn .*checkpoint-key is missing/)])
})

test('names files that other users may read, each with its mode', async () => {
  await useDirectory()
  for (const name of ['master-key', 'ledger.db']) chmodSync(path(name), 0o644)
  expect(await faults()).toEqual([
    'warn ledger.db is open to other users, mode 0644',
    'warn master-key is open to other users, mode 0644',
  ])
})

test('looks for text that would crash a start when a process ended without closing its databases', async () => {
  await useDirectory()
  const { ledger, close } = await openStore(settings(), data, Date.now)
  await ledger.write([
    { sql: "insert into organizations (id, name, created_at) values ('one', cast(x'ff' as text), 1)", args: [] },
  ])
  close()
  expect(await faults()).toEqual([])
  writeFileSync(path('databases-in-use'), '')
  expect(await faults({}, true)).toEqual([])
  expect(await faults()).toEqual([expect.stringContaining('The table organizations of the ledger database')])
})

test('examines databases that a running process has open', async () => {
  await useDirectory()
  const { ledger, close } = await openStore(settings(), data, Date.now)
  await ledger.write([{ sql: 'update known_state_head set version = 4', args: [] }])
  expect(await findStartFaults(settings(), true)).toEqual([])
  await ledger.write([{ sql: 'update known_state_head set version = 5', args: [] }])
  close()
})

test('refuses incomplete settings of a database server as a start does', async () => {
  expect(await faults({ state_url: 'http://127.0.0.1:1' })).toEqual([expect.stringContaining('SERVICE_STATE_URL and')])
})
