import { afterAll, beforeAll, expect, test } from 'bun:test'
import { z } from 'zod'
import { type TemporaryControlPlane, temporaryControlPlane } from '../../members/testing/temporary-control-plane.ts'
import { togetherRoutes } from './together-routes.ts'

let plane: TemporaryControlPlane
let called: string[] = []
beforeAll(async () => {
  plane = await temporaryControlPlane(undefined, ({ ledger }) => [
    togetherRoutes({
      ledger,
      fetch: async ({ method, url }) => {
        called.push(`${method} ${new URL(url).pathname}`)
        return Response.json({ id: 'made' })
      },
      together: (work) => work(),
    }),
  ])
})
afterAll(() => plane.remove())

const path = '/v1/together'
const asAdmin = (body: object) => plane.call('POST', path, { token: plane.adminToken, body })
const fault = ({ status, json }: Awaited<ReturnType<typeof asAdmin>>) => [status, json.error?.param]

test('makes calls of records only: no list within a list, no token, no trial', async () => {
  called = []
  const refused = [
    ['POST', '/v1/together'],
    ['POST', '/v1/tokens'],
    ['POST', '/v1/master-key/rotate'],
    ['POST', '/v1/sinks/a/test'],
    ['POST', '/v1/alert-channels/a/test'],
    ['POST', '/v1/policies/test'],
    ['POST', '/v1/users/a/setup-link'],
    ['PATCH', '/v1/teams/../together'],
    ['DELETE', '/v1/tokens/a'],
  ]
  for (const [method, to] of refused) {
    const good = { method: 'POST', path: '/v1/teams', body: { name: 'a' } }
    expect([to, ...fault(await asAdmin({ calls: [good, { method, path: to, body: {} }] }))]).toEqual([
      to,
      422,
      'calls.1.path',
    ])
  }
  expect(called).toEqual([])
  const calls = [
    { method: 'POST', path: '/v1/teams', body: {}, creates: 'team' },
    { method: 'POST', path: '/v1/teams/urn:gatehouse:created:team/members', body: {} },
    { method: 'DELETE', path: '/v1/teams/a/members/b' },
    { method: 'PATCH', path: '/v1/catalog/models/a%2Fb', body: {} },
    { method: 'POST', path: '/v1/oauth/clients/a/deactivate' },
  ]
  expect((await asAdmin({ calls })).status).toBe(200)
  expect(called).toEqual([
    'POST /v1/teams',
    'POST /v1/teams/made/members',
    'DELETE /v1/teams/a/members/b',
    'PATCH /v1/catalog/models/a%2Fb',
    'POST /v1/oauth/clients/a/deactivate',
  ])
})

test('a label needs the permission to change the record, and a token of a team sees none', async () => {
  const label = (to: string) => ({ calls: [], labels: [{ path: to, id: 'a', label: 'shop' }] })
  await plane.addPerson('ops@example.com', 'operator')
  const operator = await plane.signInAs('ops@example.com')
  const as = { cookie: operator.cookie, headers: plane.fromPage(operator) }
  expect((await plane.call('POST', path, { ...as, body: label('/v1/gateways') })).status).toBe(200)
  expect((await plane.call('POST', path, { ...as, body: label('/v1/teams') })).status).toBe(403)
  expect(fault(await asAdmin(label('/v1/tokens')))).toEqual([422, 'labels.0.path'])
  const { json } = await plane.call('GET', '/v1/labels', { token: plane.adminToken })
  expect(z.array(z.looseObject({})).parse(json.labels)).toEqual([{ path: '/v1/gateways', id: 'a', label: 'shop' }])
})
