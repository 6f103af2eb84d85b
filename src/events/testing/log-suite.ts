/**
 * What every adapter of the event log must do: whatever is appended, merged, moved, removed and crashes, readers get
 * what a plain list gives (log-model.ts).
 */
import { expect } from 'bun:test'
import fc from 'fast-check'
import type { Database } from '../../store/open.ts'
import { eventsOf, logOf } from '../engine/log-of.ts'
import { announcedHead } from '../ingest/ingest.ts'
import type { FoundEvent, LogQuery } from '../log/log-query.ts'
import { comparePlaces } from '../log/read-log.ts'
import { readLogHead } from '../log/segment-rows.ts'
import { type Asked, asked, LogModel, queryOf, type Shape, shape } from './log-model.ts'

/** What an adapter does by itself, at any time. */
export interface Adapter {
  /** Empties what it keeps besides the ledger. */
  empty(): Promise<void>
  /** Moves records out of the ledger; where `crash` is a number, its transaction in the ledger fails there. */
  move(crash: number | null): Promise<void>
  /** Whether the oldest segment of the ledger is the oldest of the log, so that retention may remove it. */
  canRemoveOldest(): Promise<boolean>
}

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
  | { move: true; crash: number | null }
  | Ask
  | { positions: number }
  | { chain: number; after: number; upTo: number }

const crash = fc.option(fc.nat(12), { nil: null, freq: 6 })
const crashOfMove = fc.option(fc.nat(12), { nil: null, freq: 2 })
const appendOf = (least: number, most: number) =>
  fc.record({ chain: fc.nat(2), records: fc.array(shape, { minLength: least, maxLength: most }) })
const step: fc.Arbitrary<Step> = fc.oneof(
  { arbitrary: fc.record({ append: appendOf(1, 8), crash }), weight: 12 },
  { arbitrary: fc.record({ append: appendOf(13, 60), crash }), weight: 1 },
  { arbitrary: fc.record({ writers: appendOf(1, 3) }), weight: 1 },
  { arbitrary: fc.record({ merge: fc.integer({ min: 1, max: 4 }), crash }), weight: 6 },
  { arbitrary: fc.record({ retain: fc.constant(true as const) }), weight: 2 },
  { arbitrary: fc.record({ move: fc.constant(true as const), crash: crashOfMove }), weight: 6 },
  {
    arbitrary: fc.record({ query: asked, page: fc.integer({ min: 1, max: 40 }), mergeBetween: fc.boolean() }),
    weight: 5,
  },
  { arbitrary: fc.record({ positions: fc.nat(60) }), weight: 1 },
  { arbitrary: fc.record({ chain: fc.nat(2), after: fc.nat(20), upTo: fc.nat(40) }), weight: 2 },
)

async function readPages(
  model: LogModel,
  query: LogQuery,
  page: number,
  between: () => Promise<void>,
): Promise<FoundEvent[]> {
  const all: FoundEvent[] = []
  let after = query.after
  for (;;) {
    const found: FoundEvent[] = []
    for await (const each of eventsOf(model.ledger, { ...query, after })) {
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
async function readByParts(model: LogModel, query: LogQuery): Promise<FoundEvent[]> {
  const all: FoundEvent[] = []
  let after = query.after
  for (;;) {
    const { value } = await logOf(model.ledger)
      .parts({ ...query, after })
      .next()
    if (value === undefined) return all
    if (after !== null) expect(comparePlaces(after, value.reached, query.order)).toBeLessThan(0)
    all.push(...value.events)
    after = value.reached
  }
}

async function compareQuery(model: LogModel, adapter: Adapter, { query: ask, page, mergeBetween }: Ask): Promise<void> {
  const query = queryOf(ask, (await readLogHead(model.ledger)).next, null)
  const expected = model.find(query)
  const found = await readPages(model, query, page, mergeBetween ? () => meddle(model, adapter) : async () => undefined)
  expect(idsOf(found)).toEqual(idsOf(expected))
  expect(found.map(({ event }) => event)).toEqual(expected.map(({ event }) => event))
  expect(idsOf(await readByParts(model, query))).toEqual(idsOf(expected))
}

async function comparePositions(model: LogModel, adapter: Adapter, from: number): Promise<void> {
  const read = await Array.fromAsync(logOf(model.ledger).records({ from, before: from + 20 }))
  const expected = model.records.filter(({ position }) => position >= from && position < from + 20)
  expect(read.map(({ position, at, text }) => ({ position, at, text }))).toEqual(expected)
  const positions: number[] = []
  for await (const { position, chain, seq, text } of logOf(model.ledger).chained({ from, before: from + 20 })) {
    expect(model.chains.get(chain)?.texts[seq - 1]).toBe(text)
    positions.push(position)
    if (positions.length % 3 === 0) await meddle(model, adapter)
  }
  expect(positions).toEqual(expected.map(({ position }) => position))
}

async function compareChain(model: LogModel, name: string, after: number, upTo: number): Promise<void> {
  const chain = model.chains.get(name)
  if (chain === undefined) return
  const read = await Array.fromAsync(logOf(model.ledger).chains().records(name, { after, upTo, bodies: true }))
  const expected = after < chain.removed ? [] : chain.texts.slice(after, Math.max(after, upTo))
  expect(read.map((record) => Buffer.from(record?.body ?? '').toString())).toEqual(expected)
  expect(read.map((record) => record?.seq)).toEqual(expected.map((_, index) => after + 1 + index))
  const isKept = upTo >= chain.removed && upTo <= chain.head.seq && chain.head.seq > chain.removed
  if (isKept && upTo > 0)
    expect(await logOf(model.ledger).chains().digestAt(name, upTo)).toBe(chain.digests[upTo] ?? null)
  const { earlier, ...head } = await announcedHead(model.ledger, name)
  expect(head).toEqual(chain.head)
  for (const { seq, digest } of earlier) expect(digest).toBe(chain.digests[seq] ?? '')
}

async function take(model: LogModel, adapter: Adapter, each: Step): Promise<void> {
  if ('append' in each) await model.append(`chain-${each.append.chain}`, each.append.records, each.crash)
  else if ('writers' in each) {
    expect(await model.appendTwice(`chain-${each.writers.chain}`, each.writers.records)).toBe(true)
  } else if ('merge' in each) {
    for (let times = 0; times < each.merge; times += 1) await model.merge(each.crash)
  } else if ('retain' in each) {
    if (await adapter.canRemoveOldest()) await model.removeOldest()
  } else if ('move' in each) await adapter.move(each.crash)
  else if ('query' in each) await compareQuery(model, adapter, each)
  else if ('positions' in each) await comparePositions(model, adapter, each.positions)
  else await compareChain(model, `chain-${each.chain}`, each.after, each.upTo)
}

/** What happens while a reader is between two events. */
async function meddle(model: LogModel, adapter: Adapter): Promise<void> {
  await model.merge()
  await adapter.move(null)
}

/** Fails with the shortest steps after which a reader gets something else. */
export async function holdsForAnySteps(ledger: Database, adapter: Adapter, numRuns: number): Promise<void> {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 24 }), async (steps) => {
      const model = new LogModel(ledger)
      await model.begin()
      await adapter.empty()
      for (const each of steps) await take(model, adapter, each)
      expect((await readLogHead(ledger)).next).toBe(model.next)
    }),
    { numRuns },
  )
}
