/**
 * Compares the sums of an hour, with its minutes, or of a day with what they must be by the events.
 *
 * It is exact while events arrive: the sums are complete for all events up to a position at which nothing waits to be
 * added, and as long as none behind it belongs to the span, its sums do not change. A growing span is read on and
 * compared again. One that does not come to rest is left for another time. Events that arrive for other spans, and
 * blocks that are merged meanwhile, do not count as growth: the events behind the position are looked at.
 *
 * Which of too many models, reasons and values of dimensions have a row of their own depends on their order (fold.ts),
 * so that is taken as stored.
 */
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import { type Cells, cellsOf, named, readCells } from '../../store/damage/stored-cells.ts'
import type { Database } from '../../store/open.ts'
import { readLogHead } from '../log/segment-rows.ts'
import { addTally, foldRollups, type Stage, type Sums, sketchText, stages } from './fold.ts'
import { mergeSketch } from './latency-sketch.ts'
import { readOutcomesBehind } from './outcomes.ts'
import { keysAtMost, overflowKey, type Step, stepMilliseconds } from './rollup.ts'
import type { Tally } from './tally.ts'

/** A row that differs from what it must be. */
export interface Difference {
  step: string
  at: number
  /** By the names of the columns, as far as they are text. */
  scope: string
  kind: string
  key: string
  verdict: string
  /** The columns that differ; empty if the row is missing or belongs to no event. */
  columns: string[]
  /** Of the row that is there. */
  rowid: string | null
  /** The correct row; null if there must be none. */
  expected: Sums | null
}

/** The differences, valid as long as no event behind `upTo` belongs to the span. */
export interface Compared {
  differences: Difference[]
  upTo: number
}

const rowsAtOnce = 500
const tries = 5

export class RollupSpan {
  readonly from: number
  readonly until: number
  readonly steps: readonly Step[]
  readonly #ledger: Database
  readonly #sums: Map<Stage, Map<string, Sums>>
  /** Events up to this position were added. */
  #upTo: number

  /** An hour with or without its minutes, or a day. The caller adds its events up to position `upTo`. */
  constructor(ledger: Database, { from, steps, upTo }: { from: number; steps: readonly Step[]; upTo: number }) {
    this.#ledger = ledger
    this.from = from
    this.steps = steps
    this.until = from + Math.max(...steps.map((step) => stepMilliseconds[step]))
    this.#sums = new Map(stages.filter(({ step }) => steps.includes(step)).map((stage) => [stage, new Map()]))
    this.#upTo = upTo
  }

