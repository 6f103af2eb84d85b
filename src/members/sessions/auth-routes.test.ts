import { afterAll, beforeAll, expect, test } from 'bun:test'
import { recordedEvents, recordedTexts } from '../../events/testing/recorded.ts'
import { hashSecret } from '../../identity/secret.ts'
import {
  type TemporaryControlPlane,
  temporaryControlPlane,
  testOrigin,
  testPassword,
} from '../testing/temporary-control-plane.ts'
import { makeSetupLink, ownerAwaitingSetup } from './setup-link.ts'

let plane: TemporaryControlPlane
beforeAll(async () => {
  plane = await temporaryControlPlane()
  await plane.addPerson('ann@example.com', 'admin')
  await plane.addPerson('bob@example.com', 'member')
})
afterAll(() => plane.remove())

const login = (body: unknown, sent = {}) => plane.call('POST', '/v1/auth/login', { body, ...sent })

test('signing in sets a cookie that scripts cannot read, and gives a CSRF token', async () => {
  const answer = await login({ email: ' ann@EXAMPLE.com ', password: testPassword })
  expect(answer.status).toBe(200)
  expect(answer.headers.get('set-cookie')).toMatch(
    /^gatehouse_session=gths_\w{36}; Max-Age=86400; HttpOnly; SameSite=Lax; Path=\/$/,
  )
  expect(answer.json).toMatchObject({ user: { email: 'ann@example.com', role: 'admin' } })
  expect(answer.json.csrf_token.length).toBeGreaterThan(40)
  expect(answer.text).not.toContain(answer.cookie ?? 'nothing')
})

test('behind HTTPS uses a cookie name that no neighbour site can set, and accepts only that name', async () => {
  const origin = 'https://gatehouse.example'
  const deployed = await temporaryControlPlane(origin)
  try {
    await deployed.addPerson('ann@example.com', 'admin')
    const answer = await deployed.call('POST', '/v1/auth/login', {
      body: { email: 'ann@example.com', password: testPassword },
    })
    const [pair = '', ...attributes] = answer.headers.get('set-cookie')?.split('; ') ?? []
    expect(attributes).toEqual(['Max-Age=86400', 'HttpOnly', 'SameSite=Lax', 'Path=/', 'Secure'])
    expect(pair).toStartWith('__Host-gatehouse_session=gths_')
    const session = async (cookie: string) =>
      (await deployed.fetch(new Request(`${origin}/v1/auth/session`, { headers: { cookie } }))).status
    expect([await session(pair), await session(pair.replace('__Host-', ''))]).toEqual([200, 401])
  } finally {
    deployed.remove()
  }
})

test('finds the session by its hash only, and names it in an event', async () => {
  const { cookie } = await plane.signInAs('ann@example.com')
  const rows = await plane.store.ledger.read<{ id: string }>('select id from user_sessions where hash = ?', [
    hashSecret(cookie),
  ])
  expect(rows).toHaveLength(1)
  const events = JSON.stringify(await recordedEvents(plane.store.ledger, 'auth.signed_in'))
  expect(events).toContain(rows[0]?.id ?? 'nothing')
  const everything = JSON.stringify([
    await plane.store.ledger.read('select * from user_sessions'),
    await plane.store.ledger.read('select * from idempotency_keys'),
    await recordedTexts(plane.store.ledger),
  ])
  expect(everything).not.toContain(cookie)
  expect(everything).not.toContain(testPassword)
})

test('a wrong password, an unknown person, a disabled one and one without a password get the same answer', async () => {
  const disabled = await plane.addPerson('disabled@example.com')
  const without = await plane.addPerson('without@example.com')
  await plane.store.ledger.write([
    { sql: "update users set status = 'disabled' where id = ?", args: [disabled] },
    { sql: 'update users set password_hash = null where id = ?', args: [without] },
  ])
  const answers = await Promise.all([
    login({ email: 'bob@example.com', password: 'not the password' }),
    login({ email: 'nobody@example.com', password: testPassword }),
    login({ email: 'disabled@example.com', password: testPassword }),
    login({ email: 'without@example.com', password: testPassword }),
  ])
  expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 401])
  expect(new Set(answers.map(({ json }) => JSON.stringify(json.error))).size).toBe(1)
  expect(answers[0]?.json.error).toMatchObject({ code: 'invalid_credentials', type: 'authentication_error' })
})

