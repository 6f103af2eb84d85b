import { afterEach, beforeEach, expect, test } from 'bun:test'
import { silentLog } from '../lib/log/log.ts'
import { type LimitKey, toolRateAccount } from '../store/limit-rows.ts'
import type { Reader } from '../store/open.ts'
import type { Statement } from '../store/statement.ts'
import { type TemporaryStore, temporaryStore } from '../store/testing/store.ts'
import { sqlLimits } from './api/sql-limits.ts'
import { KnownLimitRows } from './known-limit-rows.ts'
import { slotsOf } from './rate/rate-limits.ts'

const [monday, tuesday] = [Date.UTC(2026, 0, 5, 23), Date.UTC(2026, 0, 6, 1)]
const waitMs = 20

let store: TemporaryStore
/** What the state does with a read. */
let mode: 'answers' | 'hangs' | 'fails'
let reads: number
let newest: number
let now: number
let rows: KnownLimitRows
let knownRows: (most: number) => KnownLimitRows
/** Lets reads that hang go on. */
let thaw: () => void

beforeEach(async () => {
  store = await temporaryStore()
  const thawed = Promise.withResolvers<void>()
  thaw = () => {
    mode = 'answers'
    thawed.resolve()
  }
  ;[mode, reads, newest, now] = ['answers', 0, 1, monday]
  const state: Reader = {
    async read<Shape>(sql: string, args?: Statement['args']) {
      reads += 1
      if (mode === 'fails') throw new Error('out of reach')
      const isHanging = mode === 'hangs'
      const answer = await store.state.read<Shape>(sql, args)
      if (isHanging) await thawed.promise
      return answer
    },
    readValues: (sql, args) => store.state.readValues(sql, args),
  }
  knownRows = (most) => new KnownLimitRows({ state, log: silentLog, newestVersion: () => newest, waitMs, most })
  rows = knownRows(100)
  await setHead(1)
  await store.state.write([
    account('a', 10, 1),
    {
      sql: "insert into budgets (id, max_budget, window, scope_kind, version) values ('b', 5, 'day', 'x', 1)",
      args: [],
    },
    {
      sql: "insert into consumer_groups (id, requests_per_minute, members, version) values ('g', 30, '[]', 1)",
      args: [],
    },
    {
      sql: "insert into access_policies (id, tokens_per_minute, scope, version) values ('p', 40, 'token', 1)",
      args: [],
    },
    {
      sql: `insert into mcp_servers (id, name, approval, position, requests_per_minute, tool_limits, version)
        values ('s', 'shop', 'required', 1, 20, '{"buy":{"price_per_call":null,"requests_per_minute":2}}', 1)`,
      args: [],
    },
  ])
})
afterEach(() => {
  thaw()
  store.remove()
})

const setHead = (version: number) =>
  store.state.write([
    { sql: "insert or replace into state_head values (1, ?, 'nonce', 'history', '0.2.0', 0)", args: [version] },
  ])

const account = (id: string, maxRequests: number, version: number) => ({
  sql: `insert or replace into accounts (id, max_requests, max_budget, rate_limit_rpm, version) values (?, ?, 7, 60, ?)`,
  args: [id, maxRequests, version],
})

/** Changes an account in a new version of the state, and tells the control plane of the version. */
async function change(id: string, maxRequests: number): Promise<void> {
  newest += 1
  await setHead(newest)
  await store.state.write([account(id, maxRequests, newest)])
}

/** No budget here is for each value. */
const noLedger = { read: async () => [], readValues: async () => [] }

const limitOf = async (name: string) =>
  (await sqlLimits(rows, { now: () => now }, noLedger).limits([name])).get(name) ?? 'unknown'
const maxRequests = async (id: string) => {
  const limit = await limitOf(`token/${id}/requests`)
  return limit === 'unknown' ? limit : limit.limit
}

