/** Each condition begins and ends what it finds, and its channels are told of both. */
import { afterEach, beforeEach, expect, test } from 'bun:test'
import type { Measured } from '../dependencies.ts'
import { evaluateAlerts } from '../evaluate.ts'
import { alertOf, findAlert } from '../stored-alert.ts'
import { type AlertInstallation, alertInstallation } from '../testing/alert-installation.ts'
import { type ConditionName, conditionNames } from './condition-table.ts'
import { scopePhrase } from './scope-name.ts'

const minute = 60_000
const hour = 60 * minute
const day = 24 * hour
let made: AlertInstallation
beforeEach(async () => {
  made = await alertInstallation()
})
afterEach(() => made.store.remove())

type Row = Record<string, string | number | null>
const insert = (table: string, row: Row) => ({
  sql: `insert into ${table} (${Object.keys(row).join()}) values (${Object.keys(row).map(() => '?')})`,
  args: Object.values(row),
})
const ledger = (sql: string, ...args: (string | number)[]) => made.store.ledger.write([{ sql, args }])
const passes = (milliseconds: number) => async () => void made.clock.advance(milliseconds)

/** What another room finds, until it finds nothing more. */
const found = (source: 'sinkLag' | 'doctor' | 'verify', value: number) => ({
  async begins() {
    const measured: Measured = { subject: 'it', value, about: () => 'It is wrong.' }
    made.sources[source] = async () => [measured]
  },
  async ends() {
    made.sources[source] = async () => []
  },
})

const budget = crypto.randomUUID()
const spend = (dollars: number) =>
  ledger(
    `insert into usage_accounts (account, kind, settled) values (?, 'budget', ?)
      on conflict do update set settled = excluded.settled`,
    `budget/${budget}@2026-01-01`,
    dollars * 1e9,
  )
const makeBudget = () =>
  made.store.state.write([
    insert('budgets', { id: budget, max_budget: 100e9, window: 'month', scope_kind: 'organization', version: 1 }),
  ])

const cases: Readonly<Record<ConditionName, { begins(): Promise<void>; ends(): Promise<void>; about: string }>> = {
  budget_share: {
    async begins() {
      await makeBudget()
      await spend(50)
    },
    ends: passes(31 * day),
    about: '50 % ($50.00 of $100.00) of the budget',
  },
  spend_rate: {
    async begins() {
      for (let hours = 2; hours <= 40; hours += 1) await made.traffic({ count: 1, cost: 2, agoMs: hours * hour })
      await made.traffic({ count: 1, cost: 12 })
    },
    ends: passes(2 * hour),
    about: '$12.00 were spent in the last hour',
  },
  error_rate: {
    begins: () => made.traffic({ count: 25, verdict: 'error' }),
    ends: passes(11 * minute),
    about: '25 of 25 requests to openai failed',
  },
  refusals: {
    begins: () => made.traffic({ count: 25, verdict: 'deny', reason: 'tokens.expired' }),
    ends: passes(11 * minute),
    about:
      '25 of 25 requests were refused within 10 minutes (100 %). Reasons: its token has expired (25, tokens.expired).',
  },
  escalation_waiting: {
    async begins() {
      const now = made.clock.now()
      const who = { id: crypto.randomUUID(), state: 'queued', token_id: 't', team_id: made.teamId, policy_id: 'p' }
      const what = { reason_code: 'r', digest: 'd', request: '{}', attempts: 1, last_attempt_at: now, version: 1 }
      const when = { queued_at: now - 11 * minute, expires_at: now + hour }
      await made.store.ledger.write([insert('escalations', { ...who, ...what, ...when })])
    },
    ends: () => ledger("update escalations set state = 'resolved'"),
    about: 'A request waits for a person, the oldest for 11 minutes.',
  },
  token_expiring: {
    async begins() {
      const [like = {}] = await made.store.ledger.read<Row>('select * from tokens limit 1')
      const [created_at, expires_at] = [made.clock.now() - 80 * day, made.clock.now() + 3 * day]
      const row = { ...like, id: crypto.randomUUID(), name: 'shop', created_at, expires_at }
      await made.store.ledger.write([insert('tokens', row)])
    },
    ends: () => ledger("update tokens set revoked_at = 1 where name = 'shop'"),
    about: 'The token shop expires at 2026-01-05T03:04:05.678Z.',
  },
  circuit_open: {
    async begins() {
      made.sources.targets = () => [{ provider: 'openai', model: 'gpt', worker: 'w', circuit_open: true }]
    },
    async ends() {
      made.sources.targets = () => [{ provider: 'openai', model: 'gpt', worker: 'w', circuit_open: false }]
    },
    about: 'A gateway process passes openai/gpt over after failures.',
  },
  gateway_stale: {
    async begins() {
      const who = { worker: `${made.gatewayId}/i/0`, gateway_id: made.gatewayId, instance_id: 'i', worker_number: 0 }
      const how = { stream_id: 's', gateway_version: '', acknowledged_version: 0, connected_at: 0 }
      await made.store.ledger.write([insert('workers', { ...who, ...how, last_heartbeat_at: 1 })])
    },
    ends: () => ledger("update workers set last_heartbeat_at = cast(unixepoch('subsec') * 1000 as integer)"),
    about: 'has sent no heartbeat for',
  },
  bound_violated: {
    begins: () =>
      made.store.ledger.write([
        insert('price_excesses', { provider_id: 'openai', model: 'gpt', amount: 25e8, at: made.clock.now() }),
      ]),
    ends: passes(day + 1),
    about: 'openai charged $2.5 more for a request to gpt than the most that it could cost by its list price.',
  },
  sink_lag: { ...found('sinkLag', 301), about: 'It is wrong.' },
  doctor_finding: { ...found('doctor', 2), about: 'It is wrong.' },
  verify_finding: { ...found('verify', 1), about: 'It is wrong.' },
}

