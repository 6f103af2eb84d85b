import { afterAll, beforeAll, expect, test } from 'bun:test'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { type TemporaryControlPlane, temporaryControlPlane, testPassword } from '../testing/temporary-control-plane.ts'

let plane: TemporaryControlPlane
beforeAll(async () => {
  plane = await temporaryControlPlane()
})
afterAll(() => plane.remove())

let count = 0
const anyEmail = () => `person${++count}@example.com`
const add = (body: Record<string, unknown>, token = plane.adminToken) =>
  plane.call('POST', '/v1/users', { token, body: { email: anyEmail(), name: 'Somebody', ...body } })
const change = (id: string, body: unknown, headers: Record<string, string> = {}) =>
  plane.call('PATCH', `/v1/users/${id}`, { token: plane.adminToken, body, headers })
const eventsOf = (type: string) => recordedEvents(plane.store.ledger, type)

test('adds a person with a normalised address, and records no password', async () => {
  const answer = await add({ email: ' Zoe@EXAMPLE.org ', role: 'operator', password: testPassword })
  expect(answer.status).toBe(201)
  expect(answer.headers.get('etag')).toBe('"1"')
  expect(answer.json).toMatchObject({
    email: 'zoe@example.org',
    role: 'operator',
    status: 'active',
    has_password: true,
  })
  expect(answer.text).not.toContain('argon2')
  const event = (await eventsOf('member.created')).at(-1)
  expect(event?.details).toMatchObject({ user_id: answer.json.id, role: 'operator' })
  expect(event?.details?.actor).toStartWith('token:')
  expect(JSON.stringify(event)).not.toContain(testPassword)
})

test('refuses an e-mail address that another person has', async () => {
  await add({ email: 'twice@example.com' })
  const again = await add({ email: 'twice@EXAMPLE.com' })
  expect([again.status, again.json.error.code, again.json.error.param]).toEqual([409, 'conflict', 'email'])
})

test('names each invalid field and does not repeat its value', async () => {
  const wrong: [Record<string, unknown>, string][] = [
    [{ email: 'nobody' }, 'email'],
    [{ email: 7 }, 'email'],
    [{ name: '' }, 'name'],
    [{ name: 'x'.repeat(10_000) }, 'name'],
    [{ name: 'a\u0007b' }, 'name'],
    [{ role: 'runtime' }, 'role'],
    [{ role: 'king' }, 'role'],
    [{ password: 'too short' }, 'password'],
    [{ password: 'x'.repeat(300) }, 'password'],
    [{ unknown_field: 'value-of-it' }, 'unknown_field'],
  ]
  const answers = await Promise.all(wrong.map(([body]) => add(body)))
  expect(answers.map(({ status, json }) => [status, json.error.param])).toEqual(wrong.map(([, param]) => [422, param]))
  expect(answers.map(({ text }) => text).join()).not.toContain('too short')
  expect(answers.map(({ text }) => text).join()).not.toContain('value-of-it')
})

test('takes SQL in a name as a name', async () => {
  const name = `Robert'); drop table users;--`
  const { json } = await add({ name })
  expect((await plane.call('GET', `/v1/users/${json.id}`, { token: plane.adminToken })).json.name).toBe(name)
})

test('records old and new values of a change, and no event without a change', async () => {
  const { json } = await add({ name: 'Before' })
  const changed = await change(json.id, { name: 'After', role: 'auditor' })
  expect(changed.json).toMatchObject({ name: 'After', role: 'auditor', version: 2 })
  const events = await eventsOf('member.updated')
  expect(events.at(-1)?.details?.changes).toEqual({
    name: { from: 'Before', to: 'After' },
    role: { from: 'member', to: 'auditor' },
  })
  await change(json.id, { name: 'After' })
  expect(await eventsOf('member.updated')).toHaveLength(events.length)
})

test('refuses a change with a stale version, and lets one of two at once win', async () => {
  const { json } = await add({})
  await change(json.id, { name: 'Second' })
  expect((await change(json.id, { name: 'Third' }, { 'if-match': '"1"' })).status).toBe(412)
  const both = await Promise.all(['Left', 'Right'].map((name) => change(json.id, { name }, { 'if-match': '"2"' })))
  const statuses = both.map(({ status }) => status).sort()
  expect([JSON.stringify([200, 409]), JSON.stringify([200, 412])]).toContain(JSON.stringify(statuses))
})

