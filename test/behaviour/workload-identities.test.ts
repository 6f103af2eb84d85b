/** Callers with JWTs of another issuer, at a real gateway, with an issuer of the test that serves its keys. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { makeKey, type SigningKey, signed } from '../../src/workloads/testing/issuer.ts'
import { type FakeUpstream, startFakeUpstream } from '../fakes/upstream.ts'
import { errorAnswer } from '../support/answers.ts'
import { api, chat, createToken, expectAnswer, revoke } from '../support/client.ts'
import { until } from '../support/eventually.ts'
import { type Gatehouse, operate, startGatehouse } from '../support/harness.ts'
import { eventsThroughApi } from '../support/recorded.ts'

setDefaultTimeout(60_000)

const identityRecord = z.looseObject({ id: z.uuid(), name: z.string(), version: z.number() })
let upstream: FakeUpstream
let gatehouse: Gatehouse
let key: SigningKey
let served: SigningKey[] = []
const issuer = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  fetch: (request): Response =>
    new URL(request.url).pathname === '/keys'
      ? Response.json({ keys: served.map(({ jwk }) => jwk) })
      : Response.json({ issuer: issuer.url.origin, jwks_uri: `${issuer.url.origin}/keys` }),
})

beforeAll(async () => {
  key = await makeKey('first')
  served = [key]
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
}, 120_000)
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
  issuer.stop(true)
})

let made = 0
/** Makes a workload identity with a token of its own. */
async function makeIdentity(fields: object = {}, tokenFields: object = {}) {
  const name = `workload-${++made}`
  const token = await createToken(gatehouse, { name, ...tokenFields })
  const body = { name, issuer: issuer.url.origin, audience: name, token_id: token.id, ...fields }
  const identity = expectAnswer(await api(gatehouse, '/v1/workload-identities', { body }), 201, identityRecord)
  return { name, token, identity }
}

const jwtFor = (audience: string, claims: object = {}, by: SigningKey = key) =>
  signed(by, Date.now(), { iss: issuer.url.origin, aud: audience, ...claims })

const statusOf = async (jwt: string) => (await chat(gatehouse, { token: jwt })).status

/** Waits until the gateway accepts a JWT: until it knows the record. */
const accepted = (jwt: string) => until('the JWT is accepted', async () => (await statusOf(jwt)) === 200)

test('a caller with a JWT is answered, and its events name the workload identity, the subject and the claims', async () => {
  const { name, token, identity } = await makeIdentity({
    condition: 'claims.repository == "acme/app"',
    attribution: { repo: 'repository' },
  })
  await accepted(await jwtFor(name, { repository: 'acme/app', sub: 'job:7' }))
  let events: Awaited<ReturnType<typeof eventsThroughApi>> = []
  await until('the outcome is recorded', async () => {
    const filters = { token_id: token.id, verdict: 'allow', event_type: 'gateway.request.outcome' }
    events = await eventsThroughApi(gatehouse, filters)
    return events.length > 0
  })
  expect(events[0]).toMatchObject({
    event_attribution: { token_id: token.id, workload_identity_id: identity.id, workload_subject: 'job:7' },
    metadata: { repo: 'acme/app' },
  })
  const refused = await chat(gatehouse, { token: await jwtFor(name, { repository: 'acme/other' }) })
  expect(refused.status).toBe(401)
  expect(errorAnswer.parse(await refused.json()).error).toMatchObject({ code: 'invalid_api_token' })
})

test("the token's limit of requests is exact for all its callers together", async () => {
  const { name } = await makeIdentity({}, { max_requests: 5 })
  const jwts = await Promise.all(Array.from({ length: 12 }, (_, index) => jwtFor(name, { sub: `app-${index}` })))
  await until('the gateway knows it', async () => (await statusOf(jwts[0] ?? '')) !== 401)
  const statuses = await Promise.all(jwts.map(statusOf))
  expect(statuses.filter((status) => status === 200)).toHaveLength(4)
  expect(
    statuses.filter((status) => status === 200 || status === 402 || status === 403 || status === 429),
  ).toHaveLength(12)
})

test('a revoked subject is refused once the revocation is answered, the others go on, and allow takes it back', async () => {
  const { name, identity } = await makeIdentity()
  const [gone, stays] = [await jwtFor(name, { sub: 'gone' }), await jwtFor(name, { sub: 'stays' })]
  await accepted(gone)
  await accepted(stays)
  const path = `/v1/workload-identities/${identity.id}/revocations`
  expectAnswer(await api(gatehouse, path, { body: { subject: 'gone' } }), 200, identityRecord)
  expect([await statusOf(gone), await statusOf(stays)]).toEqual([401, 200])
  expectAnswer(await api(gatehouse, `${path}/remove`, { body: { subject: 'gone' } }), 200, identityRecord)
  await accepted(gone)
})

test('its callers follow a rotation of the token, and end with its revocation', async () => {
  const { name, token } = await makeIdentity()
  const jwt = await jwtFor(name)
  await accepted(jwt)
  const rotated = expectAnswer(
    await api(gatehouse, `/v1/tokens/${token.id}/rotate`, { body: { grace_period_seconds: 0 } }),
    201,
    z.looseObject({ id: z.uuid() }),
  )
  await accepted(jwt)
  await revoke(gatehouse, rotated.id)
  expect(await statusOf(jwt)).toBe(401)
})

test('a rotation of the keys is followed without a new JWT being refused', async () => {
  const { name, identity } = await makeIdentity()
  await accepted(await jwtFor(name))
  const next = await makeKey('next', 'ES256')
  served = [key, next]
  expectAnswer(
    await api(gatehouse, `/v1/workload-identities/${identity.id}/read-keys`, { method: 'POST' }),
    200,
    identityRecord,
  )
  await accepted(await jwtFor(name, {}, next))
  expect(await statusOf(await jwtFor(name))).toBe(200)
})

test('a JWT of a deleted, a disabled or no workload identity is refused, and other secrets are not touched', async () => {
  const { name, identity, token } = await makeIdentity()
  const jwt = await jwtFor(name)
  await accepted(jwt)
  await operate(gatehouse, 'workload-identity', 'update', identity.id, '--no-enabled')
  await until('it is disabled', async () => (await statusOf(jwt)) === 401)
  await operate(gatehouse, 'workload-identity', 'update', identity.id, '--enabled')
  await accepted(jwt)
  await operate(gatehouse, 'workload-identity', 'delete', identity.id, '--yes')
  await until('it is deleted', async () => (await statusOf(jwt)) === 401)
  expect(await statusOf(token.token_value)).toBe(200)
})

test('a workload identity that cannot work is refused with the field', async () => {
  const token = await createToken(gatehouse, { name: 'wrong' })
  const good = { name: 'wrong', issuer: issuer.url.origin, audience: 'a', token_id: token.id }
  const paramOf = async (fields: object) => {
    const answer = await api(gatehouse, '/v1/workload-identities', { body: { ...good, ...fields } })
    return expectAnswer(answer, 422, errorAnswer).error.param
  }
  expect(await paramOf({ issuer: 'http://example.com' })).toBe('issuer')
  expect(await paramOf({ jwks_url: `${issuer.url.origin}/nothing-there/` })).toBe('jwks_url')
  expect(await paramOf({ keys: { keys: [{ kty: 'oct', k: 'c2VjcmV0' }] } })).toBe('keys')
  expect(await paramOf({ condition: 'claims.a ==' })).toBe('condition')
  expect(await paramOf({ token_id: crypto.randomUUID() })).toBe('token_id')
})
