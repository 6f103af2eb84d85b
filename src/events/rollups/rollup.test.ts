/** Sums for charts, from the tallies that wait for them to the series; longer than most, because all share one maker of outcomes. */
import { afterAll, beforeAll, beforeEach, expect, test } from 'bun:test'
import fc from 'fast-check'
import { type CostAttribution, type Event, noAttribution, type Verdict } from '../event.ts'
import { emptyTestDatabases, openTestDatabases, type TestDatabases, testEvent } from '../testing/ledger.ts'
import type { Visibility } from '../visibility.ts'
import { foldRollups, stages } from './fold.ts'
import { bucketOf, quantilesOf } from './latency-sketch.ts'
import { pendingRollups } from './pending-rollups.ts'
import { readRecent } from './recent.ts'
import { keysAtMost, stepMilliseconds } from './rollup.ts'
import { readSeries, type SeriesQuery } from './series.ts'
import { readTotals, type TotalsQuery } from './totals.ts'

let databases: TestDatabases
beforeAll(async () => {
  databases = await openTestDatabases()
})
afterAll(() => databases.remove())
beforeEach(() => emptyTestDatabases(databases))

const now = Date.parse('2026-03-10T12:00:00Z')
const { minute, hour, day } = stepMilliseconds
const all: Visibility = { teams: 'every', ownTokens: [] }

interface Told {
  ago?: number
  verdict?: Verdict
  reason?: string
  model?: string | null
  provider?: string | null
  team?: string | null
  gateway?: string
  token?: string
  latency?: number
  cost?: number
  dimensions?: Record<string, string>
}

const cost = (dollars: number): CostAttribution => ({
  currency: 'USD',
  cost: dollars,
  estimated: false,
  input_tokens: 10,
  output_tokens: 5,
  cached_input_tokens: null,
  reasoning_tokens: null,
  provider: 'openai',
  model: 'gpt-4o',
  price_source: null,
  spend_owner: null,
})

const outcome = (told: Told = {}): Event =>
  testEvent({
    timestamp: new Date(now - (told.ago ?? 0)).toISOString(),
    verdict: told.verdict ?? 'allow',
    reason_code: told.reason ?? 'ok',
    event_attribution: {
      ...noAttribution,
      team_id: told.team === undefined ? 'team-a' : told.team,
      gateway_id: told.gateway ?? 'gateway-1',
      token_id: told.token ?? 'token-1',
      ...(told.dimensions !== undefined && { dimensions: told.dimensions }),
    },
    details: {
      model: told.model === undefined ? 'gpt-4o' : told.model,
      provider: told.provider === undefined ? 'openai' : told.provider,
      latency_ms: told.latency ?? 100,
      first_token_ms: null,
    },
    event_cost_attribution: cost(told.cost ?? 0.001),
  })

/** What a sketch makes of a duration. */
const near = (milliseconds: number): number | undefined => quantilesOf({ [bucketOf(milliseconds)]: 1 })?.p50

const arrive = (events: readonly Event[]) => databases.ledger.write(pendingRollups(events, now))
const keep = async (events: readonly Event[]) => {
  await arrive(events)
  await foldRollups(databases.ledger)
}
const series = (query: Partial<SeriesQuery>, visibility = all) =>
  readSeries(databases.ledger, { query: { since: now - hour, until: now + 1, ...query }, visibility, now })
const totals = async (query: Partial<SeriesQuery>, visibility = all) =>
  Object.fromEntries((await series(query, visibility)).totals.map(({ key, requests }) => [String(key), requests]))

test('sums up requests, tokens, cost and durations by minute', async () => {
  await keep([outcome(), outcome({ latency: 300 }), outcome({ ago: 2 * minute })])
  await keep([outcome({ cost: 0.000_000_001 })])
  const answer = await series({})
  expect(answer).toMatchObject({ step: 'minute', by: null, since: '2026-03-10T11:00:00.000Z' })
  expect(answer.series).toMatchObject([
    {
      key: null,
      points: [
        { at: '2026-03-10T11:58:00.000Z', requests: 1 },
        { at: '2026-03-10T12:00:00.000Z', requests: 3 },
      ],
    },
  ])
  expect(answer.totals).toMatchObject([
    { key: null, requests: 4, input_tokens: 40, output_tokens: 20, cost: 0.003_000_001, first_token_ms: null },
  ])
  const [total] = answer.totals
  expect(total?.latency_ms?.p50).toBeWithin(95, 105.1)
  expect((await series({ by: 'verdict' })).series[0]?.points[1]?.latency_ms?.p99).toBeWithin(95, 105.1)
})

