/** Archives that are no backups, though each begins like one. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { zstdCompressSync } from 'node:zlib'
import { pack } from 'tar-stream'
import { manifestName } from './manifest.ts'
import { readBackup } from './read-backup.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'backup-'))
  mkdirSync(join(directory, 'into'))
})
afterEach(() => rmSync(directory, { recursive: true }))

const described = (name: string, content: string, bytes = content.length) => ({
  name,
  bytes,
  sha256: new Bun.CryptoHasher('sha256').update(content).digest('hex'),
})

/** Why an archive of these files is refused; fails for one that is accepted. */
async function refusal(files: object[], entries: readonly (readonly [name: string, content: string])[]) {
  const manifest = { format: 1, version: '1.0.0', made_at: '2026-01-01T00:00:00.000Z', files }
  const archive = pack()
  for (const [name, content] of [[manifestName, JSON.stringify(manifest)], ...entries] as const) {
    archive.entry({ name }, content)
  }
  archive.finalize()
  const file = join(directory, 'backup')
  writeFileSync(file, zstdCompressSync(await buffer(archive)))
  const thrown = await readBackup(file, join(directory, 'into')).then(
    () => null,
    (error: unknown) => error,
  )
  if (!(thrown instanceof Error)) throw new Error('The archive was accepted')
  return thrown.message
}
const written = () => readdirSync(join(directory, 'into'))

test('refuses an entry that is longer than the manifest says before it is written', async () => {
  const content = 'x'.repeat(100_000)
  expect(await refusal([described('state.db', content, 10)], [['state.db', content]])).toContain('is not as long as')
  expect(written()).toEqual([])
})

test('refuses an archive without one of the databases', async () => {
  expect(await refusal([described('state.db', 'a')], [['state.db', 'a']])).toContain('It holds no ledger.db')
})

test('refuses names that the manifest or the format does not know, and writes nothing outside', async () => {
  expect(await refusal([described('../evil', 'a')], [['../evil', 'a']])).toContain('no whole backup')
  expect(await refusal([described('state.db', 'a')], [['../evil', 'a']])).toContain('does not name')
  expect([written(), readdirSync(directory).toSorted()]).toEqual([[], ['backup', 'into']])
})

test('refuses a file that comes twice', async () => {
  const files = [described('state.db', 'a'), described('ledger.db', 'b')]
  const entries = [
    ['state.db', 'a'],
    ['ledger.db', 'b'],
    ['state.db', 'a'],
  ] as const
  expect(await refusal(files, entries)).toContain('no whole backup')
})
