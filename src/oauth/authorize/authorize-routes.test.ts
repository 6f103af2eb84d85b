import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { testOrigin } from '../../members/testing/temporary-control-plane.ts'
import { type TemporaryOAuth, type TestPerson, temporaryOAuth, testRedirect } from '../testing/oauth.ts'

let oauth: TemporaryOAuth
let ada: TestPerson
let clientId: string

beforeAll(async () => {
  oauth = await temporaryOAuth()
  ada = await oauth.person()
  clientId = await oauth.register({ scope: 'gateway:invoke events:read events:export' })
})
afterAll(() => oauth.remove())

const preview = (fields: Record<string, unknown> = {}, person = ada) =>
  oauth.call('POST', '/v1/oauth/authorize/preview', {
    ...person.asPage,
    body: oauth.query(clientId, { scope: 'gateway:invoke', ...fields }),
  })

const decide = (approve: boolean, fields: Record<string, unknown> = {}) =>
  oauth.call('POST', '/v1/oauth/authorize/decision', {
    ...ada.asPage,
    body: {
      ...oauth.query(clientId, { scope: 'gateway:invoke', ...fields }),
      ...{ approve, scopes: ['gateway:invoke'], user_id: ada.id },
    },
  })

describe('the preview', () => {
  test('says who asks for what, with a sentence for each scope, and the redirect target', async () => {
    const { status, json } = await preview({ scope: 'events:export gateway:invoke' })
    expect(status).toBe(200)
    expect(json).toEqual({
      client: { client_id: clientId, client_name: 'A notebook', created_by: null, origin: 'administrator' },
      redirect_uri: testRedirect,
      redirect_host: 'app.example.com',
      scopes: [
        { scope: 'events:export', sentence: expect.stringContaining('Download'), held: false },
        { scope: 'gateway:invoke', sentence: expect.stringContaining('models'), held: true },
      ],
      resources: [],
      user: { id: ada.id, name: 'Somebody', email: 'ada@example.com' },
    })
  })

  test('names the person who registered the application', async () => {
    const owner = await oauth.person('owner@example.com', 'owner')
    const registered = await oauth.call('POST', '/v1/oauth/clients', {
      ...owner.asPage,
      body: { client_name: 'Hers', redirect_uris: [testRedirect], scope: 'gateway:invoke' },
    })
    const { json } = await preview({ client_id: registered.json.client_id })
    expect(json.client).toMatchObject({ client_name: 'Hers', created_by: { name: 'Somebody' } })
  })

  test('asks for the registered scopes without a scope parameter', async () => {
    const { json } = await preview({ scope: '' })
    expect(json.scopes.map(({ scope }: { scope: string }) => scope)).toEqual([
      'gateway:invoke',
      'events:read',
      'events:export',
    ])
  })

  test('shows what the token would be for', async () => {
    const { json } = await preview({ resource: ['http://127.0.0.1:7080/', testOrigin] })
    expect(json.resources).toEqual(['http://127.0.0.1:7080', testOrigin])
  })

  test('is for a person in a browser only', async () => {
    const body = oauth.query(clientId)
    const byToken = await oauth.call('POST', '/v1/oauth/authorize/preview', { token: oauth.adminToken, body })
    expect([byToken.status, byToken.json.error.code]).toEqual([403, 'permission_denied'])
    expect((await oauth.call('POST', '/v1/oauth/authorize/preview', { body })).status).toBe(401)
  })
})

