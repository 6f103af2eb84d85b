/** What verification says of a log that nobody altered, also while it changes. Alterations: the other tests here. */
import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { TestProof } from '../testing/proof.ts'

const day = 86_400_000
let proof: TestProof
beforeEach(async () => {
  proof = await TestProof.start()
})
afterEach(() => proof.store.remove())

describe('verification of an untouched ledger', () => {
  beforeEach(async () => {
    await proof.recordTwoCheckpoints()
  })

  for (const merged of [false, true]) {
    test(`succeeds and reports what no checkpoint covers yet${merged ? ', of merged segments' : ''}`, async () => {
      await proof.shipEvents(2, 2)
      if (merged) expect(await proof.merge(4, 3)).toBe(2)
      const lines = await proof.verify()
      expect(lines.at(-1)).toMatchObject({
        ...{ kind: 'summary', findings: 0, chains: 3, records: 18, events: 18, not_covered: 2 },
        ...{ checkpoint: { number: 2, key_id: proof.key.id }, keys: [proof.key.id] },
      })
      expect(lines.find((line) => line.kind === 'chain' && line.chain === proof.worker(2))).toMatchObject({
        ...{ records: 5, from: 0, to: 5, covered_to: 3 },
      })
    })

    test(`starts at the checkpoint before a given time${merged ? ', in the middle of a segment' : ''}`, async () => {
      if (merged) expect(await proof.merge(4, 5)).toBe(1)
      const lines = await proof.verify({ since: proof.now - 30_000 })
      expect(lines.at(-1)).toMatchObject({ findings: 0, records: 5 })
    })
  }

  test('counts the attempts and decisions of an exchange as events of one record', async () => {
    const own = { event_id: Bun.randomUUIDv7(), verdict: 'allow' as const, reason_code: 'ok' }
    const outcome = proof.gatewayEvent(2)
    await proof.ship(2, [
      JSON.stringify({ ...outcome, attempts: [own], decisions: [{ ...own, event_id: Bun.randomUUIDv7() }] }),
    ])
    expect((await proof.verify()).at(-1)).toMatchObject({ findings: 0, records: 17, events: 19 })
  })
})

test('succeeds before the first checkpoint', async () => {
  await proof.shipEvents(1, 450)
  expect((await proof.verify()).at(-1)).toMatchObject({ findings: 0, checkpoint: null, records: 450, not_covered: 450 })
})

test('succeeds on an empty ledger', async () => {
  expect((await proof.verify()).at(-1)).toMatchObject({ findings: 0, chains: 0, records: 0 })
})

test('succeeds with values that hold a NUL, half a surrogate pair or another script', async () => {
  for (const model of ['a\0b', '\ud800', 'größe "1" \\ 模型', ' ']) {
    await proof.shipEvents(1, 1)
    await proof.ship(1, [JSON.stringify(proof.gatewayEvent(1, { details: { model } }))])
  }
  expect(await proof.findings()).toEqual([])
  await proof.merge(4, 2)
  expect(await proof.findings()).toEqual([])
})

test('reports no fault while records arrive and segments are merged', async () => {
  for (let round = 0; round < 60; round += 1) await proof.shipEvents(1 + (round % 3), 3)
  await proof.sign()
  const ledger = proof
  let verifying = true
  const disturb = async () => {
    for (let round = 0; verifying; round += 1) {
      await ledger.shipEvents(1 + (round % 3), 2)
      await ledger.merge(8, 2 + (round % 4))
      await Bun.sleep(0)
    }
  }
  const found: string[] = []
  const verify = async () => {
    for (let round = 0; round < 10; round += 1) found.push(...(await ledger.findings()))
    verifying = false
  }
  await Promise.all([disturb(), verify()])
  expect(found).toEqual([])
  expect((await ledger.verify()).at(-1)).toMatchObject({ findings: 0 })
})

test('reports no fault while retention removes what is being read', async () => {
  for (let round = 0; round < 40; round += 1) await proof.shipEvents(1 + (round % 3), 5)
  await proof.sign()
  proof.now += 91 * day
  await proof.shipEvents(1, 5)
  await proof.sign()
  const [found, { removed }] = await Promise.all([proof.findings(), proof.retain()])
  expect(removed).toBe(200)
  expect(found).toEqual([])
  expect((await proof.verify()).at(-1)).toMatchObject({ findings: 0, records: 5 })
})

test('says how far it is, at most once a second', async () => {
  for (let round = 0; round < 5; round += 1) await proof.shipEvents(1, 2)
  let time = 0
  const lines = await proof.verify({ monotonic: () => (time += 400) })
  expect(lines.filter(({ kind }) => kind === 'progress')).toEqual([{ kind: 'progress', done: 6, of: 10 }])
})
