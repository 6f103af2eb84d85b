/**
 * Reads events in the order of the ledger. Pages go by position, which only grows, so that what arrives meanwhile moves
 * nothing; the window is by the event's own time, which may be much earlier than its arrival.
 *
 * An event's time is never after its receipt, and receipts grow with the position (but for a little between control
 * planes' clocks): so a look for the first position received since the window's start, by bisection, spares walking the
 * whole table for what lies before it.
 */
import { z } from 'zod'
import { openCursor, sealCursor } from '../api/cursor.ts'
import type { Database, Statement } from '../store/open.ts'
import type { Event } from './event.ts'
import { conditionsOf, type EventFilters, filterValues, isByTeam } from './filters.ts'
import { quarantinedType } from './quarantine.ts'
import type { Visibility } from './visibility.ts'

export interface EventPage {
  events: Event[]
  next_cursor: string | null
}

/**
 * The text an event is shown by: its body, but for one that was kept without being understood (ingest.ts), of which the
 * columns tell.
 */
export const shownBody = `case event_type when '${quarantinedType}' then json_object('event_id', event_id,
    'event_type', event_type, 'request_id', null,
    'timestamp', strftime('%Y-%m-%dT%H:%M:%fZ', timestamp / 1000.0, 'unixepoch'),
    'verdict', verdict, 'reason_code', reason_code, 'config_version', 0,
    'event_attribution', json_object('token_id', null, 'team_id', null, 'user_id', null, 'gateway_id', gateway_id,
      'oauth_client_id', null, 'session_id', null, 'key_class', null),
    'details', json_object('chain', chain, 'seq', seq, 'bytes', length(cast(body as blob))))
  else body end as body`

const clockDisagreementMilliseconds = 60_000
const fewEvents = 5000

/** The furthest instant there is, either way, in milliseconds (ECMA-262, Time Values). */
const lastInstant = 8.64e15

const cursorSchema = z.strictObject({
  since: z.number().int().min(-lastInstant).max(lastInstant),
  floor: z.number().int().min(0),
  before: z.number().int().min(1),
})
type Cursor = z.infer<typeof cursorSchema>

export interface PageOptions {
  /** `since` as the caller wrote it, too: a cursor is bound to all of them. */
  filters: EventFilters & { since: string }
  /** The instant of `filters.since`, milliseconds since the epoch; a cursor's own takes its place. */
  since: number
  limit: number
  cursor: string | undefined
  visibility: Visibility
}

/** One page, newest first. */
export async function readEventPage(ledger: Database, options: PageOptions): Promise<EventPage> {
  const { limit } = options
  const query = [options.filters.since, ...filterValues(options.filters)]
  const cursor =
    options.cursor === undefined
      ? await firstCursor(ledger, options.since)
      : openCursor(options.cursor, query, cursorSchema)
  const { sql, args } = await pageQuery(ledger, cursor, options)
  const rows = await ledger.read<{ position: number; body: string }>(sql, args)
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return {
    events: page.map(({ body }) => JSON.parse(body)),
    next_cursor: rows.length > limit && last ? sealCursor({ ...cursor, before: last.position }, query) : null,
  }
}

async function pageQuery(
  ledger: Database,
  { since, floor, before }: Cursor,
  { filters, limit, visibility }: PageOptions,
): Promise<Statement> {
  const until = filters.until === undefined ? null : Date.parse(filters.until)
  const few = until !== null && (await areFew(ledger, since, until))
  const where: Statement[] = [
    { sql: 'position < ?', args: [before] },
    { sql: 'position >= ?', args: [floor] },
    ...windowConditions(since, until, few),
    ...conditionsOf(filters, seenBy(visibility), { indexed: !few }),
  ]
  const each = few || !isByTeam(filters) ? null : severalTeams(visibility)
  return each === null ? newest(where, limit + 1) : newestOfEach(each, where, limit + 1)
}

