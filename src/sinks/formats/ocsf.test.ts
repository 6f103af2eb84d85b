import { expect, test } from 'bun:test'
import { type Event, noAttribution, verdicts } from '../../events/event.ts'
import { type EventType, eventTypes } from '../../events/event-types.ts'
import { testEvent } from '../../events/testing/ledger.ts'
import { ocsfFaults } from '../testing/ocsf-schema.ts'
import { ocsfOf } from './ocsf.ts'

const details = { route: 'POST /v1/chat/completions', provider: 'openai', status: 403, address: '192.0.2.1' }
const event = (change: Partial<Event>): Event => testEvent({ details, ...change })

test('every type of event is valid by the schema of OCSF, whatever the event has, and its type fits class and activity', () => {
  const attributions = [
    noAttribution,
    { ...noAttribution, user_id: 'u', token_id: 't', session_id: 's', client: 'claude-code', gateway_id: 'g' },
    { ...noAttribution, token_id: 't', oauth_client_id: 'o', team_id: 'x', dimensions: { customer: 'acme' } },
  ]
  const others: Partial<Event>[] = [
    { details: {}, request_id: null },
    { details, request_id: 'r', trace_id: 'a'.repeat(32), metadata: { label: 'x' } },
    { details: { alert_id: 'a', name: 'Budget', kind: 'budget_share', firing_id: 'f', severity: 'info', about: 'x' } },
    { details: { policy_id: 'p', user_id: 'u', address: '2001:db8::1', status: null, provider: null }, request_id: '' },
  ]
  for (const event_type of eventTypes) {
    for (const verdict of verdicts) {
      for (const [index, other] of others.entries()) {
        const event_attribution = attributions[index % attributions.length] ?? noAttribution
        const ocsf = ocsfOf(event({ event_type, verdict, event_attribution, ...other }))
        expect([event_type, verdict, ocsfFaults(ocsf)]).toEqual([event_type, verdict, []])
        expect(ocsf.type_uid).toBe(Number(ocsf.class_uid) * 100 + Number(ocsf.activity_id))
        expect(ocsf.category_uid).toBe(Math.floor(Number(ocsf.class_uid) / 1000))
      }
    }
  }
})

test('the check by the schema refuses what is missing, unknown, of another type or of another value', () => {
  const good = ocsfOf(event({ event_type: 'auth.signed_in' }))
  expect(ocsfFaults(good)).toEqual([])
  const { user: _, ...without } = good
  expect(ocsfFaults(without)).toEqual(['user: is missing'])
  expect(ocsfFaults({ ...good, service: undefined })).toEqual([': has none of service,dst_endpoint'])
  expect(ocsfFaults({ ...good, severity_id: 40, colour: 'red', user: { uid: 7 } })).toEqual([
    'colour: there is no such member',
    'severity_id: cannot be 40',
    'user.uid: is no string_t',
  ])
})

test('a sign-in is Authentication, Logon; a refused one is a failure', () => {
  const refused = ocsfOf(event({ event_type: 'auth.refused', verdict: 'deny', details: { address: '192.0.2.1' } }))
  expect(refused).toMatchObject({ class_uid: 3002, activity_id: 1, status_id: 2, src_endpoint: { ip: '192.0.2.1' } })
  expect(ocsfOf(event({ event_type: 'auth.signed_out' }))).toMatchObject({
    class_uid: 3002,
    activity_id: 2,
    status_id: 1,
  })
})

test("a policy's refusal is a Detection Finding, and its permission is not", () => {
  expect(ocsfOf(event({ event_type: 'decision', verdict: 'block', reason_code: 'secrets' }))).toMatchObject({
    ...{ class_uid: 2004, activity_id: 1, severity_id: 3 },
    finding_info: { title: 'block: secrets', types: ['decision'] },
  })
  expect(ocsfOf(event({ event_type: 'decision', verdict: 'allow' })).class_uid).toBe(6003)
})

