/** What the token and revocation endpoints do, over the routes themselves; long because it is a table of refusals. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { eventually } from '../../../test/support/eventually.ts'
import { hashSecret } from '../../identity/secret.ts'
import { testOrigin } from '../../members/testing/temporary-control-plane.ts'
import {
  type TemporaryOAuth,
  type TestPerson,
  temporaryOAuth,
  testGatewayUrl,
  testRedirect,
  testVerifier,
} from '../testing/oauth.ts'

let oauth: TemporaryOAuth
let ada: TestPerson
let clientId: string

beforeAll(async () => {
  oauth = await temporaryOAuth()
  ada = await oauth.person()
  clientId = await oauth.register()
})
afterAll(() => oauth.remove())

describe('an authorization code', () => {
  test('gives an access and a refresh token that no cache may keep', async () => {
    const code = await oauth.approve(clientId, ada)
    const { status, json, headers } = await oauth.token(oauth.codeRequest(clientId, code))
    expect(status).toBe(200)
    expect(json).toEqual({
      access_token: expect.stringMatching(/^gtha_[0-9A-Za-z]{36}$/),
      token_type: 'Bearer',
      expires_in: 3600,
      refresh_token: expect.stringMatching(/^gthr_[0-9A-Za-z]{36}$/),
      scope: 'gateway:invoke tokens:read',
    })
    expect([headers.get('cache-control'), headers.get('pragma')]).toEqual(['no-store', 'no-cache'])
  })

  test('is accepted as JSON too', async () => {
    const code = await oauth.approve(clientId, ada)
    const { status } = await oauth.call('POST', '/v1/oauth/token', { body: oauth.codeRequest(clientId, code) })
    expect(status).toBe(200)
  })

  test('ends what it gave when it is reused', async () => {
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    const { json: given } = await oauth.token(request)
    expect(await oauth.works(given.access_token)).toBe(true)
    const again = await oauth.token(request)
    expect([again.status, again.json.error]).toEqual([400, 'invalid_grant'])
    expect(await oauth.works(given.access_token)).toBe(false)
    expect(oauth.announced.at(-1)?.revoked).toHaveLength(1)
    expect((await oauth.refresh(clientId, given.refresh_token)).json.error).toBe('invalid_grant')
    expect((await oauth.eventsOf('oauth.replay_detected')).at(-1)).toMatchObject({
      verdict: 'deny',
      event_attribution: { user_id: ada.id, oauth_client_id: clientId },
      details: { cause: 'code_replay', access_tokens: 1 },
    })
  })

  test('redeemed several times at once works for at most one, and then for nobody', async () => {
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    const answers = await Promise.all(Array.from({ length: 8 }, () => oauth.token(request)))
    const given = answers.filter(({ status }) => status === 200)
    expect(given.length).toBeLessThanOrEqual(1)
    for (const { json } of given) expect(await oauth.works(json.access_token)).toBe(false)
  })

  test('is refused with a wrong verifier and then works with the right one', async () => {
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    const injected = await oauth.token({ ...request, code_verifier: 'w'.repeat(43) })
    expect([injected.status, injected.json.error]).toEqual([400, 'invalid_grant'])
    expect((await oauth.token(request)).status).toBe(200)
  })

  test('with a malformed verifier is an invalid request', async () => {
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    const { json } = await oauth.token({ ...request, code_verifier: 'short' })
    expect(json.error).toBe('invalid_request')
  })

  test('works for its own client and redirect only', async () => {
    const other = await oauth.register({ client_name: 'Another' })
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    expect((await oauth.token({ ...request, client_id: other })).json.error).toBe('invalid_grant')
    expect((await oauth.token({ ...request, redirect_uri: `${testRedirect}/` })).json.error).toBe('invalid_grant')
  })

  test('for a resource that was not approved is an invalid target', async () => {
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada, { resource: testOrigin }))
    const { json } = await oauth.token({ ...request, resource: testGatewayUrl })
    expect(json.error).toBe('invalid_target')
  })

  test('of a person who was disabled meanwhile gives nothing', async () => {
    const gone = await oauth.person('gone@example.com')
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, gone))
    await disable(gone)
    expect((await oauth.token(request)).json.error).toBe('invalid_grant')
  })
})

const disable = (who: TestPerson) =>
  oauth.call('PATCH', `/v1/users/${who.id}`, { token: oauth.adminToken, body: { status: 'disabled' } })

describe('a code of a changed application', () => {
  test('with a scope that the client lost meanwhile gives nothing', async () => {
    const own = await oauth.register()
    const code = await oauth.approve(own, ada)
    const path = `/v1/oauth/clients/${own}`
    await oauth.call('PATCH', path, { token: oauth.adminToken, body: { scope: 'gateway:invoke' } })
    expect((await oauth.token(oauth.codeRequest(own, code))).json.error).toBe('invalid_scope')
  })
})

describe('a refresh token', () => {
  test('gives new tokens and is used up', async () => {
    const first = await oauth.tokens(clientId, ada)
    const { status, json } = await oauth.refresh(clientId, first.refresh_token)
    expect(status).toBe(200)
    expect(json.scope).toBe(first.scope)
    expect(json.refresh_token).not.toBe(first.refresh_token)
    expect(await oauth.works(json.access_token)).toBe(true)
    expect(await oauth.works(first.access_token)).toBe(true)
  })

  test('ends the family when it is reused', async () => {
    const first = await oauth.tokens(clientId, ada)
    const { json: second } = await oauth.refresh(clientId, first.refresh_token)
    expect((await oauth.refresh(clientId, first.refresh_token)).json.error).toBe('invalid_grant')
    expect(await oauth.works(first.access_token)).toBe(false)
    expect(await oauth.works(second.access_token)).toBe(false)
    expect((await oauth.refresh(clientId, second.refresh_token)).json.error).toBe('invalid_grant')
    expect((await oauth.eventsOf('oauth.replay_detected')).at(-1)).toMatchObject({
      details: { cause: 'refresh_replay' },
    })
  })

  test('used several times at once leaves no working token', async () => {
    const first = await oauth.tokens(clientId, ada)
    const answers = await Promise.all(Array.from({ length: 8 }, () => oauth.refresh(clientId, first.refresh_token)))
    const given = answers.filter(({ status }) => status === 200)
    expect(given.length).toBeLessThanOrEqual(1)
    for (const { json } of given) {
      expect(await oauth.works(json.access_token)).toBe(false)
      expect((await oauth.refresh(clientId, json.refresh_token)).status).toBe(400)
    }
    expect(await oauth.works(first.access_token)).toBe(false)
  })

  test('narrows the scope of the access token and never widens it', async () => {
    const first = await oauth.tokens(clientId, ada)
    const { json: narrow } = await oauth.refresh(clientId, first.refresh_token, { scope: 'gateway:invoke' })
    expect(narrow.scope).toBe('gateway:invoke')
    expect(await oauth.works(narrow.access_token)).toBe(false)
    const wider = await oauth.refresh(clientId, narrow.refresh_token, { scope: 'gateway:invoke events:read' })
    expect([wider.status, wider.json.error]).toEqual([400, 'invalid_scope'])
    const { json: whole } = await oauth.refresh(clientId, narrow.refresh_token)
    expect(whole.scope).toBe(first.scope)
  })

  test('is refused for another client and keeps working for its own', async () => {
    const other = await oauth.register({ client_name: 'Another' })
    const first = await oauth.tokens(clientId, ada)
    expect((await oauth.refresh(other, first.refresh_token)).json.error).toBe('invalid_grant')
    expect((await oauth.refresh(clientId, first.refresh_token)).status).toBe(200)
  })

  test('with a scope that the client lost is refused until less is requested', async () => {
    const own = await oauth.register()
    const first = await oauth.tokens(own, ada)
    const path = `/v1/oauth/clients/${own}`
    await oauth.call('PATCH', path, { token: oauth.adminToken, body: { scope: 'gateway:invoke' } })
    expect((await oauth.refresh(own, first.refresh_token)).json.error).toBe('invalid_scope')
    expect((await oauth.refresh(own, first.refresh_token, { scope: 'gateway:invoke' })).status).toBe(200)
  })
})

describe('a deactivated client', () => {
  test('gets neither consent nor tokens, keeps its access tokens, and may revoke them', async () => {
    const own = await oauth.register()
    const first = await oauth.tokens(own, ada)
    const code = await oauth.approve(own, ada)
    const path = `/v1/oauth/clients/${own}`
    const { json } = await oauth.call('POST', `${path}/deactivate`, { token: oauth.adminToken })
    expect(json.status).toBe('deactivated')
    const preview = await oauth.call('POST', '/v1/oauth/authorize/preview', { ...ada.asPage, body: oauth.query(own) })
    const back = new URL(preview.json.redirect_to).searchParams
    expect([back.get('error'), back.get('state'), back.get('iss')]).toEqual(['unauthorized_client', 'xyz', testOrigin])
    expect((await oauth.token(oauth.codeRequest(own, code))).json.error).toBe('unauthorized_client')
    expect((await oauth.refresh(own, first.refresh_token)).json.error).toBe('unauthorized_client')
    expect(await oauth.works(first.access_token)).toBe(true)
    expect((await revoke({ client_id: own, token: first.access_token })).status).toBe(200)
    expect(await oauth.works(first.access_token)).toBe(false)
    await oauth.call('POST', `${path}/activate`, { token: oauth.adminToken })
    expect((await oauth.refresh(own, first.refresh_token)).status).toBe(200)
  })
})

const revoke = (form: Record<string, string>) => oauth.call('POST', '/v1/oauth/revoke', { form })

describe('revocation', () => {
  test('of an access token ends it alone and informs gateways', async () => {
    const first = await oauth.tokens(clientId, ada)
    const { status, json } = await revoke({
      client_id: clientId,
      token: first.access_token,
      token_type_hint: 'refresh_token',
    })
    expect(status).toBe(200)
    expect(json.propagation).toMatchObject({ unreachable: [] })
    expect(oauth.announced.at(-1)?.revoked).toHaveLength(1)
    expect(await oauth.works(first.access_token)).toBe(false)
    expect((await oauth.refresh(clientId, first.refresh_token)).status).toBe(200)
  })

  test('of a refresh token ends everything from the approval', async () => {
    const first = await oauth.tokens(clientId, ada)
    const { json: second } = await oauth.refresh(clientId, first.refresh_token)
    expect((await revoke({ client_id: clientId, token: second.refresh_token })).status).toBe(200)
    expect(await oauth.works(first.access_token)).toBe(false)
    expect(await oauth.works(second.access_token)).toBe(false)
    expect((await oauth.refresh(clientId, second.refresh_token)).json.error).toBe('invalid_grant')
  })

  test('of an invalid or ended token is answered like success', async () => {
    const first = await oauth.tokens(clientId, ada)
    await revoke({ client_id: clientId, token: first.refresh_token })
    for (const token of ['nothing', first.refresh_token, first.access_token]) {
      const { status, json } = await revoke({ client_id: clientId, token })
      expect([status, json]).toEqual([200, {}])
    }
  })

  test("of another client's token is refused and changes nothing", async () => {
    const other = await oauth.register({ client_name: 'Another' })
    const first = await oauth.tokens(clientId, ada)
    for (const token of [first.access_token, first.refresh_token]) {
      const { status, json } = await revoke({ client_id: other, token })
      expect([status, json.error]).toEqual([400, 'invalid_grant'])
    }
    expect(await oauth.works(first.access_token)).toBe(true)
  })

  test('with a parameter twice is an invalid request', async () => {
    const body = new URLSearchParams([
      ['client_id', clientId],
      ['token', 'x'],
      ['token', 'y'],
    ])
    const answer = await oauth.fetch(new Request(`${testOrigin}/v1/oauth/revoke`, { method: 'POST', body }))
    expect(await answer.json()).toMatchObject({ error: 'invalid_request' })
  })

  test('without a client or a token names what is missing', async () => {
    expect((await revoke({ token: 'x' })).json.error).toBe('invalid_request')
    expect((await revoke({ client_id: clientId })).json.error).toBe('invalid_request')
    expect((await revoke({ client_id: crypto.randomUUID(), token: 'x' })).json.error).toBe('invalid_client')
  })
})

describe('a failing server', () => {
  /** Runs while no change can be recorded: `change` does what happens instead. */
  async function failing(change: () => Promise<never>, run: () => Promise<void>): Promise<void> {
    const { recorder } = oauth.server
    oauth.server.recorder = { ...recorder, change }
    try {
      await run()
    } finally {
      oauth.server.recorder = recorder
    }
  }
  const outage = Object.assign(new Error('SQLITE_BUSY'), { name: 'LibsqlError' })
  const issued = async () => (await oauth.store.state.read('select 1 from oauth_tokens')).length

  test('answers in the form of RFC 6749 and costs nobody an approval', async () => {
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    for (const [error, status, code] of [
      [outage, 503, 'temporarily_unavailable'],
      [new Error('a defect'), 500, 'server_error'],
    ] as const) {
      await failing(
        () => Promise.reject(error),
        async () => {
          const answer = await oauth.token(request)
          expect([answer.status, answer.json]).toEqual([status, { error: code, error_description: expect.any(String) }])
          const [kept, after] = [answer.headers.get('cache-control'), answer.headers.get('retry-after')]
          expect([kept, after]).toEqual(['no-store', status === 503 ? '2' : null])
        },
      )
    }
    const { status, json } = await oauth.token(request)
    expect(status).toBe(200)
    await failing(
      () => Promise.reject(outage),
      async () => expect((await oauth.refresh(clientId, json.refresh_token)).status).toBe(503),
    )
    expect((await oauth.refresh(clientId, json.refresh_token)).status).toBe(200)
  })

  test('that dies between using the code up and giving a token leaves the code used', async () => {
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    const before = await issued()
    await failing(
      () => new Promise(() => undefined),
      async () => {
        void oauth.token(request)
        const used = 'select 1 from oauth_grants where code_used_at is not null and code_hash = ?'
        await eventually(async () => (await oauth.store.ledger.read(used, [hashSecret(request.code)])).length !== 0)
      },
    )
    expect((await oauth.token(request)).json.error).toBe('invalid_grant')
    expect(await issued()).toBe(before)
  })
})

