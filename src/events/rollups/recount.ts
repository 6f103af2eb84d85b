/**
 * Goes through all hours and days with events or sums (rollup.ts), so that each can be compared with the events and
 * repaired. Each event is read once, and the memory grows with the sums of one day. Left out is what can no longer be
 * known: what is older than the oldest event that must still exist, and minutes that are about to be removed.
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
/** How far the clock of the process that removes old sums may be ahead, and how long a recount may take. */
const marginMilliseconds = hour
const rowsAtOnce = 100
/** The largest instant (ECMA-262, Time Values). */
const lastInstant = 8.64e15

/** The spans, each hour before its day. Compare each before the next is requested. */
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

/** The start, a whole day, from which every event and every sum must still exist. */
async function knownFrom({ ledger, now, retention, since }: RecountOptions): Promise<number> {
  const kept = now - retention + marginMilliseconds
  return Math.ceil(Math.max(0, await removedUntil(ledger), kept, since ?? 0) / day) * day
}

/**
 * The instant before which events may have been removed: the oldest of each chain go first, and none is later than its
 * receipt.
 */
async function removedUntil(ledger: Database): Promise<number> {
  const [row] = await ledger.read<{ at: number }>(
    `select coalesce(max(coalesce((select received_at from events where events.chain = chain_floors.chain
        order by seq limit 1), (select updated_at from chains where chains.chain = chain_floors.chain))), 0) as at
      from chain_floors where chain <> '${controlPlaneChain}'`,
  )
  return row === undefined || row.at === 0 ? 0 : row.at + 1
}

/** The first instant from `from` on with an event or a sum. */
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

/** Ids of rows with an impossible time, at most `rowsAtOnce`. */
export async function rowsOfNoTime(ledger: Database): Promise<string[]> {
  const of = (steps: string) =>
    `select cast(rowid as text) as id from event_rollups where ${steps} and (at < 0 or at > ?)`
  const rows = await ledger.read<{ id: string }>(
    `${of("step = 'minute'")} union all ${of("step <> 'minute'")} limit ${rowsAtOnce}`,
    [lastInstant, lastInstant],
  )
  return rows.map(({ id }) => id)
}