test.each(conditionNames)('%s begins and ends, each told once', async (condition) => {
  const { begins, ends, about } = cases[condition]
  await made.channel('slack', { url: 'https://hooks.slack.com/services/T/B/X' })
  await made.alert(condition)
  const evaluate = () => evaluateAlerts(made.dependencies)
  const told = async () => (await made.deliveries()).map(({ kind }) => kind)
  await evaluate()
  expect(await told()).toEqual([])
  await begins()
  await evaluate()
  await evaluate()
  const [firing] = await made.firings()
  expect(firing?.about).toContain(about)
  expect([firing?.resolved_at, await told()]).toEqual([null, ['fired']])
  await ends()
  await evaluate()
  await evaluate()
  expect(await told()).toEqual(['fired', 'resolved'])
  expect((await made.firings()).every(({ resolved_at }) => resolved_at !== null)).toBe(true)
})

test.each([
  ['refusals', '25 of 25 requests of the team research were refused'],
  ['escalation_waiting', 'A request of the team research waits for a person'],
] as const)('%s of a team names the team', async (condition, about) => {
  await made.store.ledger.write([{ sql: "update teams set name = 'research' where id = ?", args: [made.teamId] }])
  await made.alert(condition, { scope: { kind: 'team', id: made.teamId } })
  await cases[condition].begins()
  await evaluateAlerts(made.dependencies)
  expect((await made.firings())[0]?.about).toStartWith(about)
})

test('an alert for a token, a gateway or a model names it, by its id where it was deleted', async () => {
  const [{ id = '' } = {}] = await made.store.ledger.read<{ id: string }>('select id from tokens limit 1')
  await made.store.ledger.write([{ sql: "update tokens set name = 'ci' where id = ?", args: [id] }])
  const of = async (kind: 'token' | 'model' | 'organization' | 'gateway', scopeId: string | null) => {
    const row = await findAlert(made.store.ledger, await made.alert('refusals', { scope: { kind, id: scopeId } }))
    const alert = row === null ? null : alertOf(row)
    return alert === null ? null : await scopePhrase('for', alert, made.dependencies)
  }
  expect(await of('token', id)).toBe(' for the token ci')
  expect(await of('token', 'deleted')).toBe(' for the token deleted')
  expect(await of('gateway', 'deleted')).toBe(' for the gateway deleted')
  expect(await of('model', 'gpt')).toBe(' for the model gpt')
  expect(await of('organization', null)).toBe('')
})

test('a budget is told at 50, 80 and 100 percent, each once', async () => {
  await makeBudget()
  await made.channel('slack', { url: 'https://hooks.slack.com/services/T/B/X' })
  await made.alert('budget_share')
  const told: number[] = []
  for (const dollars of [49, 50, 79, 80, 99, 100, 130]) {
    await spend(dollars)
    await evaluateAlerts(made.dependencies)
    told.push((await made.deliveries()).length)
  }
  expect(told).toEqual([0, 1, 1, 2, 2, 3, 3])
  expect((await made.firings()).map(({ threshold, about }) => [threshold, about.slice(0, 5).trim()])).toEqual([
    [50, '50 %'],
    [80, '80 %'],
    [100, '100 %'],
  ])
})
