/**
 * Sums for charts, kept when events are written and in the same transaction, so that no chart reads the events
 * themselves (contract section 9). Each outcome of a request counts in one row of each of these groups, by minute, hour
 * and day, and within each by verdict:
 *
 *   kind     key         scopes                          steps
 *   all      ''          its team ('' for none), '*'     minute, hour, day
 *   model    the model   its team, '*'                   minute, hour, day
 *   gateway  its id      its team, '*'                   minute, hour, day
 *   reason   its code    its team                        minute, hour, day; no sketches
 *   token    its id      its team                        hour, day
 *
 * `*` is all teams together, but for what belongs to none. A batch is summed up here first, and each statement adds all
 * of it by one JSON text. Callers can make models and reasons up: a bucket holds `keysAtMost` of them (and what one
 * batch brings beyond), the rest are added to `other`.
 */
import { toNano } from '../lib/money.ts'
import type { Statement } from '../store/open.ts'
import type { Event } from './event.ts'
import { addDuration, type LatencySketch } from './latency-sketch.ts'

export const stepMilliseconds = { minute: 60_000, hour: 3_600_000, day: 86_400_000 } as const
export type Step = keyof typeof stepMilliseconds

/** How long minutes are kept; hours and days are kept as long as events. */
export const minutesKeptMilliseconds = 48 * 3_600_000

export type RollupKind = 'all' | 'model' | 'gateway' | 'reason' | 'token'

/** The scope of all teams together, and that of what belongs to no team. */
export const everyTeam = '*'
export const noTeam = ''
/** The key under which is added up what has no row of its own. */
export const otherKey = 'other'

const keysAtMost = 500
const longestKey = 200

const shapes: readonly { kind: RollupKind; steps: readonly Step[]; everyTeam: boolean; sketched: boolean }[] = [
  { kind: 'all', steps: ['minute', 'hour', 'day'], everyTeam: true, sketched: true },
  { kind: 'model', steps: ['minute', 'hour', 'day'], everyTeam: true, sketched: true },
  { kind: 'gateway', steps: ['minute', 'hour', 'day'], everyTeam: true, sketched: true },
  { kind: 'reason', steps: ['minute', 'hour', 'day'], everyTeam: false, sketched: false },
  { kind: 'token', steps: ['hour', 'day'], everyTeam: false, sketched: true },
]

/** Whether a kind has rows of all teams together. */
export const hasEveryTeam = (kind: RollupKind): boolean =>
  shapes.find((shape) => shape.kind === kind)?.everyTeam ?? false

interface Sums {
  kind: RollupKind
  step: Step
  scope: string
  at: number
  key: string
  verdict: string
  requests: number
  inputTokens: number
  outputTokens: number
  cost: number
  latency: LatencySketch
  firstToken: LatencySketch
}

/** Statements that add these events, which must be new to the ledger, to the sums. `receivedAt` bounds their times. */
export function rollupStatements(events: readonly Event[], receivedAt: number): Statement[] {
  const sums = new Map<string, Sums>()
  for (const event of events) if (event.event_type === 'gateway.request.outcome') addEvent(sums, event, receivedAt)
  if (sums.size === 0) return []
  return [{ sql: addSums, args: [JSON.stringify([...sums.values()].map(asRow))] }]
}

function addEvent(sums: Map<string, Sums>, event: Event, receivedAt: number): void {
  const at = Math.min(receivedAt, Date.parse(event.timestamp))
  const measures = measuresOf(event)
  const team = clipped(event.event_attribution.team_id)
  for (const { kind, steps, everyTeam: together, sketched } of shapes) {
    const key = keyOf(kind, event)
    for (const step of steps) {
      if (step === 'minute' && at < receivedAt - minutesKeptMilliseconds) continue
      const bucket = at - (at % stepMilliseconds[step])
      for (const scope of together && team !== noTeam ? [team, everyTeam] : [team]) {
        const id = JSON.stringify([kind, step, scope, bucket, key, event.verdict])
        let row = sums.get(id)
        if (row === undefined) {
          row = {
            kind,
            step,
            scope,
            at: bucket,
            key,
            verdict: event.verdict,
            ...nothing(),
            latency: {},
            firstToken: {},
          }
          sums.set(id, row)
        }
        addMeasures(row, measures, sketched)
      }
    }
  }
}

