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
import type { QueueDependencies } from './change-escalation.ts'
import { claim, resolve, undo } from './decide.ts'
import { requireEscalation } from './escalation.ts'

let databases: TestDatabases
let deps: QueueDependencies

beforeAll(async () => {
  databases = await openTestDatabases()
  const { state, ledger } = databases
  const recorder = createRecorder({ state, ledger, announce: () => undefined, clock: systemClock, log: silentLog })
  deps = { ledger, recorder, clock: systemClock, newId, settings: { escalation_expiry_seconds: 60 } }
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
    resolve(deps, person(name), row, { resolution, note: name, grantOnceSeconds: null, undoSeconds: 0 })
  const results = await Promise.allSettled([decide('ann', 'allow'), decide('bob', 'block')])
  expect(won(results)).toHaveLength(1)
  const { note, state } = await requireEscalation(databases.ledger, person('reader').principal, row.id)
  expect([note, state]).toEqual([results[0]?.status === 'fulfilled' ? 'ann' : 'bob', 'resolved'])
})

/** The clock of the control plane, moved on by as many seconds. */
const later = (seconds: number): QueueDependencies => ({
  ...deps,
  clock: { ...systemClock, now: () => systemClock.now() + 1000 * seconds },
})
const allowing = { resolution: 'allow', note: null, grantOnceSeconds: 60, undoSeconds: 10 } as const
const grantsOf = async (id: string) => await databases.state.read('select id from grants where id = ?', [id])
const current = async (id: string) => await requireEscalation(databases.ledger, person('reader').principal, id)

test('a decision that can be undone gives its grant only when that time has passed', async () => {
  const row = await queued('d-3')
  await resolve(deps, person('ann'), row, allowing)
  await applyQueueChanges(later(9))
  expect([(await current(row.id)).state, await grantsOf(row.id)]).toEqual(['deciding', []])
  await applyQueueChanges(later(11))
  expect([(await current(row.id)).state, await grantsOf(row.id)]).toEqual(['resolved', [{ id: row.id }]])
  expect(undo(later(12), person('ann'), await current(row.id))).rejects.toMatchObject({ code: 'conflict' })
})

test('a decision that is undone in time gives no grant, and only who decided may undo it', async () => {
  const row = await queued('d-4')
  await resolve(deps, person('ann'), row, allowing)
  expect(undo(deps, person('bob'), await current(row.id))).rejects.toMatchObject({ code: 'permission_denied' })
  await undo(deps, person('ann'), await current(row.id))
  await applyQueueChanges(later(11))
  expect([(await current(row.id)).state, await grantsOf(row.id)]).toEqual(['queued', []])
})

test('of an undo and the decision taking effect at once, one wins and the grant agrees with it', async () => {
  for (let round = 0; round < 10; round += 1) {
    const row = await queued(`race-${round}`)
    await resolve(deps, person('ann'), row, allowing)
    const deciding = await current(row.id)
    const [undone] = await Promise.allSettled([undo(deps, person('ann'), deciding), applyQueueChanges(later(11))])
    await applyQueueChanges(later(11))
    const won = undone.status === 'fulfilled'
    expect([(await current(row.id)).state, (await grantsOf(row.id)).length]).toEqual(
      won ? ['queued', 0] : ['resolved', 1],
    )
  }
})

test('a process that died while it gave the grant leaves the decision to the next one', async () => {
  const row = await queued('d-5')
  await resolve(deps, person('ann'), row, allowing)
  await databases.ledger.write([{ sql: "update escalations set state = 'applying' where id = ?", args: [row.id] }])
  expect(undo(deps, person('ann'), await current(row.id))).rejects.toMatchObject({ code: 'conflict' })
  await applyQueueChanges(later(11))
  expect([(await current(row.id)).state, await grantsOf(row.id)]).toEqual(['resolved', [{ id: row.id }]])
})
