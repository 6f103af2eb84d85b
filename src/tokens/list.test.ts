import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type TemporaryInstallation, temporaryInstallation } from '../members/testing/installation.ts'
import { condition, query } from '../store/query.ts'
import { tokens as ledgerTokens } from '../store/schema/ledger/tokens.ts'
import { createToken } from './changes/create.ts'
import { tokenStatus } from './governed-token.ts'
import { type DepletionView, uncounted } from './limits/depletion.ts'
import { statusCondition } from './limits/status-condition.ts'
import { listTokens, listTokensQuery } from './list.ts'
import { tokenStatuses } from './record.ts'
import type { StoredToken } from './stored-token.ts'
import { temporaryApi } from './testing/api.ts'
import { createTokenBody } from './token-body.ts'
import { type TokenViews, tokenViews } from './views.ts'

let made: TemporaryInstallation
beforeEach(async () => {
  made = await temporaryInstallation()
})
afterEach(() => made.store.remove())

const make = (fields: object = {}) =>
  createToken(
    made.deps,
    { principal: made.owner, requestId: 'r' },
    createTokenBody.parse({ name: 'one', purpose: 'general', ...fields }),
  )
const list = (query: object, principal = made.owner) =>
  listTokens(made.store.ledger, principal, listTokensQuery.parse(query), {
    now: made.clock.now(),
    depletion: made.deps.depletion,
  })

test('pages hold every token once, newest first, while others are created', async () => {
  const ids: string[] = []
  for (let index = 0; index < 7; index++) ids.push((await make()).token.id)
  const seen: string[] = []
  let cursor: string | null = null
  do {
    const page = await list({ limit: 3, purpose: 'general', ...(cursor === null ? {} : { cursor }) })
    seen.push(...page.tokens.map(({ id }) => id))
    cursor = page.nextCursor
    await make()
  } while (cursor !== null)
  expect(seen.slice(0, 7)).toEqual(ids.toReversed())
  expect(new Set(seen).size).toBe(seen.length)
})

test('refuses a cursor with other filters and an invalid one', async () => {
  for (let index = 0; index < 3; index++) await make()
  const { nextCursor } = await list({ limit: 1 })
  await expect(list({ cursor: nextCursor, purpose: 'general' })).rejects.toMatchObject({
    code: 'invalid_cursor',
    param: 'cursor',
  })
  for (const cursor of ['', 'x', '!!', Buffer.from('{"after":1}').toString('base64url')]) {
    await expect(list({ cursor })).rejects.toMatchObject({ code: 'invalid_cursor' })
  }
})

test('each filter keeps what it names', async () => {
  await make({ key_class: 'virtual', bindings: { team_id: made.teamId } })
  const runtime = await list({ purpose: 'gateway_runtime' })
  expect(runtime.tokens.map(({ name }) => name)).toEqual(['local gateway'])
  expect((await list({ key_class: 'virtual' })).tokens.length).toBe(1)
  expect((await list({ team_id: made.teamId })).tokens.length).toBe(2)
  expect((await list({ gateway_id: made.gatewayId })).tokens).toEqual(runtime.tokens)
  expect((await list({ status: 'budget_exhausted' })).tokens).toEqual([])
  expect((await list({ name: 'CAL gate' })).tokens).toEqual(runtime.tokens)
  expect((await list({ name: '%' })).tokens).toEqual([])
})

/** Says that what costs nothing is used up, as the usage ledger says it of its accounts. */
const depletion: DepletionView = {
  ...uncounted,
  read: async () => new Map(),
  exhausted: (status) =>
    status === 'budget_exhausted' ? 'max_budget is 1' : '(max_budget is not 1 and max_requests is 1)',
  nearExhaustion: () => 'false',
}

