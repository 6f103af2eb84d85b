import { afterAll, beforeAll, expect, test } from 'bun:test'
import { type TemporaryControlPlane, temporaryControlPlane, testOrigin } from '../testing/temporary-control-plane.ts'

let plane: TemporaryControlPlane
beforeAll(async () => {
  plane = await temporaryControlPlane()
  await plane.addPerson('ann@example.com', 'admin')
  await plane.addPerson('bob@example.com', 'member')
})
afterAll(() => plane.remove())

const addTeam = (cookie: string, headers: Record<string, string>) =>
  plane.call('POST', '/v1/teams', { cookie, headers, body: { name: `team ${crypto.randomUUID()}` } })

test('a write by cookie needs the CSRF token of that session, from our own page', async () => {
  const browser = await plane.signInAs('ann@example.com')
  const other = await plane.signInAs('ann@example.com')
  const { cookie, csrf } = browser
  const own = { 'sec-fetch-site': 'same-origin' }
  const refused = [
    await addTeam(cookie, {}),
    await addTeam(cookie, own),
    await addTeam(cookie, { 'x-csrf-token': csrf }),
    await addTeam(cookie, { 'x-csrf-token': other.csrf, ...own }),
    await addTeam(cookie, { 'x-csrf-token': `${csrf}x`, ...own }),
    await addTeam(cookie, { 'x-csrf-token': csrf, origin: 'https://evil.example' }),
    await addTeam(cookie, { 'x-csrf-token': csrf, 'sec-fetch-site': 'same-site' }),
  ]
  expect(refused.map(({ status, json }) => [status, json.error.code])).toEqual(refused.map(() => [403, 'csrf_refused']))
  expect((await addTeam(cookie, plane.fromPage(browser))).status).toBe(201)
  expect((await addTeam(cookie, { 'x-csrf-token': csrf, origin: testOrigin })).status).toBe(201)
})

test('a read by cookie needs neither a CSRF token nor our own page', async () => {
  const { cookie } = await plane.signInAs('ann@example.com')
  expect((await plane.call('GET', '/v1/users', { cookie })).status).toBe(200)
})

test('a person may do what their role permits, and no more', async () => {
  const browser = await plane.signInAs('bob@example.com')
  const { cookie } = browser
  expect((await plane.call('GET', '/v1/users', { cookie })).json.error.code).toBe('permission_denied')
  expect((await addTeam(cookie, plane.fromPage(browser))).json.error.code).toBe('permission_denied')
})

test("a browser session's secret is no Bearer credential, and a Bearer secret no cookie", async () => {
  const { cookie } = await plane.signInAs('ann@example.com')
  expect((await plane.call('GET', '/v1/users', { token: cookie })).status).toBe(401)
})

test('an Authorization header decides alone, whatever cookie comes with it', async () => {
  const { cookie } = await plane.signInAs('ann@example.com')
  const both = await plane.call('GET', '/v1/auth/session', { cookie, token: plane.adminToken })
  expect(both.json).toMatchObject({ kind: 'token', user: null, session: null, csrf_token: null })
  expect((await plane.call('GET', '/v1/users', { cookie, token: `gth_${'0'.repeat(36)}` })).status).toBe(401)
})

test('a session ends after its idle time, or at the end of its lifetime', async () => {
  const { cookie } = await plane.signInAs('ann@example.com')
  const alive = async () => (await plane.call('GET', '/v1/users', { cookie })).status
  for (let hour = 0; hour < 25; hour += 1) {
    expect([200, 401]).toContain(await alive())
    plane.clock.advance(59 * 60_000)
  }
  expect(await alive()).toBe(401)
  const idle = await plane.signInAs('ann@example.com')
  plane.clock.advance(3_600_000)
  expect((await plane.call('GET', '/v1/users', { cookie: idle.cookie })).status).toBe(401)
})

test('use keeps a session alive beyond its idle time', async () => {
  const { cookie } = await plane.signInAs('ann@example.com')
  for (let count = 0; count < 5; count += 1) {
    plane.clock.advance(50 * 60_000)
    expect((await plane.call('GET', '/v1/users', { cookie })).status).toBe(200)
  }
})

test('a person lists and ends only their own sessions', async () => {
  await plane.addPerson('owner-of-sessions@example.com')
  const here = await plane.signInAs('owner-of-sessions@example.com')
  const elsewhere = await plane.signInAs('owner-of-sessions@example.com')
  const stranger = await plane.signInAs('ann@example.com')
  const listed = await plane.call('GET', '/v1/auth/sessions', { cookie: here.cookie })
  expect(listed.json.sessions).toHaveLength(2)
  const other = listed.json.sessions.find(({ current }: { current: boolean }) => !current)
  const end = (by: typeof here) =>
    plane.call('DELETE', `/v1/auth/sessions/${other.id}`, { cookie: by.cookie, headers: plane.fromPage(by) })
  expect((await end(stranger)).status).toBe(404)
  expect((await end(here)).status).toBe(200)
  expect((await plane.call('GET', '/v1/auth/session', { cookie: elsewhere.cookie })).status).toBe(401)
  expect(listed.text).not.toContain(here.cookie)
})

test('tells an API token that it is no person', async () => {
  const answer = await plane.call('POST', '/v1/auth/logout', { token: plane.adminToken })
  expect(answer.json.error.code).toBe('permission_denied')
})
