import { afterEach, beforeEach, expect, test } from 'bun:test'
import { statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Log } from '../../lib/log/log.ts'
import { silentLog } from '../../lib/log/log.ts'
import { retentionDays, TestProof } from '../testing/proof.ts'
import { parseCheckpoint, readCheckpointLength, readStateCheckpoint } from './checkpoint.ts'
import { KeyRing, loadSigningKey, publishKey, readKeyRing } from './checkpoint-key.ts'
import { type CheckpointOptions, signCheckpoint } from './checkpoint-writer.ts'

const minute = 60_000
let proof: TestProof

beforeEach(async () => {
  proof = await TestProof.start()
})
afterEach(() => proof.store.remove())

const options = (change: Partial<CheckpointOptions> = {}): CheckpointOptions => ({
  ...{ state: proof.store.state, ledger: proof.store.ledger, key: proof.key, clock: proof.clock, log: silentLog },
  announce: () => undefined,
  settings: { event_retention_days: retentionDays },
  ...change,
})
const numbers = async () =>
  (await proof.store.ledger.read<{ number: number }>('select number from checkpoints order by number')).map(
    ({ number }) => number,
  )

test('signs a checkpoint each minute with new events, and none without', async () => {
  expect(await signCheckpoint(options())).toBe(false)
  await proof.shipEvents(1, 2)
  expect(await signCheckpoint(options())).toBe(true)
  await proof.shipEvents(1, 1)
  proof.now += minute - 1
  expect(await signCheckpoint(options())).toBe(false)
  proof.now += 1
  expect(await signCheckpoint(options())).toBe(true)
  proof.now += minute
  expect(await signCheckpoint(options())).toBe(false)
  expect(await numbers()).toEqual([1, 2])
})

test('writes a checkpoint as one row of the state at a new version and one line of the log, with the same signature', async () => {
  await proof.shipEvents(1, 2)
  await proof.record(1)
  const announced: number[] = []
  const lines: Record<string, unknown>[] = []
  const log: Log = { ...silentLog, info: (fields) => lines.push(fields) }
  await signCheckpoint(options({ announce: ({ version }) => announced.push(version), log }))
  const stored = await readStateCheckpoint(proof.store.state)
  const [head] = await proof.store.state.read<{ version: number }>('select version from state_head')
  expect(announced).toEqual([head?.version ?? 0])
  expect(await proof.store.state.read('select version from checkpoints')).toEqual([{ version: head?.version ?? 0 }])
  expect(lines).toMatchObject([
    { checkpoint: 1, body: stored?.body, signature: stored?.signature, key_id: proof.key.id },
  ])
  const { heads } = parseCheckpoint(stored?.body ?? '') ?? { heads: new Map() }
  expect([...heads].map(([chain, { seq }]) => [chain, seq])).toEqual([
    [proof.worker(1), 2],
    ['control-plane', 1],
  ])
  const ring = await readKeyRing(proof.store.ledger)
  expect(stored === null ? null : ring.check('checkpoint', stored)).toBe('good')
  expect(stored === null ? null : ring.check('floor', stored)).toBe('wrong')
})

test('knows the bytes of the newest checkpoint without reading it', async () => {
  const { state } = proof.store
  expect(await readCheckpointLength(state)).toBe(0)
  await proof.shipEvents(1, 2)
  await signCheckpoint(options())
  expect(await readCheckpointLength(state)).toBe(Buffer.byteLength((await readStateCheckpoint(state))?.body ?? ''))
  await state.write([{ sql: "update checkpoints set body = 'é'", args: [] }])
  expect(await readCheckpointLength(state)).toBe(2)
})

test('one of several control planes signs, each with a key of its own', async () => {
  const other = loadSigningKey(join(proof.store.directory, 'other-key'))
  await proof.store.ledger.write([publishKey(other, proof.now)])
  for (let round = 0; round < 5; round++) {
    await proof.shipEvents(1, 1)
    proof.now += minute
    const signed = await Promise.all([signCheckpoint(options()), signCheckpoint(options({ key: other }))])
    expect(signed.filter(Boolean)).toHaveLength(1)
  }
  expect(await numbers()).toEqual([1, 2, 3, 4, 5])
  expect((await proof.verify()).at(-1)).toMatchObject({ findings: 0, not_covered: 0 })
})

test('keeps all checkpoints of an hour, one an hour for a day, and one a day after that', async () => {
  for (let hour = 0; hour < 60; hour++) {
    for (const wait of [0, minute]) {
      proof.now += wait
      await proof.shipEvents(1, 1)
      await signCheckpoint(options())
    }
    proof.now += 59 * minute
  }
  expect((await numbers()).length).toBeLessThan(32)
  expect((await numbers()).length).toBeGreaterThan(24)
  expect((await proof.verify()).at(-1)).toMatchObject({ findings: 0 })
})

test('makes a key file once, readable by its owner only, and refuses another kind of key without showing it', () => {
  const path = join(proof.store.directory, 'checkpoint-key')
  expect(statSync(path).mode & 0o777).toBe(0o600)
  expect(loadSigningKey(path).id).toBe(proof.key.id)
  const wrong = join(proof.store.directory, 'wrong')
  writeFileSync(wrong, 'secret text')
  expect(() => loadSigningKey(wrong)).toThrow(expect.objectContaining({ param: 'checkpoint_key_file' }))
  expect(() => loadSigningKey(wrong)).not.toThrow('secret text')
})

test('does not trust a public key under an id that is not its own', () => {
  const signed = proof.key.sign('checkpoint', 'text')
  const rows = [{ id: proof.key.id, public_key: Buffer.alloc(32, 7).toString('base64') }]
  expect(new KeyRing(rows).check('checkpoint', signed)).toBe('unknown_key')
  const own = [{ id: proof.key.id, public_key: proof.key.publicKey }]
  expect(new KeyRing(own).check('checkpoint', signed)).toBe('good')
  expect(new KeyRing(own).check('checkpoint', { ...signed, body: 'other' })).toBe('wrong')
  expect(new KeyRing(own, ['00'.repeat(32)]).check('checkpoint', signed)).toBe('unknown_key')
})

test('finds a checkpoint that was altered in the state after the next one replaced it', async () => {
  await proof.shipEvents(1, 2)
  await proof.sign()
  await proof.store.state.write([{ sql: "update checkpoints set body = replace(body, ',2,', ',1,')", args: [] }])
  await proof.shipEvents(1, 2)
  for (let round = 0; round < 2; round++) {
    await proof.sign()
    await proof.shipEvents(1, 1)
  }
  expect(await proof.findings()).toEqual(['checkpoint.altered 1–1'])
})
