import { afterAll, beforeAll, expect, test } from 'bun:test'
import { challengeOf, outOfBand } from './program-code.ts'
import {
  type Browser,
  type TemporaryControlPlane,
  temporaryControlPlane,
  testOrigin,
  testPassword,
} from './temporary-control-plane.ts'

let plane: TemporaryControlPlane
let ann: Browser
let bob: Browser
beforeAll(async () => {
  plane = await temporaryControlPlane()
  await plane.addPerson('ann@example.com', 'admin')
  await plane.addPerson('bob@example.com', 'member')
  ann = await plane.signInAs('ann@example.com')
  bob = await plane.signInAs('bob@example.com')
})
afterAll(() => plane.remove())

const verifier = 'a-verifier-of-more-than-43-characters-which-is-random'
const redirect = 'http://127.0.0.1:51234/callback'
const asked = (changes: Record<string, string> = {}) =>
  `/console/authorize-program?${new URLSearchParams({
    client_id: 'gatehouse-cli',
    redirect_uri: redirect,
    code_challenge: challengeOf(verifier),
    code_challenge_method: 'S256',
    state: 'a state & <more>',
    ...changes,
  })}`

const answer = (
  browser: Browser,
  step: string,
  changes: Record<string, string> = {},
  headers = { origin: testOrigin },
) => plane.call('POST', asked(changes), { cookie: browser.cookie, headers, form: { step, csrf_token: browser.csrf } })

async function approved(browser: Browser, changes: Record<string, string> = {}): Promise<string> {
  const { headers, text } = await answer(browser, 'approve', changes)
  const location = headers.get('location')
  if (location === null) throw new Error(`Not approved: ${text}`)
  return new URL(location).searchParams.get('code') ?? ''
}

const exchange = (code: string, changes: Record<string, string> = {}) =>
  plane.call('POST', '/v1/auth/session/exchange-code', {
    body: { code, code_verifier: verifier, client_id: 'gatehouse-cli', redirect_uri: redirect, ...changes },
  })
const exchangeForToken = (code: string, changes: Record<string, string> = {}) =>
  plane.call('POST', '/v1/tokens/exchange-code', {
    body: {
      code,
      code_verifier: verifier,
      client_id: 'gatehouse-cli',
      redirect_uri: redirect,
      token_name: 'laptop',
      ...changes,
    },
  })

