import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'bun:test'
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAnswerStore } from '../../api/answer-store.ts'
import { testApplication } from '../../api/testing/application.ts'
import { permissionsOf } from '../../identity/permissions.ts'
import { anonymous, type Principal } from '../../identity/principal.ts'
import type { Clock } from '../../lib/clock.ts'
import { noAttribution } from '../event.ts'
import { eventRoutes } from '../routes.ts'
import {
  emptyTestDatabases,
  openTestDatabases,
  type TestDatabases,
  testEvent,
  testEventDependencies,
} from '../testing/ledger.ts'
import { recordedEvents } from '../testing/recorded.ts'
import { createExportRunner, type ExportRunner } from './export-runner.ts'

let now = Date.parse('2026-01-01T00:00:00Z')
const clock: Clock = { now: () => now, monotonic: () => now }
const settings = { export_keep_hours: 24, export_limit_bytes: 1_000_000 }
let databases: TestDatabases
let directory: string
let principal: Principal
const runners: ExportRunner[] = []

const auditor: Principal = {
  ...anonymous,
  kind: 'token',
  name: 'token:auditor',
  roles: ['auditor'],
  permissions: permissionsOf(['auditor']),
}

beforeAll(async () => {
  databases = await openTestDatabases()
})
afterAll(() => databases.remove())
beforeEach(async () => {
  principal = auditor
  directory = mkdtempSync(join(tmpdir(), 'gatehouse-exports-'))
  await emptyTestDatabases(databases)
})
afterEach(async () => {
  await Promise.all(runners.splice(0).map((runner) => runner.stop()))
  rmSync(directory, { recursive: true, force: true })
})

