/**
 * Pages of sessions, those with the newest request first. A page goes on behind the time and number of its last one, so
 * a session that goes on meanwhile moves before the page and is not shown twice on the pages that follow.
 *
 * SQL text: each filter has an index that is in the order of the page (`event_sessions` in store/schema).
 */
import { z } from 'zod'
import { openCursor, sealCursor } from '../../api/cursor.ts'
import { timestamp } from '../../lib/clock.ts'
import { fromNano } from '../../lib/money.ts'
import type { Database } from '../../store/open.ts'
import { type Caller, idsOfName } from '../query/named-records.ts'

const named = z.object({ id: z.string(), name: z.string().nullable() })
const counted = (what: string) =>
  z.array(z.object({ name: z.string(), count: z.number().int() })).describe(`${what}, the most used first`)

export const sessionSchema = z.object({
  session_id: z.string(),
  client: z.string().nullable().describe('The known client, such as claude-code'),
  token: named.describe('The token that asked'),
  user: named.nullable().describe('The person that the token belongs to, with the e-mail address as name'),
  team_id: z.string().nullable(),
  first_at: z.iso.datetime(),
  last_at: z.iso.datetime(),
  requests: z.number().int(),
  errors: z.number().int().describe('Requests with the verdict error'),
  findings: z.number().int().describe('Requests that a policy, a limit or a permission stopped or changed'),
  input_tokens: z.number().int(),
  output_tokens: z.number().int(),
  cost: z.number().describe('USD'),
  models: counted('Models that were asked for'),
  tools: counted('Tools that models called, or that were called over MCP'),
})
export type SessionRecord = z.infer<typeof sessionSchema>

export interface SessionQuery {
  /** As the caller wrote it: a cursor is bound to it. */
  since: string
  until?: string | undefined
  session_id?: string | undefined
  client?: string | undefined
  token?: string | undefined
  user?: string | undefined
  team?: string | undefined
  limit: number
  cursor?: string | undefined
}

const place = z.strictObject({ at: z.number().int(), id: z.number().int().min(0) })

/** `since` in milliseconds since the epoch. Throws `invalid_cursor`, and `invalid_parameter` for an unknown name. */
export async function readSessions(
  ledger: Database,
  asked: SessionQuery,
  { since, caller }: { since: number; caller: Caller },
): Promise<{ sessions: SessionRecord[]; next_cursor: string | null }> {
  const { limit, cursor, session_id: session, client, token, user, team } = asked
  const query = [asked.since, asked.until, session, client, token, user, team].map((value) => value ?? null)
  const after = cursor === undefined ? null : openCursor(cursor, query, place)
  const conditions: { sql: string; args: (string | number)[] }[] = [{ sql: 's.last_at >= ?', args: [since] }]
  const among = (column: string, values: readonly string[]) =>
    conditions.push(
      values.length === 1
        ? { sql: `s.${column} = ?`, args: [...values] }
        : { sql: `s.${column} in (select value from json_each(?))`, args: [JSON.stringify(values)] },
    )
  if (asked.until !== undefined) conditions.push({ sql: 's.first_at < ?', args: [Date.parse(asked.until)] })
  const { teams, ownTokens } = caller.visibility
  if (teams !== 'every' && teams.length > 0) among('team_id', teams)
  if (teams !== 'every' && teams.length === 0) among('token_id', ownTokens)
  if (session !== undefined) among('session_id', [session])
  if (client !== undefined) among('client', [client])
  if (token !== undefined) among('token_id', await idsOfName(ledger, caller, 'token', token))
  if (user !== undefined) among('user_id', await idsOfName(ledger, caller, 'user', user))
  if (team !== undefined) among('team_id', await idsOfName(ledger, caller, 'team', team))
  if (after !== null) conditions.push({ sql: '(s.last_at, s.id) < (?, ?)', args: [after.at, after.id] })
  const rows = await ledger.read<SessionRow>(
    `select s.*, t.name as token_name, u.email as user_email from event_sessions s
      left join tokens t on t.id = s.token_id left join users u on u.id = s.user_id
      where ${conditions.map(({ sql }) => sql).join(' and ')}
      order by s.last_at desc, s.id desc limit ?`,
    [...conditions.flatMap(({ args }) => args), limit + 1],
  )
  const shown = rows.slice(0, limit)
  const last = shown.at(-1)
  const more = rows.length > limit && last !== undefined
  const showsPeople = caller.principal.permissions.has('members:read')
  return {
    sessions: shown.map((row) => sessionRecord(row, showsPeople)),
    next_cursor: more ? sealCursor({ at: last.last_at, id: last.id }, query) : null,
  }
}

interface SessionRow {
  id: number
  session_id: string
  token_id: string
  team_id: string | null
  user_id: string | null
  client: string | null
  first_at: number
  last_at: number
  requests: number
  errors: number
  findings: number
  input_tokens: number
  output_tokens: number
  cost: number
  models: string
  tools: string
  token_name: string | null
  user_email: string | null
}

const sessionRecord = (row: SessionRow, showsPeople: boolean): SessionRecord => ({
  session_id: row.session_id,
  client: row.client,
  token: { id: row.token_id, name: row.token_name },
  user: row.user_id === null ? null : { id: row.user_id, name: showsPeople ? row.user_email : null },
  team_id: row.team_id,
  first_at: timestamp(row.first_at),
  last_at: timestamp(row.last_at),
  requests: row.requests,
  errors: row.errors,
  findings: row.findings,
  input_tokens: row.input_tokens,
  output_tokens: row.output_tokens,
  cost: fromNano(row.cost),
  models: countsOf(row.models),
  tools: countsOf(row.tools),
})

const countsSchema = z.record(z.string(), z.number().int())

/** Of a text that was altered in the database, none. */
function countsOf(text: string): { name: string; count: number }[] {
  let counts: unknown
  try {
    counts = JSON.parse(text)
  } catch {
    return []
  }
  return Object.entries(countsSchema.safeParse(counts).data ?? {})
    .map(([name, count]) => ({ name, count }))
    .toSorted((one, other) => other.count - one.count)
}