test('slows guessing down for the account and gives the time to wait', async () => {
  await plane.addPerson('guessed@example.com')
  const guess = () => login({ email: 'guessed@example.com', password: 'not the password' })
  const answers = []
  for (let count = 0; count < 8; count += 1) answers.push(await guess())
  expect(answers.map(({ status }) => status)).toEqual([401, 401, 401, 401, 401, 401, 429, 429])
  expect(answers.at(-1)?.json.error).toMatchObject({ code: 'sign_in_throttled', type: 'rate_limit_exceeded' })
  expect(answers.at(-1)?.headers.get('retry-after')).toBe('1')
  expect((await login({ email: 'guessed@example.com', password: testPassword })).status).toBe(429)
  plane.clock.advance(1000)
  expect((await login({ email: 'guessed@example.com', password: testPassword })).status).toBe(200)
})

test('slows parallel guessing down too', async () => {
  await plane.addPerson('stormed@example.com')
  const guesses = Array.from({ length: 40 }, () =>
    login({ email: 'stormed@example.com', password: 'wrong wrong wrong' }, { address: '198.51.100.9' }),
  )
  const statuses = (await Promise.all(guesses)).map(({ status }) => status)
  expect(statuses.filter((status) => status === 401).length).toBeLessThanOrEqual(6)
  expect(statuses.filter((status) => status === 401 || status === 429)).toHaveLength(40)
})

test('slows an address down that guesses at many accounts, and no other', async () => {
  const from = { address: '203.0.113.5' }
  const statuses: number[] = []
  for (let count = 0; count < 33; count += 1) {
    statuses.push((await login({ email: `nobody${count}@example.com`, password: 'wrong wrong wrong' }, from)).status)
  }
  expect(statuses.slice(-2)).toEqual([429, 429])
  expect((await login({ email: 'ann@example.com', password: testPassword }, from)).status).toBe(429)
  expect((await login({ email: 'ann@example.com', password: testPassword })).status).toBe(200)
}, 20_000)

test("another site's page cannot sign a browser in", async () => {
  const credentials = { email: 'ann@example.com', password: testPassword }
  const foreign = await login(credentials, {
    headers: { origin: 'https://evil.example', 'sec-fetch-site': 'cross-site' },
  })
  expect(foreign.json.error.code).toBe('csrf_refused')
  expect(foreign.cookie).toBeNull()
  expect((await login(credentials, { headers: { origin: testOrigin } })).status).toBe(200)
})

test('a sign-in never reuses an existing session', async () => {
  const planted = await plane.signInAs('bob@example.com')
  const answer = await login({ email: 'ann@example.com', password: testPassword }, { cookie: planted.cookie })
  expect(answer.cookie).not.toBe(planted.cookie)
  expect((await plane.call('GET', '/v1/auth/session', { cookie: planted.cookie })).status).toBe(401)
  const madeUp = `gths_${'a'.repeat(36)}`
  const other = await login({ email: 'ann@example.com', password: testPassword }, { cookie: madeUp })
  expect(other.cookie).not.toBe(madeUp)
})

test('signing out ends the session for whoever has its cookie', async () => {
  const browser = await plane.signInAs('ann@example.com')
  const { cookie } = browser
  expect((await plane.call('POST', '/v1/auth/logout', { cookie, headers: plane.fromPage(browser) })).status).toBe(200)
  expect((await plane.call('GET', '/v1/auth/session', { cookie })).status).toBe(401)
})

