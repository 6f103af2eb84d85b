import { afterEach, beforeEach, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { unseal } from '../../lib/seal.ts'
import { type TemporaryStore, temporaryStore } from '../testing/store.ts'
import { loadMasterKey } from './load-master-key.ts'
import { keepSecret, openSecret } from './secrets.ts'

let store: TemporaryStore
beforeEach(async () => {
  store = await temporaryStore()
})
afterEach(() => store.remove())

const load = (setting?: string) =>
  loadMasterKey({
    settings: { master_key: setting },
    dataDirectory: store.directory,
    ledger: store.ledger,
    randomBytes,
  })
const file = () => join(store.directory, 'master-key')

test('creates a key file once, readable by its owner only, and finds it again', async () => {
  const sealed = (await load()).sealPassing('text', 'here')
  expect(Buffer.from(readFileSync(file(), 'utf8'), 'base64').length).toBe(32)
  expect(statSync(file()).mode & 0o777).toBe(0o600)
  expect((await load()).openPassing(sealed, 'here')).toBe('text')
})

test('two first starts at once take the same key', async () => {
  const [one, other] = await Promise.all([load(), load()])
  expect(one.openPassing(other.sealPassing('text', 'here'), 'here')).toBe('text')
  expect(one.derive('signals')).toEqual(other.derive('signals'))
})

test('uses the setting instead of the file and creates no file', async () => {
  const setting = randomBytes(32).toString('base64')
  const sealed = (await load(setting)).sealPassing('text', 'here')
  expect(unseal(Buffer.from(setting, 'base64'), sealed, 'here')).toBe('text')
  expect(existsSync(file())).toBe(false)
})

test('a key of the wrong length or form is refused without showing it', async () => {
  const secret = randomBytes(31).toString('base64')
  for (const wrong of ['', 'short', secret, `${'é'.repeat(43)}=`, randomBytes(33).toString('base64')]) {
    const refused = load(wrong)
    await expect(refused).rejects.toMatchObject({ code: 'invalid_parameter', param: 'master_key' })
    await expect(refused).rejects.not.toThrow(secret)
  }
  writeFileSync(file(), 'broken')
  await expect(load()).rejects.toThrow(file())
})

test('refuses a key that does not open sealed data and overwrites nothing', async () => {
  const key = await load()
  await store.ledger.write([keepSecret(key, 'one', 'content', 1)])
  await expect(load(randomBytes(32).toString('base64'))).rejects.toThrow('does not open the secrets')
  const kept = readFileSync(file(), 'utf8')
  rmSync(file())
  await expect(load()).rejects.toThrow('is missing')
  expect(existsSync(file())).toBe(false)
  writeFileSync(file(), kept)
  expect(await openSecret(store.ledger, await load(), 'one')).toBe('content')
})

test('a kept secret is not replaced, and one that is not there is null', async () => {
  const key = await load()
  await store.ledger.write([keepSecret(key, 'one', 'first', 1)])
  await store.ledger.write([keepSecret(key, 'one', 'second', 2)])
  expect(await openSecret(store.ledger, key, 'one')).toBe('first')
  expect(await openSecret(store.ledger, key, 'two')).toBeNull()
})
