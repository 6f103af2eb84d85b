import { afterEach, beforeEach, expect, test } from 'bun:test'
import { recordedEvents } from '../events/testing/recorded.ts'
import { type Measured, subjectsAtMost } from './dependencies.ts'
import { evaluateAlerts, evaluateIfHeld } from './evaluate.ts'
import { type AlertInstallation, alertInstallation } from './testing/alert-installation.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
let made: AlertInstallation
beforeEach(async () => {
  made = await alertInstallation()
})
afterEach(() => made.store.remove())

const evaluate = () => evaluateAlerts(made.dependencies)
const told = async () => (await made.firings()).map(({ about, resolved_at }) => [about, resolved_at !== null])
const found = (subject: string, value: number): Measured => ({ subject, value, about: () => `${subject} is ${value}` })

test('tells that many requests are refused, with the reasons, once, and again when it is over', async () => {
  await made.alert('refusals')
  await made.channel('slack', { url: 'https://hooks.slack.com/services/T/B/X' })
  await made.traffic({ count: 52 })
  await made.traffic({ count: 840, verdict: 'deny', reason: 'tokens.model_unpriced' })
  await made.traffic({ count: 8, verdict: 'block', reason: 'policy.terms' })
  await evaluate()
  await evaluate()
  const about =
    '848 of 900 requests were refused within 10 minutes (94.2 %). Reasons: its token has a budget, but the model has no price (840, tokens.model_unpriced); a policy gave the reason “policy.terms” (8).'
  expect(await told()).toEqual([[about, false]])
  made.clock.advance(11 * minute)
  await evaluate()
  expect(await told()).toEqual([[about, true]])
  expect((await made.deliveries()).map(({ kind, state }) => [kind, state])).toEqual([
    ['fired', 'pending'],
    ['resolved', 'pending'],
  ])
  const events = await recordedEvents(made.store.ledger, 'alert.fired')
  expect(events.map(({ details }) => details)).toMatchObject([{ kind: 'refusals', subject: 'organization', about }])
  expect(await recordedEvents(made.store.ledger, 'alert.resolved')).toHaveLength(1)
})

test('few requests, and requests of others than the scope, do not fire', async () => {
  await made.alert('refusals')
  await made.alert('refusals', { scope: { kind: 'team', id: made.teamId } })
  await made.traffic({ count: 19, verdict: 'deny' })
  await evaluate()
  expect(await told()).toEqual([])
  await made.traffic({ count: 30, verdict: 'deny', team: null })
  await evaluate()
  expect((await made.firings()).map(({ subject }) => subject)).toEqual(['organization'])
})

test('refusals for chosen reasons count alone', async () => {
  await made.alert('refusals', { reasons: ['tokens.*'], thresholds: [10] })
  await made.alert('refusals', { reasons: ['*'], thresholds: [90] })
  await made.traffic({ count: 25, verdict: 'redact', reason: 'policy.pii' })
  await made.traffic({ count: 75, verdict: 'deny', reason: 'policy.terms' })
  await evaluate()
  expect(await told()).toEqual([])
  await made.traffic({ count: 25, verdict: 'deny', reason: 'tokens.expired' })
  await evaluate()
  expect(await told()).toEqual([
    [
      '25 of 125 requests were refused within 10 minutes (20 %). Reasons: its token has expired (25, tokens.expired).',
      false,
    ],
  ])
})

test('stays quiet for the quiet time after it fired, and fires again after it', async () => {
  await made.alert('refusals', { quiet_minutes: 60 })
  const spike = () => made.traffic({ count: 100, verdict: 'deny' })
  await spike()
  await evaluate()
  made.clock.advance(20 * minute)
  await evaluate()
  await spike()
  await evaluate()
  expect(await told()).toHaveLength(1)
  made.clock.advance(41 * minute)
  await spike()
  await evaluate()
  expect(await told()).toHaveLength(2)
})

test('tells of a provider that fails, and not of what policies refused', async () => {
  await made.alert('error_rate')
  await made.traffic({ count: 60, provider: 'anthropic' })
  await made.traffic({ count: 20, verdict: 'error', provider: 'anthropic', reason: 'upstream.error' })
  await made.traffic({ count: 90, verdict: 'block', provider: 'openai', team: null })
  await evaluate()
  expect(await told()).toEqual([['20 of 80 requests to anthropic failed within 10 minutes (25 %).', false]])
})

test('compares the spend of an hour with the mean hour of the days before, once there are enough', async () => {
  await made.alert('spend_rate')
  for (let hours = 2; hours <= 20; hours += 1) await made.traffic({ count: 1, cost: 2, agoMs: hours * hour })
  await made.traffic({ count: 1, cost: 12 })
  await evaluate()
  expect(await told()).toEqual([])
  for (let hours = 21; hours <= 50; hours += 1) await made.traffic({ count: 1, cost: 2, agoMs: hours * hour })
  await evaluate()
  const [[about] = []] = await told()
  expect(about).toMatch(/^\$12\.00 were spent in the last hour, [56](\.\d)? times the mean hour of the 2 days before/)
})

