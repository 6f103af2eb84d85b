/** Codes and refresh tokens that come to two control planes of one installation at once: what works once works once. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { type FleetUnderTest, startFleet } from '../fleet/fleet.ts'
import { api } from '../support/client.ts'
import { eventually } from '../support/eventually.ts'
import { approvedCode, post, refresh, type Tokens, tokensFor, tokensOf } from './flow.ts'
import { fromConsentPage, type Person, person, register } from './people.ts'

setDefaultTimeout(60_000)

let fleet: FleetUnderTest
let ada: Person
let clientId: string

beforeAll(async () => {
  fleet = await startFleet({ gateways: 1 })
  ada = await person(fleet.planes[0], 'ada')
  clientId = await register(fleet.planes[0])
}, 240_000)
afterAll(() => fleet?.[Symbol.asyncDispose]())

/** As many at once, dealt out to both control planes; what those that were answered with tokens got. */
async function atOnce(send: (plane: FleetUnderTest['planes'][number]) => ReturnType<typeof post>): Promise<Tokens[]> {
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, index) => send(fleet.planes[index % 2 === 0 ? 0 : 1])),
  )
  for (const { status, body } of answers)
    if (status !== 200) expect([status, body.error]).toEqual([400, 'invalid_grant'])
  return answers.filter(({ status }) => status === 200).map(tokensOf)
}

async function expectDead(tokens: readonly Tokens[]): Promise<void> {
  for (const { access_token, refresh_token } of tokens) {
    for (const plane of fleet.planes) {
      const headers = { authorization: `Bearer ${access_token}` }
      expect((await fetch(`${plane.baseUrl}/v1/tokens`, { headers })).status).toBe(401)
      expect((await refresh(plane, clientId, refresh_token)).body.error).toBe('invalid_grant')
    }
  }
}

test('of two concurrent redemptions of a code at two control planes at most one gives tokens, and then all are revoked', async () => {
  for (let round = 0; round < 2; round += 1) {
    const { request } = await approvedCode(fleet.planes[0], clientId, ada)
    const given = await atOnce((plane) => post(plane, '/v1/oauth/token', request))
    expect(given.length).toBeLessThanOrEqual(1)
    await expectDead(given)
  }
})

test('of two concurrent uses of a refresh token at two control planes at most one gives tokens, and the family ends at both', async () => {
  for (let round = 0; round < 2; round += 1) {
    const first = await tokensFor(fleet.planes[1], clientId, ada)
    const given = await atOnce((plane) => refresh(plane, clientId, first.refresh_token))
    expect(given.length).toBeLessThanOrEqual(1)
    await expectDead([first, ...given])
  }
})

test('a device that asks at one control plane is let in at the other and gets its tokens once', async () => {
  const grant_type = 'urn:ietf:params:oauth:grant-type:device_code'
  const device = await register(fleet.planes[1], { grant_types: [grant_type, 'refresh_token'] })
  const { body: asked } = await post(fleet.planes[0], '/v1/oauth/device_authorization', { client_id: device })
  const user_code = String(asked.user_code)
  const request = { grant_type, client_id: device, device_code: String(asked.device_code) }
  expect((await post(fleet.planes[0], '/v1/oauth/token', request)).body.error).toBe('authorization_pending')
  const scopes = ['gateway:invoke', 'tokens:read']
  const decided = await fetch(`${fleet.planes[1].baseUrl}/v1/oauth/device/decision`, {
    method: 'POST',
    headers: fromConsentPage(fleet.planes[1], ada),
    body: JSON.stringify({ user_code, approve: true, scopes, user_id: ada.id }),
  })
  expect([decided.status, await decided.json()]).toEqual([200, { approved: true }])
  const given = await atOnce((plane) => post(plane, '/v1/oauth/token', request))
  expect(given.length).toBeLessThanOrEqual(1)
  await expectDead(given)
})

test('a person signs in at a gateway of one control plane, approves at the other, and gets the settings made there', async () => {
  const [gateway] = fleet.gateways
  const grant_type = 'urn:ietf:params:oauth:grant-type:device_code'
  await register(fleet.planes[0], {
    ...{ client_id: 'claude-code', scope: 'gateway:invoke', redirect_uris: undefined },
    grant_types: [grant_type, 'refresh_token'],
  })
  const made = await api(fleet.planes[1], '/v1/catalog/managed-settings', {
    body: { name: 'all', settings: { model: 'x' } },
  })
  expect(made.status).toBe(201)
  const at = { ...fleet.planes[0], baseUrl: gateway?.gatewayUrl ?? '' }
  const { body: asked } = await post(at, '/v1/oauth/device_authorization', { surface: 'claude_code' })
  const decided = await fetch(`${fleet.planes[1].baseUrl}/v1/oauth/device/decision`, {
    method: 'POST',
    headers: fromConsentPage(fleet.planes[1], ada),
    body: JSON.stringify({ user_code: asked.user_code, approve: true, scopes: ['gateway:invoke'], user_id: ada.id }),
  })
  expect(decided.status).toBe(200)
  const { body: given } = await post(at, '/v1/oauth/token', { grant_type, device_code: String(asked.device_code) })
  const headers = { authorization: `Bearer ${given.access_token}` }
  await eventually(async () => {
    const answer = await fetch(`${at.baseUrl}/managed/settings`, { headers })
    expect(await answer.json()).toMatchObject({ settings: { model: 'x' } })
  })
})
