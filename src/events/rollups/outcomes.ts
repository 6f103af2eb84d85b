/**
 * Reads the outcomes that sums count (rollup.ts) from the log again: some at a time, added up to tallies. Blocks that
 * cannot be read are left out: `verify` names them.
 */
import type { Database } from '../../store/open.ts'
import { eventsOf, logOf } from '../engine/log-of.ts'
import type { Event } from '../event.ts'
import { eventsOfRecord } from '../log/record-events.ts'
import { countedOutcome, countedTypes, type Step, stepMilliseconds } from './rollup.ts'
import { addOutcome, type Tally } from './tally.ts'

/** Instants in milliseconds since the epoch; `until` is not part of it. */
interface Window {
  from: number
  until: number
}

const outcomesAtOnce = 500

/**
 * Those of a window up to a position, in order of time; tallies that come together are of one hour. `finest` is the
 * shortest step that they are for: outcomes of one hour have fewer tallies than those of its minutes.
 */
export async function* readOutcomes(
  ledger: Database,
  { from, until }: Window,
  { upTo, finest }: { upTo: number; finest: 'minute' | 'hour' },
): AsyncGenerator<Tally[]> {
  const tallying = new Tallying(finest)
  let hour = from
  const query = {
    ...{ order: 'oldest' as const, since: from, until, ceiling: upTo + 1, after: null },
    ...{ facets: [{ facet: 'type' as const, values: countedTypes }], ids: [] },
  }
  for await (const { event, at } of eventsOf(ledger, query)) {
    if (at >= hour + stepMilliseconds.hour || tallying.outcomes === outcomesAtOnce) yield tallying.take()
    hour = at - (at % stepMilliseconds.hour)
    tallying.add(event, at)
  }
  yield tallying.take()
}

/** Those of a window that arrived between two positions. */
export async function* readOutcomesBehind(
  ledger: Database,
  { from, until }: Window,
  { behind, upTo }: { behind: number; upTo: number },
): AsyncGenerator<Tally[]> {
  const range = await logOf(ledger).arrived(behind, { from, until })
  if (range === null) return
  const tallying = new Tallying('minute')
  const positions = { from: Math.max(behind + 1, range.first), before: Math.min(upTo, range.last) + 1 }
  for await (const record of logOf(ledger).records(positions)) {
    if (record.at < from || record.at >= until) continue
    for (const { event } of eventsOfRecord(record)) tallying.add(event, record.at)
    if (tallying.outcomes >= outcomesAtOnce) yield tallying.take()
  }
  yield tallying.take()
}

/** Adds outcomes up. A recount compares minutes only while they are stored, so all count in them. */
class Tallying {
  outcomes = 0
  #tallies = new Map<string, Tally>()
  readonly #step: number

  constructor(finest: Step) {
    this.#step = stepMilliseconds[finest]
  }

  add(event: Event, at: number): void {
    if (!countedTypes.includes(event.event_type)) return
    this.outcomes += 1
    addOutcome(this.#tallies, countedOutcome(event, at - (at % this.#step)), true)
  }

  /** The tallies, in the order of first appearance, of what was added since. */
  take(): Tally[] {
    const taken = [...this.#tallies.values()]
    this.#tallies = new Map()
    this.outcomes = 0
    return taken
  }
}
