import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import { Failure } from '../../failure.ts'
import type { Database } from '../../store/open.ts'
import { type ExportPiece, exportAnswer, exportText, lastPosition } from '../export/export.ts'
import { raiseFloor } from '../retention/retention-floor.ts'
import { TestProof } from '../testing/proof.ts'
import type { Visibility } from '../visibility.ts'

let proof: TestProof
beforeAll(async () => {
  proof = await TestProof.start()
})
afterAll(() => proof.store.remove())
beforeEach(() => empty())

const empty = async () => {
  for (const table of ['events', 'chains', 'chain_floors']) await proof.run(`delete from ${table}`)
}

const every: Visibility = { teams: 'every', ownTokens: [] }
const chains = ['control-plane', proofWorker(1), proofWorker(2)] as const
function proofWorker(gateway: number): string {
  return `0190000${gateway}-0000-7000-8000-000000000001/01900000-0000-7000-8000-000000000002/0`
}

const ship = (chain: number, count: number) => (chain === 0 ? proof.record(count) : proof.shipEvents(chain, count))

/** What retention does in one transaction, of any length. */
async function removeFirst(chain: string, count: number): Promise<void> {
  const { ledger } = proof.store
  const [{ floor = 0, head = 0 } = {}] = await ledger.read<{ floor: number; head: number }>(
    `select coalesce((select seq from chain_floors where chain = ?1), 0) as floor,
      coalesce((select max(seq) from events where chain = ?1), 0) as head`,
    [chain],
  )
  const seq = Math.min(floor + count, head)
  if (seq <= floor) return
  await ledger.write([
    ...raiseFloor(chain, floor, seq, { key_id: '', signature: '', body: '' }),
    { sql: 'delete from events where chain = ? and seq <= ?', args: [chain, seq] },
  ])
}

const idsThere = async ({ teams }: Visibility = every): Promise<string[]> =>
  (
    await proof.store.ledger.read<{ event_id: string }>(
      `select event_id from events ${teams === 'every' ? '' : "where team_id = 'team'"} order by position`,
    )
  ).map(({ event_id }) => event_id)

const window = async (visibility: Visibility = every, pageSize = 3) => ({
  ...{ since: 0, until: null, visibility, pageSize, signal: new AbortController().signal },
  lastPosition: await lastPosition(proof.store.ledger),
})

const idsOf = (pieces: readonly ExportPiece[]): string[] =>
  JSON.parse(pieces.map(({ text }) => text).join('')).events.map(({ event_id }: { event_id: string }) => event_id)

const overtaken = (error: unknown) => error instanceof Failure && error.code === 'export_overtaken'

test('an export has everything that was there, or fails, whatever retention removes between two reads', async () => {
  const slice = fc.record({ chain: fc.nat(2), count: fc.nat(5) })
  let [whole, failed] = [0, 0]
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ chain: fc.nat(2), count: fc.integer({ min: 1, max: 9 }) }), { minLength: 2, maxLength: 8 }),
      fc.array(fc.option(slice, { freq: 2 }), { minLength: 5, maxLength: 30 }),
      fc.constantFrom<Visibility>(every, { teams: ['team'], ownTokens: [] }),
      async (written, slices, visibility) => {
        await empty()
        for (const { chain, count } of written) await ship(chain, count)
        const pending = [...slices]
        let there: string[] = []
        let begun = false
        const ledger: Database = {
          ...proof.store.ledger,
          async read(sql, args) {
            // From where it begins on: a small ledger would be gone by then.
            if (sql.includes('events.position < ?')) begun = true
            const removed = begun ? pending.shift() : null
            if (removed) await removeFirst(chains[removed.chain] ?? '', removed.count)
            // And where it begins again: what was there then is what it must have.
            if (sql.includes('events.position < ?')) there = await idsThere(visibility)
            return await proof.store.ledger.read(sql, args)
          },
        }
        try {
          const pieces = await Array.fromAsync(exportText(ledger, await window(visibility), 'json'))
          expect(idsOf(pieces)).toEqual(there)
          whole += 1
        } catch (error) {
          if (!overtaken(error)) throw error
          failed += 1
        }
      },
    ),
    { numRuns: 50 },
  )
  // Neither is rare, or this would say nothing.
  expect(whole).toBeGreaterThan(2)
  expect(failed).toBeGreaterThan(2)
}, 30_000)

test('events that retention removed behind the reader or before the window are no hole', async () => {
  await ship(1, 6)
  // The chain's next event is far ahead, and another chain ends for good.
  await ship(2, 4)
  await ship(0, 12)
  await ship(1, 3)
  const ids = await idsThere()
  const pieces: ExportPiece[] = []
  for await (const piece of exportText(proof.store.ledger, await window(), 'json')) {
    pieces.push(piece)
    if (pieces.length === 4) {
      await removeFirst(chains[1], 6)
      await removeFirst(chains[2], 4)
    }
  }
  expect(idsOf(pieces)).toEqual(ids)
})

test("follows a long chain to the reader's position", async () => {
  await ship(1, 100)
  const pieces: ExportPiece[] = []
  for await (const piece of exportText(proof.store.ledger, await window(every, 7), 'json')) {
    pieces.push(piece)
    // Just behind the reader, all the way.
    await removeFirst(chains[1], 7)
  }
  expect(idsOf(pieces)).toHaveLength(100)
  expect(await idsThere()).toEqual([])
})

test('a tampered, much too large number does not end an export', async () => {
  await ship(1, 5)
  await proof.run('update events set seq = 9223372036854775807 where seq = 5')
  expect(idsOf(await Array.fromAsync(exportText(proof.store.ledger, await window(), 'json')))).toHaveLength(5)
})

test('starts again with what is left when retention overtakes the reader before its first page', async () => {
  await ship(1, 9)
  let removals = 0
  const ledger: Database = {
    ...proof.store.ledger,
    async read(sql, args) {
      if (sql.includes('as by_body') && removals++ < 2) await removeFirst(chains[1], 2)
      return await proof.store.ledger.read(sql, args)
    },
  }
  const ids = await idsThere()
  expect(idsOf(await Array.fromAsync(exportText(ledger, await window(), 'json')))).toEqual(ids.slice(4))
})

test('breaks an answer off, instead of ending it, when retention overtakes the reader', async () => {
  await ship(1, 3000)
  const answer = await exportAnswer(proof.store.ledger, await window(every, 500), 'json')
  await removeFirst(chains[1], 2800)
  await expect(answer.text()).rejects.toMatchObject({ code: 'export_overtaken' })
})
