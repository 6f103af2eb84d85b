import { afterEach, beforeEach, expect, test } from 'bun:test'
import { eventually } from '../../test/support/eventually.ts'
import { createRecorder } from '../events/change.ts'
import { testEvent } from '../events/testing/ledger.ts'
import { recordedTexts } from '../events/testing/recorded.ts'
import { silentLog } from '../lib/log/log.ts'
import type { Database } from '../store/open.ts'
import { type TemporaryStore, temporaryStore } from '../store/testing/store.ts'
import { mergingRounds } from './housekeeping.ts'

let store: TemporaryStore
beforeEach(async () => {
  store = await temporaryStore()
})
afterEach(() => store.remove())

/** Each in a segment of its own. */
async function record(count: number): Promise<void> {
  const clock = { now: () => 0, monotonic: () => 0 }
  const recorder = createRecorder({ ...store, announce: () => undefined, clock, log: silentLog })
  for (let each = 0; each < count; each += 1) await recorder.append([testEvent({ event_type: 'auth.refused' })])
}
const segments = async () => (await store.ledger.read('select 1 from event_segments')).length

test('merges segments of the event log in rounds, also those that come between two', async () => {
  const merging = mergingRounds(store.ledger, silentLog, undefined, 1)
  await record(32)
  const before = await recordedTexts(store.ledger)
  merging.start()
  await eventually(async () => expect(await segments()).toBe(2))
  await record(16)
  await eventually(async () => expect(await segments()).toBe(3))
  await merging.stop()
  expect((await recordedTexts(store.ledger)).slice(0, 32)).toEqual(before)
  await record(16)
  await Bun.sleep(20)
  expect(await segments()).toBe(19)
})

test('a stop waits for one merge and lets no other begin', async () => {
  await record(48)
  const begun = Promise.withResolvers<void>()
  const slow: Database = {
    ...store.ledger,
    async write(statements, patient) {
      begun.resolve()
      await Bun.sleep(20)
      await store.ledger.write(statements, patient)
    },
  }
  const merging = mergingRounds(slow, silentLog, undefined, 1)
  merging.start()
  await begun.promise
  await merging.stop()
  expect(await segments()).toBe(33)
})
