/**
 * Compares the sums behind charts (events/rollups/rollup.ts) with the events: each row of every kind and step, and
 * each column, as long as all events of a bucket are kept. Only for a ledger without other findings, since otherwise
 * the events are wrong.
 */
import { timestamp } from '../../lib/clock.ts'
import { type RecountOptions, recountRollups, rowsOfNoTime } from '../rollups/recount.ts'
import { everyTeam, noTeam } from '../rollups/rollup.ts'
import type { Difference } from '../rollups/span.ts'
import { type Finding, finding } from './finding.ts'

const maxFindings = 1000

/** Findings of the sums as they are found, and at last how many hours and days changed too fast to be compared. */
export async function* verifySums(options: RecountOptions): AsyncGenerator<Finding, number> {
  let [found, growing] = [0, 0]
  for (const row of await rowsOfNoTime(options.ledger)) {
    found += 1
    yield finding('rollup.differs', { column: `row ${row} of no time` })
  }
  for await (const span of recountRollups(options)) {
    const compared = await span.compare()
    if (compared === null) growing += 1
    for (const difference of compared?.differences ?? []) {
      yield finding('rollup.differs', { column: described(difference) })
      found += 1
      if (found >= maxFindings) return growing
    }
  }
  return growing
}

function described({ step, at, scope, kind, key, verdict, columns, rowid, expected }: Difference): string {
  const team = scope === everyTeam ? 'all teams' : scope === noTeam ? 'no team' : `team ${scope}`
  const of = kind === 'all' ? '' : ` ${kind} ${key === '' ? 'none' : key}`
  const how = rowid === null ? 'missing' : expected === null ? 'of no event' : columns.join(', ')
  return `${step} ${timestamp(at)} ${team}${of} ${verdict}: ${how}`
}
