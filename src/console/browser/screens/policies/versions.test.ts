import { expect, test } from 'bun:test'
import type { Event, PolicyRecord } from '../../api/routes.ts'
import { differencesIn, versionsOf } from './versions.ts'

const record: PolicyRecord = {
  ...{ id: 'one', name: 'now', kind: 'pii', stages: ['pre_request'], when: null, targets: {}, order: 1 },
  ...{ mode: 'enforce', when_broken: 'deny', enabled: true, version: 9, created_at: '', created_by: '' },
  config: { action: 'block' },
}

const event = (type: Event['event_type'], details: object): Event => ({
  ...{ event_id: type, event_type: type, request_id: null, timestamp: '2026-05-01T12:00:00.000Z' },
  ...{ verdict: 'allow', reason_code: 'ok', config_version: 1, details: { ...details } },
  event_attribution: {
    ...{ token_id: null, team_id: null, user_id: 'anna', gateway_id: null, oauth_client_id: null },
    ...{ session_id: null, key_class: null },
  },
})
const renamed = event('policy.updated', { changes: { name: { from: 'before', to: 'now' } } })
const stricter = event('policy.updated', {
  changes: {
    config: { from: { action: 'redact' }, to: { action: 'block' } },
    mode: { from: 'monitor', to: 'enforce' },
  },
})
const created = event('policy.created', {})

test('leads from the present version back to the first', () => {
  const versions = versionsOf(record, [renamed, stricter, created])
  expect(versions.map(({ body: { name, config, mode } }) => ({ name, config, mode }))).toEqual([
    { name: 'now', config: { action: 'block' }, mode: 'enforce' },
    { name: 'before', config: { action: 'block' }, mode: 'enforce' },
    { name: 'before', config: { action: 'redact' }, mode: 'monitor' },
  ])
  expect(versions.map(({ event: made }) => made?.event_type)).toEqual([
    'policy.updated',
    'policy.updated',
    'policy.created',
  ])
})

test('ends with what was before the oldest change that is kept', () => {
  const versions = versionsOf(record, [renamed])
  expect(versions.map(({ event: made, body }) => [made?.event_id ?? null, body.name])).toEqual([
    ['policy.updated', 'now'],
    [null, 'before'],
  ])
})

test('says what differs part by part', () => {
  expect(differencesIn({ action: 'redact', types: ['email', 'card'] }, { action: 'block', types: ['email'] })).toEqual([
    'action: redact → block',
    'types: email, card → email',
  ])
  expect(differencesIn(null, 'request.stream')).toEqual(['nothing → request.stream'])
  expect(differencesIn({ threshold: 0.5 }, { threshold: 0.5 })).toEqual([])
})
