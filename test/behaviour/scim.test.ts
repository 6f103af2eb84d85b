/** SCIM as an identity provider calls it over HTTP, with a token that the command line made. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { type FakeUpstream, startFakeUpstream } from '../fakes/upstream.ts'
import { api, chat, createToken, expectAnswer } from '../support/client.ts'
import { type Gatehouse, operate, startGatehouse } from '../support/harness.ts'

setDefaultTimeout(60_000)

const created = z.looseObject({ id: z.uuid(), secret: z.string().startsWith('gthm_'), scim_url: z.url() })
const resource = z.looseObject({ id: z.uuid() })
const error = z.object({
  schemas: z.tuple([z.literal('urn:ietf:params:scim:api:messages:2.0:Error')]),
  status: z.string(),
  scimType: z.string().optional(),
  detail: z.string(),
})
let upstream: FakeUpstream
let gatehouse: Gatehouse
beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
}, 120_000)
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
})

async function client(issuer: string) {
  const body = { name: issuer, issuer, client_id: 'gatehouse', default_role: 'member' }
  const { id } = expectAnswer(await api(gatehouse, '/v1/identity-providers', { body }), 201, resource)
  const flags = ['--identity-provider-id', id, '--name', 'provisioning', '--json']
  const made = await operate(gatehouse, 'scim-token', 'create', ...flags)
  expect(made.code).toBe(0)
  const token = created.parse(JSON.parse(made.stdout))
  return {
    token,
    async call(method: string, path: string, sent?: object) {
      const headers = { authorization: `Bearer ${token.secret}`, 'content-type': 'application/scim+json' }
      const init = sent === undefined ? { method, headers } : { method, headers, body: JSON.stringify(sent) }
      const answer = await fetch(token.scim_url + path, init)
      const text = await answer.text()
      const type = answer.headers.get('content-type') ?? ''
      const body: unknown = type.startsWith('application/scim+json') ? JSON.parse(text) : text
      return { status: answer.status, headers: answer.headers, body, text }
    },
  }
}

const user = (userName: string) => ({
  ...{ schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'], userName, externalId: userName, active: true },
})

test('a person goes through the whole life of an account, and loses the tokens at its end', async () => {
  const acme = await client('https://acme.example.com')
  const missing = await acme.call('GET', `/Users?filter=${encodeURIComponent('userName eq "ann@example.com"')}`)
  expect(missing.body).toMatchObject({ totalResults: 0, Resources: [] })
  const { id } = expectAnswer(await acme.call('POST', '/Users', user('ann@example.com')), 201, resource)
  expect(expectAnswer(await acme.call('POST', '/Users', user('ANN@example.com')), 409, error).scimType).toBe(
    'uniqueness',
  )
  const group = { schemas: [], displayName: 'Sales', members: [{ value: id }] }
  const { id: groupId } = expectAnswer(await acme.call('POST', '/Groups', group), 201, resource)
  const token = await createToken(gatehouse, { name: 'own', bindings: { user_id: id } })
  expect((await chat(gatehouse, { token: token.token_value })).status).toBe(200)
  const off = { schemas: [], Operations: [{ op: 'Replace', path: 'active', value: 'False' }] }
  const patched = await acme.call('PATCH', `/Users/${id}`, off)
  expect([patched.status, patched.body]).toMatchObject([200, { active: false }])
  expect((await chat(gatehouse, { token: token.token_value })).status).toBe(401)
  const deleted = await acme.call('DELETE', `/Users/${id}`)
  expect([deleted.status, deleted.text]).toEqual([204, ''])
  expectAnswer(await acme.call('GET', `/Users/${id}`), 404, error)
  expect((await acme.call('GET', `/Groups/${groupId}`)).body).toMatchObject({ displayName: 'Sales', members: [] })
})

test("another provider's token finds nothing of it", async () => {
  const [one, other] = [await client('https://one.example.com'), await client('https://other.example.com')]
  const { id } = expectAnswer(await one.call('POST', '/Users', user('bob@example.com')), 201, resource)
  for (const method of ['GET', 'DELETE']) expectAnswer(await other.call(method, `/Users/${id}`), 404, error)
  expectAnswer(await other.call('PUT', `/Users/${id}`, user('bob@example.com')), 404, error)
  expect((await other.call('GET', '/Users')).body).toMatchObject({ totalResults: 0 })
  expect((await one.call('GET', `/Users/${id}`)).body).toMatchObject({ id, active: true })
})

test('a revoked token ends at once, and what is refused leaves no secret in the log', async () => {
  const { token, call } = await client('https://revoked.example.com')
  expect((await call('GET', '/ServiceProviderConfig')).status).toBe(200)
  const revoked = await operate(gatehouse, 'scim-token', 'revoke', token.id, '--yes')
  expect(revoked.code).toBe(0)
  expectAnswer(await call('GET', '/ServiceProviderConfig'), 401, error)
  const listed = await operate(gatehouse, 'scim-token', 'list')
  expect(listed.stdout).toContain('revoked')
  expect(listed.stdout + gatehouse.stdout() + gatehouse.stderr()).not.toContain(token.secret)
})