test('groups by each stored key, with verdict and team as filters or second groups', async () => {
  await keep([
    outcome({ verdict: 'block', reason: 'terms', model: 'a', gateway: 'g1', token: 't1' }),
    outcome({ model: 'a', team: 'team-b', gateway: 'g2', token: 't2' }),
    outcome({ model: 'b', team: null, gateway: 'g2', token: 't3' }),
  ])
  expect(await totals({ by: 'verdict' })).toEqual({ allow: 2, block: 1 })
  expect(await totals({ by: 'model' })).toEqual({ a: 2, b: 1 })
  expect(await totals({ by: 'team' })).toEqual({ 'team-a': 1, 'team-b': 1, null: 1 })
  expect(await totals({ by: 'gateway' })).toEqual({ g1: 1, g2: 2 })
  expect(await totals({ by: 'token' })).toEqual({ t1: 1, t2: 1, t3: 1 })
  expect(await totals({ by: 'reason' })).toEqual({ ok: 2, terms: 1 })
  expect(await totals({ by: 'model', verdict: 'block' })).toEqual({ a: 1 })
  expect(await totals({ by: 'model', team_id: 'team-b' })).toEqual({ a: 1 })
  expect(await totals({ by: 'model', answered: true })).toEqual({ a: 1, b: 1 })
  expect(await totals({ by: 'team', model: 'a' })).toEqual({ 'team-a': 1, 'team-b': 1 })
  expect(await totals({ by: 'verdict', gateway_id: 'g2' })).toEqual({ allow: 2 })
  expect(await totals({ token_id: 't3' })).toEqual({ null: 1 })
  expect(await totals({ verdict: 'deny' })).toEqual({ null: 0 })
})

test('groups by the values of a dimension, and adds up as other what a bucket has no row for', async () => {
  await keep([
    outcome({ dimensions: { customer: 'acme', feature: 'search' } }),
    outcome({ dimensions: { customer: 'acme' }, team: 'team-b' }),
    outcome({ dimensions: { customer: 'globex' }, team: null }),
    outcome(),
  ])
  expect(await totals({ by: 'dimension:customer' })).toEqual({ acme: 2, globex: 1, null: 1 })
  expect(await totals({ by: 'dimension:feature' })).toEqual({ search: 1, null: 3 })
  expect(await totals({ by: 'dimension:customer', team_id: 'team-b' })).toEqual({ acme: 1 })
  expect(await totals({ by: 'dimension:feature', team_id: 'team-b' })).toEqual({ null: 1 })
  expect(await totals({ by: 'dimension:feature' }, { teams: ['team-a'], ownTokens: [] })).toEqual({
    search: 1,
    null: 1,
  })
  expect(await totals({ by: 'dimension:unknown' })).toEqual({ null: 4 })
  await keep(
    Array.from({ length: keysAtMost('dimension:customer') + 20 }, (_, index) =>
      outcome({ dimensions: { customer: `c${index}` } }),
    ),
  )
  await keep([outcome({ dimensions: { customer: 'late' } }), outcome({ dimensions: { customer: 'acme' } })])
  const [stored] = await databases.ledger.read<{ keys: number; others: number; acme: number }>(
    `select count(distinct key) as keys, sum(iif(key like 'other...%', requests, 0)) as others,
      sum(iif(key = 'acme', requests, 0)) as acme from event_rollups
      where kind = 'dimension:customer' and step = 'day' and scope = 'team-a'`,
  )
  expect(stored).toMatchObject({ acme: 2 })
  expect(stored?.others).toBeGreaterThan(0)
})

test.each([
  [{ by: 'model', gateway_id: 'g' }, 'gateway_id'],
  [{ by: 'reason', model: 'm' }, 'model'],
  [{ model: 'm', token_id: 't' }, 'token_id'],
  [{ by: 'token', step: 'minute' }, 'step'],
  [{ since: now - 3 * day, step: 'minute' }, 'step'],
  [{ since: now + 2 }, 'until'],
] as const)('refuses %j, which is not stored, and names %s', async (query, param) => {
  await expect(series(query)).rejects.toMatchObject({ code: 'invalid_parameter', param })
})

