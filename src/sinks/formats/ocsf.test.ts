import { expect, test } from 'bun:test'
import { type Event, noAttribution, verdicts } from '../../events/event.ts'
import { eventTypes } from '../../events/event-types.ts'
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
    { details: { policy_id: 'p', user_id: 'u', address: '2001:db8::1', status: null, provider: null }, request_id: '' },
  ]
  for (const event_type of eventTypes) {
    for (const verdict of verdicts) {
      for (const [index, event_attribution] of attributions.entries()) {
        const ocsf = ocsfOf(event({ event_type, verdict, event_attribution, ...others[index] }))
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
