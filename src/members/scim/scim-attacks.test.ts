/** What somebody might try with a SCIM token, and against those who have one. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { type OpenIdProvider, startOpenIdProvider } from '../testing/openid-provider.ts'
import { addProviderRecord, signInAt, whoIs } from '../testing/provider-sign-in.ts'
import { newGroup, newUser, type ScimClient, scimClient } from '../testing/scim-client.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from '../testing/temporary-control-plane.ts'

let plane: TemporaryControlPlane
let provider: OpenIdProvider
let [acme, evil]: ScimClient[] = []
beforeEach(async () => {
  plane = await temporaryControlPlane()
  provider = startOpenIdProvider()
  acme = await scimClient(plane, provider.issuer, { id: await addProviderRecord(plane, provider) })
  evil = await scimClient(plane, 'https://evil.example.com', { default_role: 'member' })
})
afterEach(async () => {
  await provider.stop()
  await plane.remove()
})

function clients(): { acme: ScimClient; evil: ScimClient } {
  if (acme === undefined || evil === undefined) throw new Error('The tests have begun without clients')
  return { acme, evil }
}

const snapshot = async () => [
  await plane.store.ledger.read('select * from users order by id'),
  await plane.store.ledger.read('select * from teams order by id'),
  await plane.store.ledger.read('select * from memberships order by team_id, user_id'),
  await plane.store.ledger.read('select * from scim_users order by user_id'),
  await plane.store.ledger.read('select * from scim_groups order by team_id'),
]

test("another tenant's ids are not there: nothing is shown and nothing changes", async () => {
  const { acme, evil } = clients()
  const user = (await acme.call('POST', '/Users', newUser('ann@example.com'))).json.id
  const group = (await acme.call('POST', '/Groups', newGroup('Sales', [user]))).json.id
  const own = (await evil.call('POST', '/Users', newUser('eve@evil.example.com'))).json.id
  const ownGroup = (await evil.call('POST', '/Groups', newGroup('Evil', [own]))).json.id
  const [local] = await plane.store.ledger.read<{ id: string }>("select id from users where email = 'owner@localhost'")
  const [team] = await plane.store.ledger.read<{ id: string }>("select id from teams where name = 'default'")
  const before = await snapshot()
  const off = { schemas: [], Operations: [{ op: 'replace', path: 'active', value: false }] }
  const rename = { schemas: [], Operations: [{ op: 'replace', path: 'displayName', value: 'Mine' }] }
  for (const id of [user, local?.id, "' or '1'='1", '%2e%2e', ownGroup]) {
    const tries = [
      await evil.call('GET', `/Users/${id}`),
      await evil.call('PUT', `/Users/${id}`, newUser('eve2@evil.example.com')),
      await evil.call('PATCH', `/Users/${id}`, off),
      await evil.call('DELETE', `/Users/${id}`),
    ]
    expect(tries.map(({ status }) => status)).toEqual([404, 404, 404, 404])
  }
  for (const id of [group, team?.id, own]) {
    const tries = [
      await evil.call('GET', `/Groups/${id}`),
      await evil.call('PUT', `/Groups/${id}`, newGroup('Mine', [own])),
      await evil.call('PATCH', `/Groups/${id}`, rename),
      await evil.call('DELETE', `/Groups/${id}`),
    ]
    expect(tries.map(({ status }) => status)).toEqual([404, 404, 404, 404])
  }
  for (const id of [user, local?.id]) {
    const added = await evil.patch(`/Groups/${ownGroup}`, { op: 'add', path: 'members', value: [{ value: id }] })
    expect([added.status, added.json.scimType]).toEqual([400, 'invalidValue'])
    expect((await evil.call('POST', '/Groups', newGroup('New', [id ?? '']))).status).toBe(400)
  }
  for (const filter of [
    'userName eq "ann@example.com"',
    `id eq "${user}"`,
    'externalId eq "external-ann@example.com"',
  ]) {
    expect((await evil.call('GET', `/Users?filter=${encodeURIComponent(filter)}`)).json.totalResults).toBe(0)
  }
  for (const filter of ['displayName eq "Sales"', `members eq "${user}"`]) {
    expect((await evil.call('GET', `/Groups?filter=${encodeURIComponent(filter)}`)).json.totalResults).toBe(0)
  }
  expect(await snapshot()).toEqual(before)
})

test('two tenants may use the same user name and external id', async () => {
  const { acme, evil } = clients()
  const one = await acme.call('POST', '/Users', newUser('ann', { emails: [{ value: 'ann@example.com' }] }))
  const other = await evil.call('POST', '/Users', newUser('ann', { emails: [{ value: 'ann@evil.example.com' }] }))
  expect([one.status, other.status]).toEqual([201, 201])
  expect(one.json.id).not.toBe(other.json.id)
})

test('e-mail take-over: an address of another account gives neither the account nor a change of it', async () => {
  const { evil } = clients()
  await plane.addPerson('boss@example.com', 'owner')
  const made = await evil.call('POST', '/Users', newUser('Boss@Example.com'))
  expect([made.status, made.json.scimType]).toEqual([409, 'uniqueness'])
  const own = (await evil.call('POST', '/Users', newUser('eve@evil.example.com'))).json.id
  const moved = await evil.patch(`/Users/${own}`, {
    ...{ op: 'replace', path: 'emails', value: [{ value: 'boss@example.com', primary: true }] },
  })
  expect([moved.status, moved.json.scimType]).toEqual([409, 'uniqueness'])
})

test('a person whom SCIM made signs in by issuer and external id, whatever the address is', async () => {
  const { acme } = clients()
  const body = newUser('renamed@example.com', { externalId: provider.claims.sub })
  const id = (await acme.call('POST', '/Users', body)).json.id
  const { session } = await signInAt(plane, provider, acme.providerId)
  expect(await whoIs(plane, session)).toMatchObject({ id, email: 'renamed@example.com' })
  await acme.patch(`/Users/${id}`, { op: 'Replace', path: 'active', value: 'False' })
  expect(await whoIs(plane, session)).toBeNull()
  expect((await signInAt(plane, provider, acme.providerId)).refused).toBe('account_disabled')
})

test('an inactive person who has never signed in cannot', async () => {
  const { acme } = clients()
  const body = newUser('ann@example.com', { externalId: provider.claims.sub, active: false })
  expect((await acme.call('POST', '/Users', body)).status).toBe(201)
  expect((await signInAt(plane, provider, acme.providerId)).refused).toBe('account_disabled')
})

test('the same e-mail address under another external id signs nobody in', async () => {
  const { acme } = clients()
  await acme.call('POST', '/Users', newUser(String(provider.claims.email), { externalId: 'somebody else' }))
  expect((await signInAt(plane, provider, acme.providerId)).refused).toBe('account_exists')
})

test('the external id of another tenant signs nobody in', async () => {
  const { acme, evil } = clients()
  const body = newUser('eve@evil.example.com', { externalId: provider.claims.sub })
  const { id } = (await evil.call('POST', '/Users', body)).json
  const { session } = await signInAt(plane, provider, acme.providerId)
  expect((await whoIs(plane, session)).id).not.toBe(id)
})

test('SCIM takes over the account by which the same person signed in before, and no other tenant does', async () => {
  const { acme, evil } = clients()
  const { session } = await signInAt(plane, provider, acme.providerId)
  const { id, email } = await whoIs(plane, session)
  const body = newUser(email, { externalId: provider.claims.sub })
  expect((await evil.call('POST', '/Users', body)).status).toBe(409)
  const made = await acme.call('POST', '/Users', body)
  expect([made.status, made.json.id]).toEqual([201, id])
  expect((await acme.call('DELETE', `/Users/${id}`)).status).toBe(204)
  expect(await whoIs(plane, session)).toBeNull()
  const again = await acme.call('POST', '/Users', body)
  expect([again.status, again.json.id === id]).toEqual([201, false])
  const returned = await signInAt(plane, provider, acme.providerId)
  expect(await whoIs(plane, returned.session)).toMatchObject({ id: again.json.id })
})

test('groups that SCIM sent decide at sign-in too, where the record says so', async () => {
  const { acme } = clients()
  const groups = [{ group: 'leads', role: 'operator' }]
  const body = { groups_from: 'scim', groups, default_role: null }
  const changed = await plane.call('PATCH', `/v1/identity-providers/${acme.providerId}`, {
    ...{ token: plane.adminToken, body },
  })
  expect(changed.status).toBe(200)
  provider.claims = { ...provider.claims, groups: ['leads'] }
  const user = newUser('ann@example.com', { externalId: provider.claims.sub })
  const id = (await acme.call('POST', '/Users', user)).json.id
  expect((await signInAt(plane, provider, acme.providerId)).refused).toBe('no_role')
  const group = (await acme.call('POST', '/Groups', newGroup('leads', [id]))).json.id
  const { session } = await signInAt(plane, provider, acme.providerId)
  expect(await whoIs(plane, session)).toMatchObject({ id, role: 'operator' })
  await acme.patch(`/Groups/${group}`, { op: 'remove', path: 'members' })
  expect(await whoIs(plane, session)).toBeNull()
})

test('takes no other credential, and its own is good for nothing else', async () => {
  const { acme } = clients()
  const { cookie } = await (async () => {
    await plane.addPerson('owner@example.com', 'owner')
    return await plane.signInAs('owner@example.com')
  })()
  const tries = [
    await plane.call('GET', '/scim/v2/Users'),
    await plane.call('GET', '/scim/v2/Users', { cookie }),
    await plane.call('GET', '/scim/v2/Users', { token: plane.adminToken }),
    await plane.call('GET', '/scim/v2/Users', {
      token: `${acme.secret.slice(0, -1)}${acme.secret.endsWith('0') ? '1' : '0'}`,
    }),
    await plane.call('GET', `/scim/v2/Users?access_token=${acme.secret}`),
    await plane.call('GET', '/scim/v2/ServiceProviderConfig'),
  ]
  for (const { status, text, headers } of tries) {
    expect([status, JSON.parse(text).status]).toEqual([401, '401'])
    expect(headers.get('www-authenticate')).toStartWith('Bearer')
  }
  for (const path of ['/v1/users', '/v1/tokens', '/v1/auth/session', '/v1/scim-tokens']) {
    expect((await plane.call('GET', path, { token: acme.secret })).status).toBe(401)
  }
})

test('a revoked token ends at once, as does one whose provider is deleted; a provider that is off answers 403', async () => {
  const { acme, evil } = clients()
  const token = plane.adminToken
  expect((await plane.call('DELETE', `/v1/scim-tokens/${evil.tokenId}`, { token })).json.status).toBe('revoked')
  expect((await evil.call('GET', '/Users')).status).toBe(401)
  await plane.call('PATCH', `/v1/identity-providers/${acme.providerId}`, { token, body: { enabled: false } })
  expect((await acme.call('GET', '/Users')).status).toBe(403)
  await plane.call('DELETE', `/v1/identity-providers/${acme.providerId}`, { token })
  expect((await acme.call('GET', '/Users')).status).toBe(401)
})

test('only an owner makes a token; its secret is shown once and is not kept', async () => {
  const { acme } = clients()
  await plane.addPerson('admin@example.com', 'admin')
  const admin = await plane.signInAs('admin@example.com')
  const refused = await plane.call('POST', '/v1/scim-tokens', {
    ...{ cookie: admin.cookie, headers: plane.fromPage(admin) },
    body: { identity_provider_id: acme.providerId, name: 'mine' },
  })
  expect(refused.status).toBe(403)
  const listed = await plane.call('GET', '/v1/scim-tokens', { token: plane.adminToken })
  expect(listed.json.scim_tokens).toHaveLength(2)
  expect(listed.text).not.toContain(acme.secret)
  const everything = JSON.stringify([
    await plane.store.ledger.read('select * from scim_tokens'),
    await recordedEvents(plane.store.ledger),
  ])
  expect(everything).not.toContain(acme.secret)
})

test('says what it can do', async () => {
  const { acme } = clients()
  const config = (await acme.call('GET', '/ServiceProviderConfig')).json
  expect(config).toMatchObject({ patch: { supported: true }, bulk: { supported: false }, filter: { maxResults: 200 } })
  const types = (await acme.call('GET', '/ResourceTypes')).json
  expect(types.Resources.map(({ endpoint }: { endpoint: string }) => endpoint)).toEqual(['/Users', '/Groups'])
  expect((await acme.call('GET', '/ResourceTypes/User')).json).toMatchObject({ id: 'User' })
  const found = (await acme.call('GET', '/Schemas')).json.Resources
  for (const { id } of found) expect((await acme.call('GET', `/Schemas/${id}`)).json.id).toBe(id)
  expect((await acme.call('GET', '/Schemas/urn:none')).status).toBe(404)
})