test.each([
  ['organization', {}],
  ['provider', { scope: { kind: 'provider', id: 'openai' } }],
])('counts quiet hours in the usual spend of %s, and none before its first request', async (_, fields) => {
  await made.alert('spend_rate', fields)
  // A dollar ten days ago, then nothing until thirty dollars yesterday: 30 / 168 an hour.
  await made.traffic({ count: 1, cost: 30, agoMs: 24 * hour })
  await made.traffic({ count: 1, cost: 12 })
  await evaluate()
  expect(await told()).toEqual([])
  await made.traffic({ count: 1, cost: 1, agoMs: 10 * day })
  await evaluate()
  const [[about] = []] = await told()
  expect(about).toContain('67.2 times the mean hour of the 7 days before ($0.18)')
})

test('tells of tokens that expire soon, and not of those that were made for a short time', async () => {
  await made.alert('token_expiring')
  const [like = {}] = await made.store.ledger.read('select * from tokens limit 1')
  const token = (name: string, madeAgo: number, expiresIn: number) => {
    const now = made.clock.now()
    const row = { ...like, id: crypto.randomUUID(), name, created_at: now - madeAgo, expires_at: now + expiresIn }
    const sql = `insert into tokens (${Object.keys(row).join()}) values (${Object.keys(row).map(() => '?')})`
    return made.store.ledger.write([{ sql, args: Object.values(row).map((value) => value as string | number | null) }])
  }
  await token('shop', 80 * day, 3 * day)
  await token('short', day, 3 * day)
  await token('later', 80 * day, 30 * day)
  await evaluate()
  expect(await told()).toEqual([['The token shop expires at 2026-01-05T03:04:05.678Z.', false]])
})

test('tells of a gateway without a heartbeat until it deregisters', async () => {
  await made.alert('gateway_stale')
  await made.store.ledger.write([
    {
      sql: `insert into workers (worker, gateway_id, instance_id, worker_number, stream_id, gateway_version, acknowledged_version, last_heartbeat_at, connected_at)
        values (?, ?, 'i', 0, 's', '', 0, cast(unixepoch('subsec') * 1000 as integer) - 90000, 0)`,
      args: [`${made.gatewayId}/i/0`, made.gatewayId],
    },
  ])
  await evaluate()
  expect(await told()).toEqual([[expect.stringMatching(/has sent no heartbeat for 9\d seconds/), false]])
  await made.store.ledger.write([{ sql: 'update workers set left_at = 1', args: [] }])
  await evaluate()
  expect((await told())[0]?.[1]).toBe(true)
})

test('what other rooms find fires; a source that does not answer leaves what it found open', async () => {
  await made.alert('doctor_finding')
  await made.alert('sink_lag')
  await made.alert('circuit_open')
  made.sources.doctor = async () => [found('disk', 2), found('clock', 1)]
  made.sources.sinkLag = async () => [found('splunk', 4000)]
  made.sources.targets = () => [
    { provider: 'openai', model: 'gpt', worker: 'w1', circuit_open: true },
    { provider: 'openai', model: 'gpt', worker: 'w2', circuit_open: false },
  ]
  await evaluate()
  expect((await told()).map(([about]) => about)).toEqual([
    'disk is 2',
    'splunk is 4000',
    'A gateway process passes openai/gpt over after failures.',
  ])
  made.sources.doctor = async () => null
  made.sources.sinkLag = () => Promise.reject(new Error('The sinks are not there'))
  await evaluate()
  expect((await told()).every(([, over]) => over === false)).toBe(true)
  made.sources.doctor = async () => []
  made.sources.sinkLag = async () => []
  made.sources.targets = () => []
  await evaluate()
  expect((await told()).every(([, over]) => over)).toBe(true)
})

test('of very many things it tells the worst, and how many more there are', async () => {
  await made.alert('sink_lag')
  made.sources.sinkLag = async () => Array.from({ length: 500 }, (_, index) => found(`sink ${index}`, 1000 + index))
  await evaluate()
  const firings = await made.firings()
  expect(firings).toHaveLength(subjectsAtMost + 1)
  expect(firings.map(({ about }) => about)).toContain(`The same holds for ${500 - subjectsAtMost} more.`)
  expect(firings[0]?.subject).toBe('sink 499')
})

