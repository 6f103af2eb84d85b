import { afterEach, beforeEach, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Database } from '../open.ts'
import { insert, query, statement } from '../query.ts'
import { secrets } from '../schema/ledger/changes.ts'
import { userIdentities, users } from '../schema/ledger/people.ts'
import { type TemporaryStore, temporaryStore } from '../testing/store.ts'
import { loadMasterKey } from './load-master-key.ts'
import type { MasterKey } from './master-key.ts'
import { KeyRotation } from './rotate-master-key.ts'
import { keepSecret, openSecret } from './secrets.ts'

let store: TemporaryStore
beforeEach(async () => {
  store = await temporaryStore()
})
afterEach(() => store.remove())

const path = (name: string) => join(store.directory, name)
const keyText = () => readFileSync(path('master-key'), 'utf8')
const setting = () => randomBytes(32).toString('base64')
const everyone = async () => true

type Keys = { master_key?: string; master_key_next?: string }

/** As a control plane starts: its key, and its part in a rotation. */
async function started(settings: Keys = {}) {
  const options = { settings, dataDirectory: store.directory, ledger: store.ledger, randomBytes }
  const masterKey = await loadMasterKey(options)
  const isSetting = settings.master_key !== undefined
  return { masterKey, rotation: new KeyRotation({ ...options, masterKey, isSetting, everyoneHasSettled: everyone }) }
}

const some = 250

/** Values in every column that is sealed. */
async function fill(masterKey: MasterKey): Promise<void> {
  const account = { role: 'member', status: 'active', createdAt: 1 } as const
  const rows = Array.from({ length: some }, (_, at) => {
    const id = `id-${at}`
    return [
      keepSecret(masterKey, id, `secret ${at}`, 1),
      statement(
        insert(users).values({
          ...account,
          ...{ id, email: `${at}@example.com`, name: 'x', totpSecret: masterKey.seal('second_factor', id, 'totp') },
        }),
      ),
      statement(
        insert(userIdentities).values({
          ...{ id, userId: id, issuer: 'https://issuer', subject: id, createdAt: 1, lastSignInAt: 1, vouchedUntil: 1 },
          refreshToken: masterKey.seal('refresh_token', id, 'refresh'),
        }),
      ),
    ]
  })
  await store.ledger.write(rows.flat())
}

/** Every text of the ledger that has the form of a sealed value, whatever column holds it. */
async function sealedTexts(): Promise<Set<string>> {
  const found = new Set<string>()
  const tables = await store.ledger.read<{ name: string }>("select name from sqlite_master where type = 'table'")
  for (const { name } of tables) {
    for (const row of await store.ledger.readValues(`select * from "${name}"`)) {
      for (const value of row) {
        if (typeof value === 'string' && /^v1\.[\w-]{16}\.[\w-]+$/.test(value)) found.add(value)
      }
    }
  }
  return found
}

async function opensAll(masterKey: MasterKey): Promise<void> {
  expect(await openSecret(store.ledger, masterKey, 'id-7')).toBe('secret 7')
  for (const { id, totpSecret } of await query(store.ledger).select().from(users)) {
    expect(masterKey.open('second_factor', id, totpSecret ?? '')).toBe('totp')
  }
  for (const { id, refreshToken } of await query(store.ledger).select().from(userIdentities)) {
    expect(masterKey.open('refresh_token', id, refreshToken ?? '')).toBe('refresh')
  }
}

test('seals every sealed value of the ledger anew, and keeps the former key for older backups', async () => {
  const { masterKey, rotation } = await started()
  await fill(masterKey)
  const [former, before, derived] = [keyText(), await sealedTexts(), masterKey.derive('signals')]
  expect(before.size).toBe(3 * some + 1)
  await rotation.begin(everyone)
  for (let round = 0; round < 3; round++) await rotation.step()
  expect(rotation.state()).toEqual({ state: 'none', resealed: 3 * some })
  const after = await sealedTexts()
  expect([after.size, [...after].filter((text) => before.has(text))]).toEqual([before.size, []])
  expect([readFileSync(path('master-key-former'), 'utf8'), keyText() === former]).toEqual([former, false])
  expect(existsSync(path('master-key-next'))).toBe(false)
  await opensAll(masterKey)
  const again = await started()
  await opensAll(again.masterKey)
  expect(again.masterKey.derive('signals')).toEqual(derived)
  writeFileSync(path('master-key'), former)
  await expect(started()).rejects.toThrow('master-key-former')
})

