/** Backups of a running installation, and what a restore must not give back. */
import { Database } from 'bun:sqlite'
import { afterAll, afterEach, expect, setDefaultTimeout, test } from 'bun:test'
import { existsSync, readdirSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { tokenPage } from '../support/answers.ts'
import { api, chat, createToken, expectAnswer, revoke } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { type Gatehouse, run, startGatehouse, temporaryDirectory } from '../support/harness.ts'

setDefaultTimeout(120_000)

const small = temporaryDirectory()
const mounted = Bun.spawnSync(['mount', '-t', 'tmpfs', '-o', 'size=512k', 'tmpfs', small]).exitCode === 0
if (!mounted) console.warn('The full disk of backup.test.ts is skipped: mounting a tmpfs is not permitted here')
afterAll(() => {
  if (mounted) Bun.spawnSync(['umount', '-l', small])
  rmSync(small, { recursive: true, force: true })
})

const directories: string[] = []
const directory = (): string => {
  const made = temporaryDirectory()
  directories.push(made)
  return made
}
let running: Gatehouse | null = null
afterEach(async () => {
  await running?.stop()
  running = null
  for (const made of directories.splice(0)) rmSync(made, { recursive: true, force: true })
})

const model = 'simulator/echo'
const passphrase = { BACKUP_PASSPHRASE: 'correct horse battery staple' }
const sealed = ['--passphrase-env', 'BACKUP_PASSPHRASE']

const start = async (data: string): Promise<Gatehouse> => {
  running = await startGatehouse({ dataDirectory: data })
  return running
}
const stop = async () => {
  await running?.stop()
  running = null
}
function isRevokedInState(data: string, id: string): boolean {
  using state = new Database(join(data, 'state.db'), { readonly: true })
  const row = state.query<{ revoked_at: number | null }, [string]>('select revoked_at from tokens where id = ?').get(id)
  return row !== null && row.revoked_at !== null
}

const statusOf = async (gatehouse: Gatehouse, token: string) => (await chat(gatehouse, { token, model })).status

test('a restore under the same gateway revives no token, refills no limit, and keeps what was made before', async () => {
  const data = directory()
  const file = join(directory(), 'backup')
  let gatehouse = await start(data)
  const limited = await createToken(gatehouse, { name: 'limited', max_requests: 10 })
  const revoked = await createToken(gatehouse, { name: 'revoked later' })
  for (let used = 0; used < 3; used++) expect(await statusOf(gatehouse, limited.token_value)).toBe(200)
  const load = Promise.all(
    Array.from({ length: 40 }, () =>
      chat(gatehouse, { token: gatehouse.adminToken, model }).then((each) => each.text()),
    ),
  )
  const made = await run(['backup', file, '--data', data])
  await load
  expect(made).toMatchObject({ code: 0 })
  expect(statSync(file).mode & 0o777).toBe(0o600)
  for (let used = 0; used < 4; used++) expect(await statusOf(gatehouse, limited.token_value)).toBe(200)
  await createToken(gatehouse, { name: 'made later' })
  await revoke(gatehouse, revoked.id)
  const { adminToken } = gatehouse
  await stop()

  const restored = await run(['restore', file, '--data', data, '--yes'])
  expect(restored).toMatchObject({ code: 0 })
  expect(restored.stdout).toContain('1 tokens that ended since then stay ended')

  gatehouse = await start(data)
  expect(await statusOf(gatehouse, revoked.token_value)).toBe(401)
  // What the gateway remembers of it ends with the first newer state: the state itself must refuse it.
  await until('the state has it as revoked', () => isRevokedInState(data, revoked.id))
  expect(await statusOf(gatehouse, revoked.token_value)).toBe(401)
  await until('limits are granted from again', async () => (await statusOf(gatehouse, limited.token_value)) === 200)
  const statuses: number[] = []
  for (let used = 0; used < 8; used++) statuses.push(await statusOf(gatehouse, limited.token_value))
  // Ten in all: three before the backup, four after it, one that waited, and two more.
  expect(statuses.filter((status) => status === 200)).toHaveLength(2)
  const answer = await api({ ...gatehouse, adminToken }, '/v1/tokens')
  expect(expectAnswer(answer, 200, tokenPage).tokens.map(({ name }) => name)).toContain('limited')
})

test('a backup with keys starts on another host, and without them or with another passphrase it does not', async () => {
  const data = directory()
  const file = join(directory(), 'backup')
  const gatehouse = await start(data)
  const token = await createToken(gatehouse, { name: 'moved' })
  expect(await run(['backup', file, '--data', data, ...sealed], { env: passphrase })).toMatchObject({ code: 0 })
  expect(readFileSync(file).includes(readFileSync(join(data, 'master-key')))).toBe(false)
  await stop()

  const elsewhere = join(directory(), 'data')
  const without = await run(['restore', file, '--data', elsewhere])
  expect([without.code, without.stderr.includes('There is no master key here')]).toEqual([2, true])
  const wrong = await run(['restore', file, '--data', elsewhere, ...sealed], {
    env: { BACKUP_PASSPHRASE: 'another passphrase' },
  })
  expect([wrong.code, wrong.stderr.includes('does not open the keys')]).toEqual([2, true])
  const right = await run(['restore', file, '--data', elsewhere, ...sealed], { env: passphrase })
  expect(right).toMatchObject({ code: 0 })
  const moved = await start(elsewhere)
  await until('the token is accepted', async () => (await statusOf(moved, token.token_value)) === 200)
})

test('a restore is refused while Gatehouse runs, and a damaged or cut backup changes nothing', async () => {
  const data = directory()
  const file = join(directory(), 'backup')
  await start(data)
  expect(await run(['backup', file, '--data', data])).toMatchObject({ code: 0 })
  const again = await run(['backup', file, '--data', data])
  expect([again.code, again.stderr.includes('exists already')]).toEqual([1, true])
  const busy = await run(['restore', file, '--data', data])
  expect([busy.code, busy.stderr.includes('is in use')]).toEqual([1, true])
  await stop()
  const present = () =>
    readdirSync(data)
      .filter((name) => name !== 'lock-journal')
      .toSorted()
  const before = present()
  const whole = readFileSync(file)
  truncateSync(file, Math.floor(whole.length / 2))
  const cut = await run(['restore', file, '--data', data])
  expect([cut.code, cut.stderr.includes('is no whole backup')]).toEqual([2, true])
  expect(cut.stderr.trim().split('\n').length).toBeLessThan(4)
  writeFileSync(file, 'not a backup')
  const other = await run(['restore', file, '--data', data])
  expect([other.code, other.stderr.includes('is no whole backup')]).toEqual([2, true])
  expect(present()).toEqual(before)
  expect(existsSync(join(data, 'state.db'))).toBe(true)
  const nowhere = await run(['backup', join(directory(), 'b'), '--data', directory()])
  expect([nowhere.code, nowhere.stderr.includes('holds no state.db')]).toEqual([2, true])
})

/** The command fails with code 1 and two lines below the error at most, of which none is of a stack. */
async function failure(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run(args)
  expect([args, code, stdout]).toEqual([args, 1, ''])
  expect(stderr).not.toMatch(/\n\s+at /)
  expect(stderr.trim().split('\n').length).toBeLessThan(4)
  return stderr
}

test('a backup or restore that cannot be written names the file and the remedy, and leaves nothing', async () => {
  const [data, there] = [directory(), directory()]
  const file = join(there, 'backup')
  await start(data)
  expect(await run(['backup', file, '--data', data])).toMatchObject({ code: 0 })
  expect(await failure('backup', join(there, 'none', 'b'), '--data', data)).toContain(
    `${join(there, 'none')} does not exist: make it first`,
  )
  expect(await failure('backup', join(file, 'b'), '--data', data)).toContain('a part of the path is not a directory')
  expect(await failure('restore', file, '--data', '/proc')).toContain('The data directory /proc (--data) cannot be')
  expect(await failure('restore', file, '--data', '/proc/none')).toContain('/proc/none (--data) cannot be written')
  expect(await failure('restore', file, '--data', join(file, 'data'))).toContain('is not a directory')
  const elsewhere = join(there, 'a', 'b')
  expect((await run(['restore', file, '--data', elsewhere])).stderr).toContain('There is no master key here')
  expect((await run(['restore', join(there, 'none'), '--data', elsewhere])).stderr).toContain('There is no file')
  expect((await run(['restore', there, '--data', elsewhere])).stderr).toContain('is no file: name a backup')
  expect(readdirSync(there)).toEqual(['backup'])
})

test.skipIf(!mounted)('a full disk keeps a restore and a backup from leaving anything there', async () => {
  const [data, there] = [directory(), directory()]
  const file = join(there, 'backup')
  await start(data)
  expect(await run(['backup', file, '--data', data, ...sealed], { env: passphrase })).toMatchObject({ code: 0 })
  expect(await failure('backup', join(small, 'b'), '--data', data)).toContain('cannot be written: no space is left')
  const full = await run(['restore', file, '--data', join(small, 'data'), ...sealed], { env: passphrase })
  expect([full.code, full.stderr.includes('cannot be written: no space is left')]).toEqual([1, true])
  expect(readdirSync(small)).toEqual([])
})
