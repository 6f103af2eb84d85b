/**
 * What somebody might try against the sign-in at a provider, each as a test that says what comes of it (RFC 9700
 * section 4, RFC 8725 section 2, OpenID Connect Core 1.0 section 16).
 */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { createPublicKey, generateKeyPairSync } from 'node:crypto'
import {
  type OpenIdProvider,
  signedByRsa,
  signedBySecret,
  startOpenIdProvider,
  unsigned,
} from '../testing/openid-provider.ts'
import { addProviderRecord, beginAt, comeBack, signInAt, whoIs } from '../testing/provider-sign-in.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from '../testing/temporary-control-plane.ts'
import { boundedFetch } from './bounded-fetch.ts'
import { createRelyingParty } from './relying-party.ts'

let plane: TemporaryControlPlane
let provider: OpenIdProvider
let id: string
beforeEach(async () => {
  plane = await temporaryControlPlane()
  provider = startOpenIdProvider()
  id = await addProviderRecord(plane, provider)
})
afterEach(async () => {
  await provider.stop()
  await plane.remove()
})

const nobody = { status: 303, session: null }
const noAccounts = async () =>
  expect(await plane.store.ledger.read("select email from users where email <> 'owner@localhost'")).toEqual([])

/** Expires nothing: a token that is wrong in one way lets nobody in. */
async function expectRefused(): Promise<void> {
  expect(await signInAt(plane, provider, id)).toMatchObject({ ...nobody, refused: 'invalid_answer' })
  await noAccounts()
}

const epoch = () => Math.floor(Date.now() / 1000)

test('refuses an ID token without a signature (alg: none)', async () => {
  provider.behaviour.signed = ({ payload }) => unsigned(payload)
  await expectRefused()
})

test('refuses alg: none even where the provider announces it', async () => {
  provider.behaviour.discovery = (document) => ({
    ...document,
    id_token_signing_alg_values_supported: ['none', 'RS256'],
  })
  provider.behaviour.signed = ({ payload }) => unsigned(payload)
  await expectRefused()
})

test('refuses an ID token that is signed by HS256 with the public key as the secret', async () => {
  provider.behaviour.signed = ({ header, payload }) => {
    const pem = provider.publicKey.export({ type: 'spki', format: 'pem' }).toString()
    return signedBySecret({ ...header, alg: 'HS256' }, payload, pem)
  }
  await expectRefused()
})

test('refuses HS256 even where the provider announces it, by the client secret too', async () => {
  provider.behaviour.discovery = (document) => ({
    ...document,
    id_token_signing_alg_values_supported: ['HS256', 'RS256'],
  })
  provider.behaviour.signed = ({ header, payload }) =>
    signedBySecret({ ...header, alg: 'HS256' }, payload, 'the secret of the client')
  await expectRefused()
})

test('refuses an ID token whose signature does not fit', async () => {
  provider.behaviour.signed = ({ header, payload }, key) => {
    const [head, , signature] = signedByRsa(header, payload, key).split('.')
    const [, body] = signedByRsa(header, { ...payload, sub: 'somebody else' }, key).split('.')
    return `${head}.${body}.${signature}`
  }
  await expectRefused()
})

test('refuses an ID token for another client', async () => {
  provider.behaviour.payload = (payload) => ({ ...payload, aud: 'another client' })
  await expectRefused()
})

test('refuses an ID token for several clients that was made for another one', async () => {
  provider.behaviour.payload = (payload) => ({
    ...payload,
    aud: ['another client', 'gatehouse'],
    azp: 'another client',
  })
  await expectRefused()
})

test('refuses an ID token of another issuer', async () => {
  provider.behaviour.payload = (payload) => ({ ...payload, iss: 'https://other.example.com' })
  await expectRefused()
})

test('refuses an ID token that has expired', async () => {
  provider.behaviour.payload = (payload) => ({ ...payload, iat: epoch() - 600, exp: epoch() - 300 })
  await expectRefused()
})

test('refuses an ID token that was issued in the future, or is not valid yet', async () => {
  provider.behaviour.payload = (payload) => ({ ...payload, iat: epoch() + 600, exp: epoch() + 900 })
  await expectRefused()
  provider.behaviour.payload = (payload) => ({ ...payload, nbf: epoch() + 600 })
  await expectRefused()
})

test('refuses an ID token with another nonce, or none', async () => {
  provider.behaviour.payload = (payload) => ({ ...payload, nonce: 'of another sign-in' })
  await expectRefused()
  provider.behaviour.payload = ({ nonce: _, ...payload }) => payload
  await expectRefused()
})

test('refuses an ID token without a subject, and an answer without an ID token', async () => {
  provider.behaviour.payload = ({ sub: _, ...payload }) => payload
  await expectRefused()
  provider.behaviour.tokens = ({ id_token: _, ...answer }) => answer
  await expectRefused()
})

