import { afterEach, beforeEach, expect, test } from 'bun:test'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { type OpenIdProvider, startOpenIdProvider } from '../testing/openid-provider.ts'
import { addProviderRecord, beginAt, comeBack, signInAt, whoIs } from '../testing/provider-sign-in.ts'
import { type TemporaryControlPlane, temporaryControlPlane, testPassword } from '../testing/temporary-control-plane.ts'

let plane: TemporaryControlPlane
let provider: OpenIdProvider
beforeEach(async () => {
  plane = await temporaryControlPlane()
  provider = startOpenIdProvider()
})
afterEach(async () => {
  await provider.stop()
  await plane.remove()
})

const team = async (name: string): Promise<string> =>
  (await plane.call('POST', '/v1/teams', { body: { name }, token: plane.adminToken })).json.id

test('a person whom the provider vouches for gets an account and a session', async () => {
  const id = await addProviderRecord(plane, provider)
  const { url, cookie } = await beginAt(plane, id, '/tokens?status=active')
  const back = await comeBack(plane, provider.answerTo(url), [cookie])
  expect(back).toMatchObject({ status: 303, refused: null })
  expect(back.location).toBe('http://127.0.0.1:7070/console/tokens?status=active')
  expect(await whoIs(plane, back.session)).toMatchObject({
    ...{ email: 'ann@example.com', name: 'Ann', role: 'member', has_password: false },
  })
  expect(back.cookies.find((text) => text.startsWith('gatehouse_sign_in='))).toContain('Max-Age=0')
})

test('asks with PKCE by S256, a state and a nonce, and authenticates with the sealed secret', async () => {
  const id = await addProviderRecord(plane, provider, { scope: 'openid email offline_access' })
  const { url, cookie } = await beginAt(plane, id)
  const asked = Object.fromEntries(new URL(url).searchParams)
  expect(asked).toMatchObject({
    ...{ response_type: 'code', client_id: 'gatehouse', scope: 'openid email offline_access' },
    ...{ code_challenge_method: 'S256', redirect_uri: `http://127.0.0.1:7070/v1/auth/callback/${id}` },
  })
  expect([asked.state, asked.nonce, asked.code_challenge].map((text) => text?.length)).toEqual([43, 43, 43])
  await comeBack(plane, provider.answerTo(url), [cookie])
  const exchange = provider.seen.find(({ path }) => path === '/token')
  const basic = Buffer.from(exchange?.authorization?.slice('Basic '.length) ?? '', 'base64').toString()
  expect(decodeURIComponent(basic.replaceAll('+', ' '))).toBe('gatehouse:the secret of the client')
  expect(exchange?.body.get('code_verifier')).toHaveLength(43)
  const kept = JSON.stringify(await plane.store.ledger.read('select * from secrets'))
  expect(kept).not.toContain('the secret of the client')
})

test('the same issuer and subject is the same account, whatever the e-mail address has become', async () => {
  const id = await addProviderRecord(plane, provider)
  const first = await whoIs(plane, (await signInAt(plane, provider, id)).session)
  provider.claims = { ...provider.claims, email: 'ann.married@example.com' }
  const second = await whoIs(plane, (await signInAt(plane, provider, id)).session)
  expect(second.id).toBe(first.id)
})

test('groups decide role and teams, and a change of groups changes both', async () => {
  const [search, support] = [await team('Search'), await team('Support')]
  const id = await addProviderRecord(plane, provider, {
    default_role: null,
    groups: [
      { group: 'gatehouse-admins', role: 'admin' },
      { group: 'engineers', role: 'operator', team_ids: [search] },
      { group: 'helpers', team_ids: [support] },
    ],
  })
  provider.claims = { ...provider.claims, groups: ['engineers', 'helpers', 'something else'] }
  const first = await whoIs(plane, (await signInAt(plane, provider, id)).session)
  expect(first).toMatchObject({ role: 'operator', team_ids: expect.arrayContaining([search, support]) })
  provider.claims = { ...provider.claims, groups: ['helpers', 'gatehouse-admins', 'engineers'] }
  expect(await whoIs(plane, (await signInAt(plane, provider, id)).session)).toMatchObject({ role: 'admin' })
  provider.claims = { ...provider.claims, groups: ['engineers'] }
  const last = await whoIs(plane, (await signInAt(plane, provider, id)).session)
  expect(last).toMatchObject({ role: 'operator', team_ids: [search] })
})

test('a team that no rule names stays as an administrator has set it', async () => {
  const [own, ruled] = [await team('Own'), await team('Ruled')]
  const id = await addProviderRecord(plane, provider, { groups: [{ group: 'x', team_ids: [ruled] }] })
  const person = await whoIs(plane, (await signInAt(plane, provider, id)).session)
  for (const at of [own, ruled]) {
    const body = { user_id: person.id }
    await plane.call('POST', `/v1/teams/${at}/members`, { body, token: plane.adminToken })
  }
  expect(await whoIs(plane, (await signInAt(plane, provider, id)).session)).toMatchObject({ team_ids: [own] })
})

