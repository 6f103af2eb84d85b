/**
 * The series behind charts, read from the sums of rollup.ts and never from the events. Of model, gateway, token, reason
 * and each dimension only one at a time is stored, as group or as filter, together with verdict and team. Other combinations are
 * refused with the possible ones. Keys are hex and sketches are bytes, since stored values of older releases, or
 * altered ones, may be no text.
 */
import { z } from 'zod'
import { Failure } from '../../failure.ts'
import { timestamp } from '../../lib/clock.ts'
import { asBytes, shownText } from '../../store/damage/stored-text.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import { answeredVerdicts } from '../event.ts'
import type { Visibility } from '../visibility.ts'
import {
  dimensionPrefix,
  everyTeam,
  hasEveryTeam,
  hasInventedKeys,
  minutesKeptMilliseconds,
  noTeam,
  otherKey,
  type RollupKind,
  type Step,
  stepMilliseconds,
} from './rollup.ts'
import { type KeyedPoints, SeriesSums, type SumsRow } from './series-sums.ts'

const plainGroups = ['verdict', 'model', 'team', 'gateway', 'token', 'reason'] as const

/** `dimension:NAME` groups by the values of a dimension of attribution. */
export const seriesGroupSchema = z.union([
  z.enum(plainGroups),
  z.templateLiteral([dimensionPrefix, z.string().regex(/^[a-z][a-z0-9_]{0,31}$/)]),
])
type SeriesGroup = z.infer<typeof seriesGroupSchema>

export interface SeriesQuery {
  /** Milliseconds since the epoch; the first bucket is the one that holds `since`. */
  since: number
  until: number
  step?: Step | undefined
  by?: SeriesGroup | undefined
  gateway_id?: string | undefined
  team_id?: string | undefined
  token_id?: string | undefined
  model?: string | undefined
  verdict?: string | undefined
  /** Only requests that were answered. */
  answered?: boolean | undefined
  /** Without latencies: their sketches are most of what reading many keys costs. */
  withoutLatencies?: boolean | undefined
}

interface Series extends KeyedPoints {
  since: string
  until: string
  step: Step
  by: SeriesGroup | null
}

const pointsAtMost = 2000
const keysShown = 50

/** Reads the series. Throws `invalid_parameter` if a combination is not stored or has too many points. */
export async function readSeries(
  ledger: Database,
  { query, visibility, now }: { query: SeriesQuery; visibility: Visibility; now: number },
): Promise<Series> {
  if (query.until <= query.since) throw refusal('until', 'until must be after since')
  const selected = selectRows(query)
  const begun = query.step ?? finestStep(query, selected.kind, now)
  requireKept(begun, query, selected.kind, now)
  const find = (step: Step) => findKeys(ledger, { query, selected, visibility, step })
  let found = await find(begun === 'hour' && query.step === undefined && (await fillHours(query, find)) ? 'day' : begun)
  while (found.points > pointsAtMost && found.step !== 'day') {
    const coarser = found.step === 'minute' ? 'hour' : 'day'
    if (query.step !== undefined) {
      throw refusal('step', `This has more than ${pointsAtMost} points: ask for step=${coarser}`)
    }
    found = await find(coarser)
  }
  const { points, step, source, since } = found
  const keys = found.keys.filter((key) => key !== restStored)
  const shown = keys.slice(0, step === 'day' ? Math.min(keysShown, keysThatFit(keys.length, points)) : keysShown)
  const sums = new SeriesSums()
  await readPublicEvents(ledger, source, shown, sums)
  if (found.keys.length > shown.length) await readRest(ledger, source, shown, sums)
  if (source.every !== null) await readValueless(ledger, source.where, source.every, sums)
  return {
    since: timestamp(since),
    until: timestamp(query.until),
    step,
    by: query.by ?? null,
    ...sums.result(),
  }
}

interface Found {
  step: Step
  /** Where the first bucket begins. */
  since: number
  source: Source
  keys: string[]
  points: number
}

async function findKeys(
  ledger: Database,
  { query, selected, visibility, step }: { query: SeriesQuery; selected: Selected; visibility: Visibility; step: Step },
): Promise<Found> {
  const since = query.since - (query.since % stepMilliseconds[step])
  const window = { ...query, step, since }
  const scopes = await scopesOf(ledger, window, selected, visibility)
  const source = {
    ...selected,
    where: whereOf(window, selected, scopes),
    whole: query.withoutLatencies === true ? null : wholeOf(window, { selected, scopes, visibility }),
    columns: query.withoutLatencies === true ? realValues : `${realValues}, ${sketches}`,
    every: selected.kind.startsWith('dimension:') ? await everyOf(ledger, window, visibility) : null,
  }
  return { step, since, source, ...(await keysAndPoints(ledger, source)) }
}