/** A control plane with its exports in a directory of its own. */
function controlPlane(name = 'one', change: Partial<typeof settings> = {}) {
  const deps = testEventDependencies(databases, clock)
  const exports = createExportRunner({
    ...deps,
    directory: join(directory, name),
    address: () => `https://${name}.example.com`,
    settings: { ...settings, ...change },
  })
  runners.push(exports)
  const server = testApplication({
    features: [eventRoutes({ ...deps, exports })],
    authenticate: async () => principal,
    answers: createAnswerStore({ ledger: databases.ledger, clock, key: new Uint8Array(32) }),
    clock,
  })
  const ask = (path: string, body?: unknown, headers: Record<string, string> = {}): Promise<Response> =>
    server.handle(
      new Request(`http://localhost/v1/exports/jobs${path}`, {
        method: body === undefined ? 'GET' : 'POST',
        headers: { ...headers, ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
        body: body === undefined ? null : JSON.stringify(body),
      }),
    )
  const json = async (path: string, body?: unknown): Promise<Record<string, unknown>> =>
    JSON.parse(await (await ask(path, body)).text())
  const done = async (id: unknown): Promise<Record<string, unknown>> => {
    for (;;) {
      const job = await json(`/${id}`)
      if (job.status !== 'queued' && job.status !== 'processing') return job
      await Bun.sleep(1)
    }
  }
  return { exports, ask, json, done, directory: join(directory, name) }
}

const recorded = async () =>
  (await recordedEvents(databases.ledger))
    .map(({ event_type }) => event_type)
    .filter((type) => type.startsWith('export.'))

const keep = (count: number, team_id = 'team-a') => {
  const { recorder } = testEventDependencies(databases, clock)
  const timestamp = new Date(now - 60_000).toISOString()
  const event = () => testEvent({ timestamp, event_attribution: { ...noAttribution, team_id } })
  return recorder.append(Array.from({ length: count }, event))
}

test('makes an export in the background, offers it for download, and records each step', async () => {
  await keep(3)
  const { ask, json, done, directory: files } = controlPlane()
  const made = await ask('', { since: '1h', format: 'csv' })
  expect(made.status).toBe(202)
  const job = JSON.parse(await made.text())
  expect(job).toMatchObject({ status: 'queued', events: 0, created_by: 'token:auditor', until: null })
  const finished = await done(job.id)
  expect(finished).toMatchObject({ status: 'completed', events: 3, progress: 1, error: null })
  const download = await ask(`/${job.id}/download`)
  expect(download.headers.get('content-type')).toStartWith('text/csv')
  expect(download.headers.get('content-disposition')).toContain(`events-${job.id}.csv`)
  const text = await download.text()
  expect(text.split('\r\n')).toHaveLength(5)
  expect(finished.bytes).toBe(text.length)
  expect(statSync(join(files, `${job.id}.csv`)).mode & 0o777).toBe(0o600)
  expect(statSync(files).mode & 0o777).toBe(0o700)
  expect(await recorded()).toEqual(['export.created', 'export.completed'])
  const [told] = await recordedEvents(databases.ledger, 'export.completed')
  expect(told).toMatchObject({
    request_id: made.headers.get('x-request-id'),
    details: { first_event_at: new Date(now - 60_000).toISOString() },
  })
  expect(await json('?status=completed')).toMatchObject({ jobs: [{ id: job.id }], next_cursor: null })
  expect(await json('?status=failed')).toMatchObject({ jobs: [] })
})

test('an export holds what its creator could see at its creation, until the end of its window', async () => {
  await keep(2)
  await keep(4, 'team-b')
  principal = { ...auditor, teamId: 'team-b' }
  const { json, done, ask } = controlPlane()
  const { id } = await json('', { since: '1h', format: 'json' })
  await keep(1, 'team-b')
  expect(await done(id)).toMatchObject({ events: 4 })
  const before = await json('', { since: '1h', until: new Date(now - 120_000).toISOString(), format: 'json' })
  await done(before.id)
  expect(await (await ask(`/${before.id}/download`)).json()).toEqual({ events: [] })
})

test('a file of many pages holds each event once, oldest first', async () => {
  for (let batch = 0; batch < 3; batch += 1) await keep(420)
  const { json, done, ask } = controlPlane()
  const { id } = await json('', { since: '1h', format: 'json' })
  expect(await done(id)).toMatchObject({ status: 'completed', events: 1260 })
  const { events } = JSON.parse(await (await ask(`/${id}/download`)).text())
  const kept = await recordedEvents(databases.ledger, 'gateway.request.outcome')
  expect(events).toEqual(kept)
})

test('an export is in the order of timestamps, with late events in their place', async () => {
  const { recorder } = testEventDependencies(databases, clock)
  const at = (minutes: number) => testEvent({ timestamp: new Date(now - minutes * 60_000).toISOString() })
  const [one, two, late] = [at(30), at(10), at(20)]
  await recorder.append([one, two])
  await recorder.append([late])
  const { json, done, ask } = controlPlane()
  const { id } = await json('', { since: '1h', format: 'json' })
  await done(id)
  expect(await (await ask(`/${id}/download`)).json()).toEqual({ events: [one, late, two] })
})

test('only its creator sees an export', async () => {
  const { json, ask, done } = controlPlane()
  const { id } = await json('', { since: '1h', format: 'csv' })
  await done(id)
  principal = { ...auditor, name: 'token:other' }
  expect(await json('')).toEqual({ jobs: [], next_cursor: null })
  expect((await ask(`/${id}`)).status).toBe(404)
  expect((await ask(`/${id}/download`)).status).toBe(404)
  principal = { ...auditor, permissions: new Set() }
  expect((await ask('', { since: '1h', format: 'csv' })).status).toBe(403)
})

test('gives out a file only while its creator may see everything in it', async () => {
  const { json, ask, done } = controlPlane()
  await keep(2)
  principal = { ...auditor, teamId: 'team-a' }
  const { id } = await json('', { since: '1h', format: 'json' })
  expect(await done(id)).toMatchObject({ events: 2 })
  principal = { ...auditor, teamId: 'team-b' }
  expect((await ask(`/${id}/download`)).status).toBe(404)
  principal = auditor
  expect((await ask(`/${id}/download`)).status).toBe(200)
})

test('the successor of a rotated token has its exports, and no other token does', async () => {
  const { json, ask, done } = controlPlane()
  const made = async (rotatedFrom: string | null): Promise<string> => {
    const id = Bun.randomUUIDv7()
    const sql = `insert into tokens (id, name, token_prefix, purpose, principal_type, key_class, roles, policy_ids,
        access_policy_ids, metadata_trust, metadata, owner_kind, owner_id, created_at, version, rotated_from)
      values (?, '', '', '', '', '', '[]', '[]', '[]', '', '{}', '', '', 1, 1, ?)`
    await databases.ledger.write([{ sql, args: [id, rotatedFrom] }])
    return id
  }
  const first = await made(null)
  const third = await made(await made(first))
  const other = await made(null)
  const as = (id: string): Principal => ({ ...auditor, name: `token:${id}`, tokenId: id })
  principal = as(first)
  const { id } = await json('', { since: '1h', format: 'csv' })
  await done(id)
  principal = as(third)
  expect((await ask(`/${id}/download`)).status).toBe(200)
  expect(await json('')).toMatchObject({ jobs: [{ id, created_by: `token:${first}` }] })
  principal = as(other)
  expect((await ask(`/${id}`)).status).toBe(404)
})

test.each([
  [{ format: 'csv' }, 'since'],
  [{ since: 'yesterday', format: 'csv' }, 'since'],
  [{ since: '1h', format: 'xml' }, 'format'],
  [{ since: '1h', format: 'csv', until: '2020-01-01T00:00:00Z' }, 'until'],
  [{ since: '1h', format: 'csv', verdict: 'deny' }, 'verdict'],
])('refuses %j and names %s', async (body, param) => {
  const answer = await controlPlane().ask('', body)
  expect(answer.status).toBe(422)
  expect(JSON.parse(await answer.text()).error).toMatchObject({ param })
})

test('the same Idempotency-Key makes one export', async () => {
  const { ask, json, done } = controlPlane()
  const once = async () =>
    JSON.parse(await (await ask('', { since: '1h', format: 'csv' }, { 'idempotency-key': 'k' })).text())
  const [first, second] = [await once(), await once()]
  expect(second.id).toBe(first.id)
  await done(first.id)
  expect(await json('')).toMatchObject({ jobs: [{ id: first.id }] })
})

test('removes a file at the end of its time and says so', async () => {
  const { ask, json, done, exports, directory: files } = controlPlane()
  const { id } = await json('', { since: '1h', format: 'csv' })
  await done(id)
  await exports.tend()
  expect(readdirSync(files)).toContain(`${id}.csv`)
  now += 24 * 3_600_000
  // Before anybody comes to remove it.
  expect(await json(`/${id}`)).toMatchObject({ status: 'expired' })
  expect((await ask(`/${id}/download`)).status).toBe(410)
  expect(await json('?status=completed')).toMatchObject({ jobs: [] })
  expect(await json('?status=expired')).toMatchObject({ jobs: [{ id }] })
  await exports.tend()
  expect(await json(`/${id}`)).toMatchObject({ status: 'expired' })
  expect((await ask(`/${id}/download`)).status).toBe(410)
  expect(readdirSync(files)).toEqual(['owner'])
  expect(await recorded()).toEqual(['export.created', 'export.completed', 'export.expired'])
})

test('an export that needs too much space fails with the reason and leaves nothing', async () => {
  await keep(50)
  const { ask, json, done, directory: files } = controlPlane('one', { export_limit_bytes: 2000 })
  const { id } = await json('', { since: '1h', format: 'json' })
  expect(await done(id)).toMatchObject({ status: 'failed', error: expect.stringContaining('use all their space') })
  expect((await ask(`/${id}/download`)).status).toBe(409)
  expect(readdirSync(files)).toEqual(['owner'])
  expect(await recorded()).toEqual(['export.created', 'export.failed'])
})

test('starts an interrupted export again when the control plane is back', async () => {
  await keep(3)
  const stopped = controlPlane()
  await stopped.exports.stop()
  const { id } = await stopped.json('', { since: '1h', format: 'csv' })
  const owner = await Bun.file(join(stopped.directory, 'owner')).text()
  await databases.ledger.write([
    { sql: "update export_jobs set state = 'processing', owner = ?, heartbeat_at = ?, events = 2", args: [owner, now] },
  ])
  writeFileSync(join(stopped.directory, `${id}.csv.part`), 'half a li')
  const back = controlPlane()
  await back.exports.tend()
  expect(await back.done(id)).toMatchObject({ status: 'completed', events: 3 })
  expect(readdirSync(back.directory).toSorted()).toEqual([`${id}.csv`, 'owner'].toSorted())
})

test('another control plane names the holder of a file, and takes over a job that was idle for a minute', async () => {
  const [one, other] = [controlPlane('one'), controlPlane('other')]
  const { id } = await one.json('', { since: '1h', format: 'csv' })
  await one.done(id)
  const elsewhere = await other.ask(`/${id}/download`)
  expect(elsewhere.status).toBe(409)
  expect(JSON.parse(await elsewhere.text()).error).toMatchObject({
    code: 'export_elsewhere',
    message: expect.stringContaining('https://one.example.com'),
  })
  await one.exports.stop()
  const left = await one.json('', { since: '1h', format: 'csv' })
  await databases.ledger.write([
    {
      sql: "update export_jobs set state = 'processing', owner = 'gone', heartbeat_at = ? where id = ?",
      args: [now, String(left.id)],
    },
  ])
  await other.exports.tend()
  expect(await other.json(`/${left.id}`)).toMatchObject({ status: 'processing' })
  now += 61_000
  await other.exports.tend()
  expect(await other.done(left.id)).toMatchObject({ status: 'completed' })
  expect((await other.ask(`/${left.id}/download`)).status).toBe(200)
})
