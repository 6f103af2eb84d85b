import { afterEach, beforeEach, expect, test } from 'bun:test'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { silentLog } from '../../lib/log/log.ts'
import { type OpenIdProvider, startOpenIdProvider } from '../testing/openid-provider.ts'
import { addProviderRecord, signInAt, whoIs } from '../testing/provider-sign-in.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from '../testing/temporary-control-plane.ts'
import { recheckIdentities } from './recheck.ts'

let plane: TemporaryControlPlane
let provider: OpenIdProvider
beforeEach(async () => {
  plane = await temporaryControlPlane()
  provider = startOpenIdProvider()
  provider.claims = { ...provider.claims, groups: ['staff'] }
})
afterEach(async () => {
  await provider.stop()
  await plane.remove()
})

const staffOnly = {
  ...{ default_role: null, recheck_seconds: 60 },
  groups: [
    { group: 'staff', role: 'member' },
    { group: 'leads', role: 'operator' },
  ],
}
const round = () => recheckIdentities({ ...plane.dependencies, log: silentLog })
const refreshes = () => provider.seen.filter(({ body }) => body.get('grant_type') === 'refresh_token').length

test('a person who has lost the group loses the sessions at the next question', async () => {
  const id = await addProviderRecord(plane, provider, staffOnly)
  const { session } = await signInAt(plane, provider, id)
  provider.claims = { ...provider.claims, groups: [] }
  await round()
  expect(await whoIs(plane, session)).not.toBeNull()
  plane.clock.advance(60_000)
  await round()
  expect(await whoIs(plane, session)).toBeNull()
  const [event] = await recordedEvents(plane.store.ledger, 'auth.identity_lost')
  expect(event).toMatchObject({ reason_code: 'identity.no_role', details: { identity_provider_id: id } })
})

test('the sessions of programs end with it', async () => {
  const id = await addProviderRecord(plane, provider, staffOnly)
  const { session } = await signInAt(plane, provider, id)
  const { csrf_token } = (await plane.call('GET', '/v1/auth/session', { cookie: session ?? '' })).json
  const verifier = 'a-verifier-of-more-than-43-characters-which-is-random'
  const asked = { client_id: 'gatehouse-cli', redirect_uri: 'http://127.0.0.1:9999/callback' }
  const decided = await plane.call('POST', '/v1/auth/programs/decision', {
    cookie: session ?? '',
    headers: plane.fromPage({ csrf: csrf_token }),
    body: {
      ...{ ...asked, approve: true, code_challenge_method: 'S256' },
      code_challenge: new Bun.CryptoHasher('sha256').update(verifier).digest('base64url'),
    },
  })
  const code = new URL(decided.json.redirect_to).searchParams.get('code')
  const body = { code, code_verifier: verifier, ...asked }
  const token = (await plane.call('POST', '/v1/auth/session/exchange-code', { body })).json.session_token
  expect((await plane.call('GET', '/v1/auth/session', { token })).status).toBe(200)
  provider.refresh = 'withdrawn'
  plane.clock.advance(60_000)
  await round()
  expect((await plane.call('GET', '/v1/auth/session', { token })).status).toBe(401)
})

test('a change of groups changes the role of who is signed in', async () => {
  const id = await addProviderRecord(plane, provider, staffOnly)
  const { session } = await signInAt(plane, provider, id)
  provider.claims = { ...provider.claims, groups: ['leads'] }
  plane.clock.advance(60_000)
  await round()
  expect(await whoIs(plane, session)).toMatchObject({ role: 'operator' })
})

test('asks again and again, each time with the newest refresh token', async () => {
  const id = await addProviderRecord(plane, provider, staffOnly)
  const { session } = await signInAt(plane, provider, id)
  for (let count = 1; count <= 3; count += 1) {
    plane.clock.advance(60_000)
    await round()
    await round()
    expect(refreshes()).toBe(count)
  }
  expect(await whoIs(plane, session)).not.toBeNull()
})

test('two control planes ask once', async () => {
  const id = await addProviderRecord(plane, provider, staffOnly)
  const { session } = await signInAt(plane, provider, id)
  plane.clock.advance(60_000)
  await Promise.all([round(), round(), round()])
  expect(refreshes()).toBe(1)
  expect(await whoIs(plane, session)).not.toBeNull()
})

