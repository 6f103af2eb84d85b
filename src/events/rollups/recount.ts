/**
 * Goes through all days with events or sums (rollup.ts), each after its hours, so that they can be compared with the
 * events and repaired. Each event is read once, and the memory grows with the sums of one day. Left out is what can no
 * longer be known: what is older than the oldest event that must still exist, and minutes that are about to be removed.
 */
import type { Database } from '../../store/open.ts'
import { logOf } from '../engine/log-of.ts'
import { readLogHead } from '../log/segment-rows.ts'
import { readOutcomes } from './outcomes.ts'
import { minutesKeptMilliseconds, stepMilliseconds } from './rollup.ts'
import { newestPosition, RollupSpan } from './span.ts'

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

/** The spans of each day that has events or sums, its hours before itself. Compare each before the next is requested. */
export async function* recountRollups(options: RecountOptions): AsyncGenerator<RollupSpan> {
  const { ledger, now, signal } = options
  const minutesFrom = now - minutesKeptMilliseconds + marginMilliseconds
  for (let at = await nextInstant(ledger, await knownFrom(options)); at !== null; ) {
    const from = Math.floor(at / day) * day
    const upTo = await newestPosition(ledger)
    const ofDay = new RollupSpan(ledger, { from, steps: ['day'], upTo })
    const hourFrom = (start: number) =>
      new RollupSpan(ledger, { from: start, steps: start < minutesFrom ? ['hour'] : ['minute', 'hour'], upTo })
    let ofHour = hourFrom(from)
    const finest = ofDay.until > minutesFrom ? 'minute' : 'hour'
    for await (const tallies of readOutcomes(ledger, ofDay, { upTo, finest })) {
      while (tallies.some(({ at: minute }) => minute >= ofHour.until)) {
        yield ofHour
        if (signal.aborted) return
        ofHour = hourFrom(ofHour.until)
      }
      ofDay.add(tallies)
      ofHour.add(tallies)
    }
    for (; ofHour.from < ofDay.until; ofHour = hourFrom(ofHour.until)) {
      yield ofHour
      if (signal.aborted) return
    }
    yield ofDay
    at = await nextInstant(ledger, ofDay.until)
  }
}

/** The start, a whole day, from which every event and every sum must still exist. */
async function knownFrom({ ledger, now, retention, since }: RecountOptions): Promise<number> {
  const kept = now - retention + marginMilliseconds
  const { removedUntil } = await readLogHead(ledger)
  return Math.ceil(Math.max(0, removedUntil, kept, since ?? 0) / day) * day
}

/** The first instant from `from` on at which there may be an event, or there is a sum. */
async function nextInstant(ledger: Database, from: number): Promise<number | null> {
  const [row] = await ledger.read<{ at: number | null }>(
    `select cast(min(at) as real) as at from (
      select min(at) as at from event_rollups where step = 'minute' and at between ?1 and ?2
      union all select min(at) from event_rollups where step <> 'minute' and at between ?1 and ?2)`,
    [from, lastInstant],
  )
  const ofSums = row?.at ?? null
  const ofEvents = await logOf(ledger).nextTime(from)
  return ofSums === null || ofEvents === null ? (ofSums ?? ofEvents) : Math.min(ofSums, ofEvents)
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