test('takes no key from the token: neither jwk, jku, x5u nor a key id that is a path', async () => {
  const evil = generateKeyPairSync('rsa', { modulusLength: 2048 })
  const jwk = createPublicKey(evil.privateKey).export({ format: 'jwk' })
  const other = Bun.serve({ port: 0, hostname: '127.0.0.1', fetch: () => Response.json({ keys: [jwk] }) })
  let asked = 0
  const listener = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => {
      asked += 1
      return Response.json({ keys: [jwk] })
    },
  })
  const headers = [
    { jwk },
    { jku: `http://127.0.0.1:${listener.port}/keys` },
    { x5u: `http://127.0.0.1:${listener.port}/cert` },
    { kid: `http://127.0.0.1:${listener.port}/keys` },
    { kid: '../../../../dev/null' },
    { kid: "key-1' or '1'='1" },
  ]
  for (const changes of headers) {
    provider.behaviour.signed = ({ header, payload }) =>
      signedByRsa({ ...header, ...changes }, payload, evil.privateKey)
    await expectRefused()
  }
  expect(asked).toBe(0)
  await Promise.all([other.stop(true), listener.stop(true)])
})

test('a key set that is replaced takes the place of the old one, whose tokens are refused', async () => {
  expect((await signInAt(plane, provider, id)).refused).toBeNull()
  const former = provider.key
  provider.rotateKeys('key-2')
  plane.dependencies.relyingParty = createRelyingParty({ clock: plane.clock, fetch })
  provider.behaviour.signed = ({ payload }) => signedByRsa({ alg: 'RS256', kid: 'key-1' }, payload, former)
  expect(await signInAt(plane, provider, id)).toMatchObject({ ...nobody, refused: 'invalid_answer' })
  provider.behaviour.signed = ({ header, payload }, key) => signedByRsa(header, payload, key)
  expect((await signInAt(plane, provider, id)).refused).toBeNull()
})

test('a key set that hangs ends the sign-in, not the control plane', async () => {
  const hurried = boundedFetch(fetch, { milliseconds: 300, bytes: 1024 * 1024 })
  plane.dependencies.relyingParty = createRelyingParty({ clock: plane.clock, fetch: hurried })
  provider.behaviour.keys = () => new Promise(() => undefined)
  const began = performance.now()
  expect(await signInAt(plane, provider, id)).toMatchObject({ ...nobody, refused: 'provider_unreachable' })
  expect(performance.now() - began).toBeLessThan(5000)
  provider.behaviour.keys = (set) => Response.json(set)
  expect((await signInAt(plane, provider, id)).refused).toBeNull()
})

test('a key set that drips byte by byte ends the sign-in too', async () => {
  const hurried = boundedFetch(fetch, { milliseconds: 300, bytes: 1024 * 1024 })
  plane.dependencies.relyingParty = createRelyingParty({ clock: plane.clock, fetch: hurried })
  provider.behaviour.keys = () => {
    let timer: Timer
    const body = new ReadableStream({
      start(controller) {
        timer = setInterval(() => controller.enqueue(new TextEncoder().encode(' ')), 50)
      },
      cancel: () => clearInterval(timer),
    })
    return new Response(body, { headers: { 'content-type': 'application/json' } })
  }
  expect(await signInAt(plane, provider, id)).toMatchObject({ ...nobody, refused: 'provider_unreachable' })
})

test('a key set of 10 MB is not read to its end', async () => {
  let sent = 0
  provider.behaviour.keys = () => {
    const chunk = new Uint8Array(64 * 1024).fill(0x20)
    const body = new ReadableStream({
      pull(controller) {
        sent += chunk.byteLength
        if (sent > 10 * 1024 * 1024) controller.close()
        else controller.enqueue(chunk)
      },
    })
    return new Response(body, { headers: { 'content-type': 'application/json' } })
  }
  expect(await signInAt(plane, provider, id)).toMatchObject({ ...nobody, refused: 'provider_unreachable' })
  expect(sent).toBeLessThan(8 * 1024 * 1024)
})

test('follows no redirect of a provider', async () => {
  let asked = 0
  const elsewhere = Bun.serve({
    port: 0,
    hostname: '127.0.0.1',
    fetch: () => {
      asked += 1
      return Response.json({})
    },
  })
  provider.behaviour.keys = () => Response.redirect(`http://127.0.0.1:${elsewhere.port}/keys`)
  expect(await signInAt(plane, provider, id)).toMatchObject(nobody)
  expect(asked).toBe(0)
  await elsewhere.stop(true)
})