test('another subject in the answer ends the sessions', async () => {
  const id = await addProviderRecord(plane, provider, staffOnly)
  const { session } = await signInAt(plane, provider, id)
  provider.claims = { ...provider.claims, sub: 'somebody else' }
  plane.clock.advance(60_000)
  await round()
  expect(await whoIs(plane, session)).toBeNull()
})

test('a provider that is away keeps people signed in for an hour, and is asked every minute', async () => {
  const id = await addProviderRecord(plane, provider, staffOnly)
  const { session } = await signInAt(plane, provider, id)
  provider.refresh = 'unavailable'
  plane.clock.advance(60_000)
  await round()
  await round()
  expect(refreshes()).toBe(1)
  plane.clock.advance(60_000)
  await round()
  expect(refreshes()).toBe(2)
  expect(await whoIs(plane, session)).not.toBeNull()
  plane.clock.advance(3600_000 - 60_000)
  expect(await whoIs(plane, session)).toBeNull()
})

test('a session whose provider gave no refresh token ends at its own time', async () => {
  provider.refresh = 'withheld'
  const id = await addProviderRecord(plane, provider, { ...staffOnly, unchecked_session_seconds: 600 })
  const { session } = await signInAt(plane, provider, id)
  plane.clock.advance(599_000)
  await round()
  expect(await whoIs(plane, session)).not.toBeNull()
  plane.clock.advance(1000)
  expect(await whoIs(plane, session)).toBeNull()
})

test('a person without a session is not asked about any more', async () => {
  const id = await addProviderRecord(plane, provider, staffOnly)
  const { session } = await signInAt(plane, provider, id)
  const { csrf_token } = (await plane.call('GET', '/v1/auth/session', { cookie: session ?? '' })).json
  await plane.call('POST', '/v1/auth/logout', {
    cookie: session ?? '',
    headers: plane.fromPage({ csrf: csrf_token }),
    body: {},
  })
  plane.clock.advance(60_000)
  await round()
  plane.clock.advance(60_000)
  await round()
  expect(refreshes()).toBe(0)
})

test('a changed mapping holds for who is signed in at once', async () => {
  const id = await addProviderRecord(plane, provider, staffOnly)
  const { session } = await signInAt(plane, provider, id)
  const body = { groups: [{ group: 'staff', role: 'auditor' }] }
  await plane.call('PATCH', `/v1/identity-providers/${id}`, { body, token: plane.adminToken })
  await round()
  expect(await whoIs(plane, session)).toMatchObject({ role: 'auditor' })
})

test('the sessions of a provider end when it is switched off or deleted', async () => {
  const id = await addProviderRecord(plane, provider, staffOnly)
  const first = await signInAt(plane, provider, id)
  await plane.call('PATCH', `/v1/identity-providers/${id}`, { body: { enabled: false }, token: plane.adminToken })
  expect(await whoIs(plane, first.session)).toBeNull()
  await plane.call('PATCH', `/v1/identity-providers/${id}`, { body: { enabled: true }, token: plane.adminToken })
  const second = await signInAt(plane, provider, id)
  expect(await whoIs(plane, second.session)).not.toBeNull()
  await plane.call('DELETE', `/v1/identity-providers/${id}`, { token: plane.adminToken })
  expect(await whoIs(plane, second.session)).toBeNull()
})

test('refresh tokens are sealed, and one moved to another identity does not open', async () => {
  const id = await addProviderRecord(plane, provider, staffOnly)
  await signInAt(plane, provider, id)
  const [row] = await plane.store.ledger.read<{ refresh_token: string }>('select refresh_token from user_identities')
  expect(row?.refresh_token).toStartWith('v1.')
  provider.claims = { ...provider.claims, sub: 'subject-2', email: 'bob@example.com' }
  const { session } = await signInAt(plane, provider, id)
  await plane.store.ledger.write([
    {
      sql: "update user_identities set refresh_token = ? where subject = 'subject-2'",
      args: [row?.refresh_token ?? ''],
    },
  ])
  plane.clock.advance(60_000)
  await round()
  expect(refreshes()).toBe(1)
  expect(await whoIs(plane, session)).not.toBeNull()
})