test('disabling a person ends their sessions and blocks sign-in', async () => {
  const email = anyEmail()
  const { json } = await add({ email, password: testPassword })
  const { cookie } = await plane.signInAs(email)
  expect((await change(json.id, { status: 'disabled' })).status).toBe(200)
  expect((await plane.call('GET', '/v1/auth/session', { cookie })).status).toBe(401)
  await change(json.id, { status: 'active' })
  expect((await plane.call('GET', '/v1/auth/session', { cookie })).status).toBe(401)
})

test('a new password ends the sessions of the old one', async () => {
  const email = anyEmail()
  const { json } = await add({ email, password: testPassword })
  const { cookie } = await plane.signInAs(email)
  await change(json.id, { password: 'quite another password' })
  expect((await plane.call('GET', '/v1/auth/session', { cookie })).status).toBe(401)
  expect((await plane.signInAs(email, 'quite another password')).userId).toBe(json.id)
  expect(JSON.stringify(await eventsOf('member.updated'))).not.toContain('quite another')
})

test('an admin changes everybody but owners', async () => {
  const email = anyEmail()
  await add({ email, role: 'admin', password: testPassword })
  const admin = await plane.signInAs(email)
  const asAdmin = (method: string, path: string, body: unknown) =>
    plane.call(method, path, { cookie: admin.cookie, headers: plane.fromPage(admin), body })
  expect((await asAdmin('PATCH', `/v1/users/${plane.userId}`, { name: 'Mine' })).json.error.code).toBe(
    'permission_denied',
  )
  expect((await asAdmin('PATCH', `/v1/users/${plane.userId}`, { password: testPassword })).status).toBe(403)
  expect((await asAdmin('PATCH', `/v1/users/${admin.userId}`, { role: 'owner' })).status).toBe(403)
  expect((await asAdmin('POST', '/v1/users', { email: anyEmail(), name: 'New', role: 'owner' })).status).toBe(403)
  expect((await asAdmin('POST', '/v1/users', { email: anyEmail(), name: 'New', role: 'admin' })).status).toBe(201)
})

test('the last active owner stays, whoever tries and however often at once', async () => {
  expect((await change(plane.userId, { role: 'admin' })).json.error.code).toBe('conflict')
  expect((await change(plane.userId, { status: 'disabled' })).json.error.code).toBe('conflict')
  const { json: second } = await add({ role: 'owner' })
  const both = await Promise.all([change(plane.userId, { role: 'admin' }), change(second.id, { status: 'disabled' })])
  expect(both.map(({ status }) => status).sort()).toEqual([200, 409])
  const owners = await plane.store.ledger.read("select 1 from users where role = 'owner' and status = 'active'")
  expect(owners).toHaveLength(1)
})

test('pages hold everybody once, and a cursor works only with its filters', async () => {
  const seen: string[] = []
  let cursor: string | null = null
  do {
    const query: string = `limit=3&role=member${cursor === null ? '' : `&cursor=${cursor}`}`
    const { json } = await plane.call('GET', `/v1/users?${query}`, { token: plane.adminToken })
    seen.push(...json.users.map(({ id }: { id: string }) => id))
    cursor = json.next_cursor
    if (seen.length === 3) await add({})
  } while (cursor !== null)
  const all = await plane.store.ledger.read<{ id: string }>("select id from users where role = 'member' order by id")
  expect(seen).toEqual(all.map(({ id }) => id))
  const { json } = await plane.call('GET', '/v1/users?limit=1', { token: plane.adminToken })
  const misused = await plane.call('GET', `/v1/users?role=admin&cursor=${json.next_cursor}`, {
    token: plane.adminToken,
  })
  expect([misused.status, misused.json.error.code]).toEqual([422, 'invalid_cursor'])
  for (const bad of ['limit=0', 'limit=101', 'limit=x', 'cursor=%00', 'status=gone', 'page=2']) {
    expect((await plane.call('GET', `/v1/users?${bad}`, { token: plane.adminToken })).status).toBe(422)
  }
})

test('answers 404 for an unknown person', async () => {
  for (const id of [crypto.randomUUID(), 'x', "' or 1=1"]) {
    const path = `/v1/users/${encodeURIComponent(id)}`
    expect((await plane.call('GET', path, { token: plane.adminToken })).status).toBe(404)
  }
})

test('an administrator token bound to a team or a person changes no people', async () => {
  const team = await plane.call('POST', '/v1/teams', { token: plane.adminToken, body: { name: 'Bound' } })
  const minted = await plane.call('POST', '/v1/tokens', {
    token: plane.adminToken,
    body: { name: 'bound', purpose: 'general', roles: ['admin'], bindings: { team_id: team.json.id } },
  })
  const bound = minted.json.token_value
  const refused = [
    await add({ role: 'admin', password: testPassword }, bound),
    await plane.call('POST', '/v1/teams', { token: bound, body: { name: 'Another' } }),
    await plane.call('PATCH', `/v1/users/${(await add({})).json.id}`, { token: bound, body: { name: 'Renamed' } }),
  ]
  expect(refused.map(({ status, json }) => [status, json.error.code])).toEqual(
    refused.map(() => [403, 'permission_denied']),
  )
})