test('of very many things none is over because others are worse now', async () => {
  await made.alert('sink_lag')
  const names = Array.from({ length: subjectsAtMost + 5 }, (_, index) => `sink ${index}`)
  made.sources.sinkLag = async () => names.map((name, index) => found(name, 1000 + index))
  await evaluate()
  made.sources.sinkLag = async () => names.map((name, index) => found(name, 1000 - index))
  await evaluate()
  expect((await told()).filter(([, over]) => over)).toEqual([])
  expect(await made.firings()).toHaveLength(subjectsAtMost + 1)
})

test('a falling count of further things announces nothing and stays open until there are none', async () => {
  await made.alert('sink_lag')
  const overflow = async (count: number) => {
    made.sources.sinkLag = async () =>
      Array.from({ length: subjectsAtMost + count }, (_, index) => found(`sink ${index}`, 1000))
    await evaluate()
    return (await made.firings())
      .filter(({ subject }) => subject === 'more')
      .map(({ threshold, resolved_at }) => [threshold, resolved_at === null ? 'open' : 'over'])
  }
  expect(await overflow(4)).toEqual([[4, 'open']])
  expect(await overflow(3)).toEqual([[4, 'open']])
  expect(await overflow(1)).toEqual([[4, 'open']])
  expect(await overflow(7)).toEqual([[4, 'open']])
  const doubled = [
    [4, 'open'],
    [8, 'open'],
  ]
  expect(await overflow(8)).toEqual(doubled)
  expect(await overflow(2)).toEqual(doubled)
  expect(await overflow(0)).toEqual([
    [4, 'over'],
    [8, 'over'],
  ])
})

test('two control planes that evaluate at the same time tell each thing once', async () => {
  await made.alert('sink_lag')
  const channel = await made.channel('slack', { url: 'https://hooks.slack.com/services/T/B/X' })
  made.sources.sinkLag = async () => Array.from({ length: 10 }, (_, index) => found(`sink ${index}`, 1000))
  await Promise.all([evaluate(), evaluate(), evaluate()])
  expect((await made.firings()).map(({ subject }) => subject).toSorted()).toEqual(
    Array.from({ length: 10 }, (_, index) => `sink ${index}`),
  )
  expect(await made.deliveries()).toHaveLength(10)
  expect(await recordedEvents(made.store.ledger, 'alert.fired')).toHaveLength(10)
  expect(channel).toBeString()
})

test('only the control plane with the lease evaluates; another takes it over when it has ended', async () => {
  await made.alert('sink_lag')
  let asked = 0
  made.sources.sinkLag = async () => {
    asked += 1
    return []
  }
  const as = (holder: string) => evaluateIfHeld(made.dependencies, { holder, leaseMs: 60_000 })
  await as('one')
  await as('two')
  await as('one')
  expect(asked).toBe(2)
  await made.store.ledger.write([{ sql: 'update alert_lease set until = until - 60000', args: [] }])
  await as('two')
  await as('one')
  expect(asked).toBe(3)
  // The clock of the database was set back by a year: the lease would last as long.
  await made.store.ledger.write([{ sql: 'update alert_lease set until = until + 31536000000', args: [] }])
  await as('one')
  expect(asked).toBe(4)
})

test('a clock that jumps fires nothing twice', async () => {
  await made.alert('sink_lag', { quiet_minutes: 60 })
  made.sources.sinkLag = async () => [found('splunk', 4000)]
  await evaluate()
  for (const jump of [-20 * day, 40 * day, -3 * hour]) {
    made.clock.advance(jump)
    await evaluate()
  }
  expect(await made.firings()).toHaveLength(1)
  // It ended while the clock was ahead. Set back, it does not keep quiet for what has not happened yet.
  made.sources.sinkLag = async () => []
  await evaluate()
  made.clock.advance(-20 * day)
  made.sources.sinkLag = async () => [found('splunk', 4000)]
  await evaluate()
  expect(await made.firings()).toHaveLength(2)
})

test('an alert with channels of its own tells only those, and a disabled one tells nobody', async () => {
  const url = 'https://hooks.slack.com/services/T/B/X'
  const [own] = [await made.channel('slack', { url }), await made.channel('slack', { url })]
  await made.alert('sink_lag', { channel_ids: [own], send_resolved: false })
  made.sources.sinkLag = async () => [found('splunk', 4000)]
  await evaluate()
  made.sources.sinkLag = async () => []
  await evaluate()
  expect(
    (await made.deliveries()).map((row) => Object.entries(row).find(([name]) => name === 'channel_id')?.[1]),
  ).toEqual([own])
  await made.store.ledger.write([{ sql: 'update alerts set enabled = 0', args: [] }])
  made.clock.advance(2 * hour)
  made.sources.sinkLag = async () => [found('splunk', 4000)]
  await evaluate()
  expect(await made.firings()).toHaveLength(1)
})
