/**
 * Which adapter keeps the log of a ledger: its own segments, unless `keepLogIn` named another one when the ledger was
 * opened. It is one fact of an opened ledger, so it is kept beside the ledger and not handed to everything that reads.
 */
import type { Reader } from '../../store/open.ts'

import type { FoundEvent, LogQuery } from '../log/log-query.ts'
import type { EventLog } from './event-log.ts'
import { segmentLog } from './segment-log.ts'

const kept = new WeakMap<Reader, EventLog>()

export function keepLogIn(ledger: Reader, log: EventLog): void {
  kept.set(ledger, log)
}

export const logOf = (ledger: Reader): EventLog => kept.get(ledger) ?? segmentLog(ledger)

/** The events that a query matches, one by one. */
export async function* eventsOf(ledger: Reader, query: LogQuery): AsyncGenerator<FoundEvent, void, undefined> {
  for await (const { events } of logOf(ledger).parts(query)) yield* events
}
