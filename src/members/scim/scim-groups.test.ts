import { afterEach, beforeEach, expect, test } from 'bun:test'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { newGroup, newUser, type ScimClient, scimClient } from '../testing/scim-client.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from '../testing/temporary-control-plane.ts'

let plane: TemporaryControlPlane
let acme: ScimClient
let [ann, bob] = ['', '']
beforeEach(async () => {
  plane = await temporaryControlPlane()
  const groups = [
    { group: 'admins', role: 'admin' },
    { group: 'staff', role: 'member' },
  ]
  acme = await scimClient(plane, 'https://acme.example.com', { groups_from: 'scim', groups })
  ann = (await acme.call('POST', '/Users', newUser('ann@example.com'))).json.id
  bob = (await acme.call('POST', '/Users', newUser('bob@example.com'))).json.id
})
afterEach(() => plane.remove())

const add = async (name: string, members: string[] = []): Promise<string> => {
  const { status, json, text } = await acme.call('POST', '/Groups', newGroup(name, members))
  if (status !== 201) throw new Error(text)
  return json.id
}
const membersOf = async (id: string): Promise<string[]> =>
  (await acme.call('GET', `/Groups/${id}`)).json.members.map(({ value }: { value: string }) => value)
const record = async (id: string) => (await plane.call('GET', `/v1/users/${id}`, { token: plane.adminToken })).json

test('a group is a team with its people', async () => {
  const id = await add('Sales', [ann])
  expect((await plane.call('GET', `/v1/teams/${id}`, { token: plane.adminToken })).json).toMatchObject({
    ...{ name: 'Sales', member_count: 1 },
  })
  expect((await record(ann)).team_ids).toEqual([id])
  const shown = (await acme.call('GET', `/Users/${ann}`)).json.groups
  expect(shown).toMatchObject([{ value: id, display: 'Sales', type: 'direct' }])
  const [event] = await recordedEvents(plane.store.ledger, 'member.team_created')
  expect(event?.details).toMatchObject({ team_id: id, joined_user_ids: [ann], actor: `scim-token:${acme.tokenId}` })
})

test('PATCH adds, removes and replaces members in the forms of Entra and Okta', async () => {
  const id = await add('Sales')
  const patch = async (...operations: object[]) => {
    const { status, text } = await acme.patch(`/Groups/${id}`, ...operations)
    if (status !== 200) throw new Error(text)
    return await membersOf(id)
  }
  expect(await patch({ op: 'Add', path: 'members', value: [{ value: ann }] })).toEqual([ann])
  expect(await patch({ op: 'add', path: 'members', value: [{ value: bob }, { value: ann }] })).toEqual([ann, bob])
  expect(await patch({ op: 'Remove', path: 'members', value: [{ value: ann }] })).toEqual([bob])
  expect(await patch({ op: 'remove', path: `members[value eq "${bob}"]` })).toEqual([])
  expect(await patch({ op: 'remove', path: `members[value eq "${bob}"]` })).toEqual([])
  expect(await patch({ op: 'replace', path: 'members', value: [{ value: ann }] })).toEqual([ann])
  expect(await patch({ op: 'replace', value: { id, displayName: 'Selling' } })).toEqual([ann])
  expect(await patch({ op: 'remove', path: 'members' })).toEqual([])
  expect((await acme.call('GET', `/Groups/${id}`)).json.displayName).toBe('Selling')
})

test('loses none of the members that several requests add at once', async () => {
  const id = await add('Sales')
  const people: string[] = []
  for (let count = 0; count < 8; count += 1) {
    people.push((await acme.call('POST', '/Users', newUser(`person${count}@example.com`))).json.id)
  }
  const answers = await Promise.all(
    people.map((value) => acme.patch(`/Groups/${id}`, { op: 'add', path: 'members', value: [{ value }] })),
  )
  expect(answers.map(({ status }) => status)).toEqual(people.map(() => 200))
  expect((await membersOf(id)).sort()).toEqual(people.sort())
})

test('PUT replaces name and members', async () => {
  const id = await add('Sales', [ann])
  const put = await acme.call('PUT', `/Groups/${id}`, { ...newGroup('Selling', [bob]), externalId: 'g-1' })
  expect([put.status, put.json.displayName, put.json.externalId]).toEqual([200, 'Selling', 'g-1'])
  expect(await membersOf(id)).toEqual([bob])
})

