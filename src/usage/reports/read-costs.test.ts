import { afterAll, beforeAll, expect, test } from 'bun:test'
import { openTestDatabases, type TestDatabases } from '../../events/testing/ledger.ts'
import type { Visibility } from '../../events/visibility.ts'
import type { Database } from '../../store/open.ts'
import { readCosts } from './read-costs.ts'

const dayMs = 86_400_000
const from = 20_000 * dayMs
const days = 3
const sumsOfDay = 700
const everyTeam: Visibility = { teams: 'every', ownTokens: [] }
let databases: TestDatabases
let statements: number[]
let ledger: Database

beforeAll(async () => {
  databases = await openTestDatabases()
  // Every hundredth sum is of the token `rare`, all others of `usual`; each has values of its own.
  await databases.ledger.write([
    {
      sql: `with recursive n (n) as (select 0 union all select n + 1 from n where n < ?)
        insert into event_rollups (kind, step, scope, at, key, verdict, requests, input_tokens, output_tokens, cost)
        select 'cost', 'day', 'team', cast(? as integer) + (n / cast(? as integer)) * cast(? as integer), 'openai' || char(31) || 'gpt-5' || char(31)
          || iif(n % 100 = 0, 'rare', 'usual') || char(31) || 'gateway' || char(31) || char(30)
          || json_object('customer', 'c' || n), '', 1, 2, 3, 4 from n`,
      args: [days * sumsOfDay - 1, from, sumsOfDay, dayMs],
    },
  ])
  ledger = new Proxy(databases.ledger, {
    get: (target, name) => {
      if (name !== 'read') return Reflect.get(target, name)
      return async (...asked: Parameters<Database['read']>) => {
        const rows = await target.read<{ read?: number }>(...asked)
        if (asked[0].includes('requests')) statements.push(rows.reduce((sum, { read = 0 }) => sum + read, 0))
        return rows
      }
    },
  })
})
afterAll(() => databases.remove())

const every = { from, until: from + days * dayMs, visibility: everyTeam }

async function read(window: { withDimensions: boolean; token?: string }) {
  statements = []
  const rows = (await Array.fromAsync(readCosts(ledger, { ...every, ...window }))).flat()
  return { rows, cost: rows.reduce((sum, { cost }) => sum + cost, 0), days: new Set(rows.map(({ at }) => at)).size }
}

test.each([
  ['every sum', { withDimensions: true }, days * sumsOfDay],
  ['sums without values', { withDimensions: false }, days * sumsOfDay],
  ['the sums of a token', { withDimensions: false, token: 'rare' }, (days * sumsOfDay) / 100],
  ['the sums of a token with their values', { withDimensions: true, token: 'rare' }, (days * sumsOfDay) / 100],
  ['the sums of an unknown token', { withDimensions: false, token: 'none' }, 0],
])('reads %s in statements of at most 500 sums', async (_, window, sums) => {
  const found = await read(window)
  expect([found.cost, found.days]).toEqual([4 * sums, sums === 0 ? 0 : days])
  if (window.withDimensions) expect(found.rows).toHaveLength(sums)
  expect(statements).toEqual([500, 500, 500, 500, 100])
})
