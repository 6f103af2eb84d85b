import { afterEach, beforeEach, expect, test } from 'bun:test'
import { recordedTexts } from '../events/testing/recorded.ts'
import { createAuthenticator } from '../tokens/authenticate.ts'
import { firstStart } from './first-start.ts'
import { type PreparedInstallation, prepareInstallation } from './testing/installation.ts'

let prepared: PreparedInstallation
beforeEach(async () => {
  prepared = await prepareInstallation()
})
afterEach(() => prepared.store.remove())

const counts = async () => {
  const { state, ledger } = prepared.store
  const count = async (database: typeof state, table: string) =>
    (await database.read<{ n: number }>(`select count(*) as n from ${table}`))[0]?.n
  return {
    organizations: await count(ledger, 'organizations'),
    teams: await count(ledger, 'teams'),
    users: await count(ledger, 'users'),
    memberships: await count(ledger, 'memberships'),
    gateways: await count(state, 'gateways'),
    tokens: [await count(state, 'tokens'), await count(ledger, 'tokens')],
    pending: await count(ledger, 'pending_changes'),
  }
}
const complete = {
  organizations: 1,
  teams: 1,
  users: 1,
  memberships: 1,
  gateways: 1,
  tokens: [2, 2],
  pending: 0,
}

const principalOf = (secret: string) =>
  createAuthenticator({ ...prepared.options, baseUrl: () => 'http://localhost' })(
    new Request('http://localhost/', { headers: { authorization: `Bearer ${secret}` } }),
  )

test('a first start makes one of everything, and working tokens', async () => {
  const { adminToken, runtimeToken } = await firstStart(prepared.options)
  expect(await counts()).toEqual(complete)
  const admin = await principalOf(adminToken ?? '')
  expect(admin).toMatchObject({ kind: 'token', teamId: null, userId: null, roles: ['owner'] })
  expect(admin.permissions.has('tokens:write') && admin.permissions.has('gateway:invoke')).toBe(true)
  expect(admin.permissions.has('runtime:connect')).toBe(false)
  const runtime = await principalOf(runtimeToken)
  expect([...runtime.permissions]).toEqual(['runtime:connect'])
  expect(runtime.gatewayId).not.toBeNull()
})

test('a later start makes nothing and shows no administrator token', async () => {
  const first = await firstStart(prepared.options)
  await first.shown()
  const second = await firstStart(prepared.options)
  expect(second).toMatchObject({
    organizationId: first.organizationId,
    runtimeToken: first.runtimeToken,
    adminToken: null,
  })
  expect(await counts()).toEqual(complete)
})

test('hands over an administrator token again that was never shown', async () => {
  const first = await firstStart(prepared.options)
  expect((await firstStart(prepared.options)).adminToken).toBe(first.adminToken)
})

test('several first starts at once make one installation', async () => {
  const starts = await Promise.all(Array.from({ length: 5 }, () => firstStart(prepared.options)))
  expect(
    new Set(starts.map(({ organizationId, runtimeToken, adminToken }) => organizationId + runtimeToken + adminToken))
      .size,
  ).toBe(1)
  expect(await counts()).toEqual(complete)
})

test('completes a first start that died at any change', async () => {
  for (let survived = 0; survived < 3; survived++) {
    const { options, store } = prepared
    let changes = 0
    const recorder: typeof options.recorder = {
      ...options.recorder,
      change(change) {
        if (changes++ === survived) throw new Error('killed')
        return options.recorder.change(change)
      },
    }
    await expect(firstStart({ ...options, recorder })).rejects.toThrow('killed')
    const { adminToken } = await firstStart(options)
    expect(await counts()).toEqual(complete)
    expect((await principalOf(adminToken ?? '')).roles).toEqual(['owner'])
    store.remove()
    prepared = await prepareInstallation()
  }
})

test('records what was made in events, without a secret', async () => {
  const { adminToken, runtimeToken } = await firstStart(prepared.options)
  const texts = await recordedTexts(prepared.store.ledger)
  expect(texts.map((text) => JSON.parse(text).event_type)).toEqual(['member.created', 'token.created', 'token.created'])
  const text = texts.join()
  expect(text).not.toContain(adminToken ?? '')
  expect(text).not.toContain(runtimeToken)
})

const newStart = () => firstStart(prepared.options)
const runtimeTokens = () => prepared.store.ledger.read("select id from tokens where purpose = 'gateway_runtime'")

test('replaces a revoked runtime token by one for the same gateway, with several starts at once', async () => {
  const { runtimeToken } = await newStart()
  const before = await principalOf(runtimeToken)
  await prepared.store.state.write([{ sql: 'update tokens set revoked_at = 1 where id = ?', args: [before.tokenId] }])
  const starts = await Promise.all(Array.from({ length: 5 }, newStart))
  expect(new Set(starts.map((start) => start.runtimeToken)).size).toBe(1)
  const after = await principalOf(starts[0]?.runtimeToken ?? '')
  expect(after).toMatchObject({ gatewayId: before.gatewayId, roles: ['runtime'] })
  expect(after.tokenId).not.toBe(before.tokenId)
  expect(await runtimeTokens()).toHaveLength(2)
  expect((await newStart()).runtimeToken).toBe(starts[0]?.runtimeToken ?? '')
})

test('makes another gateway after the gateway of a revoked runtime token was deleted', async () => {
  const { runtimeToken } = await newStart()
  const { gatewayId } = await principalOf(runtimeToken)
  await prepared.store.state.write([
    { sql: 'update tokens set revoked_at = 1 where gateway_id = ?', args: [gatewayId] },
    { sql: 'update gateways set deleted = 1', args: [] },
  ])
  const after = await principalOf((await newStart()).runtimeToken)
  expect(after.gatewayId).not.toBe(gatewayId)
})

test('gives a new gateway a name that no other has', async () => {
  const { runtimeToken } = await newStart()
  const { gatewayId } = await principalOf(runtimeToken)
  await prepared.store.state.write([
    { sql: 'update tokens set revoked_at = 1 where gateway_id = ?', args: [gatewayId] },
    { sql: 'update gateways set deleted = 1', args: [] },
    { sql: "insert into gateways (id, name, version) select 'another', name, 1 from gateways", args: [] },
  ])
  await newStart()
  const names = await prepared.store.state.read<{ name: string }>('select name from gateways where deleted = 0')
  expect(new Set(names.map(({ name }) => name)).size).toBe(2)
})
