/**
 * Reads the records of a batch. Nothing in them that the poster could forge is trusted: only a valid record of types that
 * gateways may post, with the poster's own gateway id, is taken as such, and none that repeats an id of its batch or that
 * the ledger has from the worker's former chain. Anything else is quarantined (log/quarantine.ts).
 */
import type { NewId } from '../../lib/ids.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Reader } from '../../store/open.ts'
import { isGatewayEventType } from '../event.ts'
import { timeOf } from '../log/append.ts'
import type { QuarantineReason } from '../log/quarantine.ts'
import { blockRecords, type NewRecord } from '../log/segment.ts'
import { readRecord } from '../read-event.ts'
import { recordedBefore } from './carried-records.ts'

/** The text of a record, and the same as UTF-8. It has no line feed. */
export interface Line {
  text: string
  bytes: Buffer
}

/** Consecutive records as a worker ships them: the exact bytes, and the chain's digest after the last. */
export interface ShippedBatch {
  /** The number of the first. */
  first: number
  lines: readonly Line[]
  digest: string
}

/** A batch with what the control plane knows of it. */
export interface ReceivedBatch extends ShippedBatch {
  /** The worker's chain: `gateway_id/instance_id/n`. */
  chain: string
  /** The gateway of the posting session. */
  gatewayId: string
  /** Milliseconds since the epoch. */
  receivedAt: number
  newId: NewId
}

/** Gateways write records of at most 16 KiB. Larger ones, or deeply nested ones, would delay all readers. */
const mostCharacters = 32_768

/** Parses some records at a time, so that other work waits for a part of the batch only. */
export async function readBatch(ledger: Reader, batch: ReceivedBatch): Promise<NewRecord[]> {
  const seen = new Set<string>()
  const records: NewRecord[] = []
  for (const [index, line] of batch.lines.entries()) {
    records.push(readLine(batch, { seq: batch.first + index, line, seen }))
    if (index % blockRecords === blockRecords - 1) await yieldToEventLoop()
  }
  const understood = records.flatMap(({ record }) => record ?? [])
  const recorded = await recordedBefore(ledger, batch.chain, understood)
  if (recorded.size === 0) return records
  return records.map((each, index) => {
    const isRecorded = each.record !== null && recorded.has(each.record.event_id)
    return isRecorded ? quarantined(batch, batch.first + index, each.bytes, 'event.repeated_id') : each
  })
}

function readLine(
  batch: ReceivedBatch,
  { seq, line: { text, bytes }, seen }: { seq: number; line: Line; seen: Set<string> },
): NewRecord {
  const { gatewayId, receivedAt } = batch
  const record = text.length > mostCharacters ? null : readRecord(parseJson(text))
  const own =
    record !== null && isGatewayEventType(record.event_type) && record.event_attribution.gateway_id === gatewayId
  if (!own) return quarantined(batch, seq, bytes, 'event.not_valid')
  for (const { event_id: id } of [record, ...(record.attempts ?? []), ...(record.decisions ?? [])]) {
    if (seen.has(id)) return quarantined(batch, seq, bytes, 'event.repeated_id')
    seen.add(id)
  }
  return { bytes, at: timeOf(record.timestamp, receivedAt), record }
}

function quarantined(
  { chain, receivedAt, newId }: ReceivedBatch,
  seq: number,
  bytes: Uint8Array,
  reason: QuarantineReason,
): NewRecord {
  const quarantine = { reason, event_id: newId(), chain, seq, bytes: bytes.length }
  return { bytes, at: receivedAt, record: null, quarantine }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Invalid JSON is not a record.
    return undefined
  }
}
