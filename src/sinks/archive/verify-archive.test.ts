import { heapStats } from 'bun:jsc'
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readStateCheckpoint } from '../../events/proof/checkpoint.ts'
import { readDeliveries } from '../delivery/cursor.ts'
import { openSink } from '../stored-sink.ts'
import { FakeS3 } from '../testing/fake-s3.ts'
import { SinkFixture } from '../testing/sink-fixture.ts'
import { type Archive, streamArchive } from './archive.ts'
import { bucketArchive } from './bucket-archive.ts'
import { fileArchive } from './file-archive.ts'
import { verifyArchive } from './verify-archive.ts'

const secret = 'secret/access+key'
let sinks: SinkFixture
let s3: FakeS3
let id: string
beforeEach(async () => {
  sinks = await SinkFixture.start()
  s3 = new FakeS3('audit', secret)
  s3.pageKeys = 3
  id = await sinks.add(
    { kind: 's3', url: s3.url, credentials: { access_key_id: 'AKIA', secret_access_key: secret } },
    {
      s3: { bucket: 'audit', region: 'eu-central-1', prefix: 'a=b/logs/', lock_mode: 'compliance', every_seconds: 60 },
    },
  )
})
afterEach(async () => {
  await s3.stop()
  await sinks.remove()
})

const runner = () => sinks.runner('one', { fetch })

/** Three objects: 40 records of two chains, 10 of one, 5 of the control plane; the newest checkpoint covers the first two. */
async function archive() {
  const running = runner()
  await sinks.proof.shipEvents(1, 25)
  await sinks.proof.shipEvents(2, 15)
  await sinks.deliver(running, 3)
  await sinks.proof.shipEvents(1, 10)
  await sinks.deliver(running, 3)
  await sinks.proof.sign()
  await sinks.proof.record(5)
  await sinks.deliver(running, 3)
}

async function report(change: { pinned?: string[]; reaches?: number } = {}) {
  const { ledger } = sinks.proof.store
  const [row] = await readDeliveries(ledger, id)
  if (row === undefined) throw new Error('There is no such sink')
  const sink = await openSink(sinks.dependencies, row.sink)
  const from = bucketArchive(sink, { fetch, now: Date.now }, AbortSignal.timeout(10_000))
  return await lines(verifyArchive({ archive: from, pinned: [], witnesses: [], keys: null, reaches: null, ...change }))
}
const lines = async <Line>(report: AsyncGenerator<Line>): Promise<Line[]> => {
  const all: Line[] = []
  for await (const line of report) all.push(line)
  return all
}
const findings = async (...asked: Parameters<typeof report>) =>
  (await report(...asked)).flatMap((line) =>
    line.kind === 'finding' ? [[line.what, line.chain, line.from, line.to]] : [],
  )

/** Changes the text of an object, as somebody with write access to a bucket without a lock could. */
async function alter(part: string, change: (text: string) => string) {
  const [key = ''] = [...s3.objects.keys()].filter((name) => name.includes(part))
  const stored = s3.objects.get(key)?.at(-1)
  if (stored === undefined) throw new Error(`There is no object ${part}`)
  const isPacked = key.endsWith('.zst')
  const text = Buffer.from(isPacked ? Bun.zstdDecompressSync(new Uint8Array(stored.bytes)) : stored.bytes).toString()
  const changed = change(text)
  if (changed === text) throw new Error('Nothing was altered')
  stored.bytes = isPacked ? Bun.zstdCompressSync(Buffer.from(changed)) : Buffer.from(changed)
}

const first = '000000000000001-000000000000040'

test('writes objects with their proofs, signed for S3, and proves them', async () => {
  await archive()
  const keys = [...s3.objects.keys()].toSorted()
  expect(keys).toHaveLength(6)
  expect(keys.slice(0, 2)).toEqual([`a=b/logs/${first}.ndjson.zst`, `a=b/logs/${first}.proof.json`])
  const all = await report({ reaches: 56 })
  expect(all.at(-1)).toMatchObject({ kind: 'summary', records: 55, findings: 0, not_covered: 5, chains: 3 })
  expect(all.find((line) => line.kind === 'chain' && line.chain === sinks.proof.worker(1))).toMatchObject({
    ...{ from: 0, to: 35, covered_to: 35, records: 35 },
  })
})

