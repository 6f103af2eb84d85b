/**
 * What is written with new records, for the sums to be made from later (fold.ts): outcomes with equal keys are added up
 * first, so that a batch of one token takes one small row.
 */
import { wellFormedJson } from '../../lib/json/well-formed-json.ts'
import type { Statement } from '../../store/statement.ts'
import type { Event } from '../event.ts'
import { timeOf } from '../log/append.ts'
import { countedOutcome } from './rollup.ts'
import { tally } from './tally.ts'

/** The statement that queues these events, which must be new to the ledger. `receivedAt` limits their times. */
export function pendingRollups(events: readonly Event[], receivedAt: number): Statement[] {
  const outcomes = events.filter(({ event_type }) => event_type === 'gateway.request.outcome')
  if (outcomes.length === 0) return []
  const counted = outcomes.map((event) => countedOutcome(event, timeOf(event.timestamp, receivedAt)))
  return [
    {
      sql: 'insert into pending_event_rollups (tallies) values (?)',
      args: [wellFormedJson(tally(counted, receivedAt))],
    },
  ]
}
