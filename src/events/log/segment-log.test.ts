/** How often each property is tried: `LOG_RUNS=100000 bun test src/events/log/segment-log.test.ts` tries hard. */
import { afterAll, beforeAll, test } from 'bun:test'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import { holdsForAnySteps } from '../testing/log-suite.ts'

let store: TemporaryStore
beforeAll(async () => {
  store = await temporaryStore()
})
afterAll(() => store.remove())

/** Segments stay in the ledger. */
const adapter = {
  empty: async () => undefined,
  move: async () => undefined,
  canRemoveOldest: async () => true,
}

test('whatever is appended, merged, removed and crashes, readers get what a plain list gives', async () => {
  await holdsForAnySteps(store.ledger, adapter, Number(process.env.LOG_RUNS ?? 500))
}, 86_400_000)