test('keeps the keys of several rotations, tries each, and counts the present rotation', async () => {
  const { masterKey, rotation } = await started()
  const late = keepSecret(masterKey, 'late', 'sealed before both', 1)
  await store.ledger.write([keepSecret(masterKey, 'one', 'content', 1)])
  const keys: string[] = []
  for (const number of [1, 2]) {
    keys.unshift(keyText())
    await rotation.begin(everyone)
    for (let round = 0; round < 3; round++) await rotation.step()
    expect([number, rotation.state()]).toEqual([number, { state: 'none', resealed: 1 }])
  }
  expect(readFileSync(path('master-key-former'), 'utf8')).toBe(keys.join(''))
  await store.ledger.write(late === undefined ? [] : [late])
  for (const each of [masterKey, (await started()).masterKey]) {
    expect(await openSecret(store.ledger, each, 'late')).toBe('sealed before both')
  }
})

test('goes on after an end at any write, and all values open in between', async () => {
  const { masterKey } = await started()
  await fill(masterKey)
  const before = await sealedTexts()
  let ended = 0
  for (let writes = 0; writes < 30; writes++) {
    let left = writes
    const dying: Database = {
      ...store.ledger,
      write: async (statements) => {
        if (left === 0) throw new Error('killed')
        left -= 1
        await store.ledger.write(statements)
      },
    }
    const { masterKey: key } = await started()
    const here = { dataDirectory: store.directory, randomBytes, isSetting: false, everyoneHasSettled: everyone }
    const rotation = new KeyRotation({ ...here, ledger: dying, masterKey: key })
    const round = async () => {
      await rotation.begin(everyone)
      for (let step = 0; step < 3; step++) await rotation.step()
    }
    const survived = await round().then(
      () => true,
      () => false,
    )
    await opensAll((await started()).masterKey)
    if (survived) break
    ended += 1
  }
  expect(ended).toBeGreaterThan(3)
  expect([...(await sealedTexts())].filter((text) => before.has(text))).toEqual([])
})

test('rotates a key of a setting while control planes have both, and then runs with the next one alone', async () => {
  const [master_key, master_key_next] = [setting(), setting()]
  const alone = await started({ master_key })
  await fill(alone.masterKey)
  await expect(alone.rotation.begin(everyone)).rejects.toThrow('SERVICE_MASTER_KEY_NEXT')
  const [one, other] = [await started({ master_key, master_key_next }), await started({ master_key, master_key_next })]
  await expect(one.rotation.begin(async () => false)).rejects.toThrow('Another control plane')
  expect(one.rotation.state().state).toBe('ready')
  await one.rotation.begin(async (fingerprint) => fingerprint === other.masterKey.nextFingerprint)
  // What one seals from now on opens in the other, before that has seen that the rotation began.
  await store.ledger.write([keepSecret(one.masterKey, 'new', 'by one', 1)])
  expect(await openSecret(store.ledger, other.masterKey, 'new')).toBe('by one')
  // What the other seals meanwhile is under the former key, and is sealed anew.
  await store.ledger.write([keepSecret(other.masterKey, 'late', 'by the other', 1)])
  await expect(started({ master_key })).rejects.toThrow('does not open the secrets')
  for (let round = 0; round < 4; round++) await Promise.all([one.rotation.step(), other.rotation.step()])
  expect([one.rotation.state().state, other.rotation.state().state]).toEqual(['complete', 'complete'])
  const next = await started({ master_key: master_key_next })
  await opensAll(next.masterKey)
  expect(await openSecret(store.ledger, next.masterKey, 'late')).toBe('by the other')
})