test('has the chains’ digests and the newest checkpoint beside each object, so that a part is proved alone', async () => {
  await sinks.proof.shipEvents(1, 10)
  await sinks.proof.sign()
  const running = runner()
  for (let parcel = 0; parcel < 3; parcel += 1) {
    await sinks.proof.shipEvents(1, 5)
    await sinks.deliver(running, 3)
  }
  const proofs = [...s3.objects].filter(([key]) => key.endsWith('.proof.json'))
  expect(proofs.length).toBeGreaterThan(1)
  for (const [, [version]] of proofs) {
    const { gatehouse_proof: proof } = JSON.parse(Buffer.from(version?.bytes ?? []).toString())
    expect(proof.chains).toEqual([[sinks.proof.worker(1), expect.any(String), expect.any(String)]])
    expect(JSON.parse(proof.checkpoint.body).heads).toHaveLength(1)
    expect(proof.keys).toHaveLength(1)
  }
})

test('reads an archive with checkpoints of years without keeping them', async () => {
  const [count, size] = [400, 250_000]
  let held = 0
  const before = heapStats().heapSize
  const from: Archive = {
    async *proofs() {
      for (let number = 1; number <= count; number += 1) {
        const body = Buffer.alloc(size, 65 + (number % 26)).toString()
        const checkpoint = { body, key_id: 'of nobody', signature: '' }
        yield { ...{ first: number, next: number + 1, runs: [], left_out: [], damaged: [], chains: [] }, checkpoint }
      }
      Bun.gc(true)
      held = heapStats().heapSize - before
    },
    async *parts() {
      // Only checkpoints matter here.
    },
  }
  const asked = { archive: from, pinned: [], witnesses: [], keys: null, reaches: null }
  expect((await lines(verifyArchive(asked))).at(-1)).toMatchObject({ findings: count })
  expect(held).toBeLessThan((count * size) / 4)
})

test('an archive in a folder is proved without the installation, by the key that is pinned', async () => {
  await archive()
  const folder = mkdtempSync(join(sinks.proof.store.directory, 'copy-'))
  for (const [key, versions] of s3.objects) {
    mkdirSync(join(folder, key, '..'), { recursive: true })
    writeFileSync(join(folder, key), versions.at(-1)?.bytes ?? '')
  }
  const proved = (pinned: string[]) =>
    lines(verifyArchive({ archive: fileArchive(folder), pinned, witnesses: [], keys: null, reaches: null }))
  expect((await proved([sinks.proof.key.id])).at(-1)).toMatchObject({ records: 55, findings: 0, not_covered: 5 })
  expect((await proved(['0'.repeat(64)])).at(-1)).toMatchObject({ records: 55, findings: 1, not_covered: 55 })
})

test('names a record that was altered, once', async () => {
  await archive()
  const chain = sinks.proof.worker(1)
  await alter(`${first}.ndjson`, (text) => text.replace('"verdict":"allow"', '"verdict":"deny"'))
  expect(await findings()).toEqual([['event.altered', chain, 1, 25]])
})

test('names a part whose lines are more or fewer than they were', async () => {
  await archive()
  await alter(`${first}.ndjson`, (text) => text.slice(text.indexOf('\n') + 1))
  expect(await findings()).toContainEqual(['archive.lines', null, 1, 40])
})

test('names records whose order was changed', async () => {
  await archive()
  await alter(`${first}.ndjson`, (text) => {
    const [one = '', two = '', ...rest] = text.split('\n')
    return [two, one, ...rest].join('\n')
  })
  expect(await findings()).toEqual([['event.altered', sinks.proof.worker(1), 1, 25]])
})

test('names objects that are gone, in the middle and at the end', async () => {
  await archive()
  for (const key of [...s3.objects.keys()]) if (key.includes('0041-')) s3.objects.delete(key)
  const chain = sinks.proof.worker(1)
  expect(await findings()).toEqual([['archive.missing', null, 41, 50]])
  for (const key of [...s3.objects.keys()]) if (key.includes('0051-')) s3.objects.delete(key)
  expect(await findings({ reaches: 56 })).toEqual([['archive.missing', null, 41, 55]])
  expect(chain).not.toBe('')
})

