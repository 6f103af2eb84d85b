/**
 * Reads events in the order of the ledger. Pages go by position, which only grows, so that new events move nothing.
 * The window is by the event's own time, which may be much earlier than its arrival.
 *
 * An event's time is never after its receipt, and receipts grow with the position (except for small differences between
 * clocks of control planes). So a bisection for the first position received since the window's start avoids a walk over
 * everything before it.
 */
import { z } from 'zod'
import { openCursor, sealCursor } from '../../api/cursor.ts'
import type { Principal } from '../../identity/principal.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import type { Event } from '../event.ts'
import { type Visibility, visibilityOf } from '../visibility.ts'
import { conditionsOf, type EventFilters, filterValues, isByTeam } from './filters.ts'
import { afterAllPositions, type Position, positionOf, publicEventColumns, readPublicEvents } from './public-event.ts'

interface EventPage {
  events: Event[]
  next_cursor: string | null
}

const clockDisagreementMilliseconds = 60_000
const fewEvents = 5000

/** The largest instant in either direction, in milliseconds (ECMA-262, Time Values). */
const lastInstant = 8.64e15

/** Of a position that is no number of JavaScript's (public-event.ts). */
const digits = z.string().regex(/^\d{16,19}$/)

const cursorSchema = z.strictObject({
  since: z.number().int().min(-lastInstant).max(lastInstant),
  floor: z.number().int().min(0).or(digits),
  before: z.number().int().min(1).or(digits),
})
type Cursor = z.infer<typeof cursorSchema>

interface PageOptions {
  /** Includes `since` as the caller wrote it, because a cursor is bound to all filters. */
  filters: EventFilters & { since: string }
  /** The instant of `filters.since`, in milliseconds since the epoch; a cursor has its own. */
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
  const rows = await ledger.read(sql, args)
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return {
    events: (await readPublicEvents(ledger, page)).map(({ event }) => event),
    next_cursor:
      rows.length > limit && last ? sealCursor({ ...cursor, before: positionOf(last.position) }, query) : null,
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
    ...conditionsOf(filters, visibleTo(visibility), { indexed: !few }),
  ]
  const each = few || !isByTeam(filters) ? null : severalSeen(visibility)
  return each === null ? newest(where, limit + 1) : newestOfEach(each, where, limit + 1)
}

const allOf = (where: readonly Statement[]): string => where.map(({ sql }) => sql).join(' and ')

const newest = (where: readonly Statement[], most: number): Statement => ({
  sql: `select ${publicEventColumns} from events where ${allOf(where)} order by events.position desc limit ?`,
  args: [...where.flatMap(({ args }) => args), most],
})

interface SeveralSeen {
  column: 'team_id' | 'token_id'
  values: readonly string[]
}

/** The newest of each value, by the index on its column, and the newest of those. Rows of other values are not read. */
const newestOfEach = ({ column, values }: SeveralSeen, where: readonly Statement[], most: number): Statement => ({
  sql: `select ${publicEventColumns} from events where position in (
      select seen.position from json_each(?) as each join events as seen on seen.position in (
        select position from events where ${column} = each.value and ${allOf(where)} order by position desc limit ?))
    order by events.position desc limit ?`,
  args: [JSON.stringify(values), ...where.flatMap(({ args }) => args), most, most],
})

/** The teams, or the tokens, of a caller who sees more than one. */
function severalSeen({ teams, ownTokens }: Visibility): SeveralSeen | null {
  if (ownTokens.length > 1) return { column: 'token_id', values: ownTokens }
  return teams === 'every' || teams.length < 2 ? null : { column: 'team_id', values: teams }
}

/**
 * The unary plus keeps the planner from sorting a whole window by the index on timestamp, which pays off for few rows
 * only.
 */
function windowConditions(since: number, until: number | null, few: boolean): Statement[] {
  if (until === null) return [{ sql: '+timestamp >= ?', args: [since] }]
  const window = { sql: '+timestamp >= ? and +timestamp < ?', args: [since, until] }
  if (!few) return [window]
  return [{ ...window, sql: 'position in (select position from events where timestamp >= ? and timestamp < ?)' }]
}

/**
 * Whether a window that ends in the past has so few events that finding them is faster than walking over all later
 * ones.
 */
async function areFew(ledger: Database, since: number, until: number): Promise<boolean> {
  const [{ events = 0 } = {}] = await ledger.read<{ events: number }>(
    'select count(*) as events from (select 1 from events where timestamp >= ? and timestamp < ? limit ?)',
    [since, until, fewEvents + 1],
  )
  return events <= fewEvents
}

async function firstCursor(ledger: Database, since: number): Promise<Cursor> {
  return { since, floor: await firstPositionSince(ledger, since), before: afterAllPositions }
}

/** A condition on `team_id` and `token_id`. */
export function visibleTo({ teams, ownTokens }: Visibility): Statement {
  const [ownToken] = ownTokens
  if (ownTokens.length === 1 && ownToken !== undefined) return { sql: 'token_id = ?', args: [ownToken] }
  if (ownTokens.length > 1) {
    return { sql: '+token_id in (select value from json_each(?))', args: [JSON.stringify(ownTokens)] }
  }
  if (teams === 'every') return { sql: 'true', args: [] }
  const [team] = teams
  if (teams.length === 1 && team !== undefined) return { sql: 'team_id = ?', args: [team] }
  // With the unary plus rows are read in order and filtered. The index would give them by team, to be sorted.
  return { sql: '+team_id in (select value from json_each(?))', args: [JSON.stringify(teams)] }
}

/** A position such that all earlier events were received, and so happened, before `since`. */
export async function firstPositionSince(ledger: Database, since: number): Promise<Position> {
  const [bounds] = await ledger.read<{ low: string | null; high: string | null }>(
    `select cast((select min(position) from events) as text) as low,
      cast((select max(position) from events) as text) as high`,
  )
  let low = BigInt(bounds?.low ?? 0)
  let high = BigInt(bounds?.high ?? 0) + 1n
  while (low < high) {
    const middle = (low + high) >> 1n
    const [row] = await ledger.read<{ position: string; early: number }>(
      `select cast(position as text) as position, received_at < ? as early from events where events.position >= ?
        order by events.position limit 1`,
      [since - clockDisagreementMilliseconds, middle.toString()],
    )
    if (row === undefined || row.early === 0) high = middle
    else low = BigInt(row.position) + 1n
  }
  // No position is below 1. A row that was moved there is not shown.
  return positionOf(low < 1n ? 1n : low)
}

/** What this caller sees now. */
export async function visibilityFor(ledger: Database, principal: Principal): Promise<Visibility> {
  const { userId } = principal
  if (userId === null) return visibilityOf(principal, { teams: [], tokens: [] })
  const ids = async (sql: string) => (await ledger.read<{ id: string }>(sql, [userId])).map(({ id }) => id)
  const teams = await ids('select team_id as id from memberships where user_id = ?')
  const tokens = teams.length > 0 ? [] : await ids('select id from tokens where user_id = ?')
  return visibilityOf(principal, { teams, tokens })
}