test('whoever is not signed in is asked to, on a page that runs nothing and asks nobody', async () => {
  const page = await plane.call('GET', asked())
  expect(page.status).toBe(200)
  expect(page.text).toContain('type="password"')
  const policy = page.headers.get('content-security-policy') ?? ''
  expect(policy).toContain("default-src 'none'")
  expect(policy).toContain("frame-ancestors 'none'")
  expect(policy).not.toContain('script-src')
  expect(policy).not.toContain('unsafe')
  expect(page.text).not.toMatch(/<script|<img|<link|https?:\/\//)
})

test('signing in on the page leads back to it, signed in', async () => {
  const form = { step: 'sign-in', email: 'ann@example.com', password: testPassword }
  const signedIn = await plane.call('POST', asked(), { form, headers: { origin: testOrigin } })
  expect([signedIn.status, signedIn.headers.get('location')]).toEqual([303, asked()])
  const page = await plane.call('GET', asked(), { cookie: signedIn.cookie ?? '' })
  expect(page.text).toContain('<strong>gatehouse-cli</strong>')
  expect(page.text).toContain('<strong>127.0.0.1:51234</strong>')
  expect(page.text).toContain('ann@example.com')
  expect(page.headers.get('content-security-policy')).toContain("form-action 'self' http://127.0.0.1:51234;")
  const wrong = await plane.call('POST', asked(), {
    form: { ...form, password: 'wrong wrong wrong' },
    headers: { origin: testOrigin },
  })
  expect([wrong.status, wrong.cookie]).toEqual([401, null])
  expect(wrong.text).toContain('role="alert"')
  expect(wrong.text).not.toContain('wrong wrong')
})

test('signing in from a page of somebody else is refused', async () => {
  const form = { step: 'sign-in', email: 'ann@example.com', password: testPassword }
  const foreign = await plane.call('POST', asked(), { form, headers: { origin: 'https://evil.example' } })
  expect([foreign.status, foreign.cookie]).toEqual([403, null])
})

test('a query that is wrong shows a page and leads nowhere', async () => {
  const wrong = [
    asked({ redirect_uri: 'https://evil.example/' }),
    asked({ code_challenge_method: 'plain' }),
    asked({ client_id: '<script>' }),
    `${asked()}&redirect_uri=http%3A%2F%2F127.0.0.1%3A1%2F`,
    `${asked()}&unknown=1`,
  ]
  for (const path of wrong) {
    for (const method of ['GET', 'POST']) {
      const sent = method === 'GET' ? {} : { form: { step: 'approve', csrf_token: ann.csrf } }
      const page = await plane.call(method, path, { cookie: ann.cookie, headers: { origin: testOrigin }, ...sent })
      expect([page.status, page.headers.get('location')]).toEqual([422, null])
      expect(page.headers.get('content-type')).toStartWith('text/html')
      expect(page.text).not.toContain('<script>')
    }
  }
})

test('approval gives a code and the state as it came; denial says so', async () => {
  const { status, headers } = await answer(ann, 'approve')
  const location = new URL(headers.get('location') ?? '')
  expect(status).toBe(303)
  expect(location.origin + location.pathname).toBe(redirect)
  expect(location.searchParams.get('state')).toBe('a state & <more>')
  expect(location.searchParams.get('code')).toMatch(/^gthc_\w{36}$/)
  const denied = new URL((await answer(ann, 'deny')).headers.get('location') ?? '')
  expect(Object.fromEntries(denied.searchParams)).toEqual({ error: 'access_denied', state: 'a state & <more>' })
})

test('approval takes the CSRF token of this very session, from our own page', async () => {
  const approve = (form: Record<string, string>, headers: Record<string, string>) =>
    plane.call('POST', asked(), { cookie: ann.cookie, form: { step: 'approve', ...form }, headers })
  const refused = [
    await approve({}, { origin: testOrigin }),
    await approve({ csrf_token: bob.csrf }, { origin: testOrigin }),
    await approve({ csrf_token: ann.csrf }, { origin: 'https://evil.example' }),
    await approve({ csrf_token: ann.csrf }, { origin: 'null' }),
    await approve({ csrf_token: ann.csrf }, {}),
  ]
  expect(refused.map(({ status, headers }) => [status, headers.get('location')])).toEqual(
    refused.map(() => [403, null]),
  )
})

test('a code gives a session that acts as the person, by Bearer and without a CSRF token', async () => {
  const given = await exchange(await approved(ann))
  expect(given.status).toBe(201)
  const token = given.json.session_token
  expect(token).toMatch(/^gths_\w{36}$/)
  const who = await plane.call('GET', '/v1/auth/session', { token })
  expect(who.json).toMatchObject({
    kind: 'session',
    user: { email: 'ann@example.com' },
    session: { kind: 'program', program: 'gatehouse-cli' },
    csrf_token: null,
  })
  const made = await plane.call('POST', '/v1/teams', { token, body: { name: 'made by a program' } })
  expect(made.status).toBe(201)
  expect((await plane.call('POST', '/v1/auth/logout', { token })).status).toBe(200)
  expect((await plane.call('GET', '/v1/auth/session', { token })).json.error.code).toBe('invalid_api_token')
})

test('a code is good for its program, redirect and verifier only; every mistake has the same answer', async () => {
  const code = await approved(ann)
  const mistakes = [
    await exchange(code, { code_verifier: `${verifier}x` }),
    await exchange(code, { client_id: 'another' }),
    await exchange(code, { redirect_uri: 'http://127.0.0.1:51234/callback/' }),
    await exchange(code, { redirect_uri: 'http://127.0.0.1:51235/callback' }),
    await exchange(code, { redirect_uri: outOfBand }),
    await exchange(`gthc_${'A'.repeat(36)}`),
    await exchange('nonsense'),
  ]
  expect(mistakes.map(({ status }) => status)).toEqual(mistakes.map(() => 422))
  expect(new Set(mistakes.map(({ json }) => JSON.stringify(json.error))).size).toBe(1)
  expect((await exchange(code, { code_verifier: 'short' })).json.error.param).toBe('code_verifier')
  expect((await exchange(code)).status).toBe(201)
})

test('a code lives a minute', async () => {
  const code = await approved(ann)
  plane.clock.advance(60_000)
  expect((await exchange(code)).json.error.code).toBe('invalid_code')
})

test('a code that comes twice gives nothing and ends what it gave', async () => {
  const code = await approved(ann)
  const { session_token: token } = (await exchange(code)).json
  expect((await plane.call('GET', '/v1/auth/session', { token })).status).toBe(200)
  expect((await exchange(code, { code_verifier: `${verifier}-of-a-thief` })).status).toBe(422)
  expect((await plane.call('GET', '/v1/auth/session', { token })).status).toBe(401)
  const events = await plane.store.ledger.read("select 1 from events where event_type = 'auth.code_replayed'")
  expect(events.length).toBeGreaterThan(0)
})

test('of many exchanges at once at most one succeeds, and none of them leaves a session behind', async () => {
  const code = await approved(ann)
  const answers = await Promise.all(Array.from({ length: 8 }, () => exchange(code)))
  const given = answers.filter(({ status }) => status === 201)
  expect(given.length).toBeLessThanOrEqual(1)
  for (const { json } of given) {
    expect((await plane.call('GET', '/v1/auth/session', { token: json.session_token })).status).toBe(401)
  }
})

test('a code of somebody disabled meanwhile is worth nothing', async () => {
  const id = await plane.addPerson('leaver@example.com', 'admin')
  const code = await approved(await plane.signInAs('leaver@example.com'))
  await plane.store.ledger.write([{ sql: "update users set status = 'disabled' where id = ?", args: [id] }])
  expect((await exchange(code)).status).toBe(422)
})

test('a code approved before the password was changed is worth nothing', async () => {
  const code = await approved(ann)
  const body = { current_password: testPassword, new_password: testPassword.toUpperCase() }
  const changed = await plane.call('POST', '/v1/auth/password', {
    cookie: ann.cookie,
    headers: plane.fromPage(ann),
    body,
  })
  expect(changed.status).toBe(200)
  expect((await exchange(code)).status).toBe(422)
  const back = { current_password: testPassword.toUpperCase(), new_password: testPassword }
  await plane.call('POST', '/v1/auth/password', { cookie: ann.cookie, headers: plane.fromPage(ann), body: back })
})

test('a code gives a general token, bound to the person, with the name that was approved', async () => {
  const code = await approved(ann, { token_name: 'laptop' })
  const given = await exchangeForToken(code)
  expect(given.status).toBe(201)
  expect(given.json).toMatchObject({
    name: 'laptop',
    purpose: 'general',
    roles: ['member'],
    bindings: { user_id: ann.userId },
    created_by: `user:${ann.userId}`,
  })
  expect(given.json.token_value).toMatch(/^gth_\w{36}$/)
})

test('a code approved for a token gives no session, nor a token of another name', async () => {
  const code = await approved(ann, { token_name: 'laptop' })
  expect((await exchange(code)).status).toBe(422)
  expect((await exchangeForToken(code, { token_name: 'something else' })).status).toBe(422)
  expect((await exchangeForToken(code)).status).toBe(201)
})

test('a token from a code that comes twice is revoked', async () => {
  const code = await approved(ann, { token_name: 'laptop' })
  const { id } = (await exchangeForToken(code)).json
  expect((await exchangeForToken(code)).status).toBe(422)
  const record = await plane.call('GET', `/v1/tokens/${id}`, { token: plane.adminToken })
  expect(record.json.status).toBe('revoked')
})

test('of many exchanges for a token at once no token stays in force unless one exchange was alone', async () => {
  const code = await approved(ann, { token_name: 'raced' })
  await Promise.all(Array.from({ length: 5 }, () => exchangeForToken(code, { token_name: 'raced' })))
  const active = await plane.store.state.read(
    'select 1 from tokens where user_id = ? and revoked_at is null and id in (select value from json_each(?))',
    [
      ann.userId,
      JSON.stringify(
        (await plane.store.ledger.read<{ id: string }>("select id from tokens where name = 'raced'")).map(
          ({ id }) => id,
        ),
      ),
    ],
  )
  expect(active).toEqual([])
})

test('whoever may not make tokens cannot approve one', async () => {
  const page = await plane.call('GET', asked({ token_name: 'laptop' }), { cookie: bob.cookie })
  expect(page.status).toBe(403)
  expect((await answer(bob, 'approve', { token_name: 'laptop' })).status).toBe(403)
  const code = await approved(bob)
  expect((await exchangeForToken(code)).json.error.code).toBe('permission_denied')
})

test('without a listener the code is shown, to be typed', async () => {
  const page = await answer(ann, 'approve', { redirect_uri: outOfBand })
  const code = /<code>(gthc_\w{36})<\/code>/.exec(page.text)?.[1] ?? ''
  expect([page.status, page.headers.get('location')]).toEqual([200, null])
  expect(page.headers.get('cache-control')).toBe('no-store')
  expect((await exchange(code, { redirect_uri: outOfBand })).status).toBe(201)
})

test('signing out on the page ends the session', async () => {
  const browser = await plane.signInAs('bob@example.com')
  expect((await answer(browser, 'sign-out')).status).toBe(303)
  expect((await plane.call('GET', '/v1/auth/session', { cookie: browser.cookie })).status).toBe(401)
})

test('no code and no session is kept readable', async () => {
  const code = await approved(ann)
  const { session_token: token } = (await exchange(code)).json
  const tables = ['program_codes', 'user_sessions', 'events', 'idempotency_keys', 'pending_changes']
  const kept = JSON.stringify(
    await Promise.all(tables.map((table) => plane.store.ledger.read(`select * from ${table}`))),
  )
  expect(kept).not.toContain(code)
  expect(kept).not.toContain(token)
})
