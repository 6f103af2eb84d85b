/**
 * Sums of each session, kept as outcomes come in, so that a list of sessions reads no event. A session is what one
 * token does under one session id: ids are chosen by callers and may repeat. The transaction that ingests events adds
 * them, each outcome once; a batch without sessions costs nothing more.
 *
 * SQL text: an upsert that adds numbers and merges JSON objects.
 */
import { wellFormedJson } from '../../lib/json/well-formed-json.ts'
import { toNano } from '../../lib/money.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import type { Event } from '../event.ts'
import { timeOf } from '../log/append.ts'

/** Callers invent names of models and tools: a session keeps this many of each, the most used ones. */
const namesAtMost = 40
const longestName = 200

interface SessionSums {
  session: string
  token: string
  team: string | null
  user: string | null
  client: string | null
  firstAt: number
  lastAt: number
  requests: number
  /** Outcomes with the verdict `error`. */
  errors: number
  /** Outcomes with another verdict than `allow` and `error`. */
  findings: number
  inputTokens: number
  outputTokens: number
  cost: number
  models: Map<string, number>
  tools: Map<string, number>
}

/** The statement that adds the outcomes among events that arrived together; none where no outcome has a session. */
export function sessionStatements(events: readonly Event[], receivedAt: number): Statement[] {
  const sums = new Map<string, SessionSums>()
  for (const event of events) {
    const { session_id: session, token_id: token } = event.event_attribution
    if (event.event_type !== 'gateway.request.outcome' || session === null || session === '' || token === null) continue
    addOutcome(sums, event, { session, token, at: timeOf(event.timestamp, receivedAt) })
  }
  return sums.size === 0 ? [] : [{ sql: addSums, args: [wellFormedJson([...sums.values()].map(asRow))] }]
}

function addOutcome(
  sums: Map<string, SessionSums>,
  event: Event,
  { session, token, at }: { session: string; token: string; at: number },
): void {
  const { event_attribution: who, event_cost_attribution: cost, details, verdict } = event
  const name = `${token}\0${session}`
  let sum = sums.get(name)
  if (sum === undefined) {
    sum = {
      ...{ session, token, team: who.team_id, user: who.user_id, client: null, firstAt: at, lastAt: at, requests: 0 },
      ...{ errors: 0, findings: 0, inputTokens: 0, outputTokens: 0, cost: 0, models: new Map(), tools: new Map() },
    }
    sums.set(name, sum)
  }
  sum.client ??= who.client ?? null
  sum.firstAt = Math.min(sum.firstAt, at)
  sum.lastAt = Math.max(sum.lastAt, at)
  sum.requests += 1
  if (verdict === 'error') sum.errors += 1
  else if (verdict !== 'allow') sum.findings += 1
  sum.inputTokens += amount(cost?.input_tokens)
  sum.outputTokens += amount(cost?.output_tokens)
  sum.cost += toNano(amount(cost?.cost))
  // An MCP request names its tool in place of a model.
  const { model, tool, method, called_tools: called } = details ?? {}
  if (method === undefined) count(sum.models, model)
  count(sum.tools, tool)
  if (Array.isArray(called)) for (const each of called) count(sum.tools, each)
}

function count(names: Map<string, number>, name: unknown): void {
  if (typeof name !== 'string' || name === '') return
  // NUL ends a text in SQLite.
  const kept = name.slice(0, longestName).toWellFormed().replaceAll('\0', '')
  if (names.has(kept) || names.size < namesAtMost) names.set(kept, (names.get(kept) ?? 0) + 1)
}

const amount = (value: unknown): number =>
  typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : 0

const asRow = (sum: SessionSums): unknown[] => [
  ...[sum.session, sum.token, sum.team, sum.user, sum.client, sum.firstAt, sum.lastAt, sum.requests, sum.errors],
  ...[sum.findings, sum.inputTokens, sum.outputTokens, sum.cost],
  ...[JSON.stringify(Object.fromEntries(sum.models)), JSON.stringify(Object.fromEntries(sum.tools))],
]

/** Two objects of names and counts as one, the most used names of it. */
const merged = (column: string): string => `${column} = case
  when excluded.${column} = '{}' then ${column}
  else (select json_group_object(key, count) from (
    select key, sum(value) as count from (
      select key, value from json_each(event_sessions.${column})
      union all select key, value from json_each(excluded.${column}))
    group by key order by count desc, key limit ${namesAtMost})) end`

const added = ['requests', 'errors', 'findings', 'input_tokens', 'output_tokens', 'cost']

const addSums = `
  insert into event_sessions (session_id, token_id, team_id, user_id, client, first_at, last_at, requests, errors,
    findings, input_tokens, output_tokens, cost, models, tools)
  select ${Array.from({ length: 15 }, (_, index) => `value ->> ${index}`).join(', ')} from json_each(?) where true
  on conflict (session_id, token_id) do update set
    client = coalesce(client, excluded.client),
    first_at = min(first_at, excluded.first_at), last_at = max(last_at, excluded.last_at),
    ${added.map((column) => `${column} = ${column} + excluded.${column}`).join(', ')},
    ${merged('models')}, ${merged('tools')}`

const removedAtOnce = 500
/** The rest waits for the next call. */
const batchesAtOnce = 20

/** Removes sessions whose last request is older than the retention of events, in milliseconds. */
export async function removeOldSessions(
  ledger: Database,
  { now, retention }: { now: number; retention: number },
): Promise<void> {
  const old = 'select id from event_sessions where last_at < ?'
  for (let batch = 0; batch < batchesAtOnce; batch += 1) {
    if ((await ledger.read(`${old} limit 1`, [now - retention])).length === 0) return
    await ledger.write([
      { sql: `delete from event_sessions where id in (${old} limit ${removedAtOnce})`, args: [now - retention] },
    ])
  }
}
