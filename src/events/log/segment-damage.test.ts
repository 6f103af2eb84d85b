/** How often each property is tried: `LOG_RUNS`. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import fc from 'fast-check'
import type { Statement } from '../../store/statement.ts'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import { eventsOf } from '../engine/log-of.ts'
import { asked, LogModel, queryOf, shape } from '../testing/log-model.ts'
import type { FoundEvent } from './log-query.ts'
import { readChain, readRecords } from './read-records.ts'

let store: TemporaryStore
beforeAll(async () => {
  store = await temporaryStore()
})
afterAll(() => store.remove())

/** What a bit may flip in: the compressed parts of the log. */
const parts = [
  { table: 'event_blocks', column: 'body' },
  { table: 'event_blocks', column: 'places' },
  { table: 'event_segments', column: 'header' },
  { table: 'event_segments', column: 'ids' },
] as const

interface Flip {
  part: (typeof parts)[number]
  row: number
  bit: number
}
const flip: fc.Arbitrary<Flip> = fc.record({
  part: fc.constantFrom(...parts),
  row: fc.nat(1000),
  bit: fc.nat(100_000),
})

/** Flips a bit; returns the positions of the block that this damages, if it is one. */
async function damage({ part: { table, column }, row, bit }: Flip): Promise<{ from: number; before: number } | null> {
  const rows = await store.ledger.read<{ first: number; records: number; bytes: ArrayBuffer }>(
    `select first_position as first, records, ${column} as bytes from ${table} order by first_position`,
  )
  const hit = rows[row % rows.length]
  if (hit === undefined) return null
  const bytes = new Uint8Array(hit.bytes).slice()
  const at = bit % (bytes.length * 8)
  bytes[at >>> 3] = (bytes[at >>> 3] ?? 0) ^ (1 << (at & 7))
  const change: Statement = {
    sql: `update ${table} set ${column} = ? where first_position = ?`,
    args: [bytes, hit.first],
  }
  await store.ledger.write([change])
  return table === 'event_blocks' ? { from: hit.first, before: hit.first + hit.records } : null
}

const appended = fc.array(fc.record({ chain: fc.nat(2), records: fc.array(shape, { minLength: 1, maxLength: 12 }) }), {
  minLength: 1,
  maxLength: 8,
})
const isDamaged = ({ event }: FoundEvent): boolean => event.reason_code === 'event.damaged'

test('whichever bit flips, readers get no wrong event and miss only those of a block that they name', async () => {
  await fc.assert(
    fc.asyncProperty(appended, fc.nat(4), flip, fc.array(asked, { minLength: 1, maxLength: 4 }), async (...given) => {
      const [batches, merges, flipped, queries] = given
      const model = new LogModel(store.ledger)
      await model.begin()
      for (const { chain, records } of batches) await model.append(`chain-${chain}`, records)
      for (let merged = 0; merged < merges; merged += 1) await model.merge()
      const hit = await damage(flipped)
      // A damaged part is left as it is, and what it says goes on to be found.
      await model.merge()
      const isHit = (position: number): boolean => hit !== null && position >= hit.from && position < hit.before
      for (const each of queries) {
        const query = queryOf(each, model.next, null)
        const expected = model.find(query)
        const found = await Array.fromAsync(eventsOf(store.ledger, query))
        const named = found.filter(isDamaged)
        const events = found.filter((one) => !isDamaged(one)).map(({ event }) => event)
        expect(named.length).toBeLessThanOrEqual(1)
        for (const { position } of named) expect(isHit(position)).toBe(true)
        const lost = named.length > 0 ? expected.filter(({ position }) => isHit(position)) : []
        expect(events).toEqual(expected.filter((one) => !lost.includes(one)).map(({ event }) => event))
      }
      const readable = model.records.filter(({ position }) => !isHit(position))
      const read = await Array.fromAsync(readRecords(store.ledger, { from: 1, before: model.next }))
      const found = read
        .filter(({ damaged }) => damaged === undefined)
        .map(({ position, at, text }) => ({ position, at, text }))
      expect(read.every(({ position, damaged }) => damaged === undefined || isHit(position))).toBe(true)
      expect(found.length === model.records.length || found.length < read.length).toBe(true)
      expect([readable, model.records]).toContainEqual(found)
      for (const [name, { texts }] of model.chains) {
        const bodies: string[] = []
        let isNamed = false
        for await (const record of readChain(store.ledger, name, { after: 0, upTo: texts.length, bodies: true })) {
          if (record === null) isNamed = true
          else bodies.push(Buffer.from(record.body).toString())
        }
        expect(bodies).toEqual(texts.slice(0, bodies.length))
        expect(bodies.length === texts.length || isNamed).toBe(true)
      }
    }),
    { numRuns: Number(process.env.LOG_RUNS ?? 250) },
  )
}, 86_400_000)