test('shows each caller the sums of its teams only', async () => {
  await keep([outcome(), outcome({ team: 'team-b' }), outcome({ team: null })])
  const sees = (teams: Visibility['teams']) => totals({ by: 'team' }, { teams, ownTokens: [] })
  expect(await sees('every')).toEqual({ 'team-a': 1, 'team-b': 1, null: 1 })
  expect(await sees(['team-b'])).toEqual({ 'team-b': 1 })
  expect(await sees([])).toEqual({})
  for (const by of [undefined, 'model', 'token', 'reason'] as const) {
    const count = async (visibility: Visibility, query = {}) =>
      (await series({ by, ...query }, visibility)).totals.reduce((sum, { requests }) => sum + requests, 0)
    expect(await count(all)).toBe(3)
    expect(await count({ teams: ['team-a'], ownTokens: [] })).toBe(1)
    expect(await count({ teams: ['team-a'], ownTokens: [] }, { team_id: 'team-b' })).toBe(0)
    expect(await count({ teams: [], ownTokens: [] })).toBe(0)
  }
})

test('shows a token without a team its own sums when asked for its own id', async () => {
  await keep([outcome({ token: 'own' }), outcome({ team: null, token: 'own' }), outcome({ token: 'other' })])
  const own: Visibility = { teams: [], ownTokens: ['own'] }
  const count = async (query: object) =>
    (await series(query, own)).totals.reduce((sum, { requests }) => sum + requests, 0)
  expect(await count({ token_id: 'own' })).toBe(2)
  expect(await count({ token_id: 'own', by: 'team' })).toBe(2)
  expect(await count({ token_id: 'other' })).toBe(0)
  expect(await count({})).toBe(0)
})

test('chooses minutes, hours or days by the length of the window and by what is stored', async () => {
  await keep([outcome({ ago: 20 * day }), outcome({ ago: 3 * day }), outcome()])
  expect(await series({ since: now - 6 * hour })).toMatchObject({ step: 'minute' })
  expect(await series({ since: now - 3 * day, until: now - 3 * day + hour })).toMatchObject({ step: 'hour' })
  expect(await series({ by: 'token' })).toMatchObject({ step: 'hour' })
  const days = await series({ since: now - 30 * day })
  expect(days).toMatchObject({ step: 'day', series: [{ points: [{ requests: 1 }, { requests: 1 }, { requests: 1 }] }] })
})

test('counts late events in their own bucket, except in minutes that are no longer stored', async () => {
  await keep([outcome({ ago: 3 * day })])
  const rows = await databases.ledger.read('select distinct step from event_rollups order by step')
  expect(rows).toEqual([{ step: 'day' }, { step: 'hour' }])
})

test('sums up everything beyond the fifty largest keys as other', async () => {
  await keep(Array.from({ length: 60 }, (_, index) => outcome({ model: `model-${index}` })))
  await keep([outcome({ model: 'model-59' })])
  const { series: keys, totals: sums } = await series({ by: 'model' })
  expect(keys).toHaveLength(51)
  expect(keys[0]?.key).toBe('model-59')
  expect(sums.at(-1)).toMatchObject({ key: 'other', rest: true, requests: 10 })
  expect(sums.filter(({ rest }) => rest)).toHaveLength(1)
})

test('does not confuse a model named other with the rest', async () => {
  const small = Array.from({ length: 60 }, (_, index) => outcome({ model: `model-${index}`, latency: 2000 }))
  await keep([...small, ...small.map(() => outcome({ model: 'other', latency: 50 }))])
  for (let batch = 0; batch < 2; batch += 1) {
    for (const visibility of [all, { teams: ['team-a'], ownTokens: [] }]) {
      const { series: keys, totals: sums } = await series({ by: 'model', step: 'hour' }, visibility)
      expect(sums[0]).toMatchObject({ key: 'other', rest: false, requests: 60, latency_ms: { p99: near(50) } })
      expect(sums.at(-1)).toMatchObject({ key: 'other', rest: true, latency_ms: { p50: near(2000), p99: near(2000) } })
      expect(keys.at(-1)).toMatchObject({ rest: true, points: [{ latency_ms: { p50: near(2000) } }] })
    }
    // So many that the bucket holds no row for each of them.
    await keep(Array.from({ length: 600 }, (_, index) => outcome({ model: `more-${index}`, latency: 2000 })))
    await keep(Array.from({ length: 10 }, (_, index) => outcome({ model: `late-${index}`, latency: 2000 })))
  }
})

