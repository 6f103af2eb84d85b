import { expect, test } from 'bun:test'
import { testEvent } from '../testing/ledger.ts'
import { chainStart } from './chain.ts'
import { buildSegment, type NewRecord } from './segment.ts'

const place = { chain: 'chain', first: 1, digestBefore: chainStart('chain'), digest: '', receivedAt: 1000 }
const records = Array.from({ length: 4 }, (_, number) => testEvent({ request_id: `request-${number}` }))
const texts = records.map((record) => JSON.stringify(record))
const textOf = (some: readonly NewRecord[]): string =>
  buildSegment(some, place)
    .blocks.map(({ text }) => text)
    .join('')

/** The records as stretches of one text, in which this stands between them. */
function together(between: string): NewRecord[] {
  const whole = Buffer.from(texts.map((text) => `${text}${between}`).join(''))
  return records.map((record, index) => {
    const from = whole.indexOf(texts[index] ?? '')
    return { bytes: whole.subarray(from, from + (texts[index] ?? '').length), at: 1000, record }
  })
}

test.each([
  ['one after another, as in a batch', together('\n'), [0, 1, 2, 3]],
  ['in a batch of which some are left out', together('\n'), [0, 2, 3]],
  ['in another order than in memory', together('\n'), [1, 0]],
  ['behind other bytes than line feeds', together(' '), [0, 1, 2, 3]],
  [
    'apart',
    texts.map((text, index) => ({ bytes: Buffer.from(text), at: 1000, record: records[index] ?? null })),
    [0, 1],
  ],
])('a block has each record with a line feed where they stand %s', (_, all, chosen) => {
  const some = chosen.flatMap((index) => all[index] ?? [])
  expect(textOf(some)).toBe(chosen.map((index) => `${texts[index]}\n`).join(''))
})
