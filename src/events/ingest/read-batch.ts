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

/** Consecutive records as a worker ships them: the exact texts, and the chain's digest after the last. */
export interface ShippedBatch {
  /** The number of the first. */
  first: number
  texts: readonly string[]
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
  for (const [index, text] of batch.texts.entries()) {
    records.push(readText(batch, { seq: batch.first + index, text, seen }))
    if (index % blockRecords === blockRecords - 1) await yieldToEventLoop()
  }
  const understood = records.flatMap(({ record }) => record ?? [])
  const recorded = await recordedBefore(ledger, batch.chain, understood)
  if (recorded.size === 0) return records
  return records.map((each, index) => {
    const isRecorded = each.record !== null && recorded.has(each.record.event_id)
    return isRecorded ? quarantined(batch, batch.first + index, each.text, 'event.repeated_id') : each
  })
}

function readText(
  batch: ReceivedBatch,
  { seq, text, seen }: { seq: number; text: string; seen: Set<string> },
): NewRecord {
  const { gatewayId, receivedAt } = batch
  const record = text.length > mostCharacters ? null : readRecord(parseJson(text))
  const own =
    record !== null && isGatewayEventType(record.event_type) && record.event_attribution.gateway_id === gatewayId
  if (!own) return quarantined(batch, seq, text, 'event.not_valid')
  for (const { event_id: id } of [record, ...(record.attempts ?? []), ...(record.decisions ?? [])]) {
    if (seen.has(id)) return quarantined(batch, seq, text, 'event.repeated_id')
    seen.add(id)
  }
  return { text, at: timeOf(record.timestamp, receivedAt), record }
}

function quarantined(
  { chain, receivedAt, newId }: ReceivedBatch,
  seq: number,
  text: string,
  reason: QuarantineReason,
): NewRecord {
  const quarantine = { reason, event_id: newId(), chain, seq, bytes: Buffer.byteLength(text) }
  return { text, at: receivedAt, record: null, quarantine }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // Invalid JSON is not a record.
    return undefined
  }
}