test('the rest of many teams has its durations too', async () => {
  await keep(Array.from({ length: 60 }, (_, index) => outcome({ team: `team-${index}`, latency: 2000 })))
  const { totals: sums } = await series({ by: 'team', step: 'hour' })
  expect(sums.at(-1)).toMatchObject({ rest: true, requests: 10, latency_ms: { p50: near(2000) } })
})

test('refuses more points than a chart can show and names a coarser step, or chooses it by default', async () => {
  const models = Array.from({ length: 50 }, (_, index) => `m${index}`)
  for (let ago = 0; ago < 45 * minute; ago += minute) await arrive(models.map((model) => outcome({ model, ago })))
  await foldRollups(databases.ledger)
  const asked = series({ by: 'model', step: 'minute' })
  await expect(asked).rejects.toMatchObject({ param: 'step', message: expect.stringContaining('step=hour') })
  expect(await series({ by: 'model' })).toMatchObject({ step: 'hour' })
  const shorter = await series({ by: 'model', step: 'minute', since: now - 30 * minute })
  expect(shorter.series.flatMap(({ points }) => points)).toHaveLength(31 * 50)
})

test('without a given step a long window with many keys uses days', async () => {
  const models = Array.from({ length: 30 }, (_, index) => `m${index}`)
  for (const ago of [0, 5 * day]) await arrive(models.map((model) => outcome({ model, ago })))
  await foldRollups(databases.ledger)
  expect(await series({ since: now - 10 * day, by: 'model' })).toMatchObject({ step: 'day' })
  expect(await series({ since: now - 10 * day, by: 'verdict' })).toMatchObject({ step: 'hour' })
  expect(await series({ since: now - 10 * day, by: 'model', step: 'hour' })).toMatchObject({ step: 'hour' })
})

test('limits the models and reasons of a bucket, however many callers invent', async () => {
  for (let batch = 0; batch < 4; batch += 1) {
    await keep(
      Array.from({ length: 300 }, (_, index) => outcome({ model: `${batch}-${index}`, reason: `${batch}.${index}` })),
    )
  }
  const rows = await databases.ledger.read<{ kind: string; keys: number; requests: number }>(
    `select kind, count(distinct key) as keys, sum(requests) as requests from event_rollups
      where step = 'hour' and scope = 'team-a' and kind in ('model', 'reason') group by kind`,
  )
  expect(rows).toEqual([
    { kind: 'model', keys: 601, requests: 1200 },
    { kind: 'reason', keys: 601, requests: 1200 },
  ])
  await keep([outcome({ model: 'never answered', provider: null })])
  expect((await series({ by: 'model', step: 'hour' })).totals.map(({ key }) => key)).not.toContain('never answered')
})

test('adds a large batch of different outcomes in transactions of a limited number of rows', async () => {
  await arrive(
    Array.from({ length: 2000 }, (_, index) =>
      outcome({ token: `t${index}`, model: `m${index}`, dimensions: { customer: `c${index}` } }),
    ),
  )
  let most = 0
  await foldRollups({
    ...databases.ledger,
    write: (statements, patient) => {
      const written = statements.filter(({ sql }) => sql.includes('insert into event_rollups'))
      const rows = written.map(({ args: [list] }) => JSON.parse(String(list)).length)
      most = Math.max(most, ...rows)
      return databases.ledger.write(statements, patient)
    },
  })
  expect(most).toBeWithin(1, 1201)
  expect(await totals({})).toEqual({ null: 2000 })
  expect(
    (await databases.ledger.read("select 1 from event_rollups where kind = 'token' and step = 'day'")).length,
  ).toBe(2000)
})