  add(tallies: readonly Tally[]): void {
    for (const [stage, sums] of this.#sums) for (const each of tallies) addTally(sums, stage, each)
  }

  /** Call when all its events were added. Null if it does not come to rest. */
  async compare(): Promise<Compared | null> {
    for (let round = 0; round < tries; round += 1) {
      const upTo = await foldedUpTo(this.#ledger)
      if (upTo === null) continue
      for await (const each of readOutcomesBehind(this.#ledger, this, { behind: this.#upTo, upTo })) this.add(each)
      this.#upTo = upTo
      const stored = await this.#stored()
      const newest = await newestPosition(this.#ledger)
      if (!(await this.#hasGrown(upTo, newest))) return { differences: this.#differences(stored), upTo: newest }
    }
    return null
  }

  /** Whether outcomes of the span arrived between two positions. */
  async #hasGrown(behind: number, upTo: number): Promise<boolean> {
    for await (const { length } of readOutcomesBehind(this.#ledger, this, { behind, upTo })) if (length > 0) return true
    return false
  }

  async #stored(): Promise<StoredRow[]> {
    const rows: StoredRow[] = []
    for (const step of this.steps) {
      for await (const some of readStored(this.#ledger, step, this)) rows.push(...some)
    }
    return rows
  }

  #differences(stored: readonly StoredRow[]): Difference[] {
    const expected = new Map<string, Sums>()
    for (const [{ step }, sums] of this.#sums) {
      for (const [kind, rows] of Map.groupBy(sums.values(), (row) => row.kind)) {
        for (const row of fitKeys(kind, rows, keysOf(stored, kind, step))) expected.set(nameOf({ ...row }), row)
      }
    }
    const found: Difference[] = []
    for (const { rowid, cells } of stored) {
      const name = nameOf(cells)
      const must = expected.get(name)
      expected.delete(name)
      const columns = must === undefined ? [] : differingColumns(cells, must)
      if (must !== undefined && columns.length === 0) continue
      found.push({ ...shownName(cells), columns, rowid, expected: must ?? null })
    }
    for (const row of expected.values()) {
      found.push({ ...shownName({ ...row }), columns: [], rowid: null, expected: row })
    }
    return found
  }
}

export const newestPosition = async (ledger: Database): Promise<number> => (await readLogHead(ledger)).next - 1

/** A position up to which every event is in the sums; null if events arrive faster than they are added. */
async function foldedUpTo(ledger: Database): Promise<number | null> {
  await foldRollups(ledger)
  const [row] = await ledger.read<{ next: number; waiting: number }>(
    'select next_position as next, exists (select 1 from pending_event_rollups) as waiting from event_log',
  )
  return row === undefined || row.waiting === 1 ? null : row.next - 1
}

interface StoredRow {
  rowid: string
  cells: Cells
}

const columns = named([
  ...['kind', 'step', 'scope', 'at', 'key', 'verdict'],
  ...['requests', 'input_tokens', 'output_tokens', 'cost', 'latency', 'first_token'],
])

/** The rows of one step, a few at a time. Rows of an unknown step count as hours. */
async function* readStored(
  ledger: Database,
  step: Step,
  { from, until }: { from: number; until: number },
): AsyncGenerator<StoredRow[]> {
  const of =
    step === 'minute'
      ? "event_rollups indexed by event_rollups_minutes where step = 'minute'"
      : `event_rollups indexed by event_rollups_longer where step <> 'minute' and step ${step === 'day' ? '=' : '<>'} 'day'`
  let [at, behind] = [from, '0']
  for (;;) {
    const rows = await ledger.read<{ at: number; rowid: string; cells: unknown }>(
      `select cast(at as real) as at, cast(rowid as text) as rowid, ${cellsOf(columns)} from ${of}
        and at >= ? and at < ? and (at, rowid) > (?, cast(? as integer)) order by event_rollups.at, event_rollups.rowid
        limit ${rowsAtOnce}`,
      [from, until, at, behind],
    )
    if (rows.length > 0) yield rows.map(({ rowid, cells }) => ({ rowid, cells: readCells(columns, cells) }))
    if (rows.length < rowsAtOnce) return
    at = rows.at(-1)?.at ?? until
    behind = rows.at(-1)?.rowid ?? '0'
    await yieldToEventLoop()
  }
}

const nameOf = ({ kind, step, scope, at, key, verdict }: Cells): string =>
  JSON.stringify([kind, step, scope, at, key, verdict])

const shownName = ({ kind, step, scope, at, key, verdict }: Cells) => ({
  ...{ kind: String(kind), step: String(step), scope: String(scope) },
  ...{ at: Number(at), key: String(key), verdict: String(verdict) },
})

/** The keys with rows, by bucket and scope. */
function keysOf(stored: readonly StoredRow[], kind: string, step: string): Map<string, Set<unknown>> {
  const keys = new Map<string, Set<unknown>>()
  for (const { cells } of stored) {
    if (cells.kind !== kind || cells.step !== step) continue
    const bucket = `${cells.at} ${cells.scope}`
    keys.set(bucket, (keys.get(bucket) ?? new Set()).add(cells.key))
  }
  return keys
}

/**
 * Counts keys without a row under their overflow key because their bucket is full: stored keys keep their rows, and of
 * the others those with the most requests get the free ones.
 */
function fitKeys(kind: string, rows: readonly Sums[], stored: Map<string, Set<unknown>>): Sums[] {
  const fitted: Sums[] = []
  for (const [bucket, group] of Map.groupBy(rows, ({ at, scope }) => `${at} ${scope}`)) {
    const known = stored.get(bucket) ?? new Set()
    const byKey = [...Map.groupBy(group, ({ key }) => key)].map(([key, sums]) => ({
      sums,
      key,
      overflow: overflowKey(kind, key),
    }))
    const kept = byKey.filter(({ key, overflow }) => overflow === null || known.has(key))
    const fresh = byKey.filter(({ key, overflow }) => overflow !== null && !known.has(key))
    fresh.sort((one, another) => requestsOf(another.sums) - requestsOf(one.sums))
    const counted = byKey.filter(({ key, overflow }) => known.has(key) && (kind !== 'cost' || overflow !== null))
    const room = Math.max(0, keysAtMost(kind) - counted.length)
    fitted.push(
      ...mergedByVerdict([
        ...[...kept, ...fresh.slice(0, room)].flatMap(({ sums }) => sums),
        ...fresh.slice(room).flatMap(({ sums, overflow }) => sums.map((row) => ({ ...row, key: overflow ?? row.key }))),
      ]),
    )
  }
  return fitted
}

const requestsOf = (rows: readonly Sums[]): number => rows.reduce((sum, { requests }) => sum + requests, 0)

/** Rows of one bucket, those of the same key and verdict added up. */
function mergedByVerdict(rows: readonly Sums[]): Sums[] {
  const merged = new Map<string, Sums>()
  for (const row of rows) {
    const name = JSON.stringify([row.key, row.verdict])
    const sum = merged.get(name)
    if (sum === undefined) {
      // A copy, not the span's own sums, to which more may be added.
      merged.set(name, { ...row, latency: { ...row.latency }, firstToken: { ...row.firstToken } })
      continue
    }
    sum.requests += row.requests
    sum.inputTokens += row.inputTokens
    sum.outputTokens += row.outputTokens
    sum.cost += row.cost
    mergeSketch(sum.latency, row.latency)
    mergeSketch(sum.firstToken, row.firstToken)
  }
  return [...merged.values()]
}

function differingColumns(cells: Cells, row: Sums): string[] {
  const must: Record<string, unknown> = {
    ...{ requests: row.requests, input_tokens: row.inputTokens, output_tokens: row.outputTokens, cost: row.cost },
    ...{ latency: sketchText(row.latency), first_token: sketchText(row.firstToken) },
  }
  return Object.keys(must).filter((column) => asCompared(cells[column]) !== must[column])
}

/** A sketch with its buckets in JavaScript's key order. */
function asCompared(cell: unknown): unknown {
  if (typeof cell !== 'string') return cell
  try {
    return JSON.stringify(JSON.parse(cell))
  } catch {
    // Not a sketch: equal to none.
    return cell
  }
}
