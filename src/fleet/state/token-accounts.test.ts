/** What names a token by its id holds for the token's rotations and clones, however often it was rotated before. */
import { Database } from 'bun:sqlite'
import { afterAll, beforeAll, expect, test } from 'bun:test'
import { chat } from '../../languages/chat/dialect.ts'
import { type TemporaryInstallation, temporaryInstallation } from '../../members/testing/installation.ts'
import { stateMigrations } from '../../store/schema/migrate.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'
import { temporaryApi } from '../../tokens/testing/api.ts'
import { rateDemands, tokensOf } from '../../usage/rate/rate-demands.ts'
import { LimitsView } from './limits-view.ts'
import { PolicyView } from './policy-view.ts'
import { compileToken, tokenColumns } from './token-row.ts'

let made: TemporaryInstallation
let call: ReturnType<typeof temporaryApi>
beforeAll(async () => {
  made = await temporaryInstallation()
  call = temporaryApi(made)
})
afterAll(() => made.store.remove())

const cell = (value: unknown) => (typeof value === 'string' || typeof value === 'number' ? value : null)

/** The tokens, policies and consumer groups of the state, as a gateway's own file has them. */
async function copyOfState(): Promise<Database> {
  const copy = new Database(':memory:')
  for (const { sql } of stateMigrations) copy.run(sql)
  for (const table of ['tokens', 'policies', 'consumer_groups']) {
    for (const row of await made.store.state.read(`select * from ${table}`)) {
      const columns = Object.keys(row)
      copy.run(
        `insert into ${table} (${columns}) values (${columns.map(() => '?')})`,
        columns.map((column) => cell(row[column])),
      )
    }
  }
  return copy
}

const facts = chat.read({ model: 'm', messages: [] })

const subjectOf = (token: GovernedToken) => ({
  organizationId: 'o',
  gatewayId: 'g',
  tokenId: token.id,
  tokenLineage: token.accounts.map(({ id }) => id),
  teamId: null,
  policyIds: [],
  model: 'm',
  family: 'chat' as const,
})

const post = async (path: string, body: object = {}): Promise<string> =>
  (await call('POST', `/v1/tokens${path}`, { body })).json.id

test('a consumer group and a policy that name a token also cover its rotations and clones', async () => {
  const first = await post('', { name: 'one', purpose: 'general', roles: ['member'] })
  const named = await post(`/${first}/rotate`)
  const rotated = await post(`/${named}/rotate`)
  const cloned = await post(`/${rotated}/clone`)
  const stranger = await post('', { name: 'other', purpose: 'general', roles: ['member'] })
  await made.store.state.write([
    {
      sql: "insert into consumer_groups (id, requests_per_minute, members, version) values ('g', 3, ?, 1)",
      args: [JSON.stringify({ teams: [], users: [], tokens: [named] })],
    },
    {
      sql: `insert into policies (id, kind, stages, config, targets, position, mode, when_broken, enabled, version)
        values ('p', 'audit', '["pre_request"]', '{}', ?, 1, 'enforce', 'deny', 1, 1)`,
      args: [JSON.stringify({ tokens: [named] })],
    },
  ])
  const rows = await made.store.state.read(`select ${tokenColumns} from tokens`)
  const tokens = new Map(rows.map((row) => [String(row.id), compileToken(row)]))
  const database = await copyOfState()
  const limits = new LimitsView().read(database, true)
  const policies = new PolicyView()
  policies.read(database, true)
  const held = (id: string) => {
    const token = tokens.get(id)
    if (token === undefined) throw new Error(`There is no token ${id}`)
    const demands = rateDemands(token, limits, tokensOf(facts, 0), null).map(({ account }) => account)
    return [demands, policies.set.chainFor(subjectOf(token)).at('pre_request').length]
  }
  for (const id of [named, rotated, cloned]) expect(held(id)).toEqual([['group/g/requests'], 1])
  expect(held(stranger)).toEqual([[], 0])
})
