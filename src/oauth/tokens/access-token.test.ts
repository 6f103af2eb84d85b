/** How access tokens live: what they permit where, how they follow their person, and when they end. */
import { afterAll, beforeAll, describe, expect, test } from 'bun:test'
import { testOrigin } from '../../members/testing/temporary-control-plane.ts'
import { type TemporaryOAuth, type TestPerson, temporaryOAuth, testGatewayUrl } from '../testing/oauth.ts'

let oauth: TemporaryOAuth
let ada: TestPerson
let clientId: string

beforeAll(async () => {
  oauth = await temporaryOAuth()
  ada = await oauth.person()
  clientId = await oauth.register()
})
afterAll(() => oauth.remove())

const change = (who: TestPerson, body: Record<string, unknown>) =>
  oauth.call('PATCH', `/v1/users/${who.id}`, { token: oauth.adminToken, body })
const disable = (who: TestPerson) => change(who, { status: 'disabled' })

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
      `Bearer error="insufficient_scope", resource_metadata="${testOrigin}/.well-known/oauth-protected-resource"`,
    )
    expect((await oauth.eventsOf('auth.refused')).at(-1)).toMatchObject({
      event_attribution: { user_id: owner.id, oauth_client_id: clientId },
    })
    const session = await oauth.call('GET', '/v1/auth/session', { token: access_token })
    expect([session.status, session.headers.get('www-authenticate')]).toEqual([403, null])
  })

  test('is ignored in the query and the body', async () => {
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

  test('can be narrowed to one of the approved resources', async () => {
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

  test('with a changed role changes what their tokens permit, both ways', async () => {
    const wide = await oauth.register({ scope: 'gateway:invoke escalations:read' })
    const eve = await oauth.person('eve@example.com', 'auditor')
    const { access_token } = await oauth.tokens(wide, eve, { scope: 'gateway:invoke escalations:read' })
    expect((await stateOf(eve.id))[0]?.permissions).toEqual(['escalations:read'])
    await change(eve, { role: 'member' })
    expect((await stateOf(eve.id))[0]?.permissions).toEqual(['gateway:invoke'])
    expect(oauth.announced.at(-1)?.revoked).toHaveLength(1)
    const refused = await oauth.call('POST', '/v1/tokens', { token: access_token, body: {} })
    expect(refused.status).toBe(403)
    await change(eve, { role: 'operator' })
    expect((await stateOf(eve.id))[0]?.permissions.toSorted()).toEqual(['escalations:read', 'gateway:invoke'])
    expect(await oauth.store.ledger.read('select * from pending_permission_updates')).toEqual([])
  })

  test('who joins or leaves a team takes their tokens along', async () => {
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

  test('who is disabled loses all access of applications', async () => {
    const leaver = await oauth.person('leaver@example.com')
    const given = await oauth.tokens(clientId, leaver)
    await disable(leaver)
    expect((await stateOf(leaver.id))[0]?.revoked).toBe(true)
    expect(await oauth.works(given.access_token)).toBe(false)
    await change(leaver, { status: 'active' })
    expect((await oauth.refresh(clientId, given.refresh_token)).json.error).toBe('invalid_grant')
  })

  test('who was disabled and enabled by a process that died does not get approvals back', async () => {
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

  test('with an interrupted change gets its effects later', async () => {
    const late = await oauth.person('late@example.com', 'operator')
    await oauth.tokens(clientId, late)
    await oauth.store.ledger.write([
      { sql: "update users set role = 'auditor' where id = ?", args: [late.id] },
      {
        sql: 'insert into pending_permission_updates (user_id, changed_at) values (?, ?)',
        args: [late.id, oauth.clock.now()],
      },
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

describe('expiry', () => {
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
