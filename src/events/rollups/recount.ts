/**
 * Goes through all hours and days of which there are events or sums (rollup.ts), so that each can be compared with the
 * events, and mended. Each event is read once, and memory grows with what one day's sums hold. Left out is what cannot be
 * told any more: what is older than the oldest event that must still be there, and minutes about to be removed.
 */
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Database } from '../../store/open.ts'
import { controlPlaneChain } from '../log/chain.ts'
import { readOutcomes } from './outcomes.ts'
import { minutesKeptMilliseconds, stepMilliseconds } from './rollup.ts'
import { RollupSpan } from './span.ts'

export interface RecountOptions {
  ledger: Database
  /** Milliseconds since the epoch. */
  now: number
  retention: number
  /** Days that began before this are left out; null for none. */
  since: number | null
  signal: AbortSignal
}

const { hour, day } = stepMilliseconds
/** How far the clock of whoever removes old sums may be ahead, and how long a recount may take. */
const marginMilliseconds = hour
const rowsAtOnce = 100
/** The furthest instant there is (ECMA-262, Time Values). */
const lastInstant = 8.64e15

/** The spans, each hour before its day; one is to be compared before the next is asked for. */
export async function* recountRollups(options: RecountOptions): AsyncGenerator<RollupSpan> {
  const { ledger, now, signal } = options
  const minutesFrom = now - minutesKeptMilliseconds + marginMilliseconds
  for (let at = await nextInstant(ledger, await knownFrom(options)); at !== null; ) {
    const from = Math.floor(at / day) * day
    const upTo = await newestPosition(ledger)
    const ofDay = new RollupSpan(ledger, { from, steps: ['day'], upTo })
    for (let next = await nextInstant(ledger, from); next !== null && next < ofDay.until; ) {
      const hourFrom = Math.floor(next / hour) * hour
      const steps = hourFrom < minutesFrom ? (['hour'] as const) : (['minute', 'hour'] as const)
      const ofHour = new RollupSpan(ledger, { from: hourFrom, steps, upTo })
      for await (const tallies of readOutcomes(ledger, ofHour, upTo)) {
        ofDay.add(tallies)
        ofHour.add(tallies)
      }
      yield ofHour
      await yieldToEventLoop()
      if (signal.aborted) return
      next = await nextInstant(ledger, ofHour.until)
    }
    yield ofDay
    at = await nextInstant(ledger, ofDay.until)
  }
}

/** From when on, a whole day, every event and every sum must still be there. */
async function knownFrom({ ledger, now, retention, since }: RecountOptions): Promise<number> {
  const kept = now - retention + marginMilliseconds
  return Math.ceil(Math.max(0, await removedUntil(ledger), kept, since ?? 0) / day) * day
}

/** Before when events can have been removed: of each chain the oldest goes first, and none is later than its receipt. */
async function removedUntil(ledger: Database): Promise<number> {
  const [row] = await ledger.read<{ at: number }>(
    `select coalesce(max(coalesce((select received_at from events where events.chain = chain_floors.chain
        order by seq limit 1), (select updated_at from chains where chains.chain = chain_floors.chain))), 0) as at
      from chain_floors where chain <> '${controlPlaneChain}'`,
  )
  return row === undefined || row.at === 0 ? 0 : row.at + 1
}

/** The first instant from `from` on of which there is an event or a sum. */
async function nextInstant(ledger: Database, from: number): Promise<number | null> {
  const [row] = await ledger.read<{ at: number | null }>(
    `select cast(min(at) as real) as at from (
      select min(timestamp) as at from events where timestamp between ?1 and ?2
      union all select min(at) from event_rollups where step = 'minute' and at between ?1 and ?2
      union all select min(at) from event_rollups where step <> 'minute' and at between ?1 and ?2)`,
    [from, lastInstant],
  )
  return row?.at ?? null
}

async function newestPosition(ledger: Database): Promise<string> {
  const [{ last = '0' } = {}] = await ledger.read<{ last: string }>(
    'select cast(coalesce(max(position), 0) as text) as last from events',
  )
  return last
}

/** Ids of rows whose time is none that any event can have, at most `rowsAtOnce` of them. */
export async function rowsOfNoTime(ledger: Database): Promise<string[]> {
  const of = (steps: string) =>
    `select cast(rowid as text) as id from event_rollups where ${steps} and (at < 0 or at > ?)`
  const rows = await ledger.read<{ id: string }>(
    `${of("step = 'minute'")} union all ${of("step <> 'minute'")} limit ${rowsAtOnce}`,
    [lastInstant, lastInstant],
  )
  return rows.map(({ id }) => id)
}
