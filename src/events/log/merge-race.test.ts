/** What a reader sees where segments are merged or removed between two of its reads, and where a facet has very many values. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { Database } from '../../store/open.ts'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import { eventsOf } from '../engine/log-of.ts'
import { testEvent } from '../testing/ledger.ts'
import { dropSegments } from '../testing/recorded.ts'
import { appendStatements, headAfter, readChainHead } from './append.ts'
import type { LogQuery } from './log-query.ts'
import { mergeSegments } from './merge-segments.ts'
import { decodeHeader } from './segment-codec.ts'
import { readSegments } from './segment-rows.ts'

let store: TemporaryStore
beforeEach(async () => {
  store = await temporaryStore()
})
afterEach(() => store.remove())

async function append(details: readonly Record<string, unknown>[]): Promise<void> {
  const head = await readChainHead(store.ledger, 'chain')
  const records = details.map((each, index) => {
    const record = testEvent({ request_id: `request-${head.seq + index}`, details: each })
    return { record, bytes: Buffer.from(JSON.stringify(record)), at: 1000 + head.seq + index }
  })
  const { digest } = headAfter(head, records)
  await store.ledger.write(appendStatements({ chain: 'chain', head, records, digest, receivedAt: 5000 }))
}

const everything: LogQuery = {
  ...{ order: 'newest', since: 0, until: 1e6, ceiling: 1e6, after: null, facets: [], ids: [] },
}

/** Does something once, before the bodies of blocks are read. */
const between = (work: () => Promise<void>): Database => {
  let done = false
  return {
    ...store.ledger,
    async read<Row>(sql: string, args: Parameters<Database['read']>[1] = []) {
      if (sql.includes('b.body,') && !done) {
        done = true
        await work()
      }
      return await store.ledger.read<Row>(sql, args)
    },
  }
}

test('finds a request whose segment is merged while it is looked for', async () => {
  for (let count = 0; count < 16; count += 1) await append([{}])
  const query = {
    ...everything,
    ids: ['request-7'],
    matches: (event: { request_id: string | null }) => event.request_id === 'request-7',
  }
  const ledger = between(() => mergeSegments(store.ledger))
  const found = await Array.fromAsync(eventsOf(ledger, query))
  expect(found.map(({ event }) => event.request_id)).toEqual(['request-7'])
})

test('leaves out what retention removes while it is looked for', async () => {
  for (let count = 0; count < 3; count += 1) await append([{}])
  const ledger = between(() => dropSegments(store.ledger, 'first_position = 1'))
  const found = await Array.fromAsync(eventsOf(ledger, everything))
  expect(found.map(({ event }) => event.request_id)).toEqual(['request-2', 'request-1'])
})

test('finds each of very many values of a facet, and writes a header of a bounded size', async () => {
  const model = (index: number) => ({ model: `model-${index}` })
  for (let batch = 0; batch < 16; batch += 1) {
    await append(Array.from({ length: 300 }, (_, index) => model(batch * 300 + index)))
  }
  await mergeSegments(store.ledger)
  const segments = await readSegments(store.ledger, 'order by first_position', [])
  const sizes = segments.map(({ header }) => decodeHeader(header)?.facets.get('model')?.size ?? 0)
  expect(Math.max(...sizes)).toBeLessThanOrEqual(2049)
  for (const index of [0, 1000, 2047, 2048, 3000, 4799]) {
    const query = { ...everything, facets: [{ facet: 'model' as const, values: [`model-${index}`] }] }
    const found = await Array.fromAsync(eventsOf(store.ledger, query))
    expect(found.map(({ event }) => event.details)).toEqual([model(index)])
  }
})
