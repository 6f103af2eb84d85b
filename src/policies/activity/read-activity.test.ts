import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createRecorder } from '../../events/change.ts'
import { type Event, noAttribution } from '../../events/event.ts'
import { testEvent } from '../../events/testing/ledger.ts'
import type { Visibility } from '../../events/visibility.ts'
import { silentLog } from '../../lib/log/log.ts'
import { type TemporaryStore, temporaryStore } from '../../store/testing/store.ts'
import { readActivity } from './read-activity.ts'

const now = Date.parse('2026-05-01T12:00:00Z')
const hour = 3_600_000
const clock = { now: () => now, monotonic: () => now }
let store: TemporaryStore
beforeEach(async () => {
  store = await temporaryStore()
})
afterEach(() => store.remove())

interface Result {
  policy_id: string
  verdict: string
  mode?: string
  latency_ms?: number
}

const outcome = (hoursAgo: number, results: readonly Result[], team = 'team-a'): Event =>
  testEvent({
    timestamp: new Date(now - hoursAgo * hour).toISOString(),
    event_attribution: { ...noAttribution, team_id: team },
    details: { policy_results: results.map((result) => ({ mode: 'enforce', latency_ms: 2, ...result })) },
  })

const read = (visibility: Visibility = { teams: 'every', ownTokens: [] }, policyId: string | null = null) =>
  readActivity({ ledger: store.ledger, since: now - 24 * hour, until: now + 1, visibility, policyId })

async function record(): Promise<void> {
  await createRecorder({ ...store, announce: () => undefined, clock, log: silentLog }).append([
    outcome(0, [
      { policy_id: 'one', verdict: 'block', latency_ms: 4 },
      { policy_id: 'two', verdict: 'deny', mode: 'monitor' },
    ]),
    outcome(0, [{ policy_id: 'one', verdict: 'redact' }], 'team-b'),
    outcome(23.5, [{ policy_id: 'one', verdict: 'allow', latency_ms: 0 }]),
    outcome(25, [{ policy_id: 'one', verdict: 'block' }]),
    { ...outcome(0, [{ policy_id: 'one', verdict: 'block' }]), event_type: 'decision' },
  ])
}

test('counts what each policy said in the time, over the time', async () => {
  await record()
  const { examined, complete, policies } = await read()
  expect([examined, complete, policies.length]).toEqual([3, true, 2])
  const [one, two] = ['one', 'two'].map((id) => policies.find(({ policy_id }) => policy_id === id))
  expect(one).toMatchObject({ asked: 3, verdicts: { block: 1, redact: 1, allow: 1 }, stopped: 1, mean_ms: 2 })
  expect(one?.points.map(({ found }) => found)).toEqual([...Array<number>(23).fill(0), 2])
  // What is only watched stops nothing.
  expect(two).toMatchObject({ asked: 1, verdicts: { deny: 1 }, stopped: 0 })
})

test('counts only what the caller sees, and only the policy that was named', async () => {
  await record()
  expect((await read({ teams: ['team-b'], ownTokens: [] })).policies).toMatchObject([{ policy_id: 'one', asked: 1 }])
  expect((await read({ teams: [], ownTokens: [] })).policies).toEqual([])
  expect((await read(undefined, 'two')).policies.map(({ policy_id }) => policy_id)).toEqual(['two'])
})