test('an alert is a Detection Finding of its severity, created when it fires and closed when it is over', () => {
  const details = { alert_id: 'a', name: 'Budget', kind: 'budget_share', firing_id: 'f', about: '85 % are used.' }
  const found = (event_type: 'alert.fired' | 'alert.resolved', severity: string) =>
    ocsfOf(event({ event_type, details: { ...details, severity } }))
  expect(found('alert.fired', 'critical')).toMatchObject({
    ...{ class_uid: 2004, type_uid: 200401, activity_name: 'Create', severity_id: 5, status_id: 1, is_alert: true },
    finding_info: {
      ...{ uid: 'f', title: 'Budget', desc: '85 % are used.', types: ['budget_share'] },
      analytic: { uid: 'a', name: 'Budget', type_id: 1 },
    },
  })
  expect(found('alert.resolved', 'critical')).toMatchObject({
    ...{ class_uid: 2004, type_uid: 200403, activity_name: 'Close', severity_id: 5, status_id: 4 },
    finding_info: { uid: 'f' },
  })
  expect(['info', 'warning', 'of a later version'].map((each) => found('alert.fired', each).severity_id)).toEqual([
    1, 3, 3,
  ])
})

test('a change of every kind of record has its activity, and what failed is a failure that stands out', () => {
  const activity = (event_type: EventType) => ocsfOf(event({ event_type })).activity_name
  const ends: EventType[] = ['alert.channel_deleted', 'member.team_deleted', 'oauth.token_revoked', 'token.revoked']
  const more: EventType[] = ['identity_provider.scim_token_revoked', 'mcp_connection.ended', 'mcp.offer_withdrawn']
  expect([...ends, ...more].map(activity)).toEqual(Array(7).fill('Delete'))
  const begins: EventType[] = ['alert.channel_created', 'identity_provider.scim_token_created', 'token.cloned']
  expect(begins.map(activity)).toEqual(Array(3).fill('Create'))
  const changes: EventType[] = [
    'escalation.unclaimed',
    'escalation.decided',
    'oauth.client_deactivated',
    'mcp.offer_dismissed',
  ]
  expect(changes.map(activity)).toEqual(Array(4).fill('Update'))
  const graded = (event_type: EventType) => {
    const { severity_id, status_id } = ocsfOf(event({ event_type, verdict: 'allow' }))
    return [severity_id, status_id]
  }
  expect(graded('sink.failing')).toEqual([3, 2])
  expect(graded('sink.records_lost')).toEqual([4, 2])
  expect(graded('usage.lease_lost')).toEqual([3, 2])
  expect(graded('token.emergency_revoked')).toEqual([3, 1])
  expect(graded('sink.recovered')).toEqual([1, 1])
})

test('a request is API Activity with its route, status and provider; a change has its activity', () => {
  const request = ocsfOf(event({ event_type: 'gateway.request.outcome', verdict: 'deny', request_id: 'r-1' }))
  expect(request).toMatchObject({
    ...{
      class_uid: 6003,
      activity_id: 99,
      status_id: 2,
      http_response: { code: 403 },
      dst_endpoint: { name: 'openai' },
    },
    api: { operation: 'POST /v1/chat/completions', request: { uid: 'r-1' } },
  })
  expect(ocsfOf(event({ event_type: 'token.created' })).activity_id).toBe(1)
  expect(ocsfOf(event({ event_type: 'token.updated' })).activity_id).toBe(3)
  expect(ocsfOf(event({ event_type: 'token.revoked' })).activity_id).toBe(4)
})

test('the actor of a change is who made it, not the token that was changed', () => {
  const change = { event_type: 'token.created', event_attribution: { ...noAttribution, token_id: 'new' } } as const
  const by = (actor: string) => ocsfOf(event({ ...change, details: { actor } })).actor
  expect(by('user:ada')).toMatchObject({ user: { uid: 'ada', type_id: 1 } })
  expect(by('token:operator')).toMatchObject({ user: { uid: 'operator', type_id: 3 } })
  expect(ocsfOf(event({ ...change, details: {} })).actor).toMatchObject({ user: { uid: 'new', type_id: 3 } })
})
