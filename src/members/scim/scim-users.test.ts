import { afterEach, beforeEach, expect, test } from 'bun:test'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { newUser, type ScimClient, scimClient } from '../testing/scim-client.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from '../testing/temporary-control-plane.ts'

let plane: TemporaryControlPlane
let acme: ScimClient
beforeEach(async () => {
  plane = await temporaryControlPlane()
  acme = await scimClient(plane, 'https://acme.example.com', { default_role: 'member' })
})
afterEach(() => plane.remove())

const add = async (userName: string, changes: Record<string, unknown> = {}): Promise<string> => {
  const { status, json, text } = await acme.call('POST', '/Users', newUser(userName, changes))
  if (status !== 201) throw new Error(text)
  return json.id
}
const record = async (id: string) => (await plane.call('GET', `/v1/users/${id}`, { token: plane.adminToken })).json

test('makes a person and answers 201 with the resource and its location', async () => {
  const made = await acme.call('POST', '/Users', newUser('ann@example.com'))
  expect(made.status).toBe(201)
  expect(made.headers.get('content-type')).toStartWith('application/scim+json')
  expect(made.headers.get('location')).toBe(`http://127.0.0.1:7070/scim/v2/Users/${made.json.id}`)
  expect(made.json).toMatchObject({
    schemas: ['urn:ietf:params:scim:schemas:core:2.0:User'],
    ...{ userName: 'ann@example.com', externalId: 'external-ann@example.com', active: true, groups: [] },
    meta: { resourceType: 'User', location: made.headers.get('location') },
  })
  expect(await record(made.json.id)).toMatchObject({
    ...{ email: 'ann@example.com', name: 'Ann Archer', role: 'member', status: 'active', has_password: false },
  })
  const read = await acme.call('GET', `/Users/${made.json.id}`)
  expect([read.status, read.json]).toEqual([200, made.json])
})

test('each change is an event that names the token', async () => {
  const id = await add('ann@example.com')
  await acme.patch(`/Users/${id}`, { op: 'replace', path: 'active', value: false })
  const [created] = (await recordedEvents(plane.store.ledger, 'member.created')).slice(-1)
  const [updated] = (await recordedEvents(plane.store.ledger, 'member.updated')).slice(-1)
  for (const event of [created, updated]) {
    expect(event?.details).toMatchObject({
      ...{ actor: `scim-token:${acme.tokenId}`, user_id: id, identity_provider_id: acme.providerId },
    })
  }
  expect(updated?.details?.changes).toEqual({ status: { from: 'active', to: 'disabled' } })
})

test('finds people by each filter, alone and joined by and', async () => {
  const ann = await add('Ann@Example.com')
  const bob = await add('bob@example.com', { displayName: 'Bob', active: false, name: undefined })
  const found = async (filter: string) => {
    const { status, json } = await acme.call('GET', `/Users?filter=${encodeURIComponent(filter)}`)
    expect(status).toBe(200)
    expect(json.totalResults).toBe(json.Resources.length)
    return json.Resources.map(({ id }: { id: string }) => id)
  }
  expect(await found('userName eq "ann@example.COM"')).toEqual([ann])
  expect(await found('username EQ "nobody"')).toEqual([])
  expect(await found('externalId eq "external-bob@example.com"')).toEqual([bob])
  expect(await found('active eq true')).toEqual([ann])
  expect(await found('active eq "False"')).toEqual([bob])
  expect(await found('displayName eq "bob"')).toEqual([bob])
  expect(await found('emails[type eq "work"].value eq "bob@example.com"')).toEqual([bob])
  expect(await found('userName eq "bob@example.com" and active eq false')).toEqual([bob])
  expect(await found('userName eq "bob@example.com" and active eq true')).toEqual([])
  expect(await found(`urn:ietf:params:scim:schemas:core:2.0:User:userName eq "bob@example.com"`)).toEqual([bob])
})

