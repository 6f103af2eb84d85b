/**
 * The cases of the OpenID Foundation's conformance suite for relying parties, written out: all modules of
 * `oidcc-client-basic-certification-test-plan`, and of `oidcc-client-test-plan` and the configuration profile those that
 * concern a client with a fixed registration and the code flow. Each test names the module it stands for.
 */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { generateKeyPairSync, sign } from 'node:crypto'
import { silentLog } from '../../lib/log/log.ts'
import {
  type OpenIdProvider,
  signedByRsa,
  signedBySecret,
  startOpenIdProvider,
  unsigned,
} from '../testing/openid-provider.ts'
import { addProviderRecord, beginAt, signInAt, whoIs } from '../testing/provider-sign-in.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from '../testing/temporary-control-plane.ts'
import { recheckIdentities } from './recheck.ts'
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

const expectAccepted = async () => expect(await signInAt(plane, provider, id)).toMatchObject({ refused: null })
const expectRejected = async () =>
  expect(await signInAt(plane, provider, id)).toMatchObject({ refused: 'invalid_answer', session: null })

const without = (name: string) => (payload: Record<string, unknown>) =>
  Object.fromEntries(Object.entries(payload).filter(([each]) => each !== name))

test('oidcc-client-test, oidcc-client-test-idtoken-sig-rs256: accepts a correct ID token', async () => {
  await expectAccepted()
})

test('oidcc-client-test-invalid-iss: rejects an ID token of another issuer', async () => {
  provider.behaviour.payload = (payload) => ({ ...payload, iss: `${provider.issuer}/other` })
  await expectRejected()
})

test('oidcc-client-test-missing-sub: rejects an ID token without a subject', async () => {
  provider.behaviour.payload = without('sub')
  await expectRejected()
})

test('oidcc-client-test-missing-aud: rejects an ID token without an audience', async () => {
  provider.behaviour.payload = without('aud')
  await expectRejected()
})

test('oidcc-client-test-invalid-aud: rejects an ID token for another client', async () => {
  provider.behaviour.payload = (payload) => ({ ...payload, aud: 'gatehouse2' })
  await expectRejected()
})

test('oidcc-client-test-missing-iat: rejects an ID token without the time of its issue', async () => {
  provider.behaviour.payload = without('iat')
  await expectRejected()
})

test('oidcc-client-test-kid-absent-single-jwks: uses the one key that there is', async () => {
  provider.behaviour.header = () => ({ alg: 'RS256' })
  await expectAccepted()
})

test('oidcc-client-test-kid-absent-multiple-jwks: rejects a token that names none of several keys', async () => {
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).publicKey.export({ format: 'jwk' })
  provider.behaviour.keys = ({ keys }) =>
    Response.json({ keys: [...keys, { ...other, kid: 'other', use: 'sig', alg: 'RS256' }] })
  provider.behaviour.header = () => ({ alg: 'RS256' })
  await expectRejected()
})

test('oidcc-client-test-idtoken-sig-none: rejects an unsigned ID token, as a client may', async () => {
  provider.behaviour.signed = ({ payload }) => unsigned(payload)
  await expectRejected()
})

test('oidcc-client-test-invalid-sig-rs256: rejects a signature of another key', async () => {
  const other = generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey
  provider.behaviour.signed = ({ header, payload }) => signedByRsa(header, payload, other)
  await expectRejected()
})

test('oidcc-client-test-invalid-sig-hs256: rejects a signature by another secret', async () => {
  provider.behaviour.signed = ({ header, payload }) => signedBySecret({ ...header, alg: 'HS256' }, payload, 'wrong')
  await expectRejected()
})

test('oidcc-client-test-invalid-sig-es256: rejects a signature by a key that is not of the set', async () => {
  const other = generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey
  provider.behaviour.discovery = (document) => ({
    ...document,
    id_token_signing_alg_values_supported: ['RS256', 'ES256'],
  })
  provider.behaviour.signed = ({ header, payload }) => {
    const [head, body] = unsigned(payload).split('.')
    const input = `${Buffer.from(JSON.stringify({ ...header, alg: 'ES256' })).toString('base64url')}.${body}`
    const signature = sign('SHA256', Buffer.from(input), { key: other, dsaEncoding: 'ieee-p1363' })
    return head === undefined ? '' : `${input}.${signature.toString('base64url')}`
  }
  await expectRejected()
})

test('oidcc-client-test-userinfo-invalid-sub: rejects claims about somebody else', async () => {
  provider.claims = { sub: 'subject-1' }
  provider.behaviour.userinfo = { sub: 'invalid', email: 'ann@example.com', email_verified: true }
  await expectRejected()
})

