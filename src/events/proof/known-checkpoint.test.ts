import { afterEach, beforeEach, expect, test } from 'bun:test'
import { join } from 'node:path'
import { TestProof } from '../testing/proof.ts'
import { readStateCheckpoint } from './checkpoint.ts'
import { checkCheckpoint, readKnownCheckpoint } from './known-checkpoint.ts'

let proof: TestProof
beforeEach(async () => {
  proof = await TestProof.start()
})
afterEach(() => proof.store.remove())

const file = () => join(proof.store.directory, 'checkpoint.json')
const look = async () => checkCheckpoint(file(), await readStateCheckpoint(proof.store.state))
async function sign(): Promise<void> {
  await proof.shipEvents(1, 1)
  await proof.sign()
}

test('a checkpoint that continues the known one replaces it', async () => {
  expect(await look()).toBeNull()
  await sign()
  expect([await look(), await look()]).toEqual([null, null])
  await sign()
  expect(await look()).toBeNull()
  expect(readKnownCheckpoint(file())?.signature).toBe((await readStateCheckpoint(proof.store.state))?.signature ?? '')
})

test('names checkpoints that were deleted and started anew, and never replaces the known one by them', async () => {
  for (let round = 0; round < 2; round++) await sign()
  await look()
  await proof.run('delete from checkpoints')
  await proof.store.state.write([{ sql: "update checkpoints set number = 0, version = 0, body = ''", args: [] }])
  expect(await look()).toBe('not_a_checkpoint')
  const found: string[][] = []
  for (let round = 0; round < 3; round++) {
    await sign()
    expect(await look()).not.toBeNull()
    const seen = readKnownCheckpoint(file())
    found.push(await proof.findings({ witnesses: seen === null ? [] : [seen] }))
  }
  expect(found[0]).toEqual(['checkpoint.begun_anew 1–1', 'checkpoint.went_back 2–2'])
  expect(found[2]).toEqual(['checkpoint.begun_anew 1–1'])
})
