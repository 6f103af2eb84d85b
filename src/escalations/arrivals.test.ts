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
import { escalationRecord, listEscalations } from './escalation.ts'

let databases: TestDatabases
let deps: QueueDependencies

beforeAll(async () => {
  databases = await openTestDatabases()
  const { state, ledger } = databases
  const recorder = createRecorder({ state, ledger, announce: () => undefined, clock: systemClock, log: silentLog })
  deps = { ledger, recorder, clock: systemClock, newId, settings: { escalation_expiry_seconds: 60 } }
})
afterAll(() => databases.remove())

const asking = (id: string, digest: string, details: object = {}, notice: object = {}): LogRecord => ({
  ...testEvent({ event_attribution: { ...noAttribution, token_id: 'token-1' } }),
  decisions: [
    {
      ...{ event_id: newId(), verdict: 'approval_required', reason_code: 'a.b' },
      details: {
        targets: ['messages: TERM'],
        escalation: {
          id,
          policy_id: '0197a8b0-0000-7000-8000-000000000001',
          policy_version: 1,
          digest,
          route: 'POST /v1/chat/completions',
          family: 'chat',
          model: 'm',
          provider: 'p',
          ...notice,
        },
        ...details,
      },
    },
  ],
})

const arrive = (records: readonly LogRecord[]) => databases.ledger.write(arrivalStatements(records, Date.now()))

async function queue() {
  await applyQueueChanges(deps)
  const owner: Principal = { ...anonymous, kind: 'session', roles: ['owner'] }
  const filters = { status: undefined, since: null, before: null, limit: 100 }
  const rows = await listEscalations(databases.ledger, owner, filters, Date.now())
  return rows.map((row) => escalationRecord(row, Date.now()))
}

test('a repeated or invalid report of a gateway blocks no other', async () => {
  const [first, second] = [newId(), newId()]
  await arrive([asking(first, 'd-1')])
  expect(await queue()).toMatchObject([{ id: first, attempts: 1, request: { targets: ['messages: TERM'] } }])
  expect((await queue())[0]?.request.prompt_redacted).toBeNull()
  await arrive([asking(first, 'd-2'), asking(second, 'd-3', { targets: { not: 'a list' } })])
  expect(await queue()).toMatchObject([
    { id: second, request: { digest: 'd-3', targets: [] } },
    { id: first, attempts: 1 },
  ])
  expect(await databases.ledger.read('select * from pending_escalation_events')).toEqual([])
})

test('the texts that a gateway captured reach the reviewer', async () => {
  const id = newId()
  const record = asking(id, 'd-4', {}, { answer: 'assistant: done' })
  await arrive([{ ...record, prompt_redacted: 'user: write to [EMAIL]' }])
  expect((await queue())[0]).toMatchObject({
    ...{ id, token: { revoked: false } },
    request: { prompt_redacted: 'user: write to [EMAIL]', answer_redacted: 'assistant: done' },
  })
})