test('opens what was sealed before a rotation and written after it, and seals it anew, here or after a start', async () => {
  const { masterKey, rotation } = await started()
  const [first, second] = ['first', 'second'].map((name) => keepSecret(masterKey, name, `late ${name}`, 1))
  await rotation.begin(everyone)
  for (let round = 0; round < 3; round++) await rotation.step()
  expect(rotation.state().state).toBe('none')
  if (first !== undefined) await store.ledger.write([first])
  const sealedFirst = await sealedTexts()
  expect(await openSecret(store.ledger, masterKey, 'first')).toBe('late first')
  await rotation.step()
  await rotation.step()
  expect((await sealedTexts()).isSupersetOf(sealedFirst)).toBe(false)
  if (second !== undefined) await store.ledger.write([second])
  const again = await started()
  expect(await openSecret(store.ledger, again.masterKey, 'second')).toBe('late second')
  await again.rotation.step()
  // Nothing is left that needs the former key.
  rmSync(path('master-key-former'))
  const without = await started()
  for (const name of ['first', 'second']) {
    expect(await openSecret(store.ledger, without.masterKey, name)).toBe(`late ${name}`)
  }
})

test('with keys of settings, is complete only when every control plane has sealed under the next for long enough', async () => {
  const keys = { master_key: setting(), master_key_next: setting() }
  const [one, other] = [await started(keys), await started(keys)]
  const rotation = new KeyRotation({
    ...{ ledger: store.ledger, masterKey: one.masterKey, isSetting: true, dataDirectory: store.directory, randomBytes },
    everyoneHasSettled: async (fingerprint) => other.masterKey.hasSealedUnder(fingerprint, 0.001),
  })
  await rotation.begin(everyone)
  for (let round = 0; round < 4; round++) await rotation.step()
  expect(rotation.state().state).toBe('running')
  // The other one had not seen that the rotation began.
  await store.ledger.write([keepSecret(other.masterKey, 'late', 'by the other', 1)])
  await other.rotation.step()
  for (let round = 0; round < 3; round++) await rotation.step()
  expect(rotation.state().state).toBe('complete')
  const next = await started({ master_key: keys.master_key_next })
  expect(await openSecret(store.ledger, next.masterKey, 'late')).toBe('by the other')
  expect(next.masterKey.hasSealedUnder(one.masterKey.nextFingerprint ?? '', 30_000)).toBe(true)
})

test('does not end while a change is pending that may bring a value under the former key', async () => {
  const { rotation } = await started()
  await store.ledger.write([{ sql: "insert into pending_changes values ('event', '[]', '{}', 1)", args: [] }])
  await rotation.begin(everyone)
  for (let round = 0; round < 4; round++) await rotation.step()
  expect(rotation.state().state).toBe('running')
  await store.ledger.write([{ sql: 'delete from pending_changes', args: [] }])
  for (let round = 0; round < 2; round++) await rotation.step()
  expect(rotation.state().state).toBe('none')
})

test('names a value that neither key opens, and does not end', async () => {
  const { rotation } = await started()
  await rotation.begin(everyone)
  await store.ledger.write([statement(insert(secrets).values({ name: 'odd', sealed: 'v1.a.b', createdAt: 1 }))])
  await expect(rotation.step()).rejects.toThrow('secret odd')
  expect(rotation.state().state).toBe('running')
})

test('seals under the master key only through its class: what is sealed elsewhere has another key', () => {
  const source = join(import.meta.dir, '../..')
  const seals = [...new Bun.Glob('**/*.ts').scanSync(source)]
    .filter((file) => !file.includes('testing/') && !file.endsWith('.test.ts'))
    .filter((file) =>
      /\b(?:un)?seal\b[^'\n]*\} from '[./]+\/lib\/seal\.ts'/.test(readFileSync(join(source, file), 'utf8')),
    )
  expect(seals.toSorted()).toEqual([
    // A passphrase.
    'backup/sealed-keys.ts',
    // A runtime token.
    'fleet/agent/agent-files.ts',
    // The data key of a provider or MCP server, which is itself a sealed secret.
    'fleet/state/catalog-view.ts',
    'mcp/catalog/server-credentials.ts',
    'providers/credentials.ts',
    'store/keys/master-key.ts',
  ])
})
