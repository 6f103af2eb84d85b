import { afterEach, beforeEach, expect, test } from 'bun:test'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { type TemporaryControlPlane, temporaryControlPlane, testPassword } from '../testing/temporary-control-plane.ts'

let plane: TemporaryControlPlane
beforeEach(async () => {
  plane = await temporaryControlPlane()
})
afterEach(() => plane.remove())

async function newPerson(email = 'ann@example.com', role = 'member'): Promise<string> {
  const body = { email, name: 'Ann', role }
  return (await plane.call('POST', '/v1/users', { body, token: plane.adminToken })).json.id
}
const invite = (id: string) => plane.call('POST', `/v1/users/${id}/invitation`, { body: {}, token: plane.adminToken })
const secretIn = (url: string): string => new URL(url).hash.slice(1)
const accept = (secret: string, password = testPassword) =>
  plane.call('POST', '/v1/auth/invitation/accept', { body: { secret, password } })

test('an invited person sets their own password and is signed in', async () => {
  const id = await newPerson()
  const made = await invite(id)
  expect(made.status).toBe(201)
  expect(made.json.invitation_url).toStartWith('http://127.0.0.1:7070/console/invitation#gthc_')
  const secret = secretIn(made.json.invitation_url)
  const preview = await plane.call('POST', '/v1/auth/invitation/preview', { body: { secret } })
  expect(preview.json).toEqual({ email: 'ann@example.com', name: 'Ann' })
  const accepted = await accept(secret)
  expect(accepted.json.user).toMatchObject({ id, email: 'ann@example.com', has_password: true })
  expect(accepted.cookie).not.toBeNull()
  await plane.signInAs('ann@example.com')
})

test('an invitation works once, for 72 hours, and until another takes its place', async () => {
  const id = await newPerson()
  const first = secretIn((await invite(id)).json.invitation_url)
  const second = secretIn((await invite(id)).json.invitation_url)
  expect((await accept(first)).json.error).toMatchObject({ code: 'invalid_setup_link', param: 'secret' })
  plane.clock.advance(72 * 3600_000 - 1)
  expect((await plane.call('POST', '/v1/auth/invitation/preview', { body: { secret: second } })).status).toBe(200)
  expect((await accept(second)).status).toBe(200)
  expect((await accept(second)).status).toBe(422)
  const third = secretIn((await invite(id)).json.invitation_url)
  plane.clock.advance(72 * 3600_000)
  expect((await accept(third)).status).toBe(422)
})

test('of two who open one invitation at once, one gets in', async () => {
  const secret = secretIn((await invite(await newPerson())).json.invitation_url)
  const answers = await Promise.all([accept(secret), accept(secret, 'another long password')])
  expect(answers.map(({ status }) => status).filter((status) => status === 200)).toHaveLength(1)
})

test('a weak password leaves the invitation usable', async () => {
  const secret = secretIn((await invite(await newPerson())).json.invitation_url)
  expect((await accept(secret, 'short')).json.error).toMatchObject({ param: 'password' })
  expect((await accept(secret)).status).toBe(200)
})

test('an invitation is no set-up link, and a set-up link no invitation', async () => {
  const secret = secretIn((await invite(await newPerson())).json.invitation_url)
  const names = { email: 'eve@example.com', name: 'Eve' }
  const setup = await plane.call('POST', '/v1/auth/setup', { body: { secret, password: testPassword, ...names } })
  expect(setup.json.error.code).toBe('invalid_setup_link')
  const link = await plane.call('POST', '/v1/auth/setup-link', { body: {}, token: plane.adminToken })
  expect((await accept(secretIn(link.json.setup_url))).json.error.code).toBe('invalid_setup_link')
})

test('nobody is invited by somebody who may not change them, nor by themselves, nor while disabled', async () => {
  const owner = await newPerson('second@example.com', 'owner')
  const admin = await plane.addPerson('admin@example.com', 'admin')
  const browser = await plane.signInAs('admin@example.com')
  const as = { cookie: browser.cookie, headers: plane.fromPage(browser), body: {} }
  expect((await plane.call('POST', `/v1/users/${owner}/invitation`, as)).status).toBe(403)
  expect((await plane.call('POST', `/v1/users/${admin}/invitation`, as)).status).toBe(403)
  const gone = await newPerson()
  await plane.call('PATCH', `/v1/users/${gone}`, { body: { status: 'disabled' }, token: plane.adminToken })
  expect((await invite(gone)).status).toBe(409)
})

test('with a break-glass owner nobody else is invited', async () => {
  const id = await newPerson()
  const secret = secretIn((await invite(id)).json.invitation_url)
  plane.dependencies.settings.break_glass_owner = 'glass@example.com'
  expect((await invite(id)).status).toBe(409)
  expect((await accept(secret)).status).toBe(409)
})

test('the secret of an invitation is in no event and no table', async () => {
  const made = await invite(await newPerson())
  const secret = secretIn(made.json.invitation_url)
  const kept = JSON.stringify([
    await recordedEvents(plane.store.ledger, 'member.updated'),
    await plane.store.ledger.read('select * from setup_links'),
  ])
  expect(kept).toContain('invitation')
  expect(kept).not.toContain(secret)
})