test("changing one's password needs the present one and ends the other sessions", async () => {
  await plane.addPerson('changer@example.com')
  const [here, elsewhere] = [await plane.signInAs('changer@example.com'), await plane.signInAs('changer@example.com')]
  const change = (current_password: string, new_password: string) =>
    plane.call('POST', '/v1/auth/password', {
      cookie: here.cookie,
      headers: plane.fromPage(here),
      body: { current_password, new_password },
    })
  expect((await change('not the password', 'another long password')).status).toBe(401)
  const short = await change(testPassword, 'short')
  expect(short.json.error).toMatchObject({ code: 'invalid_parameter', param: 'new_password' })
  expect((await change(testPassword, 'another long password')).status).toBe(200)
  expect((await plane.call('GET', '/v1/auth/session', { cookie: here.cookie })).status).toBe(200)
  expect((await plane.call('GET', '/v1/auth/session', { cookie: elsewhere.cookie })).status).toBe(401)
  expect((await login({ email: 'changer@example.com', password: testPassword })).status).toBe(401)
  expect((await login({ email: 'changer@example.com', password: 'another long password' })).status).toBe(200)
})

test('a setup link works once, within its time, and ends all other links of its person', async () => {
  const { ledger } = plane.store
  const userId = (await ownerAwaitingSetup(ledger)) ?? ''
  const link = async () =>
    (await makeSetupLink({ ...plane.dependencies, ledger, userId, consoleUrl: `${testOrigin}/console` })).url
  const secretOf = (url: string) => new URL(url).hash.slice(1)
  const use = (secret: string, password = testPassword) =>
    plane.call('POST', '/v1/auth/setup', { body: { secret, email: 'Owner@Example.com', name: 'The Owner', password } })

  const late = secretOf(await link())
  plane.clock.advance(15 * 60_000)
  expect((await use(late)).json.error.code).toBe('invalid_setup_link')

  const other = secretOf(await link())
  const url = await link()
  expect(url).toStartWith(`${testOrigin}/console/setup#gthc_`)
  expect((await use(secretOf(url), 'short')).json.error.param).toBe('password')
  const [first, second] = await Promise.all([use(secretOf(url)), use(secretOf(url))])
  expect([first.status, second.status].filter((status) => status === 200)).toHaveLength(1)
  expect((await use(secretOf(url))).status).toBe(422)
  expect((await use(other)).json.error.code).toBe('invalid_setup_link')
  expect(await ownerAwaitingSetup(ledger)).toBeNull()
  const owner = await plane.signInAs('Owner@example.com')
  expect((await plane.call('GET', '/v1/auth/session', { cookie: owner.cookie })).json).toMatchObject({
    kind: 'session',
    roles: ['owner'],
    user: { name: 'The Owner' },
  })
})

test('an owner makes another setup link while no owner has a password, which ends earlier links', async () => {
  const fresh = await temporaryControlPlane()
  const token = fresh.adminToken
  const make = (sent: object = {}) => fresh.call('POST', '/v1/auth/setup-link', { token, body: {}, ...sent })
  const use = (url: string) =>
    fresh.call('POST', '/v1/auth/setup', {
      body: { secret: new URL(url).hash.slice(1), email: 'o@example.com', name: 'Owner', password: testPassword },
    })
  const [first, second] = [await make(), await make()]
  expect(first.status).toBe(201)
  expect((await use(first.json.setup_url)).json.error.code).toBe('invalid_setup_link')
  expect((await make({ token: undefined })).status).toBe(401)
  const admin = await fresh.call('POST', '/v1/tokens', {
    token,
    body: { name: 'admin', purpose: 'general', roles: ['admin'] },
  })
  expect((await make({ token: admin.json.token_value })).json.error.code).toBe('permission_denied')
  const [owner] = await fresh.store.ledger.read<{ id: string }>("select id from users where role = 'owner'")
  const byPassword = { token, body: { password: 'set by an administrator' }, headers: { 'if-match': '"1"' } }
  expect((await fresh.call('PATCH', `/v1/users/${owner?.id}`, byPassword)).status).toBe(200)
  expect((await use(second.json.setup_url)).json.error.code).toBe('invalid_setup_link')
  const later = await make()
  expect([later.status, later.json.error.code]).toEqual([409, 'conflict'])
  fresh.remove()
})