test('adds each arrival once, with deaths between any two transactions and several processes at work', async () => {
  const events = Array.from({ length: 60 }, (_, index) =>
    outcome({ token: `t${index}`, model: `m${index}`, dimensions: { customer: `c${index}` } }),
  )
  await arrive(events)
  let writes = 0
  const dying = {
    ...databases.ledger,
    write: (statements: Parameters<typeof databases.ledger.write>[0]) => {
      writes += 1
      return writes % 2 === 0 ? Promise.reject(new Error('killed')) : databases.ledger.write(statements)
    },
  }
  for (let life = 0; life < 20; life += 1) await foldRollups(dying).catch(() => undefined)
  expect(await databases.ledger.read('select id from pending_event_rollups')).toEqual([])
  await arrive(events)
  await Promise.all([foldRollups(databases.ledger), foldRollups(databases.ledger)])
  await foldRollups(databases.ledger)
  const rows = await databases.ledger.read<{ kind: string; step: string; requests: number }>(
    "select kind, step, sum(requests) as requests from event_rollups where scope = 'team-a' group by kind, step",
  )
  expect(rows.map(({ requests }) => requests)).toEqual(stages.filter(({ ofTeams }) => ofTeams !== false).map(() => 120))
})

const anyTold = fc.record({
  ago: fc.integer({ min: 0, max: 50 * minute }),
  verdict: fc.constantFrom<Verdict>('allow', 'block', 'error'),
  model: fc.constantFrom('a', 'b', null),
  team: fc.constantFrom('team-a', 'team-b', null),
  latency: fc.integer({ min: 0, max: 100_000 }),
})

test('gives the same sums for any split into batches, equal to the sums of the events', async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(anyTold, { minLength: 1, maxLength: 40 }),
      fc.integer({ min: 1, max: 10 }),
      async (told, size) => {
        const events = told.map(outcome)
        const answers = []
        for (const batch of [events.length, size]) {
          await emptyTestDatabases(databases)
          for (let start = 0; start < events.length; start += batch) await arrive(events.slice(start, start + batch))
          await foldRollups(databases.ledger)
          answers.push([await series({ by: 'model' }), await series({ by: 'team' }), await series({ by: 'verdict' })])
        }
        expect(answers[1]).toEqual(answers[0])
        const counted = Object.fromEntries(
          Map.groupBy(events, ({ verdict }) => verdict)
            .entries()
            .map(([key, group]) => [key, group.length]),
        )
        expect(await totals({ by: 'verdict' })).toEqual(counted)
      },
    ),
    { numRuns: 20 },
  )
})

test('counts and shows a model name with half a surrogate pair, also where the queued tallies have it', async () => {
  const half = outcome({ model: 'gpt\ud800x' })
  await keep([half])
  const [arrival] = pendingRollups([half], now)
  const escaped = String(arrival?.args[0]).replace('gpt\ufffdx', 'gpt\\ud800y')
  await databases.ledger.write([{ sql: arrival?.sql ?? '', args: [escaped] }])
  await foldRollups(databases.ledger)
  const { totals } = await series({ by: 'model' })
  expect(totals.map(({ key, requests }) => [key, requests])).toEqual([
    ['gpt\ufffdx', 1],
    ['gpt\ufffdy', 1],
  ])
})

test('shows damaged rows as far as possible and keeps adding to them', async () => {
  await keep([outcome({ model: 'gpt-4o' }), outcome({ model: 'other-model' })])
  const damage = [
    "update event_rollups set key = cast(x'67ff' as text), requests = 7 where kind = 'model' and key = 'gpt-4o'",
    "update event_rollups set latency = 'garbage' where kind = 'model'",
    `update event_rollups set latency = cast(x'7b22ff223a317d' as text), first_token = '{"1":"x"}' where kind = 'all'`,
  ]
  await databases.ledger.write(damage.map((sql) => ({ sql, args: [] })))
  await keep([outcome({ model: 'other-model' })])
  const { totals } = await series({ by: 'model' })
  expect(totals.map(({ key, requests, latency_ms }) => [key, requests, latency_ms === null])).toEqual([
    ['g\ufffd', 7, true],
    ['other-model', 2, false],
  ])
  expect((await series({})).totals[0]?.requests).toBe(3)
})

