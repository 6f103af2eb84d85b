/** The device grant over its routes: the answers of RFC 8628, and the attacks on it. Long because it is a table of refusals. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { deviceGrant } from '../clients/client-resource.ts'
import { type TemporaryOAuth, type TestPerson, temporaryOAuth, testGatewayUrl } from '../testing/oauth.ts'

let oauth: TemporaryOAuth
let ada: TestPerson
let clientId: string
const scope = 'gateway:invoke tokens:read'

beforeAll(async () => {
  oauth = await temporaryOAuth()
  ada = await oauth.person()
  clientId = await oauth.register({ grant_types: [deviceGrant, 'refresh_token'], redirect_uris: undefined, scope })
})
afterAll(() => oauth.remove())

const ask = async (fields: Record<string, string> = {}, address: string = crypto.randomUUID()) =>
  await oauth.call('POST', '/v1/oauth/device_authorization', { form: { client_id: clientId, ...fields }, address })
const asked = async (fields: Record<string, string> = {}) => (await ask(fields)).json
const poll = (device_code: string, fields: Record<string, string> = {}) =>
  oauth.token({ grant_type: deviceGrant, client_id: clientId, device_code, ...fields })
const preview = (user_code: string, who = ada) =>
  oauth.call('POST', '/v1/oauth/device/preview', { ...who.asPage, body: { user_code } })
async function decide(user_code: string, approve: boolean, who = ada) {
  const { json } = await preview(user_code, who)
  const scopes = json.scopes?.map((one: { scope: string }) => one.scope)
  const body = { user_code, approve, scopes, user_id: who.id, client_name: json.client?.client_name }
  return await oauth.call('POST', '/v1/oauth/device/decision', { ...who.asPage, body })
}
const errorOf = ({ status, json }: { status: number; json: { error: unknown } }) => [status, json.error]

describe('a device', () => {
  test('gets codes, and tokens once a person has approved', async () => {
    const { status, json, headers } = await ask({ scope: 'gateway:invoke', resource: testGatewayUrl })
    expect([status, headers.get('cache-control')]).toEqual([200, 'no-store'])
    expect(json).toEqual({
      device_code: expect.stringMatching(/^gthc_[0-9A-Za-z]{36}$/),
      user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/),
      verification_uri: 'http://127.0.0.1:7070/console/device',
      verification_uri_complete: `http://127.0.0.1:7070/console/device?user_code=${json.user_code}`,
      expires_in: 600,
      interval: 5,
    })
    expect(errorOf(await poll(json.device_code))).toEqual([400, 'authorization_pending'])
    expect((await decide(json.user_code, true)).json).toEqual({ approved: true })
    const given = await poll(json.device_code)
    expect(given.status).toBe(200)
    expect(given.json).toMatchObject({ token_type: 'Bearer', expires_in: 3600, scope: 'gateway:invoke' })
    expect((await oauth.refresh(clientId, given.json.refresh_token)).status).toBe(200)
    expect((await oauth.eventsOf('oauth.authorized')).at(-1)).toMatchObject({
      event_attribution: { user_id: ada.id, oauth_client_id: clientId },
      details: { grant_type: deviceGrant, resources: [testGatewayUrl] },
    })
  })

  test('that asks for no scope gets all that its application is registered for', async () => {
    const { device_code, user_code } = await asked()
    await decide(user_code, true)
    const { json } = await poll(device_code)
    expect(json.scope).toBe(scope)
    expect(await oauth.works(json.access_token)).toBe(true)
  })

  test('is told access_denied when the person denies', async () => {
    const { device_code, user_code } = await asked()
    expect((await decide(user_code, false)).json).toEqual({ approved: false })
    expect(errorOf(await poll(device_code))).toEqual([400, 'access_denied'])
    expect((await oauth.eventsOf('oauth.denied')).at(-1)).toMatchObject({ reason_code: 'access_denied' })
  })

  test('that polls too often is told to slow down, and its interval grows', async () => {
    const { device_code } = await asked()
    expect(errorOf(await poll(device_code))).toEqual([400, 'authorization_pending'])
    expect((await poll(device_code)).json).toEqual({
      error: 'slow_down',
      error_description: 'Ask at most every 10 seconds',
    })
    oauth.clock.advance(5000)
    expect((await poll(device_code)).json.error_description).toBe('Ask at most every 15 seconds')
    oauth.clock.advance(15_000)
    expect(errorOf(await poll(device_code))).toEqual([400, 'authorization_pending'])
  })

  test('is told expired_token when nobody has answered in time', async () => {
    const { device_code, user_code } = await asked()
    oauth.clock.advance(600_000)
    expect(errorOf(await poll(device_code))).toEqual([400, 'expired_token'])
    expect((await preview(user_code)).status).toBe(404)
  })

  test('that asks just after the last moment still gets what was approved, and later expired_token', async () => {
    const [early, late] = [await asked(), await asked()]
    oauth.clock.advance(599_000)
    await decide(early.user_code, true)
    await decide(late.user_code, true)
    oauth.clock.advance(30_000)
    expect((await poll(early.device_code)).status).toBe(200)
    oauth.clock.advance(31_000)
    expect(errorOf(await poll(late.device_code))).toEqual([400, 'expired_token'])
  })

  test('that uses its code twice loses what the code gave', async () => {
    const { device_code, user_code } = await asked()
    await decide(user_code, true)
    const { json } = await poll(device_code)
    expect(await oauth.works(json.access_token)).toBe(true)
    expect(errorOf(await poll(device_code))).toEqual([400, 'invalid_grant'])
    expect(await oauth.works(json.access_token)).toBe(false)
  })

  test('that asks several times at once gets tokens at most once', async () => {
    const { device_code, user_code } = await asked()
    await decide(user_code, true)
    const answers = await Promise.all(Array.from({ length: 6 }, () => poll(device_code)))
    expect(answers.filter(({ status }) => status === 200).length).toBeLessThanOrEqual(1)
  })

  test('gets nothing with a code of another application, an invented code, or none', async () => {
    const other = await oauth.register({ grant_types: [deviceGrant, 'refresh_token'], scope })
    const { device_code, user_code } = await asked()
    await decide(user_code, true)
    expect(errorOf(await poll(device_code, { client_id: other }))).toEqual([400, 'invalid_grant'])
    expect(errorOf(await poll(`gthc_${'x'.repeat(36)}`))).toEqual([400, 'invalid_grant'])
    expect(errorOf(await poll(''))).toEqual([400, 'invalid_request'])
    expect(errorOf(await poll(user_code))).toEqual([400, 'invalid_grant'])
    expect((await poll(device_code)).status).toBe(200)
  })

  test('gets no tokens for a resource that was not approved', async () => {
    const { device_code, user_code } = await asked({ resource: testGatewayUrl })
    await decide(user_code, true)
    expect(errorOf(await poll(device_code, { resource: 'http://127.0.0.1:7070' }))).toEqual([400, 'invalid_target'])
  })

  test('gets nothing for a scope that is no longer registered', async () => {
    const { device_code, user_code } = await asked()
    await decide(user_code, true)
    const path = `/v1/oauth/clients/${clientId}`
    await oauth.call('PATCH', path, { token: oauth.adminToken, body: { scope: 'gateway:invoke' } })
    expect(errorOf(await poll(device_code))).toEqual([400, 'invalid_scope'])
    await oauth.call('PATCH', path, { token: oauth.adminToken, body: { scope } })
  })

  test('gets nothing once its application is deactivated or its person disabled', async () => {
    const eve = await oauth.person('eve@example.com')
    const [first, second] = [await asked(), await asked()]
    await decide(first.user_code, true, eve)
    await decide(second.user_code, true)
    const path = `/v1/oauth/clients/${clientId}`
    await oauth.call('POST', `${path}/deactivate`, { token: oauth.adminToken })
    expect(errorOf(await ask())).toEqual([400, 'unauthorized_client'])
    expect(errorOf(await poll(second.device_code))).toEqual([400, 'unauthorized_client'])
    await oauth.call('POST', `${path}/activate`, { token: oauth.adminToken })
    await oauth.call('PATCH', `/v1/users/${eve.id}`, { token: oauth.adminToken, body: { status: 'disabled' } })
    expect(errorOf(await poll(first.device_code))).toEqual([400, 'invalid_grant'])
    expect((await poll(second.device_code)).status).toBe(200)
  })

  test('loses nothing by an outage while its tokens are made', async () => {
    const { device_code, user_code } = await asked()
    await decide(user_code, true)
    const { recorder } = oauth.server
    oauth.server.recorder = { ...recorder, change: () => Promise.reject(new Error('the disk is away')) }
    expect(errorOf(await poll(device_code))).toEqual([500, 'server_error'])
    oauth.server.recorder = recorder
    expect((await poll(device_code)).status).toBe(200)
  })
})

describe('a request for codes is refused', () => {
  test('without a client, with an unknown one, or with one that is not registered for it', async () => {
    const call = (form: Record<string, string>) => oauth.call('POST', '/v1/oauth/device_authorization', { form })
    expect(errorOf(await call({}))).toEqual([400, 'invalid_request'])
    expect(errorOf(await call({ client_id: 'nobody' }))).toEqual([400, 'invalid_client'])
    const browserOnly = await oauth.register()
    expect(errorOf(await call({ client_id: browserOnly }))).toEqual([400, 'unauthorized_client'])
    expect(errorOf(await poll('x', { client_id: browserOnly }))).toEqual([400, 'unauthorized_client'])
  })

  test('for a parameter that comes twice', async () => {
    const body = { client_id: [clientId, clientId] }
    expect(errorOf(await oauth.call('POST', '/v1/oauth/device_authorization', { body }))).toEqual([
      400,
      'invalid_request',
    ])
  })

  test('for a scope that is malformed, unknown or not registered', async () => {
    for (const wrong of ['gateway:invoke  x', 'nothing', 'events:read', 'openid gateway:invoke']) {
      expect(errorOf(await ask({ scope: wrong }))).toEqual([400, 'invalid_scope'])
    }
  })

  test('for an unknown resource', async () => {
    expect(errorOf(await ask({ resource: 'https://elsewhere.example.com' }))).toEqual([400, 'invalid_target'])
  })

  test('with 429 after 60 in a minute from one address, until the minute is over', async () => {
    for (let index = 0; index < 60; index += 1) expect((await ask({}, '198.51.100.7')).status).toBe(200)
    const refused = await ask({}, '198.51.100.7')
    expect([...errorOf(refused), refused.headers.get('retry-after')]).toEqual([429, 'slow_down', '60'])
    expect((await ask({}, '198.51.100.8')).status).toBe(200)
    oauth.clock.advance(60_001)
    expect((await ask({}, '198.51.100.7')).status).toBe(200)
  })
})

describe('the page', () => {
  test('shows who asks, for what, as whom and since when, whatever the case and dashes of the code', async () => {
    const { user_code } = await asked({ scope: 'gateway:invoke' })
    const typed = ` ${user_code.toLowerCase().replace('-', ' – ')}`
    expect((await preview(typed)).json).toMatchObject({
      user_code,
      asked_at: new Date(oauth.clock.now()).toISOString(),
      client: { client_id: clientId, client_name: 'A notebook' },
      scopes: [{ scope: 'gateway:invoke', held: true }],
      resources: [],
      user: { id: ada.id },
    })
  })

  test('answers a code once', async () => {
    const { user_code, device_code } = await asked()
    expect((await decide(user_code, false)).status).toBe(200)
    expect((await decide(user_code, true)).status).toBe(404)
    expect(errorOf(await poll(device_code))).toEqual([400, 'access_denied'])
  })

  test('answers one of two that come at once', async () => {
    const { user_code } = await asked()
    const answers = await Promise.all([decide(user_code, true), decide(user_code, false)])
    expect(answers.filter(({ status }) => status === 200)).toHaveLength(1)
  })

  test('needs a person in a browser, their CSRF token, and an approval of what was shown', async () => {
    const { user_code } = await asked()
    const body = { user_code, approve: true, scopes: scope.split(' '), user_id: ada.id }
    const path = '/v1/oauth/device/decision'
    expect((await oauth.call('POST', path, { body })).status).toBe(401)
    expect((await oauth.call('POST', path, { body, token: oauth.adminToken })).status).toBe(403)
    expect((await oauth.call('POST', path, { body, cookie: ada.asPage.cookie })).status).toBe(403)
    const answered = async (fields: Record<string, unknown>) => {
      const { status, json } = await oauth.call('POST', path, { ...ada.asPage, body: { ...body, ...fields } })
      return [status, json.error?.code]
    }
    expect(await answered({ scopes: ['gateway:invoke'] })).toEqual([409, 'consent_outdated'])
    expect(await answered({ user_id: crypto.randomUUID() })).toEqual([409, 'consent_outdated'])
    expect(await answered({ client_name: 'Another' })).toEqual([409, 'consent_outdated'])
    expect(await answered({ scopes: undefined })).toEqual([422, 'invalid_parameter'])
    expect(await answered({})).toEqual([200, undefined])
  })
})

test('a person who guesses user codes is stopped after five, also with a code of their own between the guesses', async () => {
  const mallory = await oauth.person('mallory@example.com')
  const { user_code } = await asked()
  for (let guess = 0; guess < 5; guess += 1) {
    expect((await preview('BBBB-BBBB', mallory)).status).toBe(404)
    expect((await preview(user_code, mallory)).status).toBe(200)
  }
  expect((await preview('BBBB-BBBC', mallory)).status).toBe(404)
  const stopped = await preview('BBBB-BBBD', mallory)
  expect([stopped.status, stopped.json.error.code]).toEqual([429, 'sign_in_throttled'])
  expect((await decide(user_code, true, mallory)).status).toBe(429)
  expect((await preview(user_code, ada)).status).toBe(200)
})

test('a device code is no authorization code, and the reverse', async () => {
  const both = await oauth.register({ grant_types: ['authorization_code', deviceGrant, 'refresh_token'] })
  const code = await oauth.approve(both, ada)
  expect(errorOf(await poll(code, { client_id: both }))).toEqual([400, 'invalid_grant'])
  const { json } = await ask({ client_id: both, scope: 'gateway:invoke' })
  await decide(json.user_code, true)
  const crossed = await oauth.token(oauth.codeRequest(both, json.device_code))
  expect(errorOf(crossed)).toEqual([400, 'invalid_grant'])
})

test('neither code is stored or recorded in clear', async () => {
  const { device_code, user_code } = await asked()
  await decide(user_code, true)
  await poll(device_code)
  const kept = JSON.stringify(await oauth.store.ledger.read('select * from oauth_device_codes'))
  const events = JSON.stringify([await oauth.eventsOf('oauth.authorized'), await oauth.eventsOf('oauth.token_issued')])
  for (const secret of [device_code, user_code, user_code.replace('-', '')]) {
    expect(kept.includes(secret)).toBe(false)
    expect(events.includes(secret)).toBe(false)
  }
})
