/**
 * What is written with new records, for the sums to be made from later (fold.ts): outcomes with equal keys are added up
 * first, so that a batch of one token takes one small row. A batch of many different ones takes several rows, because
 * one row is added to the sums in one transaction.
 */
import { wellFormedJson } from '../../lib/json/well-formed-json.ts'
import type { Statement } from '../../store/statement.ts'
import type { Event } from '../event.ts'
import { timeOf } from '../log/append.ts'
import { countedOutcome, countedTypes } from './rollup.ts'
import { tally } from './tally.ts'

const talliesOfRow = 200

/** Statements that queue these events, which must be new to the ledger. `receivedAt` limits their times. */
export function pendingRollups(events: readonly Event[], receivedAt: number): Statement[] {
  const outcomes = events.filter(({ event_type }) => countedTypes.includes(event_type))
  const counted = outcomes.map((event) => countedOutcome(event, timeOf(event.timestamp, receivedAt)))
  const tallies = tally(counted, receivedAt)
  const statements: Statement[] = []
  for (let from = 0; from < tallies.length; from += talliesOfRow) {
    statements.push({
      sql: 'insert into pending_event_rollups (tallies) values (?)',
      args: [wellFormedJson(tallies.slice(from, from + talliesOfRow))],
    })
  }
  return statements
}
