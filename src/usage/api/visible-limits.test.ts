/** What a token that is bound to a team or a user sees of limits and of what others have used of theirs. */
import { afterAll, beforeAll, expect, test } from 'bun:test'
import type { Role } from '../../identity/permissions.ts'
import { type TemporaryInstallation, temporaryInstallation } from '../../members/testing/installation.ts'
import { insert, statement } from '../../store/query.ts'
import { memberships, teams, users } from '../../store/schema/ledger/people.ts'
import { temporaryApi } from '../../tokens/testing/api.ts'
import { excessRoutes } from './excess-routes.ts'
import { limitRoutes } from './limit-routes.ts'
import { usageRoutes } from './usage-routes.ts'

let made: TemporaryInstallation
let call: ReturnType<typeof temporaryApi>
const [team, user, stranger] = [crypto.randomUUID(), crypto.randomUUID(), crypto.randomUUID()]
/** Names of accounts and of what is bound to the team or the user, and the tokens that are bound so. */
const own: Record<string, string> = {}
const bound: Record<string, string> = {}

const create = async (fields: object) => {
  const { status, json } = await call('POST', '/v1/tokens', { body: { name: 'x', purpose: 'general', ...fields } })
  if (status !== 201) throw new Error(JSON.stringify(json))
  return json
}
const secretOf = async (role: Role, bindings: object) =>
  (await create({ roles: [role], bindings })).token_value as string
const limit = async (path: string, fields: object) => {
  const { status, json } = await call('POST', path, { body: { name: crypto.randomUUID(), ...fields } })
  if (status !== 201) throw new Error(JSON.stringify(json))
  return json.id as string
}
const budget = (scope: object) => limit('/v1/budgets', { max_budget: 5, window: 'month', scope })

beforeAll(async () => {
  made = await temporaryInstallation()
  const { deps } = made
  const usage = usageRoutes({ ...deps, freed: () => undefined })
  call = temporaryApi(made, [usage, excessRoutes(deps), ...limitRoutes(deps)])
  const rest = { name: 'N', role: 'admin', status: 'active', createdAt: 1 } as const
  const person = (id: string) => ({ id, email: `${id}@x`, ...rest })
  await made.store.ledger.write([
    statement(insert(teams).values({ id: team, name: 'own', createdAt: 1 })),
    ...[user, stranger].map((id) => statement(insert(users).values(person(id)))),
    statement(insert(memberships).values({ teamId: team, userId: user, createdAt: 0 })),
    statement(insert(memberships).values({ teamId: made.teamId, userId: stranger, createdAt: 0 })),
  ])
  own.token = (await create({ bindings: { team_id: team }, max_requests: 9 })).id
  own.budget = await budget({ kind: 'team', id: team })
  own.userBudget = await budget({ kind: 'user', id: user })
  own.namedBudget = await budget({ kind: 'token' })
  await create({ bindings: { team_id: team, budget_id: own.namedBudget } })
  const others = [
    `token/${(await create({ bindings: { team_id: made.teamId }, max_requests: 9 })).id}/requests`,
    `token/${(await create({ max_budget: 9 })).id}/money`,
    `budget/${await budget({ kind: 'team', id: made.teamId })}@2026-01-01`,
    `budget/${await budget({ kind: 'user', id: stranger })}@2026-01-01`,
    `budget/${await budget({ kind: 'organization' })}@2026-01-01`,
    `grant/${crypto.randomUUID()}`,
  ]
  own.accounts = [
    `budget/${own.budget}@2026-01-01`,
    `budget/${own.userBudget}@2026-01-01`,
    `token/${own.token}/requests`,
  ]
    .toSorted()
    .join()
  await made.store.ledger.write([
    {
      sql: `insert into workers (worker, gateway_id, instance_id, worker_number, stream_id, gateway_version, acknowledged_version,
        last_heartbeat_at, connected_at) values ('g/i/0', 'g', 'i', 0, 's', '', 0, 0, 0)`,
      args: [],
    },
    ...[...own.accounts.split(','), ...others].map((account) => ({
      sql: "insert into lease_balances (account, worker, granted, settled) values (?, 'g/i/0', 9, 4)",
      args: [account],
    })),
  ])
  const group = (members: object) =>
    limit('/v1/consumer-groups', { requests_per_minute: 5, members: { teams: [], users: [], tokens: [], ...members } })
  own.group = await group({ teams: [team, made.teamId], users: [stranger], tokens: [own.token] })
  await group({ teams: [made.teamId], users: [stranger] })
  for (const role of ['admin', 'auditor', 'operator'] as const) {
    bound[`team ${role}`] = await secretOf(role, { team_id: team })
  }
  bound['user admin'] = await secretOf('admin', { user_id: user })
})
afterAll(() => made.store.remove())

