import { afterAll, beforeAll, expect, test } from 'bun:test'
import { recordedEvents, recordedTexts } from '../../events/testing/recorded.ts'
import {
  type Browser,
  type TemporaryControlPlane,
  temporaryControlPlane,
  testOrigin,
  testPassword,
} from '../testing/temporary-control-plane.ts'
import { challengeOf, outOfBand } from './program-code.ts'

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
const asked = (changes: Record<string, string> = {}) => ({
  client_id: 'gatehouse-cli',
  redirect_uri: redirect,
  code_challenge: challengeOf(verifier),
  code_challenge_method: 'S256',
  state: 'a state & <more>',
  ...changes,
})

const preview = (browser: Browser, changes: Record<string, string> = {}) =>
  plane.call('POST', '/v1/auth/programs/preview', {
    cookie: browser.cookie,
    headers: plane.fromPage(browser),
    body: asked(changes),
  })
const answer = (
  browser: Browser,
  approve: boolean,
  changes: Record<string, string> = {},
  headers: Record<string, string> = plane.fromPage(browser),
) =>
  plane.call('POST', '/v1/auth/programs/decision', {
    cookie: browser.cookie,
    headers,
    body: { ...asked(changes), approve },
  })

async function approved(browser: Browser, changes: Record<string, string> = {}): Promise<string> {
  const { json, text } = await answer(browser, true, changes)
  if (typeof json?.redirect_to !== 'string') throw new Error(`Not approved: ${text}`)
  return new URL(json.redirect_to).searchParams.get('code') ?? ''
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

test("shows a program's request only to a signed-in browser, with the account", async () => {
  expect((await preview(ann)).json).toEqual({
    program: 'gatehouse-cli',
    redirect_host: '127.0.0.1:51234',
    token_name: null,
  })
  expect((await preview(ann, { redirect_uri: outOfBand, token_name: 'laptop' })).json).toMatchObject({
    redirect_host: null,
    token_name: 'laptop',
  })
  expect((await plane.call('POST', '/v1/auth/programs/preview', { body: asked() })).status).toBe(401)
  const program = (await exchange(await approved(ann))).json.session_token
  for (const path of ['preview', 'decision']) {
    const body = path === 'preview' ? asked() : { ...asked(), approve: true }
    const refused = await plane.call('POST', `/v1/auth/programs/${path}`, { token: program, body })
    expect([refused.status, refused.json.error.code]).toEqual([403, 'permission_denied'])
    const byToken = await plane.call('POST', `/v1/auth/programs/${path}`, { token: plane.adminToken, body })
    expect(byToken.status).toBe(403)
  }
})

test('refuses a decision from another account than the page showed, yes or no', async () => {
  for (const approve of [true, false]) {
    const refused = await plane.call('POST', '/v1/auth/programs/decision', {
      cookie: ann.cookie,
      headers: plane.fromPage(ann),
      body: { ...asked(), approve, user_id: 'somebody else' },
    })
    expect([refused.status, refused.json.error.code]).toEqual([409, 'consent_outdated'])
  }
})

test('an invalid query redirects nowhere', async () => {
  const wrong: Record<string, string>[] = [
    { redirect_uri: 'https://evil.example/' },
    { code_challenge_method: 'plain' },
    { client_id: '<script>' },
    { unknown: '1' },
  ]
  for (const changes of wrong) {
    for (const refused of [
      await preview(ann, changes),
      await answer(ann, true, changes),
      await answer(ann, false, changes),
    ]) {
      expect(refused.status).toBe(422)
      expect(refused.text).not.toContain('evil.example')
    }
  }
})

test('approval redirects with a code and the unchanged state; denial redirects with an error', async () => {
  const { status, json } = await answer(ann, true)
  const location = new URL(json.redirect_to)
  expect([status, json.code]).toEqual([200, null])
  expect(location.origin + location.pathname).toBe(redirect)
  expect(location.searchParams.get('state')).toBe('a state & <more>')
  expect(location.searchParams.get('code')).toMatch(/^gthc_\w{36}$/)
  const denied = new URL((await answer(ann, false)).json.redirect_to)
  expect(Object.fromEntries(denied.searchParams)).toEqual({ error: 'access_denied', state: 'a state & <more>' })
})

test('approval needs the CSRF token of this session, from our own page', async () => {
  const own = plane.fromPage(ann)
  const refused = [
    await answer(ann, true, {}, { origin: testOrigin }),
    await answer(ann, true, {}, { ...own, 'x-csrf-token': bob.csrf }),
    await answer(ann, true, {}, { 'x-csrf-token': ann.csrf, origin: 'https://evil.example' }),
    await answer(ann, true, {}, { 'x-csrf-token': ann.csrf, origin: 'null' }),
    await answer(ann, true, {}, { 'x-csrf-token': ann.csrf }),
  ]
  expect(refused.map(({ json }) => json.error.code)).toEqual(refused.map(() => 'csrf_refused'))
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

test('a code works only with its program, redirect and verifier, and every mistake has the same answer', async () => {
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

test('a code expires after a minute', async () => {
  const code = await approved(ann)
  plane.clock.advance(60_000)
  expect((await exchange(code)).json.error.code).toBe('invalid_code')
})

test('a reused code gives nothing and ends what it gave', async () => {
  const code = await approved(ann)
  const { session_token: token } = (await exchange(code)).json
  expect((await plane.call('GET', '/v1/auth/session', { token })).status).toBe(200)
  expect((await exchange(code, { code_verifier: `${verifier}-of-a-thief` })).status).toBe(422)
  expect((await plane.call('GET', '/v1/auth/session', { token })).status).toBe(401)
  const events = await recordedEvents(plane.store.ledger, 'auth.code_replayed')
  expect(events.length).toBeGreaterThan(0)
})

test('at most one of many exchanges at once succeeds, and none of the others leaves a session', async () => {
  const code = await approved(ann)
  const answers = await Promise.all(Array.from({ length: 8 }, () => exchange(code)))
  const given = answers.filter(({ status }) => status === 201)
  expect(given.length).toBeLessThanOrEqual(1)
  for (const { json } of given) {
    expect((await plane.call('GET', '/v1/auth/session', { token: json.session_token })).status).toBe(401)
  }
})

test('refuses a code of a person who was disabled meanwhile', async () => {
  const id = await plane.addPerson('leaver@example.com', 'admin')
  const code = await approved(await plane.signInAs('leaver@example.com'))
  await plane.store.ledger.write([{ sql: "update users set status = 'disabled' where id = ?", args: [id] }])
  expect((await exchange(code)).status).toBe(422)
})

test('refuses a code approved before the password was changed', async () => {
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

test('a code gives a general token, bound to the person, with the approved name', async () => {
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

test('a code approved for a token gives no session and no token of another name', async () => {
  const code = await approved(ann, { token_name: 'laptop' })
  expect((await exchange(code)).status).toBe(422)
  expect((await exchangeForToken(code, { token_name: 'something else' })).status).toBe(422)
  expect((await exchangeForToken(code)).status).toBe(201)
})

test('a reused code revokes its token', async () => {
  const code = await approved(ann, { token_name: 'laptop' })
  const { id } = (await exchangeForToken(code)).json
  expect((await exchangeForToken(code)).status).toBe(422)
  const record = await plane.call('GET', `/v1/tokens/${id}`, { token: plane.adminToken })
  expect(record.json.status).toBe('revoked')
})

test('after many token exchanges at once no token works unless one exchange was alone', async () => {
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

test('a person who may not make tokens cannot approve one', async () => {
  expect((await preview(bob, { token_name: 'laptop' })).status).toBe(403)
  expect((await answer(bob, true, { token_name: 'laptop' })).status).toBe(403)
})

test('a code approved as a sign-in gives no token', async () => {
  const code = await approved(ann)
  const refused = await exchangeForToken(code, { token_name: 'from a sign-in' })
  expect(refused.json.error).toMatchObject({ code: 'invalid_code', param: 'code' })
  expect(await plane.store.ledger.read("select 1 from tokens where name = 'from a sign-in'")).toEqual([])
  expect((await exchange(code)).status).toBe(201)
})

test('a person who lost the right to make tokens gets none for an earlier approved code', async () => {
  const id = await plane.addPerson('lowered@example.com', 'admin')
  const code = await approved(await plane.signInAs('lowered@example.com'), { token_name: 'laptop' })
  await plane.store.ledger.write([{ sql: "update users set role = 'member' where id = ?", args: [id] }])
  expect((await exchangeForToken(code)).json.error.code).toBe('permission_denied')
})

test('without a listener shows the code to be typed', async () => {
  const { json, headers } = await answer(ann, true, { redirect_uri: outOfBand })
  expect(json).toEqual({ redirect_to: null, code: expect.stringMatching(/^gthc_\w{36}$/) })
  expect(headers.get('cache-control')).toBe('no-store')
  expect((await exchange(json.code, { redirect_uri: outOfBand })).status).toBe(201)
  const denied = await answer(ann, false, { redirect_uri: outOfBand })
  expect(denied.json).toEqual({ redirect_to: null, code: null })
})

test('stores no code and no session in readable form', async () => {
  const code = await approved(ann)
  const { session_token: token } = (await exchange(code)).json
  const tables = ['program_codes', 'user_sessions', 'segment_facets', 'idempotency_keys', 'pending_changes']
  const kept = JSON.stringify([
    await Promise.all(tables.map((table) => plane.store.ledger.read(`select * from ${table}`))),
    await recordedTexts(plane.store.ledger),
  ])
  expect(kept).not.toContain(code)
  expect(kept).not.toContain(token)
})