test('metadata of another issuer is refused before anybody is sent anywhere', async () => {
  provider.behaviour.discovery = (document) => ({ ...document, issuer: 'https://other.example.com' })
  const begun = await plane.call('POST', '/v1/auth/identity-providers/begin', {
    body: { identity_provider_id: id },
  })
  expect([begun.status, begun.json.error.code]).toEqual([503, 'dependency_unavailable'])
})

test('mix-up: the answer of one issuer is not taken at the address of another', async () => {
  const evil = startOpenIdProvider({ claims: { ...provider.claims, sub: 'subject-1' } })
  const evilId = await addProviderRecord(plane, evil)
  const { url, cookie } = await beginAt(plane, id)
  // The honest provider's code, brought to the callback of the evil one, which would get it (RFC 9700 section 4.4).
  const honest = new URL(provider.answerTo(url))
  const brought = `http://127.0.0.1:7070/v1/auth/callback/${evilId}${honest.search}`
  expect(await comeBack(plane, brought, [cookie])).toMatchObject({ ...nobody, refused: 'attempt_missing' })
  expect(evil.seen.filter(({ path }) => path === '/token')).toEqual([])
  await evil.stop()
})

test('mix-up: an answer that names another issuer, or none, is refused (RFC 9207)', async () => {
  for (const iss of ['https://other.example.com', null]) {
    const { url, cookie } = await beginAt(plane, id)
    const back = await comeBack(plane, provider.answerTo(url, { iss }), [cookie])
    expect(back).toMatchObject({ ...nobody, refused: 'invalid_answer' })
  }
  expect(provider.seen.filter(({ path }) => path === '/token')).toEqual([])
})

test('e-mail take-over: a second issuer with the same address gets neither the account nor another one', async () => {
  await plane.addPerson('ann@example.com', 'owner')
  const evil = startOpenIdProvider({ claims: { sub: 'eve', email: 'Ann@Example.com', email_verified: true } })
  const evilId = await addProviderRecord(plane, evil)
  expect(await signInAt(plane, evil, evilId)).toMatchObject({ ...nobody, refused: 'account_exists' })
  expect(await plane.store.ledger.read('select * from user_identities')).toEqual([])
  await evil.stop()
})

test('the same subject at another issuer is another person', async () => {
  const ann = await whoIs(plane, (await signInAt(plane, provider, id)).session)
  const evil = startOpenIdProvider({ claims: { sub: 'subject-1', email: 'eve@example.com', email_verified: true } })
  const evilId = await addProviderRecord(plane, evil)
  const eve = await whoIs(plane, (await signInAt(plane, evil, evilId)).session)
  expect(eve.id).not.toBe(ann.id)
  await evil.stop()
})

test('open redirect: the browser goes on to the console and nowhere else', async () => {
  const elsewhere = [
    'https://evil.example/',
    '//evil.example/',
    '/\\evil.example/',
    '\\/evil.example',
    'javascript:alert(1)',
    '/a\\b',
    '/a\r\nset-cookie: a=b',
    '',
  ]
  for (const return_to of elsewhere) {
    const { status } = await plane.call('POST', '/v1/auth/identity-providers/begin', {
      body: { identity_provider_id: id, return_to },
    })
    expect(status).toBe(422)
  }
  for (const returnTo of ['/../../evil', '/..//evil.example', '/%2e%2e/%2e%2e/v1/auth/logout', '/@evil.example']) {
    const { url, cookie } = await beginAt(plane, id, returnTo)
    const { location } = await comeBack(plane, provider.answerTo(url), [cookie])
    expect(location).toStartWith('http://127.0.0.1:7070/console/')
  }
})

test('the longest return address fits into a cookie that browsers keep', async () => {
  const { cookie, url } = await beginAt(plane, id, `/${'a'.repeat(1999)}`)
  expect(cookie.length).toBeLessThan(4096)
  expect((await comeBack(plane, provider.answerTo(url), [cookie])).refused).toBeNull()
  for (const return_to of [`/${'a'.repeat(2000)}`, '/é']) {
    const body = { identity_provider_id: id, return_to }
    expect((await plane.call('POST', '/v1/auth/identity-providers/begin', { body })).status).toBe(422)
  }
})

test('login CSRF: an answer counts only in the browser that began, and only with its own state', async () => {
  const attacker = await beginAt(plane, id)
  const victim = await beginAt(plane, id)
  const stolen = provider.answerTo(attacker.url)
  for (const cookies of [[], [victim.cookie], ['gatehouse_sign_in=forged'], [victim.cookie, attacker.cookie]]) {
    expect(await comeBack(plane, stolen, cookies)).toMatchObject({ ...nobody, refused: 'attempt_missing' })
  }
  for (const state of [null, '', 'guessed']) {
    const changed = new URL(stolen)
    if (state === null) changed.searchParams.delete('state')
    else changed.searchParams.set('state', state)
    const back = await comeBack(plane, changed.href, [attacker.cookie])
    expect(back).toMatchObject({ ...nobody, refused: 'attempt_missing' })
  }
  expect(provider.seen.filter(({ path }) => path === '/token')).toEqual([])
})