test('oidcc-client-test-nonce-invalid: rejects an ID token of another request', async () => {
  provider.behaviour.payload = (payload) => ({ ...payload, nonce: `${payload.nonce}1` })
  await expectRejected()
})

test('oidcc-client-test-scope-userinfo-claims: asks for claims by scope and takes them from UserInfo', async () => {
  provider.claims = { sub: 'subject-1' }
  const claims = { email: 'ann@example.com', email_verified: true, name: 'Ann from UserInfo' }
  provider.behaviour.userinfo = { sub: 'subject-1', ...claims }
  const { url } = await beginAt(plane, id)
  expect(new URL(url).searchParams.get('scope')).toBe('openid email profile')
  expect(await whoIs(plane, (await signInAt(plane, provider, id)).session)).toMatchObject({ name: 'Ann from UserInfo' })
  expect(provider.seen.find(({ path }) => path === '/userinfo')?.authorization).toStartWith('Bearer ')
})

test('oidcc-client-test-client-secret-basic: authenticates by HTTP Basic where nothing else is announced', async () => {
  await expectAccepted()
  const exchange = provider.seen.find(({ path }) => path === '/token')
  expect(exchange?.authorization).toStartWith('Basic ')
  expect(exchange?.body.has('client_secret')).toBe(false)
})

test('client_secret_post: authenticates in the form where the provider takes nothing else', async () => {
  provider.behaviour.discovery = (document) => ({
    ...document,
    token_endpoint_auth_methods_supported: ['client_secret_post'],
  })
  await expectAccepted()
  const exchange = provider.seen.find(({ path }) => path === '/token')
  expect(exchange?.authorization).toBeNull()
  expect(exchange?.body.get('client_secret')).toBe('the secret of the client')
})

test('oidcc-client-test-discovery-openid-config, -jwks-uri-keys: finds endpoints and keys by the issuer', async () => {
  await expectAccepted()
  const paths = provider.seen.map(({ path }) => path)
  expect(paths).toEqual(expect.arrayContaining(['/.well-known/openid-configuration', '/keys']))
})

test('oidcc-client-test-discovery-issuer-mismatch: rejects metadata of another issuer', async () => {
  provider.behaviour.discovery = (document) => ({ ...document, issuer: `${provider.issuer}/` })
  const begun = await plane.call('POST', '/v1/auth/identity-providers/begin', {
    body: { identity_provider_id: id },
  })
  expect(begun.status).toBe(503)
  expect(begun.json.error.message).toContain(`The provider calls itself ${provider.issuer}/`)
})

test('oidcc-client-test-signing-key-rotation: fetches the keys anew for a key that it does not know', async () => {
  await expectAccepted()
  provider.rotateKeys('key-2')
  // Keys that are younger than a minute are not fetched again: the ones known here are aged by a new relying party.
  plane.dependencies.relyingParty = createRelyingParty({ clock: plane.clock, fetch })
  await expectAccepted()
})

test('oidcc-client-test-signing-key-rotation-just-before-signing: a set with old and new keys is enough', async () => {
  const former = provider.publicKey.export({ format: 'jwk' })
  provider.behaviour.keys = ({ keys }) =>
    Response.json({ keys: [{ ...former, kid: 'key-1', use: 'sig', alg: 'RS256' }, ...keys] })
  provider.rotateKeys('key-2')
  await expectAccepted()
})

const asked = async (session: string | null) => {
  plane.clock.advance(300_000)
  await recheckIdentities({ ...plane.dependencies, log: silentLog })
  return await whoIs(plane, session)
}

test('oidcc-client-test-refresh-token: takes a new ID token for a refresh token', async () => {
  const { session } = await signInAt(plane, provider, id)
  expect(await asked(session)).toMatchObject({ email: 'ann@example.com' })
  expect(provider.seen.some(({ body }) => body.get('grant_type') === 'refresh_token')).toBe(true)
})

test('oidcc-client-test-refresh-token-invalid-issuer: a refreshed ID token of another issuer renews nothing', async () => {
  const { session } = await signInAt(plane, provider, id)
  provider.behaviour.payload = (payload) => ({ ...payload, iss: 'https://other.example.com' })
  await asked(session)
  plane.clock.advance(3600_000)
  expect(await whoIs(plane, session)).toBeNull()
})

test('oidcc-client-test-refresh-token-invalid-sub: a refreshed ID token of another subject ends the session', async () => {
  const { session } = await signInAt(plane, provider, id)
  provider.behaviour.payload = (payload) => ({ ...payload, sub: 'somebody else' })
  expect(await asked(session)).toBeNull()
})