/** Whether this many keys are too many for hours. Days need far fewer rows. */
async function fillHours({ since, until }: SeriesQuery, find: (step: Step) => Promise<Found>): Promise<boolean> {
  const buckets = (until - since) / stepMilliseconds.hour
  if (buckets * keysShown <= pointsAtMost) return false
  const { keys } = await find('day')
  return Math.min(keys.length, keysShown + 1) * buckets > pointsAtMost
}

interface Selected {
  kind: RollupKind
  /** The column that separates the series; null for a single one. */
  column: 'key' | 'scope' | 'verdict' | null
  /** The key of the filter, if there is one. */
  key: string | undefined
}

type Filtered = 'by' | 'model' | 'gateway_id' | 'token_id'

/** The rows that answer: the kind is the dimension that `by` or a filter names. */
export function selectRows({ by, model, gateway_id, token_id }: Pick<SeriesQuery, Filtered>): Selected {
  const filters = [
    { kind: 'model', parameter: 'model', key: model },
    { kind: 'gateway', parameter: 'gateway_id', key: gateway_id },
    { kind: 'token', parameter: 'token_id', key: token_id },
  ] as const
  const given = filters.filter(({ key }) => key !== undefined)
  const column = by === undefined ? null : by === 'verdict' ? 'verdict' : by === 'team' ? 'scope' : 'key'
  const grouped = by === undefined || by === 'verdict' || by === 'team' ? undefined : by
  const other = given.find(({ kind }) => kind !== (grouped ?? given[0]?.kind))
  if (other !== undefined) {
    const taken = grouped === undefined ? given[0]?.parameter : `by=${grouped}`
    throw refusal(
      other.parameter,
      `${other.parameter} cannot be combined with ${taken}: of model, gateway, token, reason and dimension one at a time is kept, as filter or by, with verdict and team`,
    )
  }
  return { kind: grouped ?? given[0]?.kind ?? 'all', column, key: given[0]?.key }
}

const refusal = (param: string, message: string): Failure => new Failure('invalid_parameter', { param, message })

const hours = 3_600_000

/** Minutes up to six hours, hours up to fourteen days, otherwise days; never a step that is not stored. */
function finestStep({ since, until }: SeriesQuery, kind: RollupKind, now: number): Step {
  const length = until - 1 - since
  if (length <= 6 * hours && keepsMinutes(kind) && since >= now - minutesKeptMilliseconds) return 'minute'
  return length <= 14 * 24 * hours ? 'hour' : 'day'
}

export const keepsMinutes = (kind: RollupKind): boolean => kind !== 'token' && !kind.startsWith(dimensionPrefix)

function requireKept(step: Step, { since }: SeriesQuery, kind: RollupKind, now: number): void {
  if (step !== 'minute') return
  if (!keepsMinutes(kind)) throw refusal('step', 'Of tokens and dimensions hours are kept: ask for step=hour')
  if (since < now - minutesKeptMilliseconds) throw refusal('step', 'Minutes are kept for 48 hours: ask for step=hour')
}

type Window = Omit<SeriesQuery, 'step'> & { step: Step }

export async function scopesOf(
  ledger: Database,
  { team_id, since, until }: Window,
  { kind, column, key }: Selected,
  { teams, ownTokens }: Visibility,
): Promise<string[]> {
  const own = kind === 'token' && key !== undefined && ownTokens.includes(key)
  if (team_id !== undefined) return teams === 'every' || teams.includes(team_id) || own ? [team_id] : []
  if (teams !== 'every' && !own) return [...teams]
  if (column !== 'scope' && hasEveryTeam(kind)) return [everyTeam, noTeam]
  const day = stepMilliseconds.day
  const rows = await ledger.read<{ scope: unknown }>(
    `select distinct ${asBytes('scope')} as scope from event_rollups where step = 'day' and at >= ? and at < ? and kind = 'all'
      and scope not in ('${everyTeam}', '${noTeam}')`,
    [since - (since % day), until],
  )
  return [...rows.map(({ scope }) => shownText(scope)), noTeam]
}

export function whereOf(
  { step, since, until, verdict, answered }: Window,
  { kind, key }: Selected,
  scopes: string[],
): Statement {
  const conditions = ['kind = ?', 'step = ?', 'scope in (select value from json_each(?))', 'at >= ?', 'at < ?']
  const args: Statement['args'] = [kind, step, JSON.stringify(scopes), since, until]
  if (answered === true) {
    conditions.push('verdict in (select value from json_each(?))')
    args.push(JSON.stringify(answeredVerdicts))
  }
  for (const [name, value] of Object.entries({ key, verdict })) {
    if (value === undefined) continue
    conditions.push(`${name} = ?`)
    args.push(value)
  }
  return { sql: conditions.join(' and '), args }
}

