/** Alterations of the proof itself: checkpoints, keys, and what stands in their place. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { join } from 'node:path'
import { loadSigningKey, publishKey, type Signed } from '../proof/checkpoint-key.ts'
import { completeCheckpoint } from '../proof/checkpoint-writer.ts'
import { rewriteLog } from '../testing/alter-log.ts'
import { TestProof } from '../testing/proof.ts'

const day = 86_400_000
let proof: TestProof

/** Ten records on one worker with one quarantined, three on another, three of the control plane; two checkpoints. */
beforeEach(async () => {
  proof = await TestProof.start()
  await proof.recordTwoCheckpoints()
})
afterEach(() => proof.store.remove())

describe('verification finds in the proof itself', () => {
  test('an altered checkpoint in the ledger and in the state', async () => {
    await proof.run(`update checkpoints set body = replace(body, '"number":1', '"number":7') where number = 1`)
    expect(await proof.findings()).toEqual(['checkpoint.altered 1–1'])
    await proof.run('delete from checkpoints where number = 1')
    await proof.store.state.write([{ sql: "update checkpoints set signature = 'AAAA'", args: [] }])
    expect(await proof.findings()).toEqual([
      ...['checkpoint.altered 2–2', 'checkpoint.went_back 1–2', 'checkpoint.missing 1–1'],
    ])
  })

  test('a row of the state reset to an older one', async () => {
    await proof.store.state.write([{ sql: 'update checkpoints set number = 0', args: [] }])
    expect(await proof.findings()).toEqual(['checkpoint.went_back 1–2'])
  })

  test('another key, by a noted key id or by the id in the summary', async () => {
    const other = loadSigningKey(join(proof.store.directory, 'other-key'))
    await rewriteLog(proof.store.ledger, (lines) =>
      lines.map((line, index) => (index === 15 ? { ...line, text: line.text.replace('"allow"', '"deny"') } : line)),
    )
    await proof.store.ledger.write([publishKey(other, 1)])
    await proof.run('delete from checkpoint_keys where id = ?', proof.key.id)
    await proof.run('delete from checkpoints')
    await proof.store.state.write([{ sql: 'update checkpoints set number = 0', args: [] }])
    await proof.sign(other)
    expect((await proof.findings()).every((text) => text.startsWith('rollup.differs'))).toBe(true)
    await proof.forgetSums()
    expect(await proof.findings()).toEqual([])
    expect((await proof.verify()).at(-1)).toMatchObject({ keys: [other.id] })
    expect(await proof.findings({ pinned: [proof.key.id] })).toEqual([
      ...['key.unknown 1–1', 'key.unknown 1–1', 'key.no_checkpoint'],
    ])
  })

  test('that nothing is signed with the trusted key', async () => {
    await proof.run('delete from checkpoints')
    await proof.store.state.write([{ sql: "update checkpoints set number = 0, body = ''", args: [] }])
    expect(await proof.findings({ pinned: [proof.key.id] })).toEqual(['key.no_checkpoint', 'checkpoint.missing'])
  })

  const noneLeft = 'delete from checkpoints'
  const emptied = "update checkpoints set number = 0, body = '', key_id = '', signature = '', version = 0"

  test('the deletion of all checkpoints in both databases, even with a row of the state as at first', async () => {
    await proof.run(noneLeft)
    await proof.store.state.write([{ sql: emptied, args: [] }])
    proof.now += day
    expect(await proof.findings()).toEqual(['checkpoint.missing'])
  })

  test('checkpoints that were started anew, if it knows an earlier one', async () => {
    const [seen] = await proof.store.ledger.read<Signed>(
      'select body, key_id, signature from checkpoints where number = 1',
    )
    await proof.run(noneLeft)
    await proof.store.state.write([{ sql: emptied, args: [] }])
    for (let round = 0; round < 3; round++) {
      await proof.shipEvents(2, 1)
      await proof.sign()
    }
    expect(await proof.findings()).toEqual([])
    expect(await proof.findings({ witnesses: seen === undefined ? [] : [seen] })).toEqual(['checkpoint.begun_anew 1–1'])
  })

  describe('no fault in a checkpoint that is only in the state', () => {
    beforeEach(async () => {
      await proof.run('delete from checkpoints where number = 2')
    })

    test('which the next run copies to the ledger', async () => {
      expect(await proof.findings()).toEqual(['checkpoint.missing 2–2'])
      proof.now -= 60_000
      expect(await proof.sign()).toBe(false)
      expect(await proof.findings()).toEqual([])
    })

    test('which the next start copies to the ledger', async () => {
      await completeCheckpoint(proof.signing())
      expect(await proof.findings()).toEqual([])
    })

    test('in its first seconds, since its signer may have stopped before the ledger had it', async () => {
      expect(await proof.findings({ now: proof.now + 14_999 })).toEqual([])
      expect(await proof.findings({ now: proof.now + 15_000 })).toEqual(['checkpoint.missing 2–2'])
    })
  })

  for (const [type, reason, what] of [
    ['gateway.checkpoint_regressed', 'checkpoint.went_back', 'checkpoint.seen_going_back'],
    ['gateway.instance_replaced', 'chain_fork', 'chain.parted'],
    ['gateway.instance_replaced', 'chain_lost', 'chain.parted'],
  ] as const) {
    test(`what a gateway recorded, signed or not: ${type} of ${reason}`, async () => {
      const event = proof.gatewayEvent(2, { event_type: type, reason_code: reason, verdict: 'error' })
      await proof.ship(2, [JSON.stringify(event)])
      expect(await proof.findings()).toEqual([`${what} 01900002 4–4`])
    })
  }
})

describe('verification finds invalid values', () => {
  const texts: [string, string][] = [
    ['a NUL behind it', '%s || char(0)'],
    ['a NUL and more behind it', "%s || char(0) || 'x'"],
    ['bytes that are no UTF-8', "cast(cast(%s as blob) || x'ff' as text)"],
  ]
  test.each(texts)('%s, in a checkpoint', async (_name, change) => {
    await proof.run(`update checkpoints set body = ${change.replace('%s', 'body')} where number = 1`)
    expect(await proof.findings()).toEqual(['checkpoint.altered 1–1'])
  })
})
