import { afterEach, beforeEach, expect, test } from 'bun:test'
import { testApplication } from '../../api/testing/application.ts'
import { permissionsOf } from '../../identity/permissions.ts'
import { anonymous } from '../../identity/principal.ts'
import { silentLog } from '../../lib/log/log.ts'
import { mergeOnce } from '../log/merge-segments.ts'
import { retentionDays, TestProof } from '../testing/proof.ts'
import { foldRollups } from './fold.ts'
import { type Rebuilt, rebuildRollups } from './rebuild.ts'
import { rollupRebuildRoute } from './rebuild-route.ts'
import { keysAtMost, otherKey } from './rollup.ts'

const day = 86_400_000
let proof: TestProof
beforeEach(async () => {
  proof = await TestProof.start()
})
afterEach(() => proof.store.remove())

const told = (index: number) => ({
  details: { model: `m${index % 7}`, provider: 'openai', latency_ms: index * 31, first_token_ms: index },
  reason_code: index % 5 === 0 ? 'policy.terms' : 'ok',
  verdict: index % 5 === 0 ? ('block' as const) : ('allow' as const),
})
const ship = (gateway: number, count: number, of: (index: number) => object = told) =>
  proof.ship(
    gateway,
    Array.from({ length: count }, (_, index) => {
      const event = proof.gatewayEvent(gateway, of(index))
      const dimensions = { customer: `c${index % 3}`, feature: 'search' }
      return JSON.stringify({ ...event, event_attribution: { ...event.event_attribution, dimensions } })
    }),
  )

async function rebuild(ledger = proof.store.ledger): Promise<Rebuilt> {
  const { signal } = new AbortController()
  let rebuilt: Rebuilt = { corrected: -1, growing: -1 }
  for await (rebuilt of rebuildRollups({
    ledger,
    now: proof.now,
    retention: retentionDays * day,
    since: null,
    signal,
  }));
  return rebuilt
}

const rows = () =>
  proof.store.ledger.read(
    `select kind, step, scope, at, hex(key) as key, verdict, requests, input_tokens, output_tokens, cost, latency, first_token
      from event_rollups order by kind, step, scope, at, key, verdict`,
  )

/** Two days of events from two gateways. */
async function fill(): Promise<void> {
  await ship(1, 40)
  proof.now += day
  await ship(1, 30)
  await ship(2, 20)
  await foldRollups(proof.store.ledger)
  await proof.sign()
}

test('restores sums that were altered, deleted, forged or damaged', async () => {
  await fill()
  const before = await rows()
  expect(await rebuild()).toEqual({ corrected: 0, growing: 0 })
  for (const damage of [
    'delete from event_rollups',
    'update event_rollups set requests = requests * 2, cost = cost + 1 where rowid % 3 = 0',
    `update event_rollups set latency = '{"1":1}', first_token = 'garbage', input_tokens = 1e300 where rowid % 4 = 1`,
    "update or replace event_rollups set scope = 'else', key = cast(x'67ff' as text) where rowid % 5 = 2",
    "update or replace event_rollups set at = at + 1, step = 'week' where rowid % 7 = 3",
    "update or replace event_rollups set at = 9e18 where rowid % 11 = 4 or kind = 'reason'",
  ]) {
    await proof.run(damage)
    expect((await rebuild()).corrected).toBeGreaterThan(0)
    expect(await proof.findings()).toEqual([])
    const after = await rows()
    expect(after.map(({ latency: _, first_token: __, ...row }) => row)).toEqual(
      before.map(({ latency: _, first_token: __, ...row }) => row),
    )
  }
})

test('counts events that arrive during the rebuild once', async () => {
  await fill()
  await proof.run("delete from event_rollups where step <> 'hour'")
  const arriving = async () => {
    for (let batch = 0; batch < 12; batch += 1) {
      await ship(2, 3)
      if (batch % 4 === 0) await foldRollups(proof.store.ledger)
      await Bun.sleep(2)
    }
  }
  await Promise.all([rebuild(), rebuild(), arriving()])
  await rebuild()
  expect(await proof.findings()).toEqual([])
})

test('mends an earlier day while events of a later one arrive and are merged into its blocks', async () => {
  await fill()
  const { now } = proof
  const today = day * Math.floor(now / day)
  await ship(1, 1, (index) => ({ ...told(index), timestamp: new Date(today - day).toISOString() }))
  await foldRollups(proof.store.ledger)
  const before = await rows()
  const earlier = (all: readonly Record<string, unknown>[]) =>
    all.filter(({ at }) => Number(at) < today).map(({ latency: _, first_token: __, ...row }) => row)
  const late = { ...proof.store.ledger }
  await proof.run('delete from event_rollups')
  let calls = 0
  const arriving = async () => {
    calls += 1
    if (calls % 23 !== 0) return
    proof.now = now + day / 24
    await ship(2, 1)
    proof.now = now
    while (await mergeOnce(late, { full: 4096, fanIn: 2 }));
  }
  const { growing } = await rebuild({
    ...late,
    async read(sql, args) {
      await arriving()
      return await late.read(sql, args)
    },
    async write(statements, patient) {
      await arriving()
      await late.write(statements, patient)
    },
  })
  // At most the hour and the day in which they arrive.
  expect(growing).toBeWithin(0, 3)
  expect(earlier(await rows())).toEqual(earlier(before))
  expect(await late.read('select count(*) as blocks from event_blocks')).toEqual([{ blocks: 2 }])
  await rebuild()
  expect(await proof.findings()).toEqual([])
})

