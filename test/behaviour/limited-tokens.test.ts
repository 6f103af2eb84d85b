/** What tokens with bounds may write: every route of the running installation's own description is tried. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from 'bun:test'
import { z } from 'zod'
import { type FakeUpstream, startFakeUpstream } from '../fakes/upstream.ts'
import { createdToken, errorAnswer } from '../support/answers.ts'
import { api, createToken, expectAnswer, installation } from '../support/client.ts'
import { type Gatehouse, startGatehouse } from '../support/harness.ts'

setDefaultTimeout(120_000)

let upstream: FakeUpstream
let gatehouse: Gatehouse
let writes: Write[]

interface Write {
  method: string
  path: string
  /** The permission it needs, or the path where it is about the use of the whole organization. */
  needs: string
}

const isWrite = (permission: string): boolean => permission.endsWith(':write') || permission === 'escalations:resolve'

const description = z.object({
  paths: z.record(z.string(), z.record(z.string(), z.object({ 'x-permission': z.string().nullish() }))),
})

beforeAll(async () => {
  upstream = await startFakeUpstream()
  gatehouse = await startGatehouse({ upstream })
  const { paths } = expectAnswer(await api(gatehouse, '/v1/openapi.json'), 200, description)
  writes = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).flatMap(([method, { 'x-permission': permission }]) =>
      method !== 'get' && typeof permission === 'string' && isWrite(permission)
        ? [{ method, path, needs: path.startsWith('/v1/usage/') ? path : permission }]
        : [],
    ),
  )
}, 240_000)
afterAll(async () => {
  await gatehouse?.stop()
  await upstream?.close()
})

const denying = { kind: 'model-access', stages: ['pre_request'], config: { deny_models: ['a'] } }

const named = async (path: string, body: object): Promise<string> =>
  expectAnswer(await api(gatehouse, path, { body }), 201, z.object({ id: z.string() })).id

/** What the writes need that the token is not refused for its bounds, sorted. */
async function openTo(token: string): Promise<string[]> {
  const open = new Set<string>()
  for (const { method, path, needs } of writes) {
    const at = path.replaceAll(/\{\w+\}/g, '0190a1b2-0000-7000-8000-000000000000')
    const { status, body } = await api(gatehouse, at, { token, method: method.toUpperCase(), body: '{}' })
    const refused = status === 403 && errorAnswer.parse(body).error.message.startsWith('A token ')
    if (!refused) open.add(needs)
  }
  return [...open].sort()
}

test('a token with limits may write only tokens, an expiring one everything but people, one without limits everything', async () => {
  const [budget, accessPolicy, policy, { teamId }] = [
    await named('/v1/budgets', { name: 'small', max_budget: 1, window: 'day', scope: { kind: 'token' } }),
    await named('/v1/access-policies', { name: 'slow', requests_per_minute: 1 }),
    await named('/v1/policies', { ...denying, name: 'none', targets: { tokens: [] } }),
    await installation(gatehouse),
  ]
  const everything = [...new Set(writes.map(({ needs }) => needs))].sort()
  expect(everything).toContain('/v1/usage/release')
  expect(everything).toContain('escalations:resolve')
  const allButPeople = everything.filter((needs) => needs !== 'members:write')
  const expected: [string, object, string[]][] = [
    ['no bounds', {}, everything],
    ['expiry', { expires_in_seconds: 600 }, allButPeople],
    ['max_budget', { max_budget: 1 }, ['tokens:write']],
    ['max_requests', { max_requests: 1 }, ['tokens:write']],
    ['rate_limit_rpm', { rate_limit_rpm: 1 }, ['tokens:write']],
    ['rate_limit_tpm', { rate_limit_tpm: 1 }, ['tokens:write']],
    ['access_policy_ids', { access_policy_ids: [accessPolicy] }, ['tokens:write']],
    ['policy_ids', { policy_ids: [policy] }, ['tokens:write']],
    ['budget_id', { bindings: { budget_id: budget } }, ['tokens:write']],
    ['model_filter', { bindings: { model_filter: ['a'] } }, ['tokens:write']],
    ['team_id', { bindings: { team_id: teamId } }, ['escalations:resolve', 'tokens:write']],
  ]
  const found = []
  for (const [bound, fields] of expected) {
    const { token_value } = await createToken(gatehouse, { roles: ['admin'], ...fields })
    found.push([bound, fields, await openTo(token_value)])
  }
  expect(found).toEqual(expected)
})

test('a token in a consumer group or policy, and its rotation, may write only tokens', async () => {
  const [first, second] = [
    await createToken(gatehouse, { roles: ['admin'] }),
    await createToken(gatehouse, { roles: ['admin'] }),
  ]
  const members = { teams: [], users: [], tokens: [first.id] }
  await named('/v1/consumer-groups', { name: 'slow', requests_per_minute: 1, members })
  await named('/v1/policies', { ...denying, name: 'one', targets: { tokens: [second.id] } })
  const rotated = expectAnswer(await api(gatehouse, `/v1/tokens/${first.id}/rotate`, { body: {} }), 201, createdToken)
  for (const { token_value } of [rotated, second]) expect(await openTo(token_value)).toEqual(['tokens:write'])
})

test('a token may not raise a limit that names it', async () => {
  const policy = await named('/v1/access-policies', { name: 'one a minute', requests_per_minute: 1 })
  const { token_value: token } = await createToken(gatehouse, { roles: ['admin'], access_policy_ids: [policy] })
  const raise = (secret?: string) =>
    api(gatehouse, `/v1/access-policies/${policy}`, {
      ...(secret !== undefined && { token: secret }),
      method: 'PATCH',
      body: { requests_per_minute: 1000 },
    })
  const { error } = expectAnswer(await raise(token), 403, errorAnswer)
  expect(error.code).toBe('permission_denied')
  expect((await raise()).status).toBe(200)
})