const ids = (records: { id: string }[]) => records.map(({ id }) => id).toSorted()

test.each(['team admin', 'team auditor', 'team operator', 'user admin'])(
  'a %s token sees only its own accounts, slots, budgets and consumer groups',
  async (who) => {
    const get = async (path: string) => (await call('GET', path, { secret: bound[who] ?? '' })).json
    const { accounts } = await get('/v1/usage/accounts')
    expect(accounts.map(({ account }: { account: string }) => account).join()).toBe(own.accounts ?? '')
    const [worker] = (await get('/v1/usage/workers')).workers
    expect(
      worker.held
        .map(({ account }: { account: string }) => account)
        .toSorted()
        .join(),
    ).toBe(own.accounts ?? '')
    const { budgets } = await get('/v1/budgets')
    expect(ids(budgets)).toEqual([own.budget ?? '', own.userBudget ?? '', own.namedBudget ?? ''].toSorted())
    const { consumer_groups: groups } = await get('/v1/consumer-groups')
    expect(groups).toMatchObject([{ id: own.group, members: { teams: [team], users: [], tokens: [own.token] } }])
    expect(await get(`/v1/consumer-groups/${own.group}`)).toEqual(groups[0])
  },
)

test('an unbound token sees all limits', async () => {
  const get = async (path: string) => (await call('GET', path)).json
  expect((await get('/v1/usage/accounts')).accounts).toHaveLength(9)
  expect((await get('/v1/usage/workers')).workers[0].held).toHaveLength(9)
  expect((await get('/v1/budgets')).budgets).toHaveLength(6)
  expect((await get('/v1/consumer-groups')).consumer_groups).toHaveLength(2)
})

test('answers 404 for a budget or consumer group of another owner and leaves it out of every page', async () => {
  const secret = bound['team auditor'] ?? ''
  const all = await call('GET', '/v1/budgets')
  for (const { id } of all.json.budgets) {
    const expected = [own.budget, own.userBudget, own.namedBudget].includes(id) ? 200 : 404
    expect((await call('GET', `/v1/budgets/${id}`, { secret })).status).toBe(expected)
  }
  const seen: string[] = []
  for (let cursor: string | null = ''; cursor !== null; ) {
    const { json } = await call('GET', `/v1/budgets?limit=1${cursor === '' ? '' : `&cursor=${cursor}`}`, { secret })
    seen.push(...ids(json.budgets))
    cursor = json.next_cursor
  }
  expect(seen).toHaveLength(3)
})

test.each([
  ['release', { worker: 'g/i/0' }],
  ['forget-excess', { provider_id: 'p', model: 'm' }],
  ['resume', {}],
])("a team's token may not %s for the organization, but an unbound token may", async (action, body) => {
  const path = `/v1/usage/${action}`
  const refused = await call('POST', path, { body, secret: bound['team admin'] ?? '' })
  expect([refused.status, refused.json.error.code]).toEqual([403, 'permission_denied'])
  expect((await call('POST', path, { body })).status).not.toBe(403)
})