test('an administrator token bound to a team makes no identity for a gateway', async () => {
  const team = await plane.call('POST', '/v1/teams', { token: plane.adminToken, body: { name: 'Gateways' } })
  const bindings = { team_id: team.json.id }
  const minted = await plane.call('POST', '/v1/tokens', {
    token: plane.adminToken,
    body: { name: 'bound', purpose: 'general', roles: ['admin'], bindings },
  })
  const body = { name: 'g', purpose: 'gateway_runtime', bindings: { ...bindings, gateway_id: plane.gatewayId } }
  const refused = await plane.call('POST', '/v1/tokens', { token: minted.json.token_value, body })
  expect([refused.status, refused.json.error.code]).toEqual([403, 'permission_denied'])
  expect((await plane.call('POST', '/v1/tokens', { token: plane.adminToken, body })).status).toBe(201)
})

test("a session needs the present password to change its own person's password", async () => {
  const email = anyEmail()
  await plane.addPerson(email, 'admin')
  const admin = await plane.signInAs(email)
  const answer = await plane.call('PATCH', `/v1/users/${admin.userId}`, {
    cookie: admin.cookie,
    headers: plane.fromPage(admin),
    body: { password: 'a stolen session would like this' },
  })
  expect([answer.status, answer.json.error.param]).toEqual([403, 'password'])
})

test('a member sees their own tokens only', async () => {
  const email = anyEmail()
  const id = await plane.addPerson(email)
  const own = await plane.call('POST', '/v1/tokens', {
    token: plane.adminToken,
    body: { name: 'own', purpose: 'general', bindings: { user_id: id } },
  })
  const member = await plane.signInAs(email)
  const page = await plane.call('GET', '/v1/tokens', { cookie: member.cookie })
  expect(page.json.tokens.map((token: { id: string }) => token.id)).toEqual([own.json.id])
})

test('disabling a person revokes the tokens that are bound to them', async () => {
  const id = await plane.addPerson(anyEmail(), 'admin')
  const body = { name: 'theirs', purpose: 'general', roles: ['admin'], bindings: { user_id: id } }
  const made = await plane.call('POST', '/v1/tokens', { token: plane.adminToken, body })
  expect((await change(id, { status: 'disabled' })).status).toBe(200)
  expect((await plane.call('GET', '/v1/tokens', { token: made.json.token_value })).status).toBe(401)
  const record = await plane.call('GET', `/v1/tokens/${made.json.id}`, { token: plane.adminToken })
  expect(record.json.status).toBe('revoked')
})

test('an e-mail address stored with capitals is one person, who signs in with any case', async () => {
  await plane.addPerson('Old.Name@example.com')
  expect((await add({ email: 'old.name@EXAMPLE.com' })).json.error).toMatchObject({ code: 'conflict', param: 'email' })
  expect((await plane.signInAs('OLD.name@example.com')).userId).not.toBe('')
})

test('changes an e-mail address, keeps it out of events, and refuses one that somebody has', async () => {
  await plane.addPerson('taken@example.com')
  const id = await plane.addPerson('before@example.com')
  const change = (body: object) => plane.call('PATCH', `/v1/users/${id}`, { body, token: plane.adminToken })
  expect((await change({ email: 'Taken@Example.com' })).json.error).toMatchObject({ code: 'conflict', param: 'email' })
  expect((await change({ email: 'not an address' })).status).toBe(422)
  expect((await change({ email: 'After@Example.com', name: 'After' })).json).toMatchObject({
    ...{ email: 'after@example.com', name: 'After' },
  })
  await plane.signInAs('after@example.com')
  const event = (await eventsOf('member.updated')).at(-1)
  expect(event?.details).toMatchObject({ changes: { email: 'replaced' } })
  expect(JSON.stringify(event)).not.toContain('after@')
})

test('finds people by a part of their name or of their e-mail address', async () => {
  const made = await add({ name: 'Zelda Quill', email: 'zq@sought.example.com' })
  for (const name of ['quill', 'ZQ@SOUGHT', made.json.id.slice(0, 23)]) {
    const { users } = (
      await plane.call('GET', `/v1/users?name=${encodeURIComponent(name)}`, { token: plane.adminToken })
    ).json
    expect(users.map(({ id }: { id: string }) => id)).toEqual([made.json.id])
  }
})