test('refuses filters that it does not understand with invalidFilter', async () => {
  const filters = [
    ...['userName', 'userName co "a"', 'userName eq "a" or active eq true', 'userName eq "a" and'],
    ...[
      'title eq "x"',
      'userName eq "a\\x"',
      "userName eq 'a'",
      `userName eq "${'a'.repeat(2000)}"`,
      '(active eq true)',
    ],
    Array(20).fill('active eq true').join(' and '),
  ]
  for (const filter of filters) {
    const { status, json } = await acme.call('GET', `/Users?filter=${encodeURIComponent(filter)}`)
    expect([status, json.scimType, json.status]).toEqual([400, 'invalidFilter', '400'])
    expect(json.schemas).toEqual(['urn:ietf:params:scim:api:messages:2.0:Error'])
  }
})

test('pages by startIndex and count', async () => {
  const ids: string[] = []
  for (const name of ['a', 'b', 'c', 'd', 'e']) ids.push(await add(`${name}@example.com`))
  const page = async (query: string) => {
    const { json } = await acme.call('GET', `/Users?${query}`)
    const { totalResults, startIndex, itemsPerPage, Resources } = json
    return [totalResults, startIndex, itemsPerPage, Resources.map(({ id }: { id: string }) => ids.indexOf(id))]
  }
  expect(await page('startIndex=1&count=2')).toEqual([5, 1, 2, [0, 1]])
  expect(await page('startIndex=3&count=2')).toEqual([5, 3, 2, [2, 3]])
  expect(await page('startIndex=5&count=100000')).toEqual([5, 5, 1, [4]])
  expect(await page('startIndex=9')).toEqual([5, 9, 0, []])
  expect(await page('startIndex=0&count=1')).toEqual([5, 1, 1, [0]])
  expect(await page('count=0')).toEqual([5, 1, 0, []])
  expect(await page('count=-3')).toEqual([5, 1, 0, []])
  expect((await acme.call('GET', '/Users?count=many')).json.scimType).toBe('invalidValue')
})

test('shows the attributes that are asked for', async () => {
  const id = await add('ann@example.com')
  const only = await acme.call('GET', `/Users/${id}?attributes=userName,name.givenName`)
  expect(Object.keys(only.json).sort()).toEqual(['id', 'name', 'schemas', 'userName'])
  const without = await acme.call('GET', `/Users/${id}?excludedAttributes=emails,groups,meta`)
  expect(Object.keys(without.json)).not.toContain('emails')
})

test('PUT replaces a person, and what it leaves out is gone, but not the access', async () => {
  const id = await add('ann@example.com', { displayName: 'Ann' })
  await acme.patch(`/Users/${id}`, { op: 'replace', path: 'active', value: false })
  const put = await acme.call('PUT', `/Users/${id}`, { userName: 'ann.b@example.com', externalId: 'new' })
  expect(put.status).toBe(200)
  expect(put.json).toMatchObject({ userName: 'ann.b@example.com', externalId: 'new', active: false, emails: [] })
  expect(put.json.displayName).toBeUndefined()
  expect(await record(id)).toMatchObject({ email: 'ann.b@example.com', name: 'ann.b@example.com', status: 'disabled' })
})

test('PATCH takes the forms of Entra', async () => {
  const id = await add('ann@example.com')
  const patched = await acme.patch(
    `/Users/${id}`,
    { op: 'Replace', path: 'active', value: 'False' },
    { op: 'Add', path: 'emails[type eq "work"].value', value: 'work@example.com' },
    { op: 'Add', path: 'emails[type eq "home"].value', value: 'home@example.com' },
    { op: 'Replace', path: 'name.givenName', value: 'Anna' },
    { op: 'Add', path: 'title', value: 'Director' },
    { op: 'Add', path: 'urn:ietf:params:scim:schemas:extension:enterprise:2.0:User:department', value: 'Sales' },
    { op: 'Replace', value: { displayName: 'Anna A.', 'name.familyName': 'Adams', externalId: 'entra-1' } },
  )
  expect(patched.status).toBe(200)
  expect(patched.json).toMatchObject({
    ...{ active: false, displayName: 'Anna A.', externalId: 'entra-1' },
    name: { givenName: 'Anna', familyName: 'Adams' },
    emails: [
      { value: 'work@example.com', type: 'work', primary: true },
      { value: 'home@example.com', type: 'home' },
    ],
  })
  expect(await record(id)).toMatchObject({ email: 'work@example.com', name: 'Anna A.', status: 'disabled' })
  const back = await acme.patch(`/Users/${id}`, { op: 'Add', path: 'active', value: [{ value: 'True' }] })
  expect(back.json.active).toBe(true)
})

