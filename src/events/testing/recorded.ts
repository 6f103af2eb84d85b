/** What the log holds, for tests. */
import type { Reader } from '../../store/open.ts'
import type { Event } from '../event.ts'
import { readRecords } from '../log/read-records.ts'
import { eventsOfRecord } from '../log/record-events.ts'
import { readLogHead } from '../log/segment-rows.ts'

/** All events in the order of their positions, or those of one type. */
export async function recordedEvents(ledger: Reader, type?: string): Promise<Event[]> {
  const { next } = await readLogHead(ledger)
  const events: Event[] = []
  for await (const record of readRecords(ledger, { from: 1, before: next })) {
    for (const { event } of eventsOfRecord(record))
      if (type === undefined || event.event_type === type) events.push(event)
  }
  return events
}

/** The exact texts of all records in the order of their positions. */
export async function recordedTexts(ledger: Reader): Promise<string[]> {
  const { next } = await readLogHead(ledger)
  return (await Array.fromAsync(readRecords(ledger, { from: 1, before: next }))).map(({ text }) => text)
}
