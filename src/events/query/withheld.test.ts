/** What callers read of an answer that a policy withheld, by every route that gives out events. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAnswerStore } from '../../api/answer-store.ts'
import { testApplication } from '../../api/testing/application.ts'
import { type Permission, permissionsOf } from '../../identity/permissions.ts'
import { anonymous, type Principal } from '../../identity/principal.ts'
import type { Clock } from '../../lib/clock.ts'
import { type Event, noAttribution } from '../event.ts'
import { createExportRunner, type ExportRunner } from '../export/export-runner.ts'
import { eventRoutes } from '../routes.ts'
import { openTestDatabases, type TestDatabases, testEvent, testEventDependencies } from '../testing/ledger.ts'
import { withoutWithheld } from './withheld.ts'

const now = Date.parse('2026-01-01T00:00:00Z')
const clock: Clock = { now: () => now, monotonic: () => now }
const answer = 'assistant: the withheld plan'
const sum = '{"sum":5}'
const team_id = 'team-a'
const escalation = {
  id: 'e',
  route: 'POST /v1/chat/completions',
  calls: [{ tool: 'transfer', arguments: sum }],
  answer,
}
const decision: Event = testEvent({
  timestamp: new Date(now - 60_000).toISOString(),
  event_type: 'decision',
  verdict: 'approval_required',
  event_attribution: { ...noAttribution, token_id: 'token-a', team_id },
  details: { policy_id: 'p', escalation },
})

let databases: TestDatabases
let directory: string
let exports: ExportRunner
let principal: Principal
let server: ReturnType<typeof testApplication>
/** The cursor for what arrives after the log was empty. */
let follow = ''

const events = '/v1/events?since=1h&event_type=decision'

const member: Principal = {
  ...anonymous,
  ...{ kind: 'token', name: 'token:token-a', tokenId: 'token-a', teamId: team_id, roles: ['member'] },
  permissions: permissionsOf(['member']),
}
const withPermissions = (...permissions: Permission[]): Principal => ({ ...member, permissions: new Set(permissions) })
const exporter = withPermissions('events:read', 'events:export')
const reviewer = withPermissions('events:read', 'events:export', 'escalations:read')

beforeAll(async () => {
  databases = await openTestDatabases()
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-withheld-'))
  const deps = testEventDependencies(databases, clock)
  const settings = { export_keep_hours: 24, export_limit_bytes: 1_000_000 }
  exports = createExportRunner({ ...deps, directory, address: () => 'https://one.example.com', settings })
  server = testApplication({
    features: [eventRoutes({ ...deps, exports })],
    authenticate: async () => principal,
    answers: createAnswerStore({ ledger: databases.ledger, clock, key: new Uint8Array(32) }),
    clock,
  })
  principal = member
  follow = JSON.parse(await call(events)).follow
  await deps.recorder.append([decision])
})
afterAll(async () => {
  await exports.stop()
  await databases.remove()
  rmSync(directory, { recursive: true, force: true })
})
beforeEach(() => {
  principal = member
})

async function call(path: string, body?: object): Promise<string> {
  const sent = body && { method: 'POST', headers: { 'content-type': 'application/json' }, body: JSON.stringify(body) }
  const response = await server.handle(new Request(`http://localhost${path}`, sent))
  expect(response.ok).toBe(true)
  return await response.text()
}

const withoutTexts = {
  ...decision,
  details: {
    policy_id: 'p',
    escalation: { id: 'e', route: escalation.route, calls: [{ tool: 'transfer', arguments: null }] },
  },
}

const decisionsIn = (text: string): Event[] =>
  JSON.parse(text).events.filter(({ event_type }: Event) => event_type === 'decision')
const page = async (query = ''): Promise<Event[]> => decisionsIn(await call(`${events}${query}`))

async function exportedByJob(format: 'csv' | 'json'): Promise<{ path: string; text: string }> {
  const { id } = JSON.parse(await call('/v1/exports/jobs', { since: '1h', format }))
  const done = async () => JSON.parse(await call(`/v1/exports/jobs/${id}`)).status === 'completed'
  while (!(await done())) await Bun.sleep(1)
  const path = `/v1/exports/jobs/${id}/download`
  return { path, text: await call(path) }
}

test('a member reads the decision in pages, and as it arrives, without the withheld answer and arguments', async () => {
  expect(await page()).toEqual([withoutTexts])
  expect(await page('&order=oldest')).toEqual([withoutTexts])
  expect(await page(`&cursor=${follow}`)).toEqual([withoutTexts])
})

test('exports without escalations:read have neither', async () => {
  principal = exporter
  expect(decisionsIn(await call('/v1/events/export?since=1h&format=json'))).toEqual([withoutTexts])
  expect(decisionsIn((await exportedByJob('json')).text)).toEqual([withoutTexts])
  const texts = [await call('/v1/events/export?since=1h&format=csv'), (await exportedByJob('csv')).text]
  for (const text of texts) expect(text).not.toMatch(/withheld plan|sum":5/)
})

test('sessions and charts of a member have neither', async () => {
  for (const path of ['/v1/events/sessions?since=1h', '/v1/events/series?since=1h&by=verdict']) {
    expect(await call(path)).not.toMatch(/withheld plan|sum":5/)
  }
})

test('a caller with escalations:read reads both by every route', async () => {
  principal = reviewer
  expect(await page()).toEqual([decision])
  expect(await page(`&cursor=${follow}`)).toEqual([decision])
  expect(decisionsIn(await call('/v1/events/export?since=1h&format=json'))).toEqual([decision])
  expect(decisionsIn((await exportedByJob('json')).text)).toEqual([decision])
})

test('a file made with escalations:read is not given out after that permission was lost', async () => {
  principal = reviewer
  const { path } = await exportedByJob('json')
  principal = exporter
  expect((await server.handle(new Request(`http://localhost${path}`))).status).toBe(404)
})

test('an event without an escalation is the same event, and odd details are left as they are', () => {
  for (const details of [undefined, {}, { escalation: null }, { escalation: 'text' }]) {
    const event = testEvent(details && { details })
    expect(withoutWithheld(event)).toBe(event)
  }
  const odd = withoutWithheld(testEvent({ details: { escalation: { calls: 'text', answer: 1 } } }))
  expect(odd.details).toEqual({ escalation: { calls: [] } })
})
