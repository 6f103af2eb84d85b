import { afterEach, beforeEach, expect, test } from 'bun:test'
import { type TemporaryInstallation, temporaryInstallation } from '../members/temporary-installation.ts'
import { createToken } from './create.ts'
import { tokenStatus } from './governed.ts'
import { listTokens, listTokensQuery, statusSql } from './list.ts'
import { openToken } from './stored-token.ts'
import { createTokenBody } from './token-body.ts'

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
  listTokens(made.store.ledger, principal, listTokensQuery.parse(query), made.clock.now())

test('pages hold every token once, newest first, whatever is made while paging', async () => {
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

test('a cursor is refused with other filters and when it is none of ours', async () => {
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
})

test('the status filter agrees with the status that is shown, at every instant around its changes', async () => {
  const { ledger } = made.store
  const instants = [null, 10, 20]
  for (const expiresAt of instants)
    for (const rotatedAt of instants)
      for (const revokedAt of [null, 15]) {
        const { token } = await make()
        await ledger.write([
          {
            sql: 'update tokens set expires_at = ?, rotated_at = ?, revoked_at = ? where id = ?',
            args: [expiresAt, rotatedAt, revokedAt, token.id],
          },
        ])
      }
  for (const now of [0, 9, 10, 11, 19, 20, 21]) {
    const rows = await ledger.read(`select *, ${statusSql} as shown from tokens`, [now, now])
    expect(rows.length).toBe(20)
    for (const row of rows) expect(row.shown).toBe(tokenStatus(openToken(row), now))
  }
})

test("a team's token sees its team's tokens, a user's token the user's and those of the user's teams", async () => {
  await make({ bindings: { team_id: made.teamId } })
  await make({ bindings: { user_id: made.userId } })
  const ofTeam = await list({}, { ...made.owner, teamId: made.teamId })
  expect(ofTeam.tokens.every(({ teamId }) => teamId === made.teamId)).toBe(true)
  expect(ofTeam.tokens.length).toBe(2)
  expect((await list({}, { ...made.owner, userId: made.userId })).tokens.length).toBe(3)
  expect((await list({}, { ...made.owner, userId: made.deps.newId() })).tokens).toEqual([])
})
