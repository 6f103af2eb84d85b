import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import { testEvent } from '../testing/ledger.ts'
import { recordedTexts } from '../testing/recorded.ts'
import { appendStatements, readChainHead } from './append.ts'
import { ChainWalk } from './chain.ts'
import { mergeSegments } from './merge-segments.ts'

let store: TemporaryStore
beforeAll(async () => {
  store = await temporaryStore()
})
afterAll(() => store.remove())

const dayMs = 86_400_000

async function append(receivedAt: number): Promise<string> {
  const record = testEvent()
  const text = JSON.stringify(record)
  const head = await readChainHead(store.ledger, 'chain')
  const walk = new ChainWalk(head.digest)
  walk.step(head.seq + 1, text)
  const records = [{ bytes: Buffer.from(text), at: receivedAt, record }]
  await store.ledger.write(appendStatements({ chain: 'chain', head, records, digest: walk.digest, receivedAt }))
  return text
}

test('merges what is left of a day that is over, and never two days', async () => {
  const texts: string[] = []
  for (const [day, count] of [5, 20, 1, 3].entries()) {
    for (let made = 0; made < count; made += 1) texts.push(await append(day * dayMs + made))
  }
  await mergeSegments(store.ledger)
  const segments = await store.ledger.read<{ records: number; received_at: number }>(
    'select records, received_at from event_segments order by first_position',
  )
  expect(segments.map(({ records, received_at }) => [Math.floor(received_at / dayMs), records])).toEqual([
    [0, 5],
    [1, 20],
    [2, 1],
    [3, 1],
    [3, 1],
    [3, 1],
  ])
  expect(await recordedTexts(store.ledger)).toEqual(texts)
})