describe('an invalid request', () => {
  test('is answered in the form of RFC 6749, never with 422', async () => {
    const wrong: [Record<string, string>, string][] = [
      [{}, 'invalid_request'],
      [{ grant_type: 'password', client_id: clientId }, 'unsupported_grant_type'],
      [{ grant_type: 'authorization_code' }, 'invalid_request'],
      [{ grant_type: 'authorization_code', client_id: 'nobody' }, 'invalid_client'],
      [{ grant_type: 'authorization_code', client_id: clientId, code: '' }, 'invalid_request'],
      [{ grant_type: 'refresh_token', client_id: clientId }, 'invalid_request'],
      [{ grant_type: 'refresh_token', client_id: clientId, refresh_token: 'x' }, 'invalid_grant'],
      [oauth.codeRequest(clientId, 'x'), 'invalid_grant'],
      [{ ...oauth.codeRequest(clientId, 'x'), redirect_uri: '' }, 'invalid_request'],
      [{ ...oauth.codeRequest(clientId, 'x'), code_verifier: '' }, 'invalid_request'],
    ]
    for (const [form, error] of wrong) {
      const { status, json, headers } = await oauth.token(form)
      expect([status, json]).toEqual([400, { error, error_description: expect.any(String) }])
      expect(headers.get('cache-control')).toBe('no-store')
    }
  })

  test('repeats a known parameter; repeated unknown ones are ignored', async () => {
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    const twice = new URLSearchParams([...Object.entries(request), ['code', request.code]])
    const unknown = new URLSearchParams([...Object.entries(request), ['audience', 'a'], ['audience', 'b']])
    const send = (body: URLSearchParams) =>
      oauth.fetch(new Request(`${testOrigin}/v1/oauth/token`, { method: 'POST', body }))
    expect(await (await send(twice)).json()).toMatchObject({ error: 'invalid_request' })
    expect((await send(unknown)).status).toBe(200)
  })

  test('has a body of another type or one that cannot be read', async () => {
    const send = (body: string | Uint8Array<ArrayBuffer>, type: string) =>
      oauth.fetch(
        new Request(`${testOrigin}/v1/oauth/token`, { method: 'POST', body, headers: { 'content-type': type } }),
      )
    for (const [body, type] of [
      ['grant_type=authorization_code', 'text/plain'],
      ['{', 'application/json'],
      [new Uint8Array([0xff, 0xfe]), 'application/x-www-form-urlencoded'],
      ['x'.repeat(100_000), 'application/x-www-form-urlencoded'],
    ] as const) {
      const answer = await send(body, type)
      expect([answer.status, await answer.json()]).toEqual([
        400,
        { error: 'invalid_request', error_description: expect.any(String) },
      ])
    }
  })

  test('has JSON without text where text belongs; other fields are ignored', async () => {
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    const send = (body: object, path = 'token') => oauth.call('POST', `/v1/oauth/${path}`, { body })
    for (const [path, odd] of [
      ['token', { client_id: 5 }],
      ['token', { code: { $ne: null } }],
      ['token', { resource: [testOrigin, 5] }],
      ['revoke', { token: true }],
    ] as const) {
      const { status, json } = await send({ ...request, ...odd }, path)
      const [name] = Object.keys(odd)
      expect([status, json]).toEqual([400, { error: 'invalid_request', error_description: `${name} must be text` }])
    }
    expect((await send({ ...request, audience: 5, scope: null })).status).toBe(200)
  })

  test('is not repaired by parameters in the address', async () => {
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    const { status, json } = await oauth.call('POST', `/v1/oauth/token?${new URLSearchParams(request)}`, { form: {} })
    expect([status, json.error]).toEqual([400, 'invalid_request'])
  })
})

test('stores no secret in any database', async () => {
  const code = await oauth.approve(clientId, ada)
  const { json: given } = await oauth.token(oauth.codeRequest(clientId, code))
  const secrets: string[] = [code, given.access_token, given.refresh_token, testVerifier]
  for (const database of [oauth.store.ledger, oauth.store.state]) {
    const tables = await database.read<{ name: string }>("select name from sqlite_schema where type = 'table'")
    for (const { name } of tables) {
      const text = JSON.stringify(await database.read(`select * from ${name}`))
      for (const secret of secrets) expect(text).not.toContain(secret)
    }
  }
})
