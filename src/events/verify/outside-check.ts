/** Compares a record that is stored outside of the ledger with its chain, and with what is stored beside it. */
import type { StoredRecord } from '../engine/event-log.ts'
import { eventsOf } from '../log/record.ts'
import { arrivalText } from '../proof/arrivals.ts'
import { finding } from './finding.ts'
import { deviationOf, parseRecord } from './record-check.ts'
import type { SegmentReading } from './segment-check.ts'

/** Gives how many events the record is; 0 where it has no place in its chain. */
export function followStored(reading: SegmentReading, stored: StoredRecord): number {
  const { chain, seq, position, at, receivedAt, text, quarantine, altered } = stored
  const { digestBefore, digestAfter } = stored
  for (const column of altered) {
    reading.findings.add(finding('segment.index_altered', { from: position, to: position, column }))
  }
  const check = reading.check(chain)
  const body = Buffer.from(text)
  if (digestBefore !== null) check.before(seq, digestBefore)
  if (!check.record(seq, body, arrivalText({ position, at, quarantine }))) return 0
  const record = quarantine === undefined ? parseRecord(text) : null
  const deviation = deviationOf({ chain, seq, position, at, receivedAt, quarantine, body }, record)
  if (deviation !== null) check.found(deviation, seq, seq, record?.event_id ?? null)
  if (deviation !== 'event.time_altered') check.received(at, receivedAt)
  if (digestAfter !== null) check.named(digestAfter)
  return record === null ? 1 : eventsOf(record)
}
