/** Backups without keys, restored on a host whose master key was rotated since. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { copyFileSync, cpSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { loadMasterKey } from '../store/keys/load-master-key.ts'
import { KeyRotation } from '../store/keys/rotate-master-key.ts'
import { keepSecret, openSecret } from '../store/keys/secrets.ts'
import { openDatabase } from '../store/open.ts'
import { type TemporaryStore, temporaryStore } from '../store/testing/store.ts'
import { makeBackup } from './make-backup.ts'
import { restoreBackup } from './restore-backup.ts'

let store: TemporaryStore
let directory: string
beforeEach(async () => {
  store = await temporaryStore()
  directory = mkdtempSync(join(tmpdir(), 'restore-'))
})
afterEach(() => {
  store.remove()
  rmSync(directory, { recursive: true, force: true })
})

const here = { passphrase: null, settings: {}, now: Date.now }
const keyFiles = ['master-key', 'master-key-former']
const text = (data: string, name = 'master-key') => readFileSync(join(data, name), 'utf8')
const linesOf = (data: string, name: string) => text(data, name).split('\n').slice(0, -1)

/** Backs up a copy: a running installation has its files open in another process, and here in another library. */
async function backup(name: string) {
  const data = join(directory, `data-${name}`)
  cpSync(store.directory, data, { recursive: true })
  return await makeBackup({ ...here, data, file: join(directory, name) })
}

/** Rotates twice, with a backup before each rotation and after the last; gives the key of each, and its fingerprint. */
async function rotateTwice() {
  const options = { settings: {}, dataDirectory: store.directory, ledger: store.ledger, randomBytes }
  const everyone = async () => true
  const masterKey = await loadMasterKey(options)
  const rotation = new KeyRotation({ ...options, masterKey, isSetting: false, everyoneHasSettled: everyone })
  await store.ledger.write([keepSecret(masterKey, 'one', 'content', 1)])
  const made: { key: string; fingerprint: string | undefined }[] = []
  for (const name of ['first', 'second', 'third']) {
    if (name !== 'first') {
      await rotation.begin(everyone)
      for (let round = 0; round < 3; round++) await rotation.step()
    }
    const { master_key: fingerprint } = await backup(name)
    made.push({ key: text(store.directory), fingerprint })
  }
  return { keys: made.map(({ key }) => key), fingerprints: made.map(({ fingerprint }) => fingerprint) }
}

/** Another host with the same key files. */
function hostWithKeysOf(data: string, name: string): string {
  const host = join(directory, name)
  mkdirSync(host)
  for (const file of keyFiles) copyFileSync(join(data, file), join(host, file))
  return host
}

async function contentOf(data: string): Promise<string | null> {
  const ledger = await openDatabase(join(data, 'ledger.db'), data)
  try {
    const masterKey = await loadMasterKey({ settings: {}, dataDirectory: data, ledger, randomBytes })
    return await openSecret(ledger, masterKey, 'one')
  } finally {
    ledger.close()
  }
}

test('finds the key of a backup from before two rotations, and then those of later ones', async () => {
  const { keys } = await rotateTwice()
  expect(new Set(keys).size).toBe(3)
  let host = store.directory
  for (const [at, name] of [
    [0, 'first'],
    [2, 'third'],
    [1, 'second'],
  ] as const) {
    host = hostWithKeysOf(host, `host-${name}`)
    expect((await restoreBackup({ ...here, data: host, file: join(directory, name) })).keys).toEqual(keyFiles)
    expect([await contentOf(host), text(host)]).toEqual(['content', keys[at] ?? ''])
    const lines = keyFiles.flatMap((file) => linesOf(host, file))
    expect(lines.toSorted()).toEqual(keys.map((key) => key.trim()).toSorted())
  }
  const again = hostWithKeysOf(host, 'host-again')
  expect((await restoreBackup({ ...here, data: again, file: join(directory, 'second') })).keys).toEqual([])
})

test('says which key is missing and where it looked, and moves nothing', async () => {
  const { fingerprints } = await rotateTwice()
  const host = hostWithKeysOf(store.directory, 'host')
  rmSync(join(host, 'master-key-former'))
  const thrown = await restoreBackup({ ...here, data: host, file: join(directory, 'first') }).catch(
    (error: unknown) => error,
  )
  const said = thrown instanceof Error ? thrown.message : ''
  expect(said).toContain(`needs the key ${fingerprints[0]}`)
  expect(said).toContain(`${join(host, 'master-key')} (${fingerprints[2]}) and ${join(host, 'master-key-former')} (no`)
  expect(readdirSync(host)).toEqual(['master-key'])
})