/** The rows that sum up all keys of a series by key or team; null if there are none with sketches. */
function wholeOf(
  window: Window,
  { selected, scopes, visibility }: { selected: Selected; scopes: string[]; visibility: Visibility },
): Statement | null {
  const { column, kind } = selected
  // Neither reasons nor dimensions have sketches, and of an outcome without a value there is no row of a dimension.
  if (kind !== 'model' && hasInventedKeys(kind)) return null
  if (column === 'key') return whereOf(window, { ...selected, kind: 'all', key: undefined }, scopes)
  const every = column === 'scope' && visibility.teams === 'every' && window.team_id === undefined && hasEveryTeam(kind)
  return every ? whereOf(window, selected, [everyTeam, noTeam]) : null
}

/** The rows of all requests, with a value of a dimension or without. */
async function everyOf(ledger: Database, window: Window, visibility: Visibility): Promise<Statement> {
  const all: Selected = { kind: 'all', column: null, key: undefined }
  return whereOf(window, all, await scopesOf(ledger, window, all, visibility))
}

interface Source extends Selected {
  where: Statement
  /** What is read of each row. */
  columns: string
  whole: Statement | null
  /** Null for what is no dimension. */
  every: Statement | null
}

/** The key of what has no row of its own, as keys are read. */
const restStored = Buffer.from(otherKey).toString('hex').toUpperCase()

/** A list of keys, given as a JSON array of their hex. */
const amongKeys = '(select cast(unhex(value) as text) from json_each(?))'

const groupOf = ({ column }: Selected): string => column ?? "''"

/**
 * The keys with the most requests first, and how many points the shown ones have, counted slightly beyond the maximum.
 */
async function keysAndPoints(ledger: Database, source: Source): Promise<{ keys: string[]; points: number }> {
  const rows = await ledger.read<{ key: string; points: number }>(
    `select hex(${groupOf(source)}) as key, count(distinct at) as points from event_rollups
      where ${source.where.sql} group by 1 order by total(requests) desc, 1 limit ${10 * keysShown}`,
    source.where.args,
  )
  const points = rows.slice(0, keysShown).reduce((sum, row) => sum + row.points, 0)
  const others = Math.max(0, ...rows.slice(keysShown).map((row) => row.points))
  return { keys: source.column === null ? [''] : rows.map(({ key }) => key), points: points + others }
}

/** How many keys can be shown if each has an average number of points. */
const keysThatFit = (keys: number, points: number): number =>
  points <= pointsAtMost ? keys : Math.max(1, Math.floor((pointsAtMost * Math.min(keys, keysShown)) / points) - 1)

/** Sums are floating-point numbers, exact up to 2^53. The driver refuses larger integers. */
const realSums = ['requests', 'input_tokens', 'output_tokens', 'cost']
  .map((column) => `total(${column}) as ${column}`)
  .join(', ')
const realValues = ['requests', 'input_tokens', 'output_tokens', 'cost']
  .map((column) => `cast(${column} as real) as ${column}`)
  .join(', ')

const sketches = ['latency', 'first_token'].map((column) => `${asBytes(column)} as ${column}`).join(', ')

async function readPublicEvents(
  ledger: Database,
  source: Source,
  shown: readonly string[],
  sums: SeriesSums,
): Promise<void> {
  const rows = await ledger.read<SumsRow>(
    `select at, hex(${groupOf(source)}) as key, ${source.columns} from event_rollups
      where ${source.where.sql} and ${groupOf(source)} in ${amongKeys} order by at`,
    [...source.where.args, JSON.stringify(shown)],
  )
  for (const key of shown) sums.addKey(key, key === '' ? null : Buffer.from(key, 'hex').toString())
  for (const row of rows) sums.add(row.key, row)
}

/** Requests without a value have no row: they are all requests minus those with one. They are one series more. */
async function readValueless(ledger: Database, some: Statement, every: Statement, sums: SeriesSums): Promise<void> {
  const columns = 'at, requests, input_tokens, output_tokens, cost'
  const rows = await ledger.read<Omit<SumsRow, 'key'>>(
    `select at, ${realSums} from (select ${columns} from event_rollups where ${every.sql}
        union all select ${columns.replaceAll(', ', ', -')} from event_rollups where ${some.sql})
      group by at having total(requests) > 0 or total(cost) > 0 order by at`,
    [...every.args, ...some.args],
  )
  sums.addValueless(rows)
}

async function readRest(ledger: Database, source: Source, shown: readonly string[], sums: SeriesSums): Promise<void> {
  const { where, whole } = source
  const rows = await ledger.read<Omit<SumsRow, 'key'>>(
    `select at, ${realSums} from event_rollups
      where ${where.sql} and ${groupOf(source)} not in ${amongKeys} group by at order by at`,
    [...where.args, JSON.stringify(shown)],
  )
  const all =
    whole === null
      ? []
      : await ledger.read<Omit<SumsRow, 'key'>>(
          `select at, ${realValues}, ${sketches} from event_rollups where ${whole.sql}`,
          whole.args,
        )
  sums.addRest(rows, all)
}