test('leaves out latencies where they are not asked for, and adds up the same', async () => {
  await keep(Array.from({ length: 60 }, (_, index) => outcome({ model: `model-${index}`, ago: index * minute })))
  const plain = await series({ by: 'model', withoutLatencies: true })
  expect(plain.totals.every(({ latency_ms }) => latency_ms === null)).toBe(true)
  const read = await series({ by: 'model' })
  const sums = (of: typeof read) => of.totals.map(({ key, rest, requests, cost }) => ({ key, rest, requests, cost }))
  expect(sums(plain)).toEqual(sums(read))
  expect(read.totals[0]?.latency_ms).not.toBeNull()
})

const totalsOf = (query: Partial<TotalsQuery>, visibility = all) =>
  readTotals(databases.ledger, {
    query: { since: now - hour, until: now + 1, by: 'model', step: 'minute', order: 'cost', limit: 10, ...query },
    visibility,
  })

test('adds up a time by one group, the dearest or the most frequent first, however many keys there are', async () => {
  const cheap = Array.from({ length: 60 }, (_, index) => outcome({ model: `cheap-${index}`, cost: 0 }))
  await keep([...cheap, outcome({ model: 'often', cost: 0.001 }), outcome({ model: 'often', cost: 0.001 })])
  await keep([outcome({ model: 'dear', cost: 5 }), outcome({ model: 'before', ago: 2 * hour })])
  expect((await totalsOf({ limit: 2 })).rows).toEqual([
    { key: 'dear', requests: 1, cost: 5 },
    { key: 'often', requests: 2, cost: 0.002 },
  ])
  expect((await totalsOf({ limit: 1, order: 'requests' })).rows).toMatchObject([{ key: 'often', requests: 2 }])
  expect((await totalsOf({ limit: 100 })).rows).toHaveLength(62)
})

test('adds up every group over the same time, apart from tokens within hours', async () => {
  await keep([outcome({ ago: 3 * hour }), outcome({ ago: 20 * minute }), outcome({ ago: 50 * minute }), outcome()])
  const requests = async (query: Partial<TotalsQuery>) =>
    (await totalsOf({ since: now - 30 * minute, ...query })).rows.map((row) => row.requests)
  for (const by of ['verdict', 'model', 'team', 'reason'] as const) expect(await requests({ by })).toEqual([2])
  const tokens = await totalsOf({ since: now - 30 * minute, by: 'token' })
  expect(tokens).toMatchObject({ since: '2026-03-10T11:00:00.000Z', rows: [{ key: 'token-1', requests: 3 }] })
  expect(await requests({ by: 'verdict', step: 'hour' })).toEqual([3])
})

test('says what requests came to in the last minutes, and what fails, of the teams that the caller sees', async () => {
  const failed = { verdict: 'error', reason: 'provider.error', model: 'broken', provider: 'acme' } as const
  await keep([
    ...Array.from({ length: 6 }, () => outcome({ ...failed, ago: 20 * minute })),
    outcome({ ...failed, team: 'team-b' }),
    outcome({ team: 'team-b' }),
    outcome({ team: null }),
  ])
  const recent = (visibility: Visibility) => readRecent(databases.ledger, { visibility, now })
  const failing = { name: 'broken', requests: 7, failed: 7, since: '2026-03-10T11:40:00.000Z' }
  expect(await recent(all)).toEqual({
    minutes: 10,
    outcomes: [
      { verdict: 'allow', reason_code: 'ok', requests: 2 },
      { verdict: 'error', reason_code: 'provider.error', requests: 1 },
    ],
    failing: [
      { kind: 'provider', ...failing, name: 'acme' },
      { kind: 'model', ...failing },
    ],
  })
  expect(await recent({ teams: ['team-a'], ownTokens: [] })).toEqual({
    minutes: 10,
    outcomes: [],
    failing: [{ kind: 'model', ...failing, requests: 6, failed: 6 }],
  })
})

test('adds up a time of several days by whole days and by the hours around them', async () => {
  await keep([0, 11, 12, 13, 36, 60, 61, 62].map((hours) => outcome({ ago: hours * hour })))
  const requests = async (hours: number) =>
    (await totalsOf({ since: now - hours * hour, by: 'token', step: 'hour' })).rows.map((row) => row.requests)
  expect(await Promise.all([11, 12, 13, 59, 60, 61, 62, 100].map(requests))).toEqual(
    [2, 3, 4, 5, 6, 7, 8, 8].map((count) => [count]),
  )
})