test('the status filters agree with the shown status at every instant around its changes', async () => {
  const { ledger } = made.store
  const instants = [null, 10, 20]
  const limits = [
    [null, null],
    [1, 1],
    [2, 1],
  ] as const
  for (const expiresAt of instants)
    for (const rotatedAt of instants)
      for (const revokedAt of [null, 15])
        for (const [maxBudget, maxRequests] of limits) {
          const { token } = await make()
          await ledger.write([
            {
              sql: `update tokens set expires_at = ?, rotated_at = ?, revoked_at = ?, max_budget = ?, max_requests = ?
                where id = ?`,
              args: [expiresAt, rotatedAt, revokedAt, maxBudget, maxRequests, token.id],
            },
          ])
        }
  const shown = (token: StoredToken, now: number) => {
    const status = tokenStatus(token, now)
    if (status !== 'active') return status
    return token.maxBudget === 1 ? 'budget_exhausted' : token.maxRequests === 1 ? 'request_exhausted' : 'active'
  }
  for (const now of [0, 9, 10, 11, 19, 20, 21]) {
    const tokens = await query(ledger).select().from(ledgerTokens)
    const views = await tokenViews(ledger, made.owner, { now, depletion })
    expect(views.total).toBe(tokens.length)
    for (const status of tokenStatuses) {
      const found = await query(ledger)
        .select()
        .from(ledgerTokens)
        .where(statusCondition(status, now, depletion))
        .orderBy(ledgerTokens.id)
      const expected = tokens.filter((token) => shown(token, now) === status)
      expect(found.map(({ id }) => id)).toEqual(expected.map(({ id }) => id).toSorted())
      expect(views.by_status[status] ?? 0).toBe(expected.length)
    }
  }
})

test('the stored counts follow tokens that are created, moved to a team and removed', async () => {
  const { ledger } = made.store
  const counted = () => tokenViews(ledger, made.owner, { now: 0, depletion })
  const before = await counted()
  const { token } = await make({ key_class: 'virtual' })
  expect((await counted()).by_key_class.virtual).toBe(1)
  await ledger.write([{ sql: 'update tokens set team_id = ? where id = ?', args: [made.teamId, token.id] }])
  const moved = await counted()
  const teamCount = (views: TokenViews) => views.by_team.find(({ team_id }) => team_id === made.teamId)?.count ?? 0
  expect(teamCount(moved)).toBe(teamCount(before) + 1)
  const ofTeam = await tokenViews(ledger, { ...made.owner, teamId: made.teamId }, { now: 0, depletion })
  expect(ofTeam.total).toBe(teamCount(moved))
  await ledger.write([{ sql: 'delete from tokens where id = ?', args: [token.id] }])
  expect(await counted()).toEqual(before)
})

test('filters and counts of ended tokens use an index of their own', async () => {
  for (const status of ['revoked', 'rotated', 'expired'] as const) {
    const { sql, args } = condition(statusCondition(status, 1, depletion))
    const plan = await made.store.ledger.read<{ detail: string }>(
      `explain query plan select * from tokens where ${sql} order by id desc limit 101`,
      args,
    )
    const index = { revoked: 'tokens_revoked', rotated: 'tokens_rotated', expired: 'tokens_expiring' }[status]
    expect(plan.map(({ detail }) => detail).join()).toContain(`USING INDEX ${index}`)
  }
})

test("a team's token sees its team's tokens, and a user's token those of the user and the user's teams", async () => {
  await make({ bindings: { team_id: made.teamId } })
  await make({ bindings: { user_id: made.userId } })
  const ofTeam = await list({}, { ...made.owner, teamId: made.teamId })
  expect(ofTeam.tokens.every(({ teamId }) => teamId === made.teamId)).toBe(true)
  expect(ofTeam.tokens.length).toBe(2)
  expect((await list({}, { ...made.owner, userId: made.userId })).tokens.length).toBe(3)
  expect((await list({}, { ...made.owner, userId: made.deps.newId() })).tokens).toEqual([])
})

test('the counts take no query', async () => {
  const { status, json } = await temporaryApi(made)('GET', '/v1/tokens/views?team=x')
  expect([status, json.error.code, json.error.param]).toEqual([422, 'unknown_parameter', 'team'])
})
