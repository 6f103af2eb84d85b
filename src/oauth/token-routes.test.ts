/** What the token and revocation endpoints do with codes, tokens, clients and people, over the routes themselves. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { testOrigin } from '../members/temporary-control-plane.ts'
import { hashSecret } from '../tokens/secret.ts'
import {
  type TemporaryOAuth,
  type TestPerson,
  temporaryOAuth,
  testGatewayUrl,
  testRedirect,
  testVerifier,
} from './test-oauth.ts'

let oauth: TemporaryOAuth
let ada: TestPerson
let clientId: string

beforeAll(async () => {
  oauth = await temporaryOAuth()
  ada = await oauth.person()
  clientId = await oauth.register()
})
afterAll(() => oauth.remove())

const eventsOf = async (type: string): Promise<Record<string, unknown>[]> => {
  const rows = await oauth.store.ledger.read<{ body: string }>(
    'select body from events where event_type = ? order by position',
    [type],
  )
  return rows.map(({ body }) => JSON.parse(body))
}

describe('a code', () => {
  test('gives an access and a refresh token, which no cache may keep', async () => {
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

  test('is taken as JSON too', async () => {
    const code = await oauth.approve(clientId, ada)
    const { status } = await oauth.call('POST', '/v1/oauth/token', { body: oauth.codeRequest(clientId, code) })
    expect(status).toBe(200)
  })

  test('that comes a second time ends what it gave', async () => {
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    const { json: given } = await oauth.token(request)
    expect(await oauth.works(given.access_token)).toBe(true)
    const again = await oauth.token(request)
    expect([again.status, again.json.error]).toEqual([400, 'invalid_grant'])
    expect(await oauth.works(given.access_token)).toBe(false)
    expect(oauth.announced.at(-1)?.deny).toHaveLength(1)
    expect((await oauth.refresh(clientId, given.refresh_token)).json.error).toBe('invalid_grant')
    expect((await eventsOf('oauth.replay_detected')).at(-1)).toMatchObject({
      verdict: 'deny',
      event_attribution: { user_id: ada.id, oauth_client_id: clientId },
      details: { cause: 'code_replay', access_tokens: 1 },
    })
  })

  test('that several redeem at once works for one at most, and then for nobody', async () => {
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    const answers = await Promise.all(Array.from({ length: 8 }, () => oauth.token(request)))
    const given = answers.filter(({ status }) => status === 200)
    expect(given.length).toBeLessThanOrEqual(1)
    for (const { json } of given) expect(await oauth.works(json.access_token)).toBe(false)
  })

  test('is refused with a wrong verifier and works afterwards with the right one', async () => {
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    const injected = await oauth.token({ ...request, code_verifier: 'w'.repeat(43) })
    expect([injected.status, injected.json.error]).toEqual([400, 'invalid_grant'])
    expect((await oauth.token(request)).status).toBe(200)
  })

  test('with a verifier that is none is an invalid request', async () => {
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    const { json } = await oauth.token({ ...request, code_verifier: 'short' })
    expect(json.error).toBe('invalid_request')
  })

  test('is for its own client and redirect', async () => {
    const other = await oauth.register({ client_name: 'Another' })
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    expect((await oauth.token({ ...request, client_id: other })).json.error).toBe('invalid_grant')
    expect((await oauth.token({ ...request, redirect_uri: `${testRedirect}/` })).json.error).toBe('invalid_grant')
  })

  test('that is exchanged for a resource nobody approved is an invalid target', async () => {
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

const change = (who: TestPerson, body: Record<string, unknown>) =>
  oauth.call('PATCH', `/v1/users/${who.id}`, { token: oauth.adminToken, body })
const disable = (who: TestPerson) => change(who, { status: 'disabled' })

describe('a code of an application that changes', () => {
  test('of a scope that the client lost meanwhile gives nothing', async () => {
    const own = await oauth.register()
    const code = await oauth.approve(own, ada)
    const path = `/v1/oauth/clients/${own}`
    await oauth.call('PATCH', path, { token: oauth.adminToken, body: { scope: 'gateway:invoke' } })
    expect((await oauth.token(oauth.codeRequest(own, code))).json.error).toBe('invalid_scope')
  })
})

describe('a refresh token', () => {
  test('gives new ones and is used up', async () => {
    const first = await oauth.tokens(clientId, ada)
    const { status, json } = await oauth.refresh(clientId, first.refresh_token)
    expect(status).toBe(200)
    expect(json.scope).toBe(first.scope)
    expect(json.refresh_token).not.toBe(first.refresh_token)
    expect(await oauth.works(json.access_token)).toBe(true)
    expect(await oauth.works(first.access_token)).toBe(true)
  })

  test('that comes a second time ends the family', async () => {
    const first = await oauth.tokens(clientId, ada)
    const { json: second } = await oauth.refresh(clientId, first.refresh_token)
    expect((await oauth.refresh(clientId, first.refresh_token)).json.error).toBe('invalid_grant')
    expect(await oauth.works(first.access_token)).toBe(false)
    expect(await oauth.works(second.access_token)).toBe(false)
    expect((await oauth.refresh(clientId, second.refresh_token)).json.error).toBe('invalid_grant')
    expect((await eventsOf('oauth.replay_detected')).at(-1)).toMatchObject({ details: { cause: 'refresh_replay' } })
  })

  test('that several use at once leaves nobody with a token that works', async () => {
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

  test('of another client is refused and stays good for its own', async () => {
    const other = await oauth.register({ client_name: 'Another' })
    const first = await oauth.tokens(clientId, ada)
    expect((await oauth.refresh(other, first.refresh_token)).json.error).toBe('invalid_grant')
    expect((await oauth.refresh(clientId, first.refresh_token)).status).toBe(200)
  })

  test('of a scope that the client lost is refused until less is asked for', async () => {
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
  test('of an access token ends it alone, and tells gateways', async () => {
    const first = await oauth.tokens(clientId, ada)
    const { status, json } = await revoke({
      client_id: clientId,
      token: first.access_token,
      token_type_hint: 'refresh_token',
    })
    expect(status).toBe(200)
    expect(json.propagation).toMatchObject({ unreachable: [] })
    expect(oauth.announced.at(-1)?.deny).toHaveLength(1)
    expect(await oauth.works(first.access_token)).toBe(false)
    expect((await oauth.refresh(clientId, first.refresh_token)).status).toBe(200)
  })

  test('of a refresh token ends all that came of the approval', async () => {
    const first = await oauth.tokens(clientId, ada)
    const { json: second } = await oauth.refresh(clientId, first.refresh_token)
    expect((await revoke({ client_id: clientId, token: second.refresh_token })).status).toBe(200)
    expect(await oauth.works(first.access_token)).toBe(false)
    expect(await oauth.works(second.access_token)).toBe(false)
    expect((await oauth.refresh(clientId, second.refresh_token)).json.error).toBe('invalid_grant')
  })

  test('of what is no token, or has ended, is answered like success', async () => {
    const first = await oauth.tokens(clientId, ada)
    await revoke({ client_id: clientId, token: first.refresh_token })
    for (const token of ['nothing', first.refresh_token, first.access_token]) {
      const { status, json } = await revoke({ client_id: clientId, token })
      expect([status, json]).toEqual([200, {}])
    }
  })

  test("of another client's token is refused, and changes nothing", async () => {
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

  test('without a client or a token says what is missing', async () => {
    expect((await revoke({ token: 'x' })).json.error).toBe('invalid_request')
    expect((await revoke({ client_id: clientId })).json.error).toBe('invalid_request')
    expect((await revoke({ client_id: crypto.randomUUID(), token: 'x' })).json.error).toBe('invalid_client')
  })
})

describe('a server that fails', () => {
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

  test('says so in the form of RFC 6749, and costs nobody an approval', async () => {
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
          expect(answer.headers.get('cache-control')).toBe('no-store')
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

  test('by dying between using a code up and giving a token has given nothing, and the code is gone', async () => {
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    const before = await issued()
    await failing(
      () => new Promise(() => undefined),
      async () => {
        void oauth.token(request)
        const used = 'select 1 from oauth_grants where code_used_at is not null and code_hash = ?'
        while ((await oauth.store.ledger.read(used, [hashSecret(request.code)])).length === 0) await Bun.sleep(1)
      },
    )
    expect((await oauth.token(request)).json.error).toBe('invalid_grant')
    expect(await issued()).toBe(before)
  })
})

describe('what is wrong with a request', () => {
  test('is said in the form of RFC 6749, never 422', async () => {
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

  test('is a parameter that comes twice, but not one that nobody knows', async () => {
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    const twice = new URLSearchParams([...Object.entries(request), ['code', request.code]])
    const unknown = new URLSearchParams([...Object.entries(request), ['audience', 'a'], ['audience', 'b']])
    const send = (body: URLSearchParams) =>
      oauth.fetch(new Request(`${testOrigin}/v1/oauth/token`, { method: 'POST', body }))
    expect(await (await send(twice)).json()).toMatchObject({ error: 'invalid_request' })
    expect((await send(unknown)).status).toBe(200)
  })

  test('is a body of another type, or none that can be read', async () => {
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

  test('is not mended by the address: parameters there are not looked at', async () => {
    const request = oauth.codeRequest(clientId, await oauth.approve(clientId, ada))
    const { status, json } = await oauth.call('POST', `/v1/oauth/token?${new URLSearchParams(request)}`, { form: {} })
    expect([status, json.error]).toEqual([400, 'invalid_request'])
  })
})

describe('an access token', () => {
  test('acts as its person within its scope', async () => {
    const owner = await oauth.person('owner@example.com', 'owner')
    const { access_token } = await oauth.tokens(clientId, owner, { scope: 'tokens:read' })
    expect((await oauth.call('GET', '/v1/tokens', { token: access_token })).status).toBe(200)
    const write = await oauth.call('POST', '/v1/tokens', {
      token: access_token,
      body: { name: 'x', purpose: 'general' },
    })
    expect([write.status, write.json.error.code]).toEqual([403, 'insufficient_scope'])
    expect(write.headers.get('www-authenticate')).toBe(
      `Bearer error="insufficient_scope", scope="tokens:write", resource_metadata="${testOrigin}/.well-known/oauth-protected-resource"`,
    )
    expect((await eventsOf('auth.refused')).at(-1)).toMatchObject({
      event_attribution: { user_id: owner.id, oauth_client_id: clientId },
    })
    const session = await oauth.call('GET', '/v1/auth/session', { token: access_token })
    expect([session.status, session.headers.get('www-authenticate')]).toEqual([403, null])
  })

  test('in the query or the body is ignored', async () => {
    const { access_token } = await oauth.tokens(clientId, ada)
    const inQuery = await oauth.call('GET', `/v1/tokens?access_token=${access_token}`)
    expect([inQuery.status, inQuery.json.error.code]).toEqual([401, 'missing_api_key'])
    expect(inQuery.headers.get('www-authenticate')).not.toContain('error=')
    const inBody = await oauth.call('POST', '/v1/tokens', { form: { access_token } })
    expect([inBody.status, inBody.json.error.code]).toEqual([401, 'missing_api_key'])
  })

  test('works only for the resources it was given for', async () => {
    const here = await oauth.tokens(clientId, ada, { resource: testOrigin })
    const there = await oauth.tokens(clientId, ada, { resource: testGatewayUrl })
    expect(await oauth.works(here.access_token)).toBe(true)
    const { status, headers } = await oauth.call('GET', '/v1/tokens', { token: there.access_token })
    expect([status, headers.get('www-authenticate')]).toEqual([401, expect.stringContaining('invalid_token')])
    const widened = await oauth.refresh(clientId, there.refresh_token, { resource: testOrigin })
    expect(widened.json.error).toBe('invalid_target')
  })

  test('can be narrowed to one of the resources that were approved', async () => {
    const both = await oauth.tokens(clientId, ada, { resource: [testOrigin, testGatewayUrl] })
    expect(await oauth.works(both.access_token)).toBe(true)
    const { json } = await oauth.refresh(clientId, both.refresh_token, { resource: testGatewayUrl })
    expect(await oauth.works(json.access_token)).toBe(false)
  })
})

describe('a person', () => {
  const stateOf = async (userId: string) => {
    const rows = await oauth.store.state.read<{ permissions: string; team_ids: string; revoked_at: number | null }>(
      'select permissions, team_ids, revoked_at from oauth_tokens where user_id = ?',
      [userId],
    )
    return rows.map(({ permissions, team_ids, revoked_at }) => ({
      permissions: JSON.parse(permissions) as string[],
      teams: JSON.parse(team_ids) as string[],
      revoked: revoked_at !== null,
    }))
  }

  test('whose role changes changes what their tokens permit, both ways', async () => {
    const wide = await oauth.register({ scope: 'gateway:invoke escalations:read' })
    const eve = await oauth.person('eve@example.com', 'auditor')
    const { access_token } = await oauth.tokens(wide, eve, { scope: 'gateway:invoke escalations:read' })
    expect((await stateOf(eve.id))[0]?.permissions).toEqual(['escalations:read'])
    await change(eve, { role: 'member' })
    expect((await stateOf(eve.id))[0]?.permissions).toEqual(['gateway:invoke'])
    expect(oauth.announced.at(-1)?.deny).toHaveLength(1)
    const refused = await oauth.call('POST', '/v1/tokens', { token: access_token, body: {} })
    expect(refused.status).toBe(403)
    await change(eve, { role: 'operator' })
    expect((await stateOf(eve.id))[0]?.permissions.toSorted()).toEqual(['escalations:read', 'gateway:invoke'])
    expect(await oauth.store.ledger.read('select * from oauth_followups')).toEqual([])
  })

  test('who joins and leaves a team takes their tokens along', async () => {
    const joiner = await oauth.person('joiner@example.com')
    const { json: team } = await oauth.call('POST', '/v1/teams', {
      token: oauth.adminToken,
      body: { name: 'research' },
    })
    await oauth.tokens(clientId, joiner)
    const path = `/v1/teams/${team.id}/members`
    await oauth.call('POST', path, { token: oauth.adminToken, body: { user_id: joiner.id } })
    expect((await stateOf(joiner.id))[0]?.teams).toEqual([team.id])
    await oauth.call('DELETE', `${path}/${joiner.id}`, { token: oauth.adminToken })
    expect((await stateOf(joiner.id))[0]?.teams).toEqual([])
  })

  test('who is disabled ends all that applications do in their name', async () => {
    const leaver = await oauth.person('leaver@example.com')
    const given = await oauth.tokens(clientId, leaver)
    await disable(leaver)
    expect((await stateOf(leaver.id))[0]?.revoked).toBe(true)
    expect(await oauth.works(given.access_token)).toBe(false)
    await change(leaver, { status: 'active' })
    expect((await oauth.refresh(clientId, given.refresh_token)).json.error).toBe('invalid_grant')
  })

  test('who was disabled and enabled again by a process that died does not get approvals back', async () => {
    const back = await oauth.person('back@example.com')
    const given = await oauth.tokens(clientId, back)
    const { delegations } = oauth.dependencies
    const ledger = delegations.mark(back.id, oauth.clock.now(), true)
    await oauth.store.ledger.write(ledger)
    expect((await oauth.refresh(clientId, given.refresh_token)).json.error).toBe('invalid_grant')
    oauth.clock.advance(6000)
    await oauth.settle()
    expect(await oauth.works(given.access_token)).toBe(false)
  })

  test('whose change was interrupted is followed later', async () => {
    const late = await oauth.person('late@example.com', 'operator')
    await oauth.tokens(clientId, late)
    await oauth.store.ledger.write([
      { sql: "update users set role = 'auditor' where id = ?", args: [late.id] },
      { sql: 'insert into oauth_followups (user_id, marked_at) values (?, ?)', args: [late.id, oauth.clock.now()] },
    ])
    oauth.clock.advance(6000)
    await oauth.settle()
    expect((await stateOf(late.id))[0]?.permissions).toEqual(['tokens:read'])
  })

  test('whose approval was revoked by a process that died loses the tokens later', async () => {
    const given = await oauth.tokens(clientId, ada)
    const [row] = await oauth.store.state.read<{ grant_id: string }>(
      'select grant_id from oauth_tokens order by id desc limit 1',
    )
    await oauth.store.ledger.write([
      { sql: 'update oauth_grants set revoked_at = ? where id = ?', args: [oauth.clock.now(), row?.grant_id ?? ''] },
    ])
    expect(await oauth.works(given.access_token)).toBe(true)
    oauth.clock.advance(6000)
    await oauth.settle()
    expect(await oauth.works(given.access_token)).toBe(false)
  })
})

describe('time', () => {
  test('ends codes, access tokens, idle refresh tokens and whole families', async () => {
    const own = await temporaryOAuth({ oauth_refresh_idle_seconds: 600, oauth_refresh_lifetime_seconds: 1500 })
    try {
      const who = await own.person()
      const client = await own.register()
      const code = await own.approve(client, who)
      own.clock.advance(60_000)
      expect((await own.token(own.codeRequest(client, code))).json.error).toBe('invalid_grant')

      const idle = await own.tokens(client, who)
      own.clock.advance(600_000)
      expect((await own.refresh(client, idle.refresh_token)).json.error).toBe('invalid_grant')

      let last = await own.tokens(client, who)
      for (const seconds of [500, 500]) {
        own.clock.advance(seconds * 1000)
        last = (await own.refresh(client, last.refresh_token)).json
      }
      expect(await own.works(last.access_token)).toBe(true)
      own.clock.advance(500_000)
      expect((await own.refresh(client, last.refresh_token)).json.error).toBe('invalid_grant')

      own.clock.advance(3600_000)
      const expired = await own.call('GET', '/v1/tokens', { token: last.access_token })
      expect([expired.status, expired.json.error.code]).toEqual([401, 'tokens.expired'])
      expect(expired.headers.get('www-authenticate')).toContain('error="invalid_token"')
    } finally {
      own.remove()
    }
  })
})

test('no secret is in any database', async () => {
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