test('PATCH takes the forms of Okta', async () => {
  const id = await add('ann@example.com')
  const off = await acme.patch(`/Users/${id}`, { op: 'replace', value: { active: false } })
  expect([off.status, off.json.active]).toEqual([200, false])
  const on = await acme.patch(`/Users/${id}`, { op: 'replace', value: { id, active: true } })
  expect([on.status, on.json.active]).toEqual([200, true])
  const removed = await acme.patch(`/Users/${id}`, { op: 'remove', path: 'externalId' })
  expect(removed.json.externalId).toBeUndefined()
})

test('PATCH refuses what it cannot do, and changes nothing of it', async () => {
  const id = await add('ann@example.com')
  const refused: [object, string][] = [
    [{ op: 'move', path: 'active', value: true }, 'invalidSyntax'],
    [{ op: 'remove' }, 'noTarget'],
    [{ op: 'replace', path: 'shoeSize', value: 1 }, 'invalidPath'],
    [{ op: 'replace', path: 'userName.x', value: 1 }, 'invalidPath'],
    [{ op: 'replace', path: 'id', value: 'x' }, 'mutability'],
    [{ op: 'replace', path: 'groups', value: [] }, 'mutability'],
    [{ op: 'replace', path: 'active', value: 'maybe' }, 'invalidValue'],
    [{ op: 'replace', path: 'userName' }, 'invalidValue'],
    [{ op: 'remove', path: 'userName' }, 'invalidValue'],
    [{ op: 'replace', value: 'text' }, 'invalidValue'],
    [{ op: 'replace', path: 'emails[type co "w"].value', value: 'a@example.com' }, 'invalidFilter'],
  ]
  for (const [operation, scimType] of refused) {
    const { status, json } = await acme.patch(
      `/Users/${id}`,
      { op: 'replace', path: 'displayName', value: 'X' },
      operation,
    )
    expect([status, json.scimType, json.detail.length > 0]).toEqual([400, scimType, true])
  }
  const many = Array(101).fill({ op: 'replace', path: 'active', value: true })
  expect((await acme.patch(`/Users/${id}`, ...many)).json.scimType).toBe('invalidSyntax')
  expect((await acme.call('GET', `/Users/${id}`)).json.displayName).toBeUndefined()
})

test('a second user of a name, an external id or an address is refused with uniqueness', async () => {
  await add('ann@example.com')
  await plane.addPerson('local@example.com', 'owner')
  const bodies = [
    newUser('ANN@example.com', { externalId: 'other', emails: [{ value: 'b@example.com' }] }),
    newUser('b@example.com', { externalId: 'external-ann@example.com' }),
    newUser('b@example.com', { emails: [{ value: 'ann@example.com' }] }),
    newUser('Local@example.com'),
  ]
  for (const body of bodies) {
    const { status, json } = await acme.call('POST', '/Users', body)
    expect([status, json.scimType]).toEqual([409, 'uniqueness'])
  }
})

test('names what is wrong with a body', async () => {
  const wrong: [unknown, string][] = [
    [{}, 'userName'],
    [newUser('ann@example.com', { emails: [{ value: 'nothing' }] }), 'emails.0.value'],
    [newUser('ann', { emails: [] }), 'emails'],
    [newUser('ann@example.com', { active: 'perhaps' }), 'active'],
    [newUser('ann@example.com', { externalId: 'subject\0of-another' }), 'externalId'],
    [newUser('ann@example.com', { externalId: acme.secret }), 'externalId'],
    [newUser('ann\0@example.com', { externalId: 'other' }), 'userName'],
  ]
  for (const [body, field] of wrong) {
    const { status, json } = await acme.call('POST', '/Users', body)
    expect([status, json.scimType]).toEqual([400, 'invalidValue'])
    expect(json.detail).toStartWith(`${field}:`)
  }
})