test('a row that another process removes meanwhile takes no row of another hour with it', async () => {
  await fill()
  const { ledger } = proof.store
  await proof.run(`insert into event_rollups select kind, step, scope, max(at), 'made up', verdict, requests, input_tokens,
    output_tokens, cost, latency, first_token from event_rollups where kind = 'model' and step = 'hour'`)
  let corrections = 0
  const shared: typeof ledger = {
    ...ledger,
    async write(statements, patient) {
      corrections += 1
      if (corrections === 1) {
        // Another control plane removes it, and the row of an earlier hour that comes next has its id.
        await proof.run('delete from event_rollups where rowid = (select max(rowid) from event_rollups)')
        await proof.run(`insert or replace into event_rollups select * from event_rollups
          where kind = 'model' and step = 'hour' order by at limit 1`)
      }
      return await ledger.write(statements, patient)
    },
  }
  await rebuild(shared)
  expect(corrections).toBe(1)
  expect(await proof.findings()).toEqual([])
})

test('resumes a rebuild that ended anywhere', async () => {
  await fill()
  await proof.run('delete from event_rollups')
  const { ledger } = proof.store
  const signal = new AbortController().signal
  let left = 1
  const dying: typeof ledger = {
    ...ledger,
    write: (...args) => {
      left -= 1
      return left < 0 ? Promise.reject(new Error('killed')) : ledger.write(...args)
    },
  }
  for (let life = 1; ; life += 1) {
    left = life
    const ended = rebuildRollups({ ledger: dying, now: proof.now, retention: retentionDays * day, since: null, signal })
    if (
      await Array.fromAsync(ended).then(
        () => true,
        () => false,
      )
    )
      break
  }
  expect(await proof.findings()).toEqual([])
})

test('keeps the keys that a full bucket counts as other, and makes room again after a total loss', async () => {
  for (let batch = 0; batch < 3; batch += 1) {
    await ship(1, keysAtMost('reason') / 2, (index) => ({ reason_code: `made.up_${batch}_${index}` }))
    await foldRollups(proof.store.ledger)
  }
  expect(await proof.findings()).toEqual([])
  await proof.run("delete from event_rollups where kind = 'reason' and key <> ?", otherKey)
  await rebuild()
  expect(await proof.findings()).toEqual([])
  const keys =
    "select count(distinct key) as keys, sum(requests) as requests from event_rollups where kind = 'reason' and step = 'day'"
  expect(await proof.store.ledger.read(keys)).toEqual([
    { keys: keysAtMost('reason') + 1, requests: 1.5 * keysAtMost('reason') },
  ])
})

test('leaves sums alone whose events retention has removed', async () => {
  await fill()
  const first = proof.now - day
  await proof.run("delete from event_rollups where step = 'minute'")
  proof.now = first + retentionDays * day
  await proof.run("update event_rollups set requests = 99 where step = 'day' and kind = 'all'")
  await rebuild()
  const days = await proof.store.ledger.read<{ requests: number }>(
    "select requests from event_rollups where step = 'day' and kind = 'all' and verdict = 'allow' and scope = '*' order by at",
  )
  expect(days).toEqual([{ requests: 99 }, { requests: 40 }])
})

/** Asks the route once as this role, and gives the answer, or the code that refused it. */
function asking() {
  const features = [
    rollupRebuildRoute({
      ...proof.store,
      clock: proof.clock,
      log: silentLog,
      settings: { event_retention_days: retentionDays },
    }),
  ]
  const permissions = permissionsOf(['auditor'])
  let role: 'admin' | 'member' = 'member'
  const authenticate = async () =>
    ({ ...anonymous, kind: 'token', name: 'token:1', roles: [role], permissions }) as const
  const application = testApplication({ features, authenticate })
  return async (by: 'admin' | 'member', { signal } = new AbortController()): Promise<Response | string> => {
    role = by
    const request = new Request('http://127.0.0.1/v1/events/series/rebuild', { method: 'POST', signal })
    const answer = await application.fetch(request)
    return answer.ok ? answer : JSON.parse(await answer.text()).error.code
  }
}

test('the route needs a caller who sees every team, and runs once at a time', async () => {
  await fill()
  const ask = asking()
  expect(await ask('member')).toBe('permission_denied')
  await proof.run("delete from event_rollups where step = 'day'")
  const answer = await ask('admin')
  expect(await ask('admin')).toBe('conflict')
  const lines = answer instanceof Response ? (await answer.text()).trim().split('\n') : []
  expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ kind: 'summary', growing: 0 })
  expect(JSON.parse(lines.at(-1) ?? '').corrected).toBeGreaterThan(10)
  expect(await proof.findings()).toEqual([])
})

test('a rebuild whose client left does not block the next, and its late end does not let a third one run', async () => {
  await fill()
  const ask = asking()
  const [gone, leaves] = [new AbortController(), new AbortController()]
  gone.abort()
  expect(await ask('admin', gone)).toBeInstanceOf(Response)
  const left = await ask('admin', leaves)
  leaves.abort()
  expect(await ask('admin')).toBeInstanceOf(Response)
  if (left instanceof Response) await left.body?.cancel()
  expect(await ask('admin')).toBe('conflict')
})
