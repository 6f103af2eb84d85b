/** How often each property is tried: `LOG_RUNS=100000 bun test src/events/log/segment-log.test.ts` tries hard. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import { eventsOf } from '../engine/log-of.ts'
import { announcedHead } from '../ingest/ingest.ts'
import { type Asked, asked, LogModel, queryOf, type Shape, shape } from '../testing/log-model.ts'
import type { FoundEvent, LogQuery } from './log-query.ts'
import { comparePlaces, readLogParts } from './read-log.ts'
import { digestAt, readChain, readRecords } from './read-records.ts'
import { readLogHead } from './segment-rows.ts'

let store: TemporaryStore
beforeAll(async () => {
  store = await temporaryStore()
})
afterAll(() => store.remove())

const idsOf = (found: readonly FoundEvent[]): string[] => found.map(({ event }) => event.event_id)

interface Append {
  chain: number
  records: Shape[]
}
interface Ask {
  query: Asked
  page: number
  mergeBetween: boolean
}
type Step =
  | { append: Append; crash: number | null }
  | { writers: Append }
  | { merge: number; crash: number | null }
  | { retain: true }
  | Ask
  | { positions: number }
  | { chain: number; after: number; upTo: number }

const crash = fc.option(fc.nat(12), { nil: null, freq: 6 })
const appendOf = (least: number, most: number) =>
  fc.record({ chain: fc.nat(2), records: fc.array(shape, { minLength: least, maxLength: most }) })
const step: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: fc.record({ append: appendOf(1, 8), crash }), weight: 12 },
  { arbitrary: fc.record({ append: appendOf(13, 60), crash }), weight: 1 },
  { arbitrary: fc.record({ writers: appendOf(1, 3) }), weight: 1 },
  { arbitrary: fc.record({ merge: fc.integer({ min: 1, max: 4 }), crash }), weight: 6 },
  { arbitrary: fc.record({ retain: fc.constant(true as const) }), weight: 2 },
  {
    arbitrary: fc.record({ query: asked, page: fc.integer({ min: 1, max: 40 }), mergeBetween: fc.boolean() }),
    weight: 5,
  },
  { arbitrary: fc.record({ positions: fc.nat(60) }), weight: 1 },
  { arbitrary: fc.record({ chain: fc.nat(2), after: fc.nat(20), upTo: fc.nat(40) }), weight: 2 },
)

async function readPages(query: LogQuery, page: number, between: () => Promise<void>): Promise<FoundEvent[]> {
  const all: FoundEvent[] = []
  let after = query.after
  for (;;) {
    const found: FoundEvent[] = []
    for await (const each of eventsOf(store.ledger, { ...query, after })) {
      found.push(each)
      if (found.length === page) break
      if (found.length === 3) await between()
    }
    all.push(...found)
    after = found.at(-1) ?? null
    if (found.length < page) return all
  }
}

/** Begins anew behind the place that each part reached. */
async function readByParts(query: LogQuery): Promise<FoundEvent[]> {
  const all: FoundEvent[] = []
  let after = query.after
  for (;;) {
    const { value } = await readLogParts(store.ledger, { ...query, after }).next()
    if (value === undefined) return all
    if (after !== null) expect(comparePlaces(after, value.reached, query.order)).toBeLessThan(0)
    all.push(...value.events)
    after = value.reached
  }
}

async function compareQuery(model: LogModel, { query: ask, page, mergeBetween }: Ask): Promise<void> {
  const query = queryOf(ask, (await readLogHead(store.ledger)).next, null)
  const expected = model.find(query)
  const found = await readPages(query, page, mergeBetween ? () => model.merge() : async () => undefined)
  expect(idsOf(found)).toEqual(idsOf(expected))
  expect(found.map(({ event }) => event)).toEqual(expected.map(({ event }) => event))
  expect(idsOf(await readByParts(query))).toEqual(idsOf(expected))
}

async function comparePositions(model: LogModel, from: number): Promise<void> {
  const read = await Array.fromAsync(readRecords(store.ledger, { from, before: from + 20 }))
  const expected = model.records.filter(({ position }) => position >= from && position < from + 20)
  expect(read.map(({ position, at, text }) => ({ position, at, text }))).toEqual(expected)
}

async function compareChain(model: LogModel, name: string, after: number, upTo: number): Promise<void> {
  const chain = model.chains.get(name)
  if (chain === undefined) return
  const read = await Array.fromAsync(readChain(store.ledger, name, { after, upTo, bodies: true }))
  const expected = after < chain.removed ? [] : chain.texts.slice(after, Math.max(after, upTo))
  expect(read.map((record) => Buffer.from(record?.body ?? '').toString())).toEqual(expected)
  expect(read.map((record) => record?.seq)).toEqual(expected.map((_, index) => after + 1 + index))
  const isKept = upTo >= chain.removed && upTo <= chain.head.seq && chain.head.seq > chain.removed
  if (isKept && upTo > 0) expect(await digestAt(store.ledger, name, upTo)).toBe(chain.digests[upTo] ?? null)
  const { earlier, ...head } = await announcedHead(store.ledger, name)
  expect(head).toEqual(chain.head)
  for (const { seq, digest } of earlier) expect(digest).toBe(chain.digests[seq] ?? '')
}

async function take(model: LogModel, each: Step): Promise<void> {
  if ('append' in each) await model.append(`chain-${each.append.chain}`, each.append.records, each.crash)
  else if ('writers' in each) {
    expect(await model.appendTwice(`chain-${each.writers.chain}`, each.writers.records)).toBe(true)
  } else if ('merge' in each) {
    for (let times = 0; times < each.merge; times += 1) await model.merge(each.crash)
  } else if ('retain' in each) await model.removeOldest()
  else if ('query' in each) await compareQuery(model, each)
  else if ('positions' in each) await comparePositions(model, each.positions)
  else await compareChain(model, `chain-${each.chain}`, each.after, each.upTo)
}

test('whatever is appended, merged, removed and crashes, readers get what a plain list gives', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 24 }), async (steps) => {
      const model = new LogModel(store.ledger)
      await model.begin()
      for (const each of steps) await take(model, each)
      expect((await readLogHead(store.ledger)).next).toBe(model.next)
    }),
    { numRuns: Number(process.env.LOG_RUNS ?? 1_500) },
  )
}, 86_400_000)