const allOf = (where: readonly Statement[]): string => where.map(({ sql }) => sql).join(' and ')

const newest = (where: readonly Statement[], most: number): Statement => ({
  sql: `select position, ${shownBody} from events where ${allOf(where)} order by position desc limit ?`,
  args: [...where.flatMap(({ args }) => args), most],
})

/** The newest of each team, by the index on teams, and of those the newest: rows of other teams are not walked over. */
const newestOfEach = (teams: readonly string[], where: readonly Statement[], most: number): Statement => ({
  sql: `select position, ${shownBody} from events where position in (
      select seen.position from json_each(?) as team join events as seen on seen.position in (
        select position from events where team_id = team.value and ${allOf(where)} order by position desc limit ?))
    order by position desc limit ?`,
  args: [JSON.stringify(teams), ...where.flatMap(({ args }) => args), most, most],
})

/** The teams of somebody who sees more than one, and nothing else. */
const severalTeams = ({ teams, withoutTeam }: Visibility): readonly string[] | null =>
  teams === 'every' || withoutTeam || teams.length < 2 ? null : teams

/** The unary plus keeps the planner from sorting a whole window by the index on timestamp, which pays for few only. */
function windowConditions(since: number, until: number | null, few: boolean): Statement[] {
  if (until === null) return [{ sql: '+timestamp >= ?', args: [since] }]
  const window = { sql: '+timestamp >= ? and +timestamp < ?', args: [since, until] }
  if (!few) return [window]
  return [{ ...window, sql: 'position in (select position from events where timestamp >= ? and timestamp < ?)' }]
}

/** Whether a window that ends before now holds so few events that finding them beats walking all that came after. */
async function areFew(ledger: Database, since: number, until: number): Promise<boolean> {
  const [{ events = 0 } = {}] = await ledger.read<{ events: number }>(
    'select count(*) as events from (select 1 from events where timestamp >= ? and timestamp < ? limit ?)',
    [since, until, fewEvents + 1],
  )
  return events <= fewEvents
}

async function firstCursor(ledger: Database, since: number): Promise<Cursor> {
  return { since, floor: await firstPositionSince(ledger, since), before: Number.MAX_SAFE_INTEGER }
}

/** A condition on `team_id`. */
export function seenBy({ teams, withoutTeam }: Visibility): Statement {
  if (teams === 'every') return { sql: withoutTeam ? 'true' : '+team_id is not null', args: [] }
  const [team] = teams
  if (teams.length === 1 && team !== undefined && !withoutTeam) return { sql: 'team_id = ?', args: [team] }
  // With the unary plus rows are taken in order and looked at; the index would give them team by team, to be sorted.
  const among = '+team_id in (select value from json_each(?))'
  return { sql: withoutTeam ? `(${among} or team_id is null)` : among, args: [JSON.stringify(teams)] }
}

/** A position before which every event was received before `since`, and so happened before it. */
export async function firstPositionSince(ledger: Database, since: number): Promise<number> {
  const [bounds] = await ledger.read<{ low: number | null; high: number | null }>(
    'select (select min(position) from events) as low, (select max(position) from events) as high',
  )
  let low = bounds?.low ?? 0
  let high = (bounds?.high ?? 0) + 1
  while (low < high) {
    const middle = Math.floor((low + high) / 2)
    const [row] = await ledger.read<{ position: number; received_at: number }>(
      'select position, received_at from events where position >= ? order by position limit 1',
      [middle],
    )
    if (row === undefined || row.received_at >= since - clockDisagreementMilliseconds) high = middle
    else low = row.position + 1
  }
  return low
}

export async function teamsOfUser(ledger: Database, userId: string | null): Promise<string[]> {
  if (userId === null) return []
  const rows = await ledger.read<{ team_id: string }>('select team_id from memberships where user_id = ?', [userId])
  return rows.map(({ team_id }) => team_id)
}