const nothing = () => ({ requests: 0, inputTokens: 0, outputTokens: 0, cost: 0 })

function keyOf(kind: RollupKind, { event_attribution: { gateway_id, token_id }, details, reason_code }: Event): string {
  switch (kind) {
    case 'all':
      return ''
    case 'model':
      // A model that no provider was found for is whatever the caller wrote.
      return typeof details?.model === 'string' && details.provider !== null ? clipped(details.model) : ''
    case 'gateway':
      return clipped(gateway_id)
    case 'token':
      return clipped(token_id)
    case 'reason':
      return clipped(reason_code)
  }
}

const clipped = (text: string | null): string => (text ?? '').slice(0, longestKey)

type Measures = ReturnType<typeof measuresOf>

const measuresOf = ({ details, event_cost_attribution: cost }: Event) => ({
  inputTokens: amount(cost?.input_tokens) ?? 0,
  outputTokens: amount(cost?.output_tokens) ?? 0,
  cost: toNano(amount(cost?.cost) ?? 0),
  latency: amount(details?.latency_ms),
  firstToken: amount(details?.first_token_ms),
})

const amount = (value: unknown): number | null =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : null

function addMeasures(row: Sums, measures: Measures, sketched: boolean): void {
  row.requests += 1
  row.inputTokens += measures.inputTokens
  row.outputTokens += measures.outputTokens
  row.cost += measures.cost
  if (!sketched) return
  if (measures.latency !== null) addDuration(row.latency, measures.latency)
  if (measures.firstToken !== null) addDuration(row.firstToken, measures.firstToken)
}

const asRow = (row: Sums): (string | number | null)[] => [
  row.kind,
  row.step,
  row.scope,
  row.at,
  row.key,
  row.verdict,
  row.requests,
  row.inputTokens,
  row.outputTokens,
  row.cost,
  sketchText(row.latency),
  sketchText(row.firstToken),
]

function sketchText(sketch: LatencySketch): string | null {
  const text = JSON.stringify(sketch)
  return text === '{}' ? null : text
}

/** A sketch and another one added up, in SQL. */
const addSketch = (column: string): string => `${column} = case
  when excluded.${column} is null then ${column}
  when ${column} is null then excluded.${column}
  else (select json_group_object(key, count) from (
    select key, sum(value) as count from (
      select key, value from json_each(event_rollups.${column})
      union all select key, value from json_each(excluded.${column})) group by key)) end`

const addSums = `
  insert into event_rollups (kind, step, scope, at, key, verdict, requests, input_tokens, output_tokens, cost,
    latency, first_token)
  select kind, step, scope, at,
    case when kind in ('model', 'reason') and key <> ''
      and not exists (select 1 from event_rollups r where r.kind = fresh.kind and r.step = fresh.step
        and r.scope = fresh.scope and r.at = fresh.at and r.key = fresh.key)
      and (select count(distinct r.key) from event_rollups r where r.kind = fresh.kind and r.step = fresh.step
        and r.scope = fresh.scope and r.at = fresh.at) >= ${keysAtMost}
      then '${otherKey}' else key end,
    verdict, requests, input_tokens, output_tokens, cost, latency, first_token
  from (select value ->> 0 as kind, value ->> 1 as step, value ->> 2 as scope, value ->> 3 as at, value ->> 4 as key,
    value ->> 5 as verdict, value ->> 6 as requests, value ->> 7 as input_tokens, value ->> 8 as output_tokens,
    value ->> 9 as cost, value ->> 10 as latency, value ->> 11 as first_token from json_each(?)) as fresh
  where true
  on conflict (kind, step, scope, at, key, verdict) do update set requests = requests + excluded.requests,
    input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
    cost = cost + excluded.cost, ${addSketch('latency')}, ${addSketch('first_token')}`