test('login CSRF: another page cannot begin a sign-in', async () => {
  const headers = { 'sec-fetch-site': 'cross-site', origin: 'https://evil.example' }
  const begun = await plane.call('POST', '/v1/auth/identity-providers/begin', {
    body: { identity_provider_id: id },
    headers,
  })
  expect(begun.status).toBe(403)
})

test('linking needs the password: a stolen session does not become a lasting one', async () => {
  await plane.addPerson('victim@example.com', 'admin')
  const victim = await plane.signInAs('victim@example.com')
  const link = (current_password: string) =>
    plane.call('POST', '/v1/auth/identity-providers/link', {
      body: { identity_provider_id: id, current_password },
      cookie: victim.cookie,
      headers: plane.fromPage(victim),
    })
  expect((await link('a guess of the attacker')).json.error.code).toBe('invalid_credentials')
  const byPassword = await signInAt(plane, provider, id)
  const { csrf_token } = (await plane.call('GET', '/v1/auth/session', { cookie: byPassword.session ?? '' })).json
  const withoutPassword = await plane.call('POST', '/v1/auth/identity-providers/link', {
    body: { identity_provider_id: id, current_password: '' },
    cookie: byPassword.session ?? '',
    headers: plane.fromPage({ csrf: csrf_token }),
  })
  expect(withoutPassword.json.error.code).toBe('invalid_credentials')
})

test('an identity is not linked where another account is signed in by then', async () => {
  await plane.addPerson('victim@example.com', 'admin')
  await plane.addPerson('attacker@example.com')
  const [victim, attacker] = [await plane.signInAs('victim@example.com'), await plane.signInAs('attacker@example.com')]
  const { url, cookie } = await beginAt(plane, id, '/', victim)
  for (const session of [[`gatehouse_session=${attacker.cookie}`], []]) {
    const back = await comeBack(plane, provider.answerTo(url), [cookie, ...session])
    expect(back).toMatchObject({ ...nobody, refused: 'attempt_missing' })
  }
})

test('session fixation: a sign-in makes a new session and ends the one the browser had', async () => {
  await plane.addPerson('planted@example.com')
  const planted = await plane.signInAs('planted@example.com')
  const { url, cookie } = await beginAt(plane, id)
  const back = await comeBack(plane, provider.answerTo(url), [cookie, `gatehouse_session=${planted.cookie}`])
  expect(back.session).not.toBe(planted.cookie)
  expect(await whoIs(plane, back.session)).toMatchObject({ email: 'ann@example.com' })
  expect(await whoIs(plane, planted.cookie)).toBeNull()
})

test('a code is worth nothing a second time, and an attempt ends after ten minutes', async () => {
  const { url, cookie } = await beginAt(plane, id)
  const answer = provider.answerTo(url)
  expect((await comeBack(plane, answer, [cookie])).refused).toBeNull()
  expect(await comeBack(plane, answer, [cookie])).toMatchObject({ ...nobody, refused: 'invalid_answer' })
  const late = await beginAt(plane, id)
  plane.clock.advance(601_000)
  expect(await comeBack(plane, provider.answerTo(late.url), [late.cookie])).toMatchObject({
    refused: 'attempt_missing',
  })
})

test('an error of the provider is reported by its kind, and its text goes nowhere', async () => {
  const { url, cookie } = await beginAt(plane, id)
  const changes = { code: null, error: 'access_denied', error_description: '<script>alert(1)</script>' }
  const back = await comeBack(plane, provider.answerTo(url, changes), [cookie])
  expect(back).toMatchObject({ ...nobody, refused: 'provider_denied' })
  expect(back.location).not.toContain('script')
})

test('a provider that is switched off lets nobody in, not even who had begun', async () => {
  const { url, cookie } = await beginAt(plane, id)
  await plane.call('PATCH', `/v1/identity-providers/${id}`, { body: { enabled: false }, token: plane.adminToken })
  expect(await comeBack(plane, provider.answerTo(url), [cookie])).toMatchObject({
    ...nobody,
    refused: 'attempt_missing',
  })
})

test('answers from one address are slowed down like passwords', async () => {
  const reasons: (string | null)[] = []
  for (let count = 0; count < 33; count += 1) {
    reasons.push((await comeBack(plane, `http://127.0.0.1:7070/v1/auth/callback/${id}?code=x&state=y`, [])).refused)
  }
  expect(new Set(reasons)).toEqual(new Set(['attempt_missing', 'throttled']))
})
