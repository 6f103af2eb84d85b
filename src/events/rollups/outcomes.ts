/**
 * Reads the outcomes that sums count (rollup.ts) from the events again: a few at a time, added up to tallies, yielding
 * in between.
 */
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import { asBytes, storedText } from '../../store/damage/stored-text.ts'
import type { Database } from '../../store/open.ts'
import type { Row } from '../../store/statement.ts'
import type { Event } from '../event.ts'
import { type CountedOutcome, countedOutcome } from './rollup.ts'
import { addOutcome, type Tally } from './tally.ts'

/** Instants in milliseconds since the epoch; `until` is not part of it. */
interface Window {
  from: number
  until: number
}

const rowsAtOnce = 200

const selected = `select cast(position as text) as position, cast(timestamp as real) as timestamp,
  cast(received_at as real) as received_at, ${asBytes('body')} as body from events`
const counted = "+event_type = 'gateway.request.outcome'"

/** Those of a window up to a position, in order of time. */
export async function* readOutcomes(ledger: Database, { from, until }: Window, upTo: string): AsyncGenerator<Tally[]> {
  let [at, behind] = [from, '-1']
  for (;;) {
    const rows: Row[] = await ledger.read(
      `${selected} indexed by events_timestamp where timestamp >= ? and timestamp < ?
        and (timestamp, position) > (?, cast(? as integer)) and +position <= cast(? as integer) and ${counted}
        order by events.timestamp, events.position limit ${rowsAtOnce}`,
      [from, until, at, behind, upTo],
    )
    yield talliesOf(rows)
    const last = rows.at(-1)
    if (last === undefined || rows.length < rowsAtOnce) return
    at = Number(last.timestamp)
    behind = String(last.position)
    await yieldToEventLoop()
  }
}

/** Those of a window that arrived between two positions. */
export async function* readOutcomesBehind(
  ledger: Database,
  { from, until }: Window,
  positions: { behind: string; upTo: string },
): AsyncGenerator<Tally[]> {
  let { behind } = positions
  for (;;) {
    const rows: Row[] = await ledger.read(
      `${selected} where position > ? and position <= ? and +timestamp >= ? and +timestamp < ? and ${counted}
        order by events.position limit ${rowsAtOnce}`,
      [behind, positions.upTo, from, until],
    )
    yield talliesOf(rows)
    const last = rows.at(-1)
    if (last === undefined || rows.length < rowsAtOnce) return
    behind = String(last.position)
    await yieldToEventLoop()
  }
}

/** The tallies of these rows, in the order of first appearance. */
function talliesOf(rows: readonly Row[]): Tally[] {
  const tallies = new Map<string, Tally>()
  for (const { body, received_at } of rows) {
    const receivedAt = Number(received_at)
    const outcome = outcomeOf(body, receivedAt)
    if (outcome !== null) addOutcome(tallies, outcome, receivedAt)
  }
  return [...tallies.values()]
}

/** The parsed body; null if it was altered to no event, which `verify` reports. */
function outcomeOf(body: unknown, receivedAt: number): CountedOutcome | null {
  try {
    const event: Event = JSON.parse(storedText(body) ?? '')
    const outcome = countedOutcome(event, receivedAt)
    return Number.isSafeInteger(outcome.at) ? outcome : null
  } catch {
    // Invalid JSON, or not an event.
    return null
  }
}
