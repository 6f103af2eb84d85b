import { afterEach, beforeEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import { silentLog } from '../../lib/log/log.ts'
import { retentionDays, TestProof } from '../testing/proof.ts'
import { removeOldEvents } from './retention.ts'

const day = 86_400_000
let proof: TestProof

beforeEach(async () => {
  proof = await TestProof.start()
})
afterEach(() => proof.store.remove())

const remove = (change: Partial<Parameters<typeof removeOldEvents>[0]> = {}) =>
  removeOldEvents({
    ...{ ledger: proof.store.ledger, key: proof.key, clock: proof.clock, log: silentLog },
    settings: { event_retention_days: retentionDays },
    ...change,
  })
const left = () =>
  proof.store.ledger.read('select chain, min(seq) as seq, count(*) as count from events group by chain')

test('removes whole prefixes of all chains, for all teams, and keeps recent events', async () => {
  await proof.shipEvents(1, 250)
  await proof.shipEvents(2, 3)
  await proof.record(4)
  proof.now += 40 * day
  await proof.shipEvents(1, 5)
  proof.now += (retentionDays - 39) * day
  expect(await remove()).toEqual({ removed: 257, finished: true })
  expect(await left()).toEqual([{ chain: proof.worker(1), seq: 251, count: 5 }])
  expect(await remove()).toEqual({ removed: 0, finished: true })
})

test('a removal that takes too long goes on in the next round', async () => {
  await proof.shipEvents(1, 300)
  proof.now += (retentionDays + 1) * day
  let ticks = 0
  const clock = { now: () => proof.now, monotonic: () => ticks++ * 10 }
  expect(await remove({ clock, roundMs: 15 })).toMatchObject({ finished: false })
  expect(await remove()).toMatchObject({ finished: true })
  expect(await left()).toEqual([])
})

test('two control planes that remove events at once leave one floor that verifies', async () => {
  await proof.shipEvents(1, 450)
  await proof.sign()
  proof.now += (retentionDays + 1) * day
  await Promise.all([remove(), remove()])
  expect(await left()).toEqual([])
  expect((await proof.verify()).at(-1)).toMatchObject({ findings: 0, events: 0 })
})

test('any order of writes, signatures and removals verifies', async () => {
  const step = fc.oneof(
    fc.record({ what: fc.constant('ship'), count: fc.integer({ min: 1, max: 30 }) }),
    fc.record({ what: fc.constant('record'), count: fc.integer({ min: 1, max: 5 }) }),
    fc.record({ what: fc.constantFrom('sign', 'remove', 'wait'), count: fc.integer({ min: 1, max: 60 }) }),
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
        else if (what === 'wait') run.now += count * day
        else {
          // As a control plane does before it removes, and before anybody can ask it.
          await run.sign()
          await removeOldEvents({
            ledger: run.store.ledger,
            key: run.key,
            clock: run.clock,
            log: silentLog,
            settings: { event_retention_days: retentionDays },
          })
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