test('takes null and empty values for unassigned, and addresses without a value too', async () => {
  const emails = [
    { value: 'ann@example.com', primary: true },
    { value: null, type: 'secondary', primary: false },
    { value: '', type: 'other' },
  ]
  const body = newUser('ann', { emails, displayName: '', externalId: null, name: { formatted: '', givenName: 'Ann' } })
  const { status, json } = await acme.call('POST', '/Users', body)
  expect([status, json.emails]).toEqual([201, [{ value: 'ann@example.com', primary: true }]])
  expect(json.externalId).toBeUndefined()
  expect(await record(json.id)).toMatchObject({ name: 'Ann', email: 'ann@example.com' })
})

test('refuses a body that is too large, no JSON, or of another type', async () => {
  const large = await acme.call('POST', '/Users', newUser('a@example.com', { title: 'x'.repeat(3 * 1024 * 1024) }))
  expect([large.status, large.json.status]).toEqual([413, '413'])
  const send = (type: string, body: string) =>
    plane.fetch(
      new Request('http://127.0.0.1:7070/scim/v2/Users', {
        ...{ method: 'POST', body },
        headers: { 'content-type': type, authorization: `Bearer ${acme.secret}` },
      }),
    )
  const broken = await send('application/json', '{')
  expect([broken.status, await broken.json()]).toMatchObject([400, { scimType: 'invalidSyntax' }])
  expect((await send('text/plain', '{}')).status).toBe(415)
})

test('deactivating ends sessions and personal tokens at once', async () => {
  const id = await plane.addPerson('ann@example.com')
  await plane.store.ledger.write([
    {
      sql: `insert into scim_users (user_id, issuer, user_name, user_name_key, attributes, created_at, updated_at)
        values (?, ?, 'ann', 'ann', '{}', 0, 0)`,
      args: [id, acme.issuer],
    },
  ])
  const { cookie, csrf } = await plane.signInAs('ann@example.com')
  const body = { name: 'own', purpose: 'general', roles: ['auditor'], bindings: { user_id: id } }
  const made = await plane.call('POST', '/v1/tokens', { token: plane.adminToken, body })
  expect(made.status).toBe(201)
  const secret = made.json.token_value
  expect((await plane.call('GET', '/v1/tokens', { token: secret })).status).toBe(200)
  expect(csrf.length > 0 && (await plane.call('GET', '/v1/auth/session', { cookie })).status).toBe(200)
  const off = await acme.patch(
    `/Users/${id}`,
    { op: 'replace', path: 'emails', value: [{ value: 'ann@example.com' }] },
    { op: 'Replace', path: 'active', value: 'False' },
  )
  expect(off.status).toBe(200)
  expect((await plane.call('GET', '/v1/auth/session', { cookie })).status).toBe(401)
  expect((await plane.call('GET', '/v1/tokens', { token: secret })).status).toBe(401)
  const [token] = await plane.store.ledger.read('select revoked_at from tokens where id = ?', [made.json.id])
  expect(token?.revoked_at).not.toBeNull()
})

test('DELETE ends the access, and a person of the same name is somebody new', async () => {
  const id = await add('ann@example.com')
  const gone = await acme.call('DELETE', `/Users/${id}`)
  expect([gone.status, gone.text]).toEqual([204, ''])
  for (const method of ['GET', 'DELETE']) expect((await acme.call(method, `/Users/${id}`)).status).toBe(404)
  expect((await acme.call('GET', '/Users')).json.totalResults).toBe(0)
  expect(await record(id)).toMatchObject({ status: 'disabled', email: `${id}@deleted.invalid` })
  expect(await add('ann@example.com')).not.toBe(id)
})

test('the last active owner stays', async () => {
  const [owner] = await plane.store.ledger.read<{ id: string }>("select id from users where email = 'owner@localhost'")
  await plane.store.ledger.write([
    {
      sql: `insert into scim_users (user_id, issuer, user_name, user_name_key, attributes, created_at, updated_at)
        values (?, ?, 'owner', 'owner', '{"emails":[{"value":"owner@example.com"}]}', 0, 0)`,
      args: [owner?.id ?? '', acme.issuer],
    },
  ])
  for (const { status, json } of [
    await acme.patch(`/Users/${owner?.id}`, { op: 'replace', path: 'active', value: false }),
    await acme.call('DELETE', `/Users/${owner?.id}`),
  ]) {
    expect([status, json.detail]).toEqual([409, 'This is the last active owner: make another one first'])
  }
})