test('where no rule has a role, a role that was set by hand stays', async () => {
  const id = await addProviderRecord(plane, provider)
  const person = await whoIs(plane, (await signInAt(plane, provider, id)).session)
  await plane.call('PATCH', `/v1/users/${person.id}`, { body: { role: 'auditor' }, token: plane.adminToken })
  expect(await whoIs(plane, (await signInAt(plane, provider, id)).session)).toMatchObject({ role: 'auditor' })
})

test('refuses a person to whom no group gives a role, and makes no account', async () => {
  const id = await addProviderRecord(plane, provider, { default_role: null, groups: [{ group: 'x', role: 'member' }] })
  expect(await signInAt(plane, provider, id)).toMatchObject({ refused: 'no_role', session: null })
  expect(await plane.store.ledger.read("select 1 from users where email = 'ann@example.com'")).toEqual([])
})

test('admits only people of the named domains, by an address that the provider has verified', async () => {
  const id = await addProviderRecord(plane, provider, { domains: ['Example.com'] })
  expect((await signInAt(plane, provider, id)).refused).toBeNull()
  const refusals: [Record<string, unknown>, string][] = [
    [{ email: 'eve@example.com.evil.test' }, 'domain_not_allowed'],
    [{ email: 'eve@evil.test' }, 'domain_not_allowed'],
    [{ email: 'eve@sub.example.com' }, 'domain_not_allowed'],
    [{ email: 'eve@example.com', email_verified: false }, 'email_unverified'],
    [{ email: 'eve@example.com', email_verified: undefined }, 'email_unverified'],
    [{ email: undefined }, 'email_missing'],
    [{ email: 'a@b@example.com' }, 'email_missing'],
  ]
  for (const [claims, reason] of refusals) {
    provider.claims = { sub: 'eve', email_verified: true, ...claims }
    expect(await signInAt(plane, provider, id)).toMatchObject({ refused: reason, session: null })
  }
})

test('reads groups from the UserInfo endpoint where the ID token leaves them out', async () => {
  const id = await addProviderRecord(plane, provider, {
    ...{ groups_claim: 'realm_access.roles', default_role: null },
    groups: [{ group: 'auditors', role: 'auditor' }],
  })
  provider.behaviour.userinfo = { sub: 'subject-1', realm_access: { roles: ['auditors'] } }
  expect(await whoIs(plane, (await signInAt(plane, provider, id)).session)).toMatchObject({ role: 'auditor' })
  provider.behaviour.userinfo = { sub: 'somebody else', realm_access: { roles: ['auditors'] } }
  expect(await signInAt(plane, provider, id)).toMatchObject({ refused: 'invalid_answer', session: null })
})

test('says so where the provider lists no groups because there are too many', async () => {
  const id = await addProviderRecord(plane, provider, { groups: [{ group: 'x', role: 'admin' }] })
  provider.claims = { ...provider.claims, _claim_names: { groups: 'src1' } }
  expect(await signInAt(plane, provider, id)).toMatchObject({ refused: 'groups_not_listed' })
})

test('a disabled person does not come in', async () => {
  const id = await addProviderRecord(plane, provider)
  const person = await whoIs(plane, (await signInAt(plane, provider, id)).session)
  await plane.call('PATCH', `/v1/users/${person.id}`, { body: { status: 'disabled' }, token: plane.adminToken })
  expect(await signInAt(plane, provider, id)).toMatchObject({ refused: 'account_disabled', session: null })
})

test('links an identity to the account that asks, and later signs that account in', async () => {
  const id = await addProviderRecord(plane, provider)
  const own = await plane.addPerson('ann@example.com', 'admin')
  const browser = await plane.signInAs('ann@example.com')
  const { url, cookie } = await beginAt(plane, id, '/settings', browser)
  const back = await comeBack(plane, provider.answerTo(url), [cookie, `gatehouse_session=${browser.cookie}`])
  expect(back.refused).toBeNull()
  expect((await whoIs(plane, (await signInAt(plane, provider, id)).session)).id).toBe(own)
})

test('an identity of another account is not linked', async () => {
  const id = await addProviderRecord(plane, provider)
  await signInAt(plane, provider, id)
  await plane.addPerson('other@example.com')
  const browser = await plane.signInAs('other@example.com')
  const { url, cookie } = await beginAt(plane, id, '/', browser)
  const back = await comeBack(plane, provider.answerTo(url), [cookie, `gatehouse_session=${browser.cookie}`])
  expect(back).toMatchObject({ refused: 'identity_taken', session: null })
})

test('the last active owner keeps the role when no group gives it', async () => {
  const [{ id: owner } = { id: '' }] = await plane.store.ledger.read<{ id: string }>(
    "select id from users where role = 'owner'",
  )
  const hash = await Bun.password.hash(testPassword)
  await plane.store.ledger.write([{ sql: 'update users set password_hash = ?', args: [hash] }])
  const id = await addProviderRecord(plane, provider, { groups: [{ group: 'x', role: 'admin' }] })
  const browser = await plane.signInAs('owner@localhost')
  const { url, cookie } = await beginAt(plane, id, '/', browser)
  const back = await comeBack(plane, provider.answerTo(url), [cookie, `gatehouse_session=${browser.cookie}`])
  expect(await whoIs(plane, back.session)).toMatchObject({ id: owner, role: 'owner' })
})

