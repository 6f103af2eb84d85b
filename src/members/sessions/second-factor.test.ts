import { afterEach, beforeEach, expect, test } from 'bun:test'
import { codeOfStep, stepAt } from '../people/totp.ts'
import {
  type Browser,
  type TemporaryControlPlane,
  temporaryControlPlane,
  testPassword,
} from '../testing/temporary-control-plane.ts'

let plane: TemporaryControlPlane
let ann: string
let browser: Browser
beforeEach(async () => {
  plane = await temporaryControlPlane()
  ann = await plane.addPerson('ann@example.com', 'admin')
  browser = await plane.signInAs('ann@example.com')
})
afterEach(() => plane.remove())

const post = (path: string, body: object, by: Browser = browser) =>
  plane.call('POST', `/v1/auth/second-factor/${path}`, { body, cookie: by.cookie, headers: plane.fromPage(by) })
const login = (code?: string, password = testPassword) =>
  plane.call('POST', '/v1/auth/login', { body: { email: 'ann@example.com', password, ...(code ? { code } : {}) } })

const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ234567'
const bytesOf = (base32: string): Uint8Array => {
  const bits = [...base32].map((letter) => alphabet.indexOf(letter).toString(2).padStart(5, '0')).join('')
  return Uint8Array.from((bits.match(/.{8}/g) ?? []).map((eight) => Number.parseInt(eight, 2)))
}

/** Adds an app; gives what it shows at each time. */
async function addApp(): Promise<() => string> {
  const begun = await post('begin', { current_password: testPassword })
  const secret = bytesOf(begun.json.secret)
  const shown = () => codeOfStep(secret, stepAt(plane.clock.now()))
  const confirmed = await post('confirm', { code: shown() })
  if (confirmed.json.has_second_factor !== true) throw new Error(confirmed.text)
  return shown
}
const nextStep = () => plane.clock.advance(30_000)

test('an account with an app needs its code to sign in, and each code works once', async () => {
  const shown = await addApp()
  expect((await login()).json.error).toMatchObject({ code: 'second_factor_required', param: 'code' })
  nextStep()
  expect((await login(shown())).status).toBe(200)
  expect((await login(shown())).json.error.code).toBe('invalid_second_factor')
  nextStep()
  const spaced = `${shown().slice(0, 3)} ${shown().slice(3)}`
  expect((await login(spaced)).status).toBe(200)
})

test('a secret does not count before a code has confirmed it', async () => {
  await post('begin', { current_password: testPassword })
  expect((await post('confirm', { code: '000000' })).json.error.code).toBe('invalid_second_factor')
  expect((await login()).status).toBe(200)
})

test('a wrong password says nothing of the second factor', async () => {
  const shown = await addApp()
  nextStep()
  for (const code of [undefined, shown(), '000000']) {
    expect((await login(code, 'not the right password')).json.error.code).toBe('invalid_credentials')
  }
})

test('guessing codes is slowed down like guessing passwords', async () => {
  await addApp()
  const codes: string[] = []
  for (let count = 0; count < 8; count += 1) codes.push((await login('000000')).json.error.code)
  expect(codes).toContain('sign_in_throttled')
})

test('adding an app needs the password and ends the other sessions', async () => {
  const other = await plane.signInAs('ann@example.com')
  expect((await post('begin', { current_password: 'not it at all' })).json.error.code).toBe('invalid_credentials')
  await addApp()
  expect((await plane.call('GET', '/v1/auth/session', { cookie: other.cookie })).status).toBe(401)
  expect((await plane.call('GET', '/v1/auth/session', { cookie: browser.cookie })).status).toBe(200)
  expect((await post('begin', { current_password: testPassword })).status).toBe(409)
})

test('removing an app needs the password and a code', async () => {
  const shown = await addApp()
  nextStep()
  const wrong = await post('remove', { current_password: testPassword, code: '000000' })
  expect(wrong.json.error.code).toBe('invalid_second_factor')
  const removed = await post('remove', { current_password: testPassword, code: shown() })
  expect(removed.json.has_second_factor).toBe(false)
  expect((await login()).status).toBe(200)
})

test('who may change a person takes a lost app away, which ends the sessions; nobody their own so', async () => {
  await addApp()
  const own = await plane.call('DELETE', `/v1/users/${ann}/second-factor`, {
    cookie: browser.cookie,
    headers: plane.fromPage(browser),
  })
  expect(own.status).toBe(403)
  const removed = await plane.call('DELETE', `/v1/users/${ann}/second-factor`, { token: plane.adminToken })
  expect(removed.json.has_second_factor).toBe(false)
  expect((await plane.call('GET', '/v1/auth/session', { cookie: browser.cookie })).status).toBe(401)
})

test('a link that sets a new password does not come past the second factor', async () => {
  const shown = await addApp()
  const made = await plane.call('POST', `/v1/users/${ann}/invitation`, { body: {}, token: plane.adminToken })
  const secret = new URL(made.json.invitation_url).hash.slice(1)
  const accept = (code?: string) =>
    plane.call('POST', '/v1/auth/invitation/accept', {
      body: { secret, password: 'a new password of mine', ...(code ? { code } : {}) },
    })
  expect((await accept()).json.error.code).toBe('second_factor_required')
  nextStep()
  expect((await accept(shown())).status).toBe(200)
})

test('guessing codes with such a link is slowed down', async () => {
  await addApp()
  const made = await plane.call('POST', `/v1/users/${ann}/invitation`, { body: {}, token: plane.adminToken })
  const secret = new URL(made.json.invitation_url).hash.slice(1)
  const codes: string[] = []
  for (let count = 0; count < 8; count += 1) {
    const body = { secret, password: 'a new password of mine', code: '000000' }
    codes.push((await plane.call('POST', '/v1/auth/invitation/accept', { body })).json.error.code)
  }
  expect(codes).toContain('sign_in_throttled')
})

test('the secret is sealed, and in no event', async () => {
  const begun = await post('begin', { current_password: testPassword })
  const rows = JSON.stringify(await plane.store.ledger.read('select totp_secret from users'))
  expect(rows).toContain('v1.')
  expect(rows).not.toContain(begun.json.secret)
  expect(begun.json.otpauth_uri).toContain(begun.json.secret)
})