describe('the decision', () => {
  test('redirects an approval with code, state and issuer', async () => {
    const { status, json } = await decide(true, { state: 'a b&c=d+é' })
    expect(status).toBe(200)
    const to = new URL(json.redirect_to)
    expect(to.origin + to.pathname).toBe(testRedirect)
    expect(to.searchParams.get('code')).toMatch(/^gthc_[0-9A-Za-z]{36}$/)
    expect(to.searchParams.get('state')).toBe('a b&c=d+é')
    expect(to.searchParams.get('iss')).toBe(testOrigin)
  })

  test('redirects a denial with access_denied, state and issuer', async () => {
    const { searchParams } = new URL((await decide(false)).json.redirect_to)
    expect([searchParams.get('error'), searchParams.get('state'), searchParams.get('iss')]).toEqual([
      'access_denied',
      'xyz',
      testOrigin,
    ])
    expect(searchParams.has('code')).toBe(false)
  })

  test('gives no second code for a repeated Idempotency-Key, and stores none', async () => {
    const headers = { ...ada.asPage.headers, 'idempotency-key': 'decision-1' }
    const body = await oauth.agreement(ada, oauth.query(clientId, { scope: 'gateway:invoke' }))
    const again = () => oauth.call('POST', '/v1/oauth/authorize/decision', { ...ada.asPage, headers, body })
    const code = new URL((await again()).json.redirect_to).searchParams.get('code') ?? ''
    const second = await again()
    expect([second.status, second.json.error.code]).toEqual([409, 'idempotency_key_used'])
    const kept = JSON.stringify(await oauth.store.ledger.read('select * from idempotency_keys'))
    expect(code).toStartWith('gthc_')
    expect(kept).not.toContain(code)
  })

  test('is refused, and grants nothing, with other scopes than were shown', async () => {
    const changing = await oauth.register({ scope: 'gateway:invoke' })
    const asked = oauth.query(changing, { scope: '' })
    const agreed = await oauth.agreement(ada, asked)
    const send = (body: object) => oauth.call('POST', '/v1/oauth/authorize/decision', { ...ada.asPage, body })
    const body = { scope: 'gateway:invoke tokens:read' }
    await oauth.call('PATCH', `/v1/oauth/clients/${changing}`, { token: oauth.adminToken, body })
    const { status, json } = await send(agreed)
    expect([status, json.error.code]).toEqual([409, 'consent_outdated'])
    expect(await oauth.store.ledger.read('select 1 from oauth_grants where client_id = ?', [changing])).toEqual([])
    const again = await send(await oauth.agreement(ada, asked))
    expect(new URL(again.json.redirect_to).searchParams.has('code')).toBe(true)
  })

  test('is refused when the application has another name than the page showed', async () => {
    const renamed = await oauth.register({ client_name: 'Known' })
    const agreed = await oauth.agreement(ada, oauth.query(renamed, { scope: 'gateway:invoke' }))
    await oauth.call('PATCH', `/v1/oauth/clients/${renamed}`, {
      token: oauth.adminToken,
      body: { client_name: 'Another' },
    })
    const body = { ...agreed, client_name: 'Known' }
    const { status, json } = await oauth.call('POST', '/v1/oauth/authorize/decision', { ...ada.asPage, body })
    expect([status, json.error.code]).toEqual([409, 'consent_outdated'])
    const known = { ...ada.asPage, body: { ...agreed, client_name: 'Another' } }
    const again = await oauth.call('POST', '/v1/oauth/authorize/decision', known)
    expect(new URL(again.json.redirect_to).searchParams.has('code')).toBe(true)
  })

  test('is refused from another account than the page showed, yes or no, and leaves nothing', async () => {
    const bea = await oauth.person('bea@example.com')
    const agreed = await oauth.agreement(ada, oauth.query(clientId, { scope: 'gateway:invoke' }))
    for (const approve of [true, false]) {
      const body = { ...agreed, approve }
      const { status, json } = await oauth.call('POST', '/v1/oauth/authorize/decision', { ...bea.asPage, body })
      expect([status, json.error.code]).toEqual([409, 'consent_outdated'])
    }
    expect(await oauth.store.ledger.read('select 1 from oauth_grants where user_id = ?', [bea.id])).toEqual([])
  })

  test('needs what was shown for an approval, and not for a denial', async () => {
    const body = oauth.query(clientId, { scope: 'gateway:invoke' })
    const send = (approve: boolean) =>
      oauth.call('POST', '/v1/oauth/authorize/decision', { ...ada.asPage, body: { ...body, approve } })
    const { status, json } = await send(true)
    expect([status, json.error.param]).toEqual([422, 'scopes'])
    Object.assign(body, { scopes: ['gateway:invoke'] })
    expect((await send(true)).json.error.param).toBe('user_id')
    expect(new URL((await send(false)).json.redirect_to).searchParams.get('error')).toBe('access_denied')
  })

  test('is refused without the CSRF token of the session', async () => {
    const body = { ...oauth.query(clientId), approve: true }
    const { cookie } = ada.asPage
    const forged = await oauth.call('POST', '/v1/oauth/authorize/decision', { cookie, body })
    expect([forged.status, forged.json.error.code]).toEqual([403, 'csrf_refused'])
  })

  test('leaves an event that names person and application, without the code', async () => {
    const { json } = await decide(true, { scope: 'gateway:invoke' })
    const code = new URL(json.redirect_to).searchParams.get('code') ?? ''
    const event = (await recordedEvents(oauth.store.ledger, 'oauth.authorized')).at(-1)
    expect(event).toMatchObject({
      event_attribution: { user_id: ada.id, oauth_client_id: clientId },
      details: { client_id: clientId, scope: 'gateway:invoke' },
    })
    expect(JSON.stringify(event)).not.toContain(code)
  })
})

test('the retired route is gone', async () => {
  for (const method of ['GET', 'POST']) {
    const { status, json } = await oauth.call(method, '/v1/oauth/authorize?client_id=x')
    expect([status, json.error.code]).toEqual([410, 'gone'])
  }
})
