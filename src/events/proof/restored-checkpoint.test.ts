import { afterEach, beforeEach, expect, test } from 'bun:test'
import { silentLog } from '../../lib/log/log.ts'
import { TestProof } from '../testing/proof.ts'
import { readStateCheckpoint } from './checkpoint.ts'
import { putCheckpointBack } from './restored-checkpoint.ts'

let proof: TestProof

beforeEach(async () => {
  proof = await TestProof.start()
  await proof.shipEvents(1, 2)
  await proof.sign()
})
afterEach(() => proof.store.remove())

const inState = () => readStateCheckpoint(proof.store.state)
const putBack = () =>
  putCheckpointBack({ state: proof.store.state, ledger: proof.store.ledger, clock: proof.clock, log: silentLog })

async function restore({ number, body, key_id, signature }: Awaited<ReturnType<typeof readFormer>>): Promise<void> {
  const sql = 'update checkpoints set number = ?, body = ?, key_id = ?, signature = ?'
  await proof.store.state.write([{ sql, args: [number, body, key_id, signature] }])
}
const readFormer = async () => (await inState()) ?? { number: 0, body: '', key_id: '', signature: '' }

test('after a restore the state gets the newest checkpoint again, at a new version, and events verify', async () => {
  const former = await readFormer()
  await proof.shipEvents(1, 1)
  await proof.sign()
  const newest = await inState()
  for (const older of [former, { number: 0, body: '', key_id: '', signature: '' }]) {
    await restore(older)
    expect(await proof.findings()).not.toEqual([])
    const [before] = await proof.store.state.read<{ version: number }>('select version from state_head')
    await putBack()
    expect(await inState()).toEqual(newest)
    const version = (before?.version ?? 0) + 1
    expect(await proof.store.state.read('select version from state_head')).toEqual([{ version }])
    expect(await proof.store.state.read('select version from checkpoints')).toEqual([{ version }])
    expect(await proof.findings()).toEqual([])
  }
})

test('leaves a checkpoint that is the newest, or was altered, as it is', async () => {
  const former = await readFormer()
  await putBack()
  expect(await inState()).toEqual(former)
  await proof.shipEvents(1, 1)
  await proof.sign()
  const altered = { ...former, body: `${former.body} ` }
  await restore(altered)
  await putBack()
  expect(await inState()).toEqual(altered)
})
