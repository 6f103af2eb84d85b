/** The events that readers see of a stored record. */
import { timestamp } from '../../lib/clock.ts'
import type { Event } from '../event.ts'
import { type Quarantine, quarantinedEvent } from './quarantine.ts'
import { expandRecord, type LogRecord } from './record.ts'

interface StoredRecord {
  text: string
  /** When it happened, as the log says, in milliseconds since the epoch. */
  at: number
  quarantine: Quarantine | undefined
}

/** An event, with its JSON where that is the record's own text. */
interface ShownEvent {
  event: Event
  json?: string | undefined
}

/** Ingest has checked the text, and the block's checksum holds. No event is later than its receipt. */
export function eventsOfRecord({ text, at, quarantine }: StoredRecord): ShownEvent[] {
  if (quarantine !== undefined) return [{ event: quarantinedEvent(quarantine, at) }]
  const record: LogRecord = JSON.parse(text)
  const events = expandRecord(record)
  if (Date.parse(record.timestamp) !== at) {
    return events.map((event) => ({ event: { ...event, timestamp: timestamp(at) } }))
  }
  return events.map((event) => ({ event, json: events.length === 1 ? text : undefined }))
}
