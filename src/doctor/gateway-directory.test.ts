import { afterAll, expect, test } from 'bun:test'
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { eventually } from '../../test/support/eventually.ts'
import { TemporaryFleet } from '../fleet/testing/temporary-fleet.ts'
import { readGatewayDirectory } from './gateway-directory.ts'
import { readVersion } from './state-version.ts'

const root = mkdtempSync(join(tmpdir(), 'gatehouse-doctor-'))
afterAll(() => rmSync(root, { recursive: true, force: true }))

/** Every file below a directory with its content, but for the index that readers of a database share. */
function contentOf(directory: string): Record<string, string> {
  const files = readdirSync(directory, { recursive: true, encoding: 'utf8' }).filter(
    (name) => statSync(join(directory, name)).isFile() && !name.endsWith('-shm'),
  )
  return Object.fromEntries(files.map((name) => [name, Bun.hash(readFileSync(join(directory, name))).toString(16)]))
}

/** The directory of a worker that has run against a control plane, with what its token was. */
async function formerWorker(): Promise<{ directory: string; token: string; instanceId: string }> {
  const fleet = await TemporaryFleet.start()
  const worker = await fleet.worker('one')
  await eventually(() => worker.ready().ok)
  // Without a control plane it does not sign off, and keeps by what it may serve.
  await fleet.stopControlPlane()
  await eventually(() => worker.counters.connected === 0)
  await worker.drain()
  const directory = join(root, crypto.randomUUID())
  cpSync(join(fleet.directory, 'one'), directory, { recursive: true })
  const { runtimeToken: token } = fleet
  await fleet.remove()
  const [instanceId = ''] = readdirSync(join(directory, 'worker/outbox'))
  return { directory, token, instanceId }
}

test('reads what each worker left in the directory and changes none of it', async () => {
  const { directory, token, instanceId } = await formerWorker()
  const before = contentOf(directory)
  const facts = readGatewayDirectory(directory, { token, isWritten: false })
  expect(facts).toMatchObject({ instance: { kind: 'known', id: instanceId }, kept: 'opens', maxStalenessSeconds: 300 })
  expect(facts.outbox).toMatchObject({ kind: 'stopped', open: 0, damage: null })
  expect(facts.freshAt).toBeGreaterThan(Date.now() - 60_000)
  expect(facts.replica).toBeNull()
  expect(readGatewayDirectory(directory, { token: 'gth_another', isWritten: false }).kept).toBe('sealed')
  expect(readGatewayDirectory(directory, { token: null, isWritten: false }).kept).toBe('unchecked')
  expect(readGatewayDirectory(directory, { token, isWritten: true }).outbox).toMatchObject({ kind: 'written' })
  expect(contentOf(directory)).toEqual(before)
})

test('reports a damaged outbox and leaves it unchanged', async () => {
  const { directory, token, instanceId } = await formerWorker()
  const segment = join(directory, 'worker/outbox', instanceId, '0', '00000001.segment')
  const bytes = readFileSync(segment)
  bytes.write('garbage', 40_000)
  writeFileSync(segment, bytes)
  const before = contentOf(directory)
  const { outbox } = readGatewayDirectory(directory, { token, isWritten: false })
  expect(outbox).toMatchObject({ kind: 'stopped', damage: { segment: 1 } })
  expect(contentOf(directory)).toEqual(before)
})

test('reports a fact when something else stands where a file is expected', () => {
  const directory = join(root, 'garbage')
  mkdirSync(join(directory, 'worker/outbox'), { recursive: true })
  expect(readGatewayDirectory(directory, { token: 'gth_x', isWritten: false })).toEqual({
    instance: { kind: 'none' },
    kept: 'none',
    maxStalenessSeconds: null,
    freshAt: null,
    fencedAt: null,
    outbox: null,
    replica: null,
  })
  for (const name of ['worker/instance.json', 'worker/keys', 'worker/fresh', 'worker/agreed', 'replica']) {
    writeFileSync(join(directory, name), '\u0000{garbage')
  }
  const facts = readGatewayDirectory(directory, { token: 'gth_x', isWritten: false })
  expect(facts.instance.kind).toBe('damaged')
  expect(facts.kept).toBe('sealed')
  expect(facts.replica?.kind).toBe('unreadable')
})

test('reports what is wrong with the replica of the state', () => {
  const directory = join(root, 'replica-of-it')
  const replica = join(directory, 'replica')
  const read = () => readGatewayDirectory(directory, { token: null, isWritten: false }).replica
  mkdirSync(join(replica, '4'), { recursive: true })
  expect(read()).toEqual({ kind: 'none' })
  symlinkSync('4', join(replica, 'current'))
  expect(read()).toEqual({ kind: 'damaged', folder: 4, fault: 'state.db is missing' })
  const log = '00000000-0000-0000-0000-000000000000'
  for (const suffix of ['', '-wal', '-shm']) writeFileSync(join(replica, '4', `state.db${suffix}`), 'no database')
  writeFileSync(join(replica, '4', 'state.db-client_wal_index'), Buffer.alloc(32))
  writeFileSync(join(replica, '4', 'log'), log)
  expect(read()).toMatchObject({ kind: 'sound', folder: 4, state: { kind: 'unreadable' } })
})

test('reports no version for a missing file or a file that is no database', () => {
  writeFileSync(join(root, 'other.db'), 'x'.repeat(5000))
  expect(readVersion(join(root, 'other.db')).kind).toBe('unreadable')
  expect(readVersion(join(root, 'missing.db')).kind).toBe('unreadable')
})
