import { afterEach, beforeEach, expect, test } from 'bun:test'
import { recordedEvents } from '../../events/testing/recorded.ts'
import { silentLog } from '../../lib/log/log.ts'
import { recheckIdentities } from '../identity-providers/recheck.ts'
import { startOpenIdProvider } from '../testing/openid-provider.ts'
import { addProviderRecord, signInAt, whoIs } from '../testing/provider-sign-in.ts'
import { type TemporaryControlPlane, temporaryControlPlane } from '../testing/temporary-control-plane.ts'

let plane: TemporaryControlPlane
beforeEach(async () => {
  plane = await temporaryControlPlane()
})
afterEach(() => plane.remove())

const day = 86_400_000

async function newToken(name: string, more: object = {}, token = plane.adminToken): Promise<string> {
  const made = await plane.call('POST', '/v1/tokens', { body: { name, purpose: 'general', ...more }, token })
  if (made.status !== 201) throw new Error(made.text)
  return made.json.id
}
async function review(query = ''): Promise<Record<string, string[]>> {
  const { json } = await plane.call('GET', `/v1/access-review?${query}`, { token: plane.adminToken })
  const found: { name: string; reasons: string[] }[] = json.tokens
  return Object.fromEntries(found.map(({ name, reasons }) => [name, reasons]))
}
const lastUsed = (id: string, at: number) =>
  plane.store.ledger.write([{ sql: 'update tokens set last_used_at = ? where id = ?', args: [at, id] }])

test('lists tokens that were never used and tokens that are no longer used, after the days that are asked for', async () => {
  await newToken('never')
  const old = await newToken('old')
  const used = await newToken('used')
  await lastUsed(old, plane.clock.now())
  plane.clock.advance(30 * day)
  await lastUsed(used, plane.clock.now())
  await newToken('new')
  expect(await review('unused_days=31')).toEqual({})
  const found = await review('unused_days=30')
  expect(found).toMatchObject({ never: ['never_used'], old: ['unused'] })
  expect(Object.keys(found)).not.toContain('used')
  expect(Object.keys(found)).not.toContain('new')
  expect(Object.keys(await review('unused_days=30&reason=unused'))).toEqual(['old'])
})

test('leaves out what is no longer in force, and the tokens of gateways', async () => {
  const gone = await newToken('gone')
  await newToken('expired', { expires_in_seconds: 3600 })
  await plane.call('DELETE', `/v1/tokens/${gone}`, { token: plane.adminToken })
  plane.clock.advance(100 * day)
  expect(Object.keys(await review())).toEqual(['administrator'])
})

test('lists what a person who has left owns or has made', async () => {
  const maker = await plane.addPerson('maker@example.com', 'admin')
  const browser = await plane.signInAs('maker@example.com')
  const made = await plane.call('POST', '/v1/tokens', {
    body: { name: 'made by them', purpose: 'general', bindings: { team_id: plane.teamId } },
    cookie: browser.cookie,
    headers: plane.fromPage(browser),
  })
  expect(made.status).toBe(201)
  expect(await review()).toEqual({})
  await plane.call('PATCH', `/v1/users/${maker}`, { body: { status: 'disabled' }, token: plane.adminToken })
  expect(await review()).toMatchObject({ 'made by them': expect.arrayContaining(['creator_left']) })
})

test('lists what belongs to a person for whom the provider no longer vouches', async () => {
  const provider = startOpenIdProvider()
  const id = await addProviderRecord(plane, provider, { recheck_seconds: 60 })
  const person = await whoIs(plane, (await signInAt(plane, provider, id)).session)
  await newToken('theirs', { bindings: { user_id: person.id } })
  expect(await review('reason=owner_left')).toEqual({})
  provider.refresh = 'withdrawn'
  plane.clock.advance(60_000)
  await recheckIdentities({ ...plane.dependencies, log: silentLog })
  expect(await review('reason=owner_left')).toEqual({ theirs: ['owner_left'] })
  provider.refresh = 'given'
  await signInAt(plane, provider, id)
  expect(await review('reason=owner_left')).toEqual({})
  await provider.stop()
})

test('revokes many at once, each with its event, and says which there are not', async () => {
  const ids = [await newToken('a'), await newToken('b')]
  const unknown = plane.userId
  const revoked = await plane.call('POST', '/v1/access-review/revoke', {
    body: { token_ids: [...ids, unknown, ...ids] },
    token: plane.adminToken,
  })
  expect(revoked.json).toMatchObject({
    tokens: [...ids.map((id) => ({ token_id: id, result: 'revoked' })), { token_id: unknown, result: 'not_found' }],
    propagation: { unreachable: [] },
  })
  expect(await recordedEvents(plane.store.ledger, 'token.revoked')).toHaveLength(2)
  const statuses = await Promise.all(
    ids.map(async (id) => (await plane.call('GET', `/v1/tokens/${id}`, { token: plane.adminToken })).json.status),
  )
  expect(statuses).toEqual(['revoked', 'revoked'])
})

test('a member sees and revokes nothing of others', async () => {
  const other = await newToken('of others')
  await plane.addPerson('member@example.com')
  const browser = await plane.signInAs('member@example.com')
  const as = { cookie: browser.cookie, headers: plane.fromPage(browser) }
  plane.clock.advance(1000)
  expect((await plane.call('GET', '/v1/access-review?unused_days=1', as)).json.tokens).toEqual([])
  const body = { token_ids: [other] }
  expect((await plane.call('POST', '/v1/access-review/revoke', { ...as, body })).status).toBe(403)
})

test('pages by a cursor that belongs to its filters', async () => {
  for (const name of ['a', 'b', 'c']) await newToken(name)
  plane.clock.advance(100 * day)
  const page = (query: string) => plane.call('GET', `/v1/access-review?${query}`, { token: plane.adminToken })
  const first = await page('limit=2')
  expect(first.json.tokens).toHaveLength(2)
  const rest = await page(`limit=2&cursor=${first.json.next_cursor}`)
  expect(rest.json).toMatchObject({ tokens: expect.any(Array), next_cursor: null })
  expect((await page(`unused_days=5&cursor=${first.json.next_cursor}`)).json.error.code).toBe('invalid_cursor')
  expect((await page('unused_days=0')).status).toBe(422)
})
