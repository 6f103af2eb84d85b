import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { answeredSince } from './answered-since.ts'
import { type Event, noAttribution, type Verdict } from './event.ts'
import { pendingRollups } from './rollups/pending-rollups.ts'
import { emptyTestDatabases, openTestDatabases, type TestDatabases, testEvent } from './testing/ledger.ts'

let databases: TestDatabases
beforeAll(async () => {
  databases = await openTestDatabases()
})
afterAll(() => databases.remove())
beforeEach(() => emptyTestDatabases(databases))

const now = Date.parse('2026-03-10T12:00:00Z')
const at = (time: string) => Date.parse(`2026-03-10T${time}Z`)

const outcome = (provider: string, verdict: Verdict, timestamp: string): Event =>
  testEvent({
    timestamp,
    verdict,
    event_attribution: { ...noAttribution, team_id: 'team' },
    details: { model: 'm', provider, latency_ms: 1, first_token_ms: null },
  })

const answered = async (since: number, ...events: readonly Event[]) => {
  await databases.ledger.write(pendingRollups(events, now))
  const providers = ['one', 'two'].map((name) => ({ name, since }))
  return [...(await answeredSince(databases.ledger, providers))].toSorted()
}

test('names the providers that answered, whatever a policy made of the answer', async () => {
  expect(await answered(at('10:20:30'), outcome('one', 'redact', '2026-03-10T10:45:00.000Z'))).toEqual(['one'])
  expect(await answered(at('10:20:30'), outcome('two', 'rewrite', '2026-03-10T11:45:00.000Z'))).toEqual(['one', 'two'])
})

test('names none that answered earlier, or whose requests failed or were refused', async () => {
  const found = await answered(
    at('10:20:30'),
    outcome('one', 'allow', '2026-03-10T10:19:00.000Z'),
    outcome('one', 'allow', '2026-03-10T10:20:10.000Z'),
    outcome('two', 'error', '2026-03-10T11:00:00.000Z'),
    outcome('two', 'deny', '2026-03-10T11:00:00.000Z'),
  )
  expect(found).toEqual([])
})

test('finds an answer of an earlier day, of which the minutes are gone', async () => {
  const since = now - 20 * 86_400_000
  expect(await answered(since, outcome('one', 'allow', '2026-02-20T10:00:00.000Z'))).toEqual(['one'])
})