test('names an object without a proof', async () => {
  await archive()
  s3.objects.delete(`a=b/logs/${first}.proof.json`)
  expect((await findings()).map(([what]) => what)).toContain('archive.unproved')
})

test('names records that were rewritten with proofs that fit them, because a checkpoint does not', async () => {
  await archive()
  const forged = await SinkFixture.start()
  await forged.add({ kind: 'http' })
  await forged.proof.shipEvents(1, 60)
  await forged.deliver()
  const signed = await readStateCheckpoint(sinks.proof.store.state)
  if (signed === null) throw new Error('There is no checkpoint')
  const { body, key_id, signature } = signed
  const report = verifyArchive({
    archive: streamArchive(async function* () {
      yield* forged.lines
    }),
    ...{ pinned: [], witnesses: [{ body, key_id, signature }], reaches: null },
    keys: [{ id: sinks.proof.key.id, public_key: sinks.proof.key.publicKey }],
  })
  const found = (await lines(report)).filter((line) => line.kind === 'finding')
  expect(found).toMatchObject([{ what: 'events.rewritten', chain: sinks.proof.worker(1), from: 1, to: 35 }])
  await forged.remove()
})

test('names a checkpoint that was altered', async () => {
  await archive()
  await alter('0051-000000000000055.proof', (text) => text.replace(/\\"number\\":1/, '\\"number\\":2'))
  expect((await findings()).map(([what]) => what)).toEqual(['checkpoint.altered'])
})

test('locks objects where the sink says so', async () => {
  const { ledger } = sinks.proof.store
  const config = { s3: { bucket: 'audit', prefix: 'locked/', lock_days: 30, lock_mode: 'governance' } }
  await ledger.write([{ sql: 'update sinks set config = ? where id = ?', args: [JSON.stringify(config), id] }])
  await sinks.proof.shipEvents(1, 5)
  await sinks.deliver(runner(), 3)
  const stored = [...s3.objects.values()].flat()
  expect(stored).toHaveLength(2)
  for (const { mode, lockedUntil } of stored) {
    expect(mode).toBe('GOVERNANCE')
    expect(Date.parse(lockedUntil ?? '') - sinks.proof.now).toBeGreaterThan(29.9 * 86_400_000 - 400_000)
  }
})

test('after a failure between object and proof both are written again under the same names', async () => {
  await sinks.proof.shipEvents(1, 5)
  let failures = 2
  s3.instead = (method, key) =>
    method === 'PUT' && key.endsWith('.proof.json') && failures-- > 0 ? new Response(null, { status: 503 }) : null
  const running = runner()
  await sinks.deliver(running, 2)
  await sinks.proof.shipEvents(1, 7)
  await sinks.deliver(running, 8)
  const names = [...s3.objects.keys()].filter((key) => key.endsWith('.zst')).toSorted()
  expect(names[0]).toEndWith('000000000000001-000000000000005.ndjson.zst')
  expect((await report()).at(-1)).toMatchObject({ findings: 0, records: 12 })
})

test('a bucket that refuses an object gets the same one again, and no part of it', async () => {
  await sinks.proof.shipEvents(1, 5)
  let failures = 3
  s3.instead = (method) => (method === 'PUT' && failures-- > 0 ? new Response(null, { status: 400 }) : null)
  await sinks.deliver(runner(), 8)
  expect([...s3.objects.keys()].length).toBe(4)
  // Those that were shipped, and two events about the sink itself.
  expect((await report()).at(-1)).toMatchObject({ findings: 0, records: 7 })
})

test('names an object whose bytes are damaged, and a line that is none any more', async () => {
  await archive()
  const [key = ''] = [...s3.objects.keys()].filter((name) => name.includes(`${first}.ndjson`))
  const stored = s3.objects.get(key)?.at(-1)
  if (stored === undefined) throw new Error('There is no object')
  const { bytes } = stored
  stored.bytes = bytes.map((byte, at) => (at === 40 ? byte ^ 255 : byte))
  expect((await findings()).map(([what]) => what)).toEqual(['archive.lines'])
  stored.bytes = bytes
  await alter(`${first}.ndjson`, (text) => text.replace('{', '{"gatehouse_quarantined":"sink.tested"'))
  expect((await findings()).map(([what]) => what)).toEqual(['event.altered'])
})
