/**
 * Adds new outcomes to the sums (rollup.ts), each once. One short transaction processes as many kinds and steps as
 * fit, and records the progress of these arrivals: a process may die between any two, and of several control planes
 * one does each.
 *
 * Callers can invent models, reasons and values of dimensions, so a bucket holds `keysAtMost` of them, plus those of
 * one run. What has no row of its own is added to the overflow key.
 */
import { wellFormedJson } from '../../lib/json/well-formed-json.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import { brokenConstraint } from '../log/append.ts'
import type { LatencySketch } from './latency-sketch.ts'
import {
  everyTeam,
  keysAtMost,
  noTeam,
  overflowKey,
  type RollupKind,
  rollupShapes,
  rowsFor,
  type Step,
  stepMilliseconds,
  valuesSeparator,
} from './rollup.ts'
import { addCounts, type Counts, noCounts, type Tally } from './tally.ts'

const arrivalsAtOnce = 40
/** Tallies with different keys, which determine how many rows of the sums one transaction changes. */
const talliesAtOnce = 600
const sumsAtOnce = 100
const turnsByDefault = 400

/** Each kind and step. Arrivals store how many of these they have passed, so the order must not change. */
export const stages = rollupShapes.flatMap(({ steps, ...shape }) => steps.map((step) => ({ ...shape, step })))
export type Stage = (typeof stages)[number]

interface Arrival {
  id: number
  stage: number
  tallies: string
}

/** Call before a chart is read, and every few seconds. What is left after this many rounds waits for the next call. */
export async function foldRollups(ledger: Database, turns = turnsByDefault): Promise<void> {
  const read = new Map<number, readonly Tally[]>()
  for (let round = 0; round < turns; round += 1) {
    // The most advanced is finished first, so that little is in progress at any time.
    const furthest = await ledger.read<Arrival>(
      `select id, stage, tallies from pending_event_rollups
        where stage = (select max(stage) from pending_event_rollups) order by id limit ${arrivalsAtOnce}`,
    )
    if (furthest.length === 0) return
    const arrivals = fewOf(furthest, read)
    const { sums, next } = nextSums(arrivals, read)
    try {
      await ledger.write([...claimArrivals(arrivals, next), ...addStatements(sums)], {})
    } catch (error) {
      // Another control plane is processing it.
      if (brokenConstraint(error) === 'check') return
      throw error
    }
    if (next === stages.length) read.clear()
    // Yields to waiting work.
    await yieldToEventLoop()
  }
}

/** The first arrivals, at most as many as make a short transaction. Equal ones hardly make it longer. */
function fewOf(arrivals: readonly Arrival[], read: Map<number, readonly Tally[]>): Arrival[] {
  const different = new Set<string>()
  const more = arrivals.findIndex((arrival, index) => {
    for (const { at, verdict, scope, keys } of talliesOf(arrival, read)) {
      different.add(`${at}\0${verdict}\0${scope}\0${Object.values(keys).join('\0')}`)
    }
    return index > 0 && different.size > talliesAtOnce
  })
  return arrivals.slice(0, more < 0 ? arrivals.length : more)
}

function talliesOf({ id, tallies }: Arrival, read: Map<number, readonly Tally[]>): readonly Tally[] {
  const parsed: readonly Tally[] = read.get(id) ?? JSON.parse(tallies)
  read.set(id, parsed)
  return parsed
}

/** The sums of as many next stages as fit, and the stage after them. */
function nextSums(arrivals: readonly Arrival[], read: Map<number, readonly Tally[]>): { sums: Sums[]; next: number } {
  const sums: Sums[] = []
  let next = arrivals[0]?.stage ?? 0
  for (const stage of stages.slice(next)) {
    const more = sumsOf(stage, arrivals, read)
    if (sums.length > 0 && sums.length + more.length > sumsAtOnce) break
    sums.push(...more)
    next += 1
  }
  return { sums, next }
}

/** Moves arrivals to a stage, or deletes them after the last. Fails the transaction if another process did. */
function claimArrivals(arrivals: readonly Arrival[], next: number): Statement[] {
  const stage = arrivals[0]?.stage ?? 0
  const ids = JSON.stringify(arrivals.map(({ id }) => id))
  const those = 'stage = ? and id in (select value from json_each(?))'
  return [
    {
      sql: `insert into guards (holds) select 0 where (
        select count(*) from pending_event_rollups where ${those}) <> ?`,
      args: [stage, ids, arrivals.length],
    },
    next === stages.length
      ? { sql: `delete from pending_event_rollups where ${those}`, args: [stage, ids] }
      : { sql: `update pending_event_rollups set stage = ? where ${those}`, args: [next, stage, ids] },
  ]
}

/** One row of the sums. */
export interface Sums extends Counts {
  kind: RollupKind
  step: Step
  scope: string
  at: number
  key: string
  verdict: string
}

