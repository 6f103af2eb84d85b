import { expect, test } from 'bun:test'
import { type Event, noAttribution } from '../../events/event.ts'
import { eventTypes } from '../../events/event-types.ts'
import { testEvent } from '../../events/testing/ledger.ts'
import { ocsfOf } from './ocsf.ts'

const details = { route: 'POST /v1/chat/completions', provider: 'openai', status: 403, address: '192.0.2.1' }
const event = (change: Partial<Event>): Event => testEvent({ details, ...change })

/** The members that the schema of each class asks for (schema.ocsf.io, 1.5.0), beside those of every class. */
const required: Readonly<Record<number, readonly string[]>> = {
  2004: ['finding_info'],
  3002: ['user'],
  6003: ['actor', 'api', 'src_endpoint'],
}
const ofAll = ['activity_id', 'category_uid', 'class_uid', 'metadata', 'severity_id', 'time', 'type_uid']

test('every type of event has the members that its class asks for, and a type that fits class and activity', () => {
  for (const event_type of eventTypes) {
    for (const verdict of ['allow', 'deny', 'error'] as const) {
      const ocsf = ocsfOf(event({ event_type, verdict, event_attribution: noAttribution, details: {} }))
      const { class_uid, activity_id, category_uid, type_uid } = ocsf
      const missing = [...ofAll, ...(required[Number(class_uid)] ?? ['class'])].filter(
        (name) => ocsf[name] === undefined,
      )
      expect([event_type, missing]).toEqual([event_type, []])
      expect(type_uid).toBe(Number(class_uid) * 100 + Number(activity_id))
      expect(category_uid).toBe(Math.floor(Number(class_uid) / 1000))
    }
  }
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
