/** A token that makes tokens bounds them by what it may do itself. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type TemporaryInstallation, temporaryInstallation } from '../../members/testing/installation.ts'
import { temporaryApi } from '../testing/api.ts'

let made: TemporaryInstallation
let call: ReturnType<typeof temporaryApi>
beforeEach(async () => {
  made = await temporaryInstallation()
  call = temporaryApi(made)
})
afterEach(() => made.store.remove())

const post = async (path: string, body: object, secret?: string) => {
  const answer = await call('POST', `/v1/tokens${path}`, { body, ...(secret === undefined ? {} : { secret }) })
  return { ...answer, refusal: [answer.status, answer.json.error?.code, answer.json.error?.param] }
}
const create = (fields: object, secret?: string) => post('', { name: 'one', purpose: 'general', ...fields }, secret)
const creatorWith = async (fields: object) => (await create({ roles: ['admin'], ...fields })).json
const denied = (param: string) => [403, 'permission_denied', param]
const accounts = async (id: string) => {
  const [row] = await made.store.state.read<{ account_ids: string }>('select account_ids from tokens where id = ?', [
    id,
  ])
  return JSON.parse(row?.account_ids ?? 'null')
}

const limits = { max_budget: 2, max_requests: 5, rate_limit_rpm: 10, rate_limit_tpm: 100 }

test('a token inherits each limit of its creator that the request leaves out', async () => {
  const bindings = { model_filter: ['simulator/*'], gateway_id: made.gatewayId }
  const creator = await creatorWith({ ...limits, bindings, expires_in_seconds: 60 })
  const { json } = await create({}, creator.token_value)
  expect(json).toMatchObject({ ...limits, bindings, expires_at: creator.expires_at })
  expect((await create({ max_requests: 1 }, creator.token_value)).json).toMatchObject({ ...limits, max_requests: 1 })
})

test('refuses a request for more than the creator has with 403 and the field', async () => {
  const { token_value } = await creatorWith({ ...limits, expires_in_seconds: 600, bindings: { model_filter: ['a*'] } })
  for (const [name, limit] of Object.entries(limits)) {
    for (const beyond of [limit + 1, null]) {
      expect((await create({ [name]: beyond }, token_value)).refusal).toEqual(denied(name))
      expect((await create({ bindings: { [name]: beyond } }, token_value)).refusal).toEqual(denied(name))
    }
  }
  expect((await create({ expires_in_seconds: 601 }, token_value)).refusal).toEqual(denied('expires_at'))
  expect((await create({ expires_at: null }, token_value)).refusal).toEqual(denied('expires_at'))
  expect((await create({ bindings: { model_filter: ['*'] } }, token_value)).refusal).toEqual(
    denied('bindings.model_filter'),
  )
  expect((await create({ bindings: { model_filter: null } }, token_value)).refusal).toEqual(
    denied('bindings.model_filter'),
  )
})

test('a consumer group or policy that names the creator also covers the tokens it creates', async () => {
  const [grouped, targeted] = [await creatorWith({}), await creatorWith({})]
  await made.store.state.write([
    {
      sql: `insert into consumer_groups (id, requests_per_minute, members, version) values ('g', 1, ?, 0)`,
      args: [JSON.stringify({ teams: [], users: [], tokens: [grouped.id] })],
    },
    {
      sql: `insert into policies (id, kind, stages, config, targets, position, mode, when_broken, enabled, version)
        values ('p', 'audit', '[]', '{}', ?, 1, 'enforce', 'deny', 1, 0)`,
      args: [JSON.stringify({ tokens: [targeted.id] })],
    },
  ])
  for (const creator of [grouped, targeted]) {
    const { json } = await create({}, creator.token_value)
    expect(await accounts(json.id)).toEqual([json.id, creator.id])
  }
})

test("a token draws on the accounts of its creator's limits, and on those that the creator draws on", async () => {
  const creator = await creatorWith({ max_requests: 2 })
  const first = (await create({ roles: ['admin'] }, creator.token_value)).json
  expect(await accounts(first.id)).toEqual([first.id, creator.id])
  const second = (await create({}, first.token_value)).json
  expect(await accounts(second.id)).toEqual([second.id, first.id, creator.id])
  const sources = await made.store.ledger.read<{ account_id: string }>(
    'select account_id from source_accounts where token_id = ?',
    [second.id],
  )
  expect(sources.map(({ account_id }) => account_id).toSorted()).toEqual([creator.id, first.id].toSorted())
})

test('a creator without limits adds no account', async () => {
  const creator = await creatorWith({ expires_in_seconds: 60 })
  const { json } = await create({}, creator.token_value)
  expect(await accounts(json.id)).toEqual([json.id])
})

test('the source and the cloning token both limit a clone', async () => {
  const source = (await create({ max_requests: 9 })).json
  const creator = await creatorWith({ max_requests: 5, expires_in_seconds: 60 })
  const { json } = await post(`/${source.id}/clone`, {}, creator.token_value)
  expect(json).toMatchObject({ max_requests: 5, expires_at: creator.expires_at })
  expect(await accounts(json.id)).toEqual([json.id, source.id, creator.id])
  const asking = (body: object) => post(`/${source.id}/clone`, body, creator.token_value)
  expect((await asking({ max_requests: 6 })).refusal).toEqual(denied('max_requests'))
  expect((await asking({ expires_at: null })).refusal).toEqual(denied('expires_at'))
  expect((await asking({ max_requests: 10 })).refusal).toEqual([422, 'token_scope_widened', 'max_requests'])
})

test('a rotation gives nothing beyond the token that rotates, and draws on its account', async () => {
  const creator = await creatorWith({ max_requests: 5, expires_in_seconds: 600 })
  const rotate = (id: string) => post(`/${id}/rotate`, {}, creator.token_value)
  const lasting = (await create({ max_requests: 5 })).json
  expect((await rotate(lasting.id)).refusal).toEqual(denied('expires_at'))
  const richer = (await create({ expires_in_seconds: 60 })).json
  expect((await rotate(richer.id)).refusal).toEqual(denied('max_requests'))
  const within = (await create({ max_requests: 5, expires_in_seconds: 60 })).json
  const { json } = await rotate(within.id)
  expect(json.expires_at).toBe(within.expires_at)
  expect(await accounts(json.id)).toEqual([within.id, creator.id])
})

test('a token that rotates itself keeps its limits, its account and its expiry', async () => {
  const creator = await creatorWith({ ...limits, expires_in_seconds: 600 })
  const { status, json } = await post(`/${creator.id}/rotate`, {}, creator.token_value)
  expect([status, json.expires_at]).toEqual([201, creator.expires_at])
  expect(json).toMatchObject(limits)
  expect(await accounts(json.id)).toEqual([creator.id])
})

test('tokens that a rotated token makes in its grace period end with that period', async () => {
  const creator = await creatorWith({})
  await post(`/${creator.id}/rotate`, { grace_period_seconds: 60 })
  const { json } = await create({}, creator.token_value)
  expect(Date.parse(json.expires_at)).toBe(made.clock.now() + 60_000)
})

test('a token that is revoked while it makes another one leaves none behind', async () => {
  const creator = await creatorWith({})
  const { change } = made.deps.recorder
  made.deps.recorder.change = async (asked) => {
    made.deps.recorder.change = change
    await call('DELETE', `/v1/tokens/${creator.id}`)
    return await change(asked)
  }
  const { refusal } = await create({ name: 'late' }, creator.token_value)
  expect(refusal.slice(0, 2)).toEqual([409, 'conflict'])
  expect(await made.store.ledger.read("select 1 from tokens where name = 'late'")).toEqual([])
})

test('a token with limits makes no gateway token, and one with an expiry makes one that expires', async () => {
  const gateway = {
    purpose: 'gateway_runtime',
    bindings: { team_id: made.teamId, gateway_id: made.gatewayId },
  }
  for (const limited of [{ max_budget: 1 }, { bindings: { model_filter: ['a'] } }]) {
    const { token_value } = await creatorWith(limited)
    expect((await create(gateway, token_value)).refusal).toEqual(denied('purpose'))
  }
  const expiring = await creatorWith({ expires_in_seconds: 60 })
  expect((await create(gateway, expiring.token_value)).json.expires_at).toBe(expiring.expires_at)
})

test('a token with limits may narrow a token without limits', async () => {
  const { token_value } = await creatorWith({ max_requests: 5, expires_in_seconds: 60 })
  const { id } = (await create({})).json
  const { status, json } = await call('PATCH', `/v1/tokens/${id}`, { body: { max_requests: 50 }, secret: token_value })
  expect([status, json.max_requests, json.expires_at]).toEqual([200, 50, null])
})