function sumsOf(stage: Stage, arrivals: readonly Arrival[], read: Map<number, readonly Tally[]>): Sums[] {
  const sums = new Map<string, Sums>()
  for (const arrival of arrivals) for (const each of talliesOf(arrival, read)) addTally(sums, stage, each)
  return [...sums.values()]
}

/** Adds outcomes with equal keys to the rows of one kind and step. */
export function addTally(sums: Map<string, Sums>, stage: Stage, alike: Tally): void {
  const { kind, step, everyTeam: together, ofTeams = true, sketched } = stage
  if (step === 'minute' && !alike.inMinutes) return
  // Callers can invent models, but what they invent costs nothing. All outcomes of a tally used something, or none did.
  if (kind === 'cost' && alike.cost + alike.inputTokens + alike.outputTokens === 0) return
  const { scope } = alike
  const verdict = kind === 'cost' ? '' : alike.verdict
  const at = alike.at - (alike.at % stepMilliseconds[step])
  for (const of of rowsFor(kind, alike.keys)) {
    for (const each of scopesOf(scope, together, ofTeams)) {
      const id = `${of.kind}\0${each}\0${at}\0${of.key}\0${verdict}`
      let row = sums.get(id)
      if (row === undefined) {
        row = { ...of, step, scope: each, at, verdict, ...noCounts() }
        sums.set(id, row)
      }
      addCounts(row, alike, sketched)
    }
  }
}

function scopesOf(scope: string, together: boolean, ofTeams: boolean): readonly string[] {
  if (!ofTeams) return onlyEveryTeam
  return together && scope !== noTeam ? [scope, everyTeam] : [scope]
}
const onlyEveryTeam = [everyTeam]

const addStatements = (sums: readonly Sums[]): Statement[] =>
  sums.length === 0
    ? []
    : [{ sql: addSums, args: [wellFormedJson(sums.map((row) => [...asRow(row), overflowKey(row.kind, row.key)]))] }]

/** A row as the statements that write it take it, column by column. */
export const asRow = (row: Sums): (string | number | null)[] => [
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

export function sketchText(sketch: LatencySketch): string | null {
  const text = JSON.stringify(sketch)
  return text === '{}' ? null : text
}

/** The sum of two sketches, in SQL. */
const addSketch = (column: string): string => `${column} = case
  when excluded.${column} is null then ${column}
  when ${column} is null or not json_valid(${column}) then excluded.${column}
  else (select json_group_object(key, count) from (
    select key, sum(value) as count from (
      select key, value from json_each(event_rollups.${column}) where typeof(value) = 'integer'
      union all select key, value from json_each(excluded.${column})) group by key)) end`

const hasRow = (keys: string): string => `exists (select 1 from event_rollups r where r.kind = fresh.kind
  and r.step = fresh.step and r.scope = fresh.scope and r.at = fresh.at and r.key in (${keys}))`

/**
 * A key that is new to a full bucket is counted under its overflow key, the last column of the rows. A bucket with a row
 * of that key is full. Of other buckets rows are counted: the costs of a day once, because there may be thousands.
 */
const addSums = `
  with fresh as materialized (select value ->> 0 as kind, value ->> 1 as step, value ->> 2 as scope, value ->> 3 as at,
      value ->> 4 as key, value ->> 5 as verdict, value ->> 6 as requests, value ->> 7 as input_tokens,
      value ->> 8 as output_tokens, value ->> 9 as cost, value ->> 10 as latency, value ->> 11 as first_token,
      value ->> 12 as overflow from json_each(?)),
    full_days as materialized (select scope, at from event_rollups where kind = 'cost' and step = 'day'
      and (scope, at) in (select scope, at from fresh where kind = 'cost' and overflow is not null
        and not ${hasRow('fresh.key, overflow')})
      and instr(key, '${valuesSeparator}') > 0 group by scope, at having count(*) >= ${keysAtMost('cost')})
  insert into event_rollups (kind, step, scope, at, key, verdict, requests, input_tokens, output_tokens, cost,
    latency, first_token)
  select kind, step, scope, at,
    case when overflow is null or ${hasRow('fresh.key')} then key
      when ${hasRow('overflow')} or case kind when 'cost' then (scope, at) in full_days
        else (select count(distinct r.key) from event_rollups r where r.kind = fresh.kind and r.step = fresh.step
          and r.scope = fresh.scope and r.at = fresh.at) >= ${keysAtMost('model')} end
      then overflow else key end,
    verdict, requests, input_tokens, output_tokens, cost, latency, first_token
  from fresh where true
  on conflict (kind, step, scope, at, key, verdict) do update set requests = requests + excluded.requests,
    input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
    cost = cost + excluded.cost, ${addSketch('latency')}, ${addSketch('first_token')}`