test('several providers are listed for the sign-in page, those switched off left out', async () => {
  const second = startOpenIdProvider()
  const first = await addProviderRecord(plane, provider, { name: 'B company' })
  await addProviderRecord(plane, second, { name: 'A company', enabled: false })
  const { json } = await plane.call('GET', '/v1/auth/identity-providers')
  expect(json).toEqual({ identity_providers: [{ id: first, name: 'B company' }], passwords: 'everybody' })
  await second.stop()
})

test('with a break-glass owner no other password is taken', async () => {
  await plane.addPerson('glass@example.com', 'owner')
  await plane.addPerson('owner2@example.com', 'owner')
  await plane.addPerson('member@example.com')
  plane.dependencies.settings.break_glass_owner = 'Glass@example.com'
  await plane.signInAs('glass@example.com')
  for (const email of ['owner2@example.com', 'member@example.com']) {
    const { status, json } = await plane.call('POST', '/v1/auth/login', { body: { email, password: testPassword } })
    expect([status, json.error.code]).toEqual([401, 'invalid_credentials'])
  }
  expect((await plane.call('GET', '/v1/auth/identity-providers')).json.passwords).toBe('break_glass')
})

test('metadata and keys are fetched once for many sign-ins', async () => {
  const id = await addProviderRecord(plane, provider)
  for (let count = 0; count < 3; count += 1) expect((await signInAt(plane, provider, id)).refused).toBeNull()
  const fetched = provider.seen.map(({ path }) => path)
  expect(fetched.filter((path) => path === '/.well-known/openid-configuration')).toHaveLength(1)
  expect(fetched.filter((path) => path === '/keys')).toHaveLength(1)
})

test('a refusal leaves an event with its reason, without the claims', async () => {
  const id = await addProviderRecord(plane, provider, { default_role: null })
  await signInAt(plane, provider, id)
  const [event] = await recordedEvents(plane.store.ledger, 'auth.refused')
  expect(event).toMatchObject({ verdict: 'deny', reason_code: 'identity.no_role' })
  expect(event?.details).toMatchObject({ identity_provider_id: id, address: '192.0.2.1' })
  expect(JSON.stringify(event)).not.toContain('ann@example.com')
})

test('a sign-in leaves an event that names the provider', async () => {
  const id = await addProviderRecord(plane, provider)
  await signInAt(plane, provider, id)
  const [event] = await recordedEvents(plane.store.ledger, 'auth.signed_in')
  expect(event?.details).toMatchObject({ identity_provider_id: id })
})

test('signing out can lead to the sign-out of the provider, and works while that is away', async () => {
  const id = await addProviderRecord(plane, provider, { sign_out_at_provider: true })
  const leave = async () => {
    const { session } = await signInAt(plane, provider, id)
    const cookie = session ?? ''
    const { csrf_token } = (await plane.call('GET', '/v1/auth/session', { cookie })).json
    const headers = plane.fromPage({ csrf: csrf_token })
    return { cookie, out: () => plane.call('POST', '/v1/auth/logout', { cookie, headers, body: {} }) }
  }
  const first = await leave()
  const address = new URL((await first.out()).json.redirect_to)
  expect(address.origin + address.pathname).toBe(`${provider.issuer}/end`)
  expect(Object.fromEntries(address.searchParams)).toEqual({
    client_id: 'gatehouse',
    post_logout_redirect_uri: 'http://127.0.0.1:7070/console',
  })
  expect(await whoIs(plane, first.cookie)).toBeNull()
  const second = await leave()
  await provider.stop()
  plane.clock.advance(11 * 60_000)
  expect((await second.out()).json).toEqual({ signed_out: true, redirect_to: null })
})

test('an account that is unlinked belongs to no identity any more', async () => {
  const id = await addProviderRecord(plane, provider)
  await plane.addPerson('own@example.com', 'admin')
  const browser = await plane.signInAs('own@example.com')
  const { url, cookie } = await beginAt(plane, id, '/', browser)
  const back = await comeBack(plane, provider.answerTo(url), [cookie, `gatehouse_session=${browser.cookie}`])
  const person = await whoIs(plane, back.session)
  const unlinked = await plane.call('DELETE', `/v1/users/${person.id}/identities`, { token: plane.adminToken })
  expect(unlinked.json.id).toBe(person.id)
  expect(await whoIs(plane, back.session)).toBeNull()
  expect((await whoIs(plane, (await signInAt(plane, provider, id)).session)).id).not.toBe(person.id)
})

test('of two first sign-ins of one person at once, both end in the console and one account is made', async () => {
  const id = await addProviderRecord(plane, provider)
  const answers = await Promise.all([signInAt(plane, provider, id), signInAt(plane, provider, id)])
  expect(answers.map(({ status }) => status)).toEqual([303, 303])
  expect(answers.some(({ session }) => session !== null)).toBe(true)
  expect(await plane.store.ledger.read('select user_id from user_identities')).toHaveLength(1)
})
