/**
 * What an evaluation of alerts costs in a ledger of many events: the sums of a month of traffic of many teams, providers,
 * models and reasons, and alerts of all conditions that read them.
 *
 *   bun test/load/events/alerts-at-scale.ts [--events 1000000] [--alerts 200]
 */
import { parseArgs } from 'node:util'
import { evaluateAlerts } from '../../../src/alerts/evaluate.ts'
import { alertInstallation } from '../../../src/alerts/testing/alert-installation.ts'
import { noAttribution } from '../../../src/events/event.ts'
import { foldRollups } from '../../../src/events/rollups/fold.ts'
import { countedOutcome } from '../../../src/events/rollups/rollup.ts'
import { tally } from '../../../src/events/rollups/tally.ts'
import { wellFormedJson } from '../../../src/lib/json/well-formed-json.ts'

const { values } = parseArgs({
  options: { events: { type: 'string', default: '1000000' }, alerts: { type: 'string', default: '200' } },
})
const [events, alerts] = [Number(values.events), Number(values.alerts)]
const made = await alertInstallation()
const { ledger } = made.store
const names = (name: string, count: number) => Array.from({ length: count }, (_, index) => `${name}-${index}`)
const [teams, providers, models, reasons] = [
  names('team', 50),
  names('provider', 8),
  names('model', 40),
  names('reason', 30),
]
const pick = (from: readonly string[], index: number) => from[(index * 7919) % from.length] ?? ''
const month = 30 * 86_400_000
const batch = 500

// Two days of it in minutes, as an installation has them; every tenth request is refused.
for (let first = 0; first < events; first += batch) {
  const receivedAt = Math.floor(made.clock.now() - month + ((first + batch) / events) * month)
  const outcomes = Array.from({ length: batch }, (_, index) => {
    const number = first + index
    const refused = number % 10 === 0
    return countedOutcome(
      {
        ...{ event_id: '', event_type: 'gateway.request.outcome', request_id: null, config_version: 1, timestamp: '' },
        ...{ verdict: refused ? 'deny' : 'allow', reason_code: refused ? pick(reasons, number) : 'ok' },
        event_attribution: { ...noAttribution, team_id: pick(teams, number), token_id: pick(teams, number + 1) },
        details: { model: pick(models, number), provider: pick(providers, number), latency_ms: 100 },
        event_cost_attribution: {
          ...{ currency: 'USD', cost: 0.01, estimated: false, input_tokens: 10, output_tokens: 10 },
          ...{ cached_input_tokens: null, reasoning_tokens: null, provider: '', model: '', price_source: null },
          spend_owner: null,
        },
      },
      receivedAt - index,
    )
  })
  const tallies = wellFormedJson(tally(outcomes, receivedAt))
  await ledger.write([{ sql: 'insert into pending_event_rollups (tallies) values (?)', args: [tallies] }])
  if (first % (40 * batch) === 0) await foldRollups(ledger, 1_000_000)
}
await foldRollups(ledger, 1_000_000)
const [{ rows } = { rows: 0 }] = await ledger.read<{ rows: number }>('select count(*) as rows from event_rollups')

await ledger.write(
  names('budget', 50).flatMap((name) => [
    { sql: `insert into limit_names (id, kind, name, created_at) values (?, 'budget', ?, 0)`, args: [name, name] },
    {
      sql: `insert into usage_accounts (account, kind, settled) values (?, 'budget', 1)`,
      args: [`budget/${name}@2026-01-01`],
    },
  ]),
)
await made.store.state.write(
  names('budget', 50).map((name) => ({
    sql: `insert into budgets (id, max_budget, window, scope_kind, scope_id, version) values (?, 1000, 'month', 'organization', null, 1)`,
    args: [name],
  })),
)
const conditions = ['refusals', 'spend_rate', 'error_rate', 'budget_share', 'token_expiring', 'gateway_stale'] as const
for (let index = 0; index < alerts; index += 1) {
  const condition = conditions[index % conditions.length] ?? 'refusals'
  const scope =
    condition === 'refusals' || condition === 'spend_rate' ? { kind: 'team', id: pick(teams, index) } : undefined
  await made.alert(condition, {
    ...(scope === undefined ? {} : { scope }),
    ...(condition === 'refusals' && index % 2 === 0 ? { reasons: ['reason-1*'], thresholds: [100] } : {}),
    at_least: 1,
    window_minutes: condition === 'refusals' ? 60 : null,
  })
}

const times: [wall: number, processor: number][] = []
for (let round = 0; round < 20; round += 1) {
  const [began, before] = [performance.now(), process.cpuUsage()]
  await evaluateAlerts(made.dependencies)
  const { user, system } = process.cpuUsage(before)
  times.push([performance.now() - began, (user + system) / 1000])
}
const middle = (part: 0 | 1) =>
  times.map((each) => each[part]).toSorted((left, right) => left - right)[times.length >> 1]
const firings = await made.firings()
console.log(
  `${events} events, ${rows} rows of sums, ${alerts} alerts, ${firings.length} firings: an evaluation takes ` +
    `${middle(0)?.toFixed(1)} ms, ${middle(1)?.toFixed(1)} ms of processor time; the first ${times[0]?.[0].toFixed(1)} ms`,
)
made.store.remove()
