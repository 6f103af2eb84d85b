import { afterAll, beforeAll, expect, test } from 'bun:test'
import { recordedEvents } from '../events/testing/recorded.ts'
import {
  type TemporaryControlPlane,
  temporaryControlPlane,
  testOrigin,
} from '../members/testing/temporary-control-plane.ts'
import { managedSettingsRoutes, written } from './managed-settings-routes.ts'

let plane: TemporaryControlPlane
beforeAll(async () => {
  plane = await temporaryControlPlane(testOrigin, (members) => [managedSettingsRoutes(members)])
})
afterAll(() => plane.remove())

const path = '/v1/catalog/managed-settings'
const asAdmin = (method: string, to: string, body?: unknown, headers: Record<string, string> = {}) =>
  plane.call(method, to, { token: plane.adminToken, headers, ...(body === undefined ? {} : { body }) })

test('makes, shows, changes and deletes a record, each with an event and a version', async () => {
  const made = await asAdmin('POST', path, { name: 'everybody', settings: { model: 'x', env: { B: '1', A: '2' } } })
  expect(made.status).toBe(201)
  expect(made.json).toMatchObject({ name: 'everybody', team_ids: [], priority: 100, settings: { model: 'x' } })
  const one = `${path}/${made.json.id}`
  const stale = await asAdmin('PATCH', one, { priority: 5 }, { 'if-match': '"0"' })
  expect([stale.status, stale.json.error.code]).toEqual([412, 'version_mismatch'])
  const changed = await asAdmin('PATCH', one, { settings: {} })
  expect(changed.json).toMatchObject({ settings: {}, priority: 100 })
  expect(changed.json.checksum).not.toBe(made.json.checksum)
  expect(changed.json.version).toBeGreaterThan(made.json.version)
  expect((await asAdmin('GET', path)).json.managed_settings).toHaveLength(1)
  expect((await asAdmin('DELETE', one)).status).toBe(200)
  expect((await asAdmin('GET', one)).status).toBe(404)
  const events = await recordedEvents(plane.store.ledger, 'catalog.updated')
  expect(events.at(-1)?.details).toMatchObject({ name: 'everybody', checksum: changed.json.checksum })
})

test('a name is used once, a team exists, and a field that is wrong is named', async () => {
  const good = { name: 'one', settings: {} }
  expect((await asAdmin('POST', path, good)).status).toBe(201)
  const fault = async (fields: Record<string, unknown>) => {
    const { status, json } = await asAdmin('POST', path, { ...good, name: 'two', ...fields })
    return [status, json.error.param]
  }
  expect(await fault({ name: 'one' })).toEqual([409, 'name'])
  expect(await fault({ team_ids: [crypto.randomUUID()] })).toEqual([422, 'team_ids'])
  expect(await fault({ settings: [] })).toEqual([422, 'settings'])
  expect(await fault({ settings: { long: 'x'.repeat(300_000) } })).toEqual([422, 'settings'])
  expect(await fault({ priority: -1 })).toEqual([422, 'priority'])
  expect(await fault({ teams: [] })).toEqual([422, 'teams'])
})

test('only those who manage people change them', async () => {
  await plane.addPerson('op@example.com', 'operator')
  const browser = await plane.signInAs('op@example.com')
  const asOperator = { cookie: browser.cookie, headers: plane.fromPage(browser) }
  expect((await plane.call('GET', path, asOperator)).status).toBe(200)
  const body = { name: 'theirs', settings: {} }
  expect((await plane.call('POST', path, { ...asOperator, body })).status).toBe(403)
})

test('the checksum is the one that Claude Code computes over what it keeps', () => {
  // Sent by `claude` 2.1.330 as If-None-Match after it had got these settings.
  const settings = {
    env: {
      CLAUDE_CODE_ENABLE_TELEMETRY: '1',
      OTEL_METRICS_EXPORTER: 'otlp',
      OTEL_LOGS_EXPORTER: 'otlp',
      OTEL_METRIC_EXPORT_INTERVAL: '3000',
    },
  }
  expect(written(settings).checksum).toBe('sha256:cbb5b2e09c59c6d5b8d74933f5805aabf6d3ba98153b45137f5449ff784a7c6f')
  expect(written({ b: [{ d: 1, c: null }], a: 'é' }).settings).toBe('{"a":"é","b":[{"c":null,"d":1}]}')
})
