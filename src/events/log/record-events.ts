/** The events that readers see of a stored record. */
import { timestamp } from '../../lib/clock.ts'
import type { Event } from '../event.ts'
import { damagedEvent, type Quarantine, quarantinedEvent } from './quarantine.ts'
import { expandRecord, type LogRecord } from './record.ts'

interface StoredRecord {
  text: string
  /** When it happened, as the log says, in milliseconds since the epoch. */
  at: number
  quarantine: Quarantine | undefined
  /** Those that cannot be read, for which it stands. */
  damaged?: { first_position: number; records: number }
}

/** An event, with its JSON where that is a part of the record's own text. */
interface ShownEvent {
  event: Event
  json?: string | undefined
}

/** Ingest has checked the text, and the block's checksum holds. No event is later than its receipt. */
export function eventsOfRecord({ text, at, quarantine, damaged }: StoredRecord): ShownEvent[] {
  if (damaged !== undefined) return [{ event: damagedEvent(at, damaged) }]
  if (quarantine !== undefined) return [{ event: quarantinedEvent(quarantine, at) }]
  const record: LogRecord = JSON.parse(text)
  const events: ShownEvent[] = []
  const isOnTime = Date.parse(record.timestamp) === at
  for (const event of expandRecord(record)) {
    if (isOnTime) events.push({ event, json: undefined })
    else events.push({ event: { ...event, timestamp: timestamp(at) }, json: undefined })
  }
  const outcome = events.at(-1)
  if (isOnTime && outcome !== undefined) outcome.json = outcomeText(text, record)
  return events
}

/** The text of a record without its attempts and decisions, which stand at its end; undefined where they do not. */
function outcomeText(text: string, { attempts, decisions }: LogRecord): string | undefined {
  if (attempts === undefined && decisions === undefined) return text
  const inner = JSON.stringify({ attempts, decisions })
  const end = `,${inner.slice(1)}`
  return text.endsWith(end) ? `${text.slice(0, -end.length)}}` : undefined
}
