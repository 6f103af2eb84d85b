import { afterAll, beforeAll, expect, test } from 'bun:test'
import { createRecorder } from '../events/change.ts'
import { noAttribution } from '../events/event.ts'
import type { LogRecord } from '../events/log/record.ts'
import { openTestDatabases, type TestDatabases, testEvent } from '../events/testing/ledger.ts'
import { anonymous, type Principal } from '../identity/principal.ts'
import { systemClock } from '../lib/clock.ts'
import { newId } from '../lib/ids.ts'
import { silentLog } from '../lib/log/log.ts'
import { applyQueueChanges, arrivalStatements } from './arrivals.ts'
import { claim, type DecisionDependencies, resolve } from './decide.ts'
import { requireEscalation } from './escalation.ts'

let databases: TestDatabases
let deps: DecisionDependencies

beforeAll(async () => {
  databases = await openTestDatabases()
  const { state, ledger } = databases
  const recorder = createRecorder({ state, ledger, announce: () => undefined, clock: systemClock, log: silentLog })
  deps = { state, ledger, recorder, clock: systemClock, newId, settings: { escalation_expiry_seconds: 60 } }
})
afterAll(() => databases.remove())

const person = (name: string) => {
  const principal: Principal = { ...anonymous, kind: 'session', roles: ['owner'], name, userId: name }
  return { principal, requestId: newId() }
}

async function queued(digest: string) {
  const id = newId()
  const escalation = { id, policy_id: newId(), policy_version: 1, digest, model: 'm', provider: 'p' }
  const details = { escalation: { ...escalation, route: 'POST /v1/chat/completions', family: 'chat' } }
  const record: LogRecord = {
    ...testEvent({ event_attribution: { ...noAttribution, token_id: 'token-1' } }),
    decisions: [{ event_id: newId(), verdict: 'approval_required', reason_code: 'a.b', details }],
  }
  await databases.ledger.write(arrivalStatements([record], Date.now()))
  await applyQueueChanges(deps)
  return await requireEscalation(databases.ledger, person('reader').principal, id)
}

const won = (results: readonly PromiseSettledResult<void>[]) => results.filter(({ status }) => status === 'fulfilled')

test('one of several people who claim at once gets the escalation, the others a conflict', async () => {
  const row = await queued('d-1')
  const people = ['ann', 'bob', 'cem'].map(person)
  const results = await Promise.allSettled(people.map((each) => claim(deps, each, row)))
  expect(won(results)).toHaveLength(1)
  for (const result of results) {
    if (result.status === 'rejected') expect(result.reason).toMatchObject({ code: 'conflict', status: 409 })
  }
  const { claimedBy } = await requireEscalation(databases.ledger, person('reader').principal, row.id)
  expect(claimedBy).toBe(people[results.findIndex(({ status }) => status === 'fulfilled')]?.principal.name ?? '')
})

test('one of several people who decide at once succeeds', async () => {
  const row = await queued('d-2')
  const decide = (name: string, resolution: 'allow' | 'block') =>
    resolve(deps, person(name), row, { resolution, note: name, grantOnceSeconds: null })
  const results = await Promise.allSettled([decide('ann', 'allow'), decide('bob', 'block')])
  expect(won(results)).toHaveLength(1)
  const { note, state } = await requireEscalation(databases.ledger, person('reader').principal, row.id)
  expect([note, state]).toEqual([results[0]?.status === 'fulfilled' ? 'ann' : 'bob', 'resolved'])
})