test('finds groups by name, external id and member, without members where they are not asked for', async () => {
  const [sales] = [await add('Sales', [ann]), await add('Support', [bob])]
  const found = async (filter: string) =>
    (await acme.call('GET', `/Groups?excludedAttributes=members&filter=${encodeURIComponent(filter)}`)).json
  expect(await found('displayName eq "sales"')).toMatchObject({ totalResults: 1, Resources: [{ id: sales }] })
  expect((await found('displayName eq "sales"')).Resources[0].members).toBeUndefined()
  expect((await found(`id eq "${sales}" and members eq "${ann}"`)).totalResults).toBe(1)
  expect((await found(`id eq "${sales}" and members eq "${bob}"`)).totalResults).toBe(0)
  expect((await found('externalId eq "x"')).totalResults).toBe(0)
  expect((await found('title eq "x"')).scimType).toBe('invalidFilter')
})

test('the role follows the groups by the rules of the provider', async () => {
  const id = await add('admins')
  expect(await record(ann)).toMatchObject({ role: 'member' })
  await acme.patch(`/Groups/${id}`, { op: 'add', path: 'members', value: [{ value: ann }] })
  expect(await record(ann)).toMatchObject({ role: 'admin' })
  await acme.patch(`/Groups/${id}`, { op: 'remove', path: `members[value eq "${ann}"]` })
  expect(await record(ann)).toMatchObject({ role: 'member' })
  expect(await recordedEvents(plane.store.ledger, 'auth.identity_lost')).toHaveLength(1)
  await acme.patch(`/Groups/${id}`, { op: 'add', path: 'members', value: [{ value: ann }] })
  await acme.patch(`/Groups/${id}`, { op: 'replace', path: 'displayName', value: 'former admins' })
  expect(await record(ann)).toMatchObject({ role: 'member' })
})

test('a person who leaves a group loses the tokens that are bound to both', async () => {
  const id = await add('Sales', [ann])
  const body = { name: 'sales', purpose: 'general', bindings: { user_id: ann, team_id: id } }
  const made = await plane.call('POST', '/v1/tokens', { token: plane.adminToken, body })
  expect(made.status).toBe(201)
  await acme.patch(`/Groups/${id}`, { op: 'remove', path: 'members' })
  const [token] = await plane.store.ledger.read('select revoked_at from tokens where id = ?', [made.json.id])
  expect(token?.revoked_at).not.toBeNull()
})

test('DELETE removes the team, and leaves one that is still in use to people', async () => {
  const [empty, used] = [await add('Sales', [ann]), await add('Support', [bob])]
  const local = await plane.addPerson('local@example.com')
  await plane.call('POST', `/v1/teams/${used}/members`, { token: plane.adminToken, body: { user_id: local } })
  for (const id of [empty, used]) {
    expect((await acme.call('DELETE', `/Groups/${id}`)).status).toBe(204)
    expect((await acme.call('GET', `/Groups/${id}`)).status).toBe(404)
  }
  const team = async (id: string) => await plane.call('GET', `/v1/teams/${id}`, { token: plane.adminToken })
  expect((await team(empty)).status).toBe(404)
  expect((await team(used)).json).toMatchObject({ member_count: 1 })
})

test('shows no people whom somebody else put into the team', async () => {
  const id = await add('Sales', [ann])
  const local = await plane.addPerson('local@example.com')
  await plane.call('POST', `/v1/teams/${id}/members`, { token: plane.adminToken, body: { user_id: local } })
  expect(await membersOf(id)).toEqual([ann])
  await acme.call('PUT', `/Groups/${id}`, newGroup('Sales', [bob]))
  expect((await record(local)).team_ids).toEqual([id])
})

test('refuses names that are taken, the default team among them', async () => {
  await add('Sales')
  for (const name of ['Sales', 'default']) {
    const { status, json } = await acme.call('POST', '/Groups', newGroup(name))
    expect([status, json.scimType]).toEqual([409, 'uniqueness'])
  }
})

test('refuses members that are no users, and too many changes in one request', async () => {
  const group = await add('Support')
  for (const value of [group, 'nobody', crypto.randomUUID()]) {
    const { status, json } = await acme.call('POST', '/Groups', newGroup('Sales', [value]))
    expect([status, json.scimType]).toEqual([400, 'invalidValue'])
  }
  const many = (length: number) => Array.from({ length }, () => crypto.randomUUID())
  expect((await acme.call('POST', '/Groups', newGroup('Sales', many(10_001)))).status).toBe(400)
  const { status, json } = await acme.call('POST', '/Groups', newGroup('Sales', many(1001)))
  expect([status, json.status]).toEqual([413, '413'])
})
