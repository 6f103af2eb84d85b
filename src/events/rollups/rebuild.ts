/**
 * Makes the sums behind charts (rollup.ts) agree with the events, row by row: events are the record, and sums are
 * derived from them. A few rows are written at a time, in a transaction that fails if an event may have arrived in
 * their hour or day since the comparison; then that is compared again. So it is safe while events arrive and on several control
 * planes at once, and may end anywhere.
 */
import { wellFormedJson } from '../../lib/json/well-formed-json.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import { brokenConstraint } from '../log/append.ts'
import { blocksBehind } from '../log/segment-times.ts'
import { asRow, type Sums } from './fold.ts'
import { type RecountOptions, recountRollups, rowsOfNoTime } from './recount.ts'
import type { Compared, Difference, RollupSpan } from './span.ts'

export interface Rebuilt {
  /** Rows that were written, or removed. */
  corrected: number
  /** Hours and days with too many new events to be compared. They wait for another run. */
  growing: number
}

const rowsAtOnce = 100
/** For an hour or a day in which events keep arriving. */
const tries = 20

/** Repairs everything that can be known, and reports progress for each hour and day. */
export async function* rebuildRollups(options: RecountOptions): AsyncGenerator<Rebuilt> {
  const { ledger } = options
  const rebuilt = { corrected: await removeRowsOfNoTime(ledger), growing: 0 }
  for await (const span of recountRollups(options)) {
    const corrected = await mend(ledger, span)
    if (corrected === null) rebuilt.growing += 1
    else rebuilt.corrected += corrected
    yield { ...rebuilt }
  }
  yield rebuilt
}

async function mend(ledger: Database, span: RollupSpan): Promise<number | null> {
  let corrected = 0
  for (let round = 0; round < tries; round += 1) {
    const compared = await span.compare()
    if (compared === null) continue
    const { written, whole } = await writeRows(ledger, span, compared)
    corrected += written
    if (whole) return corrected
  }
  return null
}

async function writeRows(ledger: Database, span: RollupSpan, { differences, upTo }: Compared) {
  let written = 0
  try {
    while (written < differences.length) {
      const some = differences.slice(written, written + rowsAtOnce)
      await ledger.write([guard(span, upTo), ...replace(span, some)], {})
      written += some.length
    }
    return { written, whole: true }
  } catch (error) {
    if (brokenConstraint(error) !== 'check') throw error
    return { written, whole: false }
  }
}

/** Fails too where blocks of other hours were merged meanwhile: the next comparison begins behind them. */
function guard(span: RollupSpan, upTo: number): Statement {
  const { sql, args } = blocksBehind(upTo, span)
  return { sql: `insert into guards (holds) select 0 where exists (select 1 ${sql})`, args }
}

/** Another control plane may have removed the row, and its id may belong to another hour now. */
function replace({ from, until }: RollupSpan, differences: readonly Difference[]): Statement[] {
  const there = differences.flatMap(({ rowid }) => rowid ?? [])
  const must = differences.flatMap(({ expected }) => expected ?? [])
  const { sql, args } = deleteRows(there)
  const deletion = { sql: `${sql} and at >= ? and at < ?`, args: [...args, from, until] }
  return [deletion, ...(must.length === 0 ? [] : [insertRows(must)])]
}

const deleteRows = (ids: readonly string[]): Statement => ({
  sql: 'delete from event_rollups where rowid in (select cast(value as integer) from json_each(?))',
  args: [JSON.stringify(ids)],
})

/** Another control plane has written the same. */
const insertRows = (rows: readonly Sums[]): Statement => ({
  sql: `insert or replace into event_rollups (kind, step, scope, at, key, verdict, requests, input_tokens, output_tokens, cost,
      latency, first_token)
    select value ->> 0, value ->> 1, value ->> 2, value ->> 3, value ->> 4, value ->> 5, value ->> 6, value ->> 7,
      value ->> 8, value ->> 9, value ->> 10, value ->> 11 from json_each(?)`,
  args: [wellFormedJson(rows.map(asRow))],
})

async function removeRowsOfNoTime(ledger: Database): Promise<number> {
  for (let removed = 0; ; ) {
    const rows = await rowsOfNoTime(ledger)
    if (rows.length === 0) return removed
    await ledger.write([deleteRows(rows)], {})
    removed += rows.length
  }
}