for (const trouble of ['hangs', 'fails'] as const) {
  test(`decides by the limits it read before while the state ${trouble}`, async () => {
    for (const name of ['token/a/requests', 'token/a/money', 'budget/b', 'token/gone/requests']) await limitOf(name)
    for (const name of ['token/a/requests', 'group/g/requests', 'access/p/t/tokens', 'server/s/requests'])
      await slotsOf(rows, name)
    mode = trouble
    expect(await limitOf('token/a/requests')).toMatchObject({ limit: 10 })
    expect(await limitOf('token/a/money')).toMatchObject({ limit: 7 })
    expect(await limitOf('budget/b')).toMatchObject({ limit: 5, booked: 'budget/b@2026-01-05' })
    expect(await slotsOf(rows, 'token/a/requests')).toBe(60)
    expect(await slotsOf(rows, 'group/g/requests')).toBe(30)
    expect(await slotsOf(rows, 'access/p/t/tokens')).toBe(40)
    expect(await slotsOf(rows, 'server/s/requests')).toBe(20)
    expect(await slotsOf(rows, toolRateAccount('s', 'buy'))).toBe(2)
    expect(await slotsOf(rows, toolRateAccount('s', 'look'))).toBe(0)
    // A limit that was never read is unknown, which is not the same as no limit.
    expect(await limitOf('token/new/requests')).toBe('unknown')
    await expect(slotsOf(rows, 'token/new/requests')).rejects.toMatchObject({ code: 'dependency_unavailable' })
  })
}

test('starts the next window of a budget while the state hangs', async () => {
  await limitOf('budget/b')
  mode = 'hangs'
  now = tuesday
  expect(await limitOf('budget/b')).toMatchObject({ booked: 'budget/b@2026-01-06', until: Date.UTC(2026, 0, 7) })
})

test('waits once for a state that hangs, and reads again when it answers', async () => {
  await maxRequests('a')
  mode = 'hangs'
  const before = reads
  for (let turn = 0; turn < 5; turn++) expect(await maxRequests('a')).toBe(10)
  expect(reads - before).toBe(1)
  thaw()
  await Bun.sleep(1)
  await change('a', 3)
  expect(await maxRequests('a')).toBe(3)
})

test('does not use limits of an older version once a newer version is known', async () => {
  await maxRequests('a')
  await change('a', 3)
  mode = 'hangs'
  expect(await maxRequests('a')).toBe('unknown')
})

test('a check reads again what newer versions changed, and keeps the rest', async () => {
  await maxRequests('a')
  await change('c', 20)
  await rows.check()
  await change('a', 3)
  await rows.check()
  mode = 'hangs'
  expect([await maxRequests('a'), await maxRequests('c')]).toEqual([3, 20])
})

test('a change that names the limits it touched leaves the other limits in use', async () => {
  await rows.check()
  await change('c', 20)
  rows.passed(newest, ['account/c'])
  mode = 'fails'
  expect([await maxRequests('a'), await maxRequests('c')]).toEqual([10, 'unknown'])
  mode = 'answers'
  await rows.check()
  mode = 'fails'
  expect([await maxRequests('a'), await maxRequests('c')]).toEqual([10, 20])
})

test('reads a limit again when a change arrived during the read', async () => {
  await rows.check()
  mode = 'hangs'
  expect(await maxRequests('d')).toBe('unknown')
  mode = 'answers'
  await change('c', 20)
  rows.passed(newest, ['account/c'])
  thaw()
  await Bun.sleep(1)
  await rows.check()
  mode = 'fails'
  expect((await rows.read(['account/d'])).get('account/d')).not.toBeUndefined()
})

test('uses no cached limit after a change that follows a missed one', async () => {
  await rows.check()
  await change('a', 3)
  await change('c', 20)
  rows.passed(newest, ['account/c'])
  mode = 'fails'
  expect(await maxRequests('a')).toBe('unknown')
})

test('uses no cached limit after a failed check', async () => {
  await maxRequests('a')
  await change('c', 20)
  mode = 'fails'
  await expect(rows.check()).rejects.toThrow('out of reach')
  expect(await maxRequests('a')).toBe('unknown')
})

test('does not cache an answer that was sent before a change and arrives after it', async () => {
  await rows.check()
  mode = 'hangs'
  expect(await maxRequests('a')).toBe(10)
  mode = 'answers'
  await change('a', 3)
  await rows.check()
  thaw()
  await Bun.sleep(1)
  mode = 'fails'
  expect(await maxRequests('a')).toBe(3)
})

test('the first check preloads unused limits, the newest ones if there are many', async () => {
  for (const id of ['c', 'd', 'e']) await change(id, 20)
  rows = knownRows(4)
  await rows.check()
  mode = 'hangs'
  expect([await maxRequests('c'), await maxRequests('e')]).toEqual([20, 20])
  const kept: (LimitKey | undefined)[] = []
  for (const key of ['account/a', 'budget/b', 'group/g', 'policy/p', 'server/s'] as const) {
    if ((await rows.read([key])).has(key)) kept.push(key)
  }
  expect(kept).toHaveLength(1)
})

test('drops all cached limits when the state is replaced', async () => {
  await maxRequests('a')
  rows.forget()
  mode = 'fails'
  expect(await maxRequests('a')).toBe('unknown')
})
