import { afterEach, beforeEach, expect, test } from 'bun:test'
import { randomBytes } from 'node:crypto'
import { noAttribution } from '../events/event.ts'
import { testEvent } from '../events/testing/ledger.ts'
import { anonymous } from '../identity/principal.ts'
import { hashSecret, makeSecret } from '../identity/secret.ts'
import { type TemporaryInstallation, temporaryInstallation } from '../members/testing/installation.ts'
import { insert, statement } from '../store/query.ts'
import { runtimeSessions } from '../store/schema/ledger/fleet.ts'
import { createAuthenticator } from './authenticate.ts'
import { createLastUse } from './limits/last-use.ts'

let made: TemporaryInstallation
beforeEach(async () => {
  made = await temporaryInstallation()
})
afterEach(() => made.store.remove())

const authenticate = (authorization?: string) =>
  createAuthenticator({ ...made.store, clock: made.clock, baseUrl: () => 'http://localhost' })(
    new Request('http://localhost/', authorization === undefined ? {} : { headers: { authorization } }),
  )
const admin = () => made.installation.adminToken ?? ''

test('a request without Authorization is anonymous, and the scheme ignores case', async () => {
  expect(await authenticate()).toEqual(anonymous)
  expect((await authenticate(`bEARER   ${admin()}`)).roles).toEqual(['owner'])
})

test('refuses every foreign credential alike, without a look-up if its form is wrong', async () => {
  const closed = createAuthenticator({ ...made.store, clock: made.clock, baseUrl: () => 'http://localhost' })
  for (const text of [
    'Bearer',
    'Bearer x',
    `Basic ${admin()}`,
    admin(),
    `Bearer ${admin()} x`,
    `Bearer ${makeSecret('token', randomBytes)}`,
    `Bearer ${makeSecret('oauthCode', randomBytes)}`,
  ]) {
    await expect(authenticate(text)).rejects.toMatchObject({ code: 'invalid_api_token' })
  }
  made.store.state.close()
  const request = (secret: string) =>
    new Request('http://localhost/', { headers: { authorization: `Bearer ${secret}` } })
  await expect(closed(request('gth_wrong'))).rejects.toMatchObject({ code: 'invalid_api_token' })
  // A database that fails says nothing about the caller.
  await expect(closed(request(admin()))).rejects.not.toMatchObject({ code: 'invalid_api_token' })
})

const session = async (expiresAt: number) => {
  const secret = makeSecret('session', randomBytes)
  const [token] = await made.store.state.read<{ id: string }>("select id from tokens where purpose = 'gateway_runtime'")
  const tokenId = token?.id ?? ''
  const instanceId = made.deps.newId()
  await made.store.ledger.write([
    statement(
      insert(runtimeSessions).values({
        hash: hashSecret(secret),
        tokenId,
        gatewayId: made.gatewayId,
        instanceId,
        expiresAt,
      }),
    ),
  ])
  return { secret, tokenId, instanceId }
}

test('a runtime session acts as its gateway and instance, has no permission, and expires', async () => {
  const { secret, tokenId, instanceId } = await session(made.clock.now() + 1000)
  const principal = await authenticate(`Bearer ${secret}`)
  expect(principal).toMatchObject({ kind: 'runtime', tokenId, instanceId, gatewayId: made.gatewayId })
  expect(principal.permissions.size).toBe(0)
  made.clock.advance(1000)
  await expect(authenticate(`Bearer ${secret}`)).rejects.toMatchObject({ code: 'session_expired' })
})

test('a runtime session ends with its runtime token', async () => {
  const { secret, tokenId } = await session(made.clock.now() + 1000)
  await made.store.state.write([{ sql: 'update tokens set revoked_at = 1 where id = ?', args: [tokenId] }])
  await expect(authenticate(`Bearer ${secret}`)).rejects.toMatchObject({ code: 'invalid_api_token' })
})

test('writes last use in batches, to the minute, from calls and gateway events', async () => {
  const { ledger } = made.store
  const lastUse = createLastUse(ledger)
  const [first, second] = await ledger.read<{ id: string }>('select id from tokens order by id')
  const shown = () => ledger.read('select id, last_used_at from tokens order by id')
  lastUse.used(first?.id ?? '', 125_000)
  expect(await shown()).toMatchObject([{ last_used_at: null }, { last_used_at: null }])
  const shipped = (['gateway.request.outcome', 'decision'] as const).map((type, index) =>
    testEvent({
      event_type: type,
      timestamp: new Date(200_000 + index * 60_000).toISOString(),
      event_attribution: { ...noAttribution, token_id: second?.id ?? '' },
    }),
  )
  lastUse.ingested(shipped, 1_000_000)
  await lastUse.flush()
  expect(await shown()).toMatchObject([{ last_used_at: 120_000 }, { last_used_at: 180_000 }])
  lastUse.used(first?.id ?? '', 65_000)
  await lastUse.flush()
  expect(await shown()).toMatchObject([{ last_used_at: 120_000 }, { last_used_at: 180_000 }])
})
