import { afterEach, beforeEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import { alterHeader, alterLine } from '../testing/alter-log.ts'
import { retentionDays, TestProof } from '../testing/proof.ts'
import { floorBody, floorKind, raiseFloor } from './retention-floor.ts'

const day = 86_400_000
let proof: TestProof

beforeEach(async () => {
  proof = await TestProof.start()
})
afterEach(() => proof.store.remove())

/** The chains that are left, each with the number before its first record and how many records it has. */
async function left(): Promise<{ chain: string; after: number; records: number }[]> {
  const chains = (await proof.verify()).filter((line) => line.kind === 'chain')
  return chains
    .filter(({ records }) => records > 0)
    .map(({ chain, from, records }) => ({ chain, after: from, records }))
}

const rowsOf = async (table: string): Promise<number> => {
  const [row] = await proof.store.ledger.read<{ rows: number }>(`select count(*) as rows from ${table}`)
  return row?.rows ?? -1
}

test('removes the oldest segments with all their rows, for all teams, and keeps recent events', async () => {
  await proof.shipEvents(1, 250)
  await proof.shipEvents(2, 3)
  await proof.record(4)
  await proof.sign()
  proof.now += 40 * day
  await proof.shipEvents(1, 5)
  proof.now += (retentionDays - 39) * day
  expect(await proof.retain()).toEqual({ removed: 257, finished: true })
  expect(await left()).toEqual([{ chain: proof.worker(1), after: 250, records: 5 }])
  expect(await rowsOf('event_segments')).toBe(1)
  expect(await rowsOf('event_blocks')).toBe(1)
  expect(await rowsOf('segment_chains')).toBe(1)
  expect(await proof.findings()).toEqual([])
  expect(await proof.retain()).toEqual({ removed: 0, finished: true })
})

test('raises the floors of all chains in a merged segment, and says up to when events were removed', async () => {
  await proof.shipEvents(1, 4)
  await proof.shipEvents(2, 3)
  await proof.record(2)
  const received = proof.now
  expect(await proof.merge(4, 3)).toBe(1)
  await proof.sign()
  proof.now += (retentionDays + 1) * day
  expect(await proof.retain()).toEqual({ removed: 9, finished: true })
  const floors = await proof.store.ledger.read<{ chain: string; seq: number }>(
    'select chain, seq from chain_floors order by chain',
  )
  expect(floors).toEqual([
    { chain: proof.worker(1), seq: 4 },
    { chain: proof.worker(2), seq: 3 },
    { chain: 'control-plane', seq: 2 },
  ])
  expect(await proof.store.ledger.read('select next_position, removed_until from event_log')).toEqual([
    { next_position: 10, removed_until: received },
  ])
  expect((await proof.verify()).at(-1)).toMatchObject({ findings: 0, records: 0 })
})

test('keeps a segment until its newest record is old, and merges none of two days', async () => {
  await proof.shipEvents(1, 2)
  proof.now += day / 2
  await proof.shipEvents(1, 2)
  proof.now += day / 2
  await proof.shipEvents(1, 2)
  await proof.shipEvents(1, 2)
  await proof.merge(100, 2)
  expect(await rowsOf('event_segments')).toBe(2)
  proof.now += (retentionDays - 1) * day + 1
  expect(await proof.retain()).toEqual({ removed: 0, finished: true })
  proof.now += day / 2
  expect(await proof.retain()).toEqual({ removed: 4, finished: true })
  expect(await left()).toEqual([{ chain: proof.worker(1), after: 4, records: 4 }])
})

test('counts the attempts of an exchange as events', async () => {
  const own = { event_id: Bun.randomUUIDv7(), verdict: 'allow' as const, reason_code: 'ok' }
  await proof.ship(1, [JSON.stringify({ ...proof.gatewayEvent(1), attempts: [own] })])
  proof.now += (retentionDays + 1) * day
  expect(await proof.retain()).toEqual({ removed: 2, finished: true })
})

test('a removal that takes too long goes on in the next round', async () => {
  for (let round = 0; round < 3; round += 1) await proof.shipEvents(1, 100)
  proof.now += (retentionDays + 1) * day
  let ticks = 0
  const clock = { now: () => proof.now, monotonic: () => ticks++ * 10 }
  expect(await proof.retain({ clock, roundMs: 15 })).toEqual({ removed: 100, finished: false })
  expect(await proof.retain()).toEqual({ removed: 200, finished: true })
  expect(await left()).toEqual([])
})

test('two control planes that remove events at once leave floors that verify', async () => {
  for (let round = 0; round < 6; round += 1) await proof.shipEvents(1 + (round % 2), 75)
  await proof.sign()
  proof.now += (retentionDays + 1) * day
  const removed = await Promise.all([proof.retain(), proof.retain()])
  expect(removed.reduce((sum, each) => sum + each.removed, 0)).toBe(450)
  expect((await proof.verify()).at(-1)).toMatchObject({ findings: 0, records: 0 })
})

test('segments are merged while they are removed', async () => {
  for (let round = 0; round < 40; round += 1) await proof.shipEvents(1 + (round % 2), 5)
  await proof.sign()
  proof.now += (retentionDays + 1) * day
  const [{ removed }] = await Promise.all([proof.retain(), proof.merge(8, 2)])
  expect(removed).toBe(200)
  expect((await proof.verify()).at(-1)).toMatchObject({ findings: 0, records: 0 })
})

test('a failure in the middle of a removal leaves everything as it was', async () => {
  await proof.shipEvents(1, 3)
  await proof.shipEvents(2, 3)
  await proof.sign()
  proof.now += (retentionDays + 1) * day
  await proof.run("create trigger stop before delete on event_segments begin select raise(abort, 'stopped'); end")
  await expect(proof.retain()).rejects.toThrow('stopped')
  await proof.run('drop trigger stop')
  expect(await rowsOf('chain_floors')).toBe(0)
  expect((await proof.verify()).at(-1)).toMatchObject({ findings: 0, records: 6 })
  expect(await proof.retain()).toEqual({ removed: 6, finished: true })
})

test('removes neither what does not verify nor what is behind it', async () => {
  const { ledger } = proof.store
  await proof.shipEvents(1, 3)
  await proof.shipEvents(2, 3)
  await proof.shipEvents(1, 3)
  await proof.sign()
  proof.now += (retentionDays + 1) * day
  await alterLine(ledger, 5, (line) => ({ ...line, text: `${line.text} ` }))
  expect(await proof.retain()).toEqual({ removed: 3, finished: true })
  expect(await rowsOf('event_segments')).toBe(2)
  await alterLine(ledger, 5, (line) => ({ ...line, text: line.text.trim() }))
  await alterHeader(ledger, 4, ({ runs, ...rest }) => ({ ...rest, runs: runs.map((run) => ({ ...run, first: 2 })) }))
  expect(await proof.retain()).toEqual({ removed: 0, finished: true })
  await alterHeader(ledger, 4, ({ runs, ...rest }) => ({ ...rest, runs: runs.map((run) => ({ ...run, first: 1 })) }))
  await proof.run("update event_blocks set body = x'00' where first_position = 4")
  expect(await proof.retain()).toEqual({ removed: 0, finished: true })
  await proof.run("update event_segments set header = x'00' where first_position = 4")
  expect(await proof.retain()).toEqual({ removed: 0, finished: true })
  expect(await rowsOf('event_segments')).toBe(2)
})

test('removes nothing behind a floor that differs from what was signed', async () => {
  await proof.shipEvents(1, 3)
  const floor = { chain: proof.worker(1), seq: 1, until: 0, digest: '00'.repeat(32), arrivals: '00'.repeat(32) }
  const signed = proof.key.sign(floorKind, floorBody(floor, proof.now))
  await proof.store.ledger.write(raiseFloor(floor.chain, 0, 1, { ...signed, signature: 'AAAA' }))
  proof.now += (retentionDays + 1) * day
  expect(await proof.retain()).toEqual({ removed: 0, finished: true })
  expect(await rowsOf('event_segments')).toBe(1)
})

test('any order of writes, merges, signatures and removals verifies', async () => {
  const step = fc.oneof(
    fc.record({ what: fc.constant('ship'), count: fc.integer({ min: 1, max: 30 }) }),
    fc.record({ what: fc.constant('record'), count: fc.integer({ min: 1, max: 5 }) }),
    fc.record({ what: fc.constantFrom('sign', 'remove', 'wait', 'merge'), count: fc.integer({ min: 1, max: 60 }) }),
  )
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 20 }), async (steps) => {
      const run = await TestProof.start()
      // A control plane that runs has signed within a minute of the first event.
      await run.shipEvents(1, 1)
      await run.sign()
      for (const { what, count } of steps) {
        if (what === 'ship') await run.shipEvents(1 + (count % 2), count)
        else if (what === 'record') await run.record(count)
        else if (what === 'sign') await run.sign()
        else if (what === 'merge') await run.merge(1 + (count % 10), 2 + (count % 3))
        else if (what === 'wait') run.now += count * day
        else {
          // As a control plane does before it removes, and before anybody can ask it.
          await run.sign()
          await run.retain()
        }
      }
      await run.sign()
      expect(await run.findings()).toEqual([])
      expect(await run.findings({ since: run.now - 20 * day })).toEqual([])
      run.store.remove()
    }),
    { numRuns: 25 },
  )
}, 60_000)
