/** Whether what the log says of a record agrees with the record. */
import { controlPlaneChain } from '../log/chain.ts'
import type { Quarantine } from '../log/quarantine.ts'
import type { LogRecord } from '../log/record.ts'
import type { FindingCode } from './finding.ts'

/** A record with what the log says of it. */
export interface PlacedRecord {
  chain: string
  seq: number
  position: number
  /** In milliseconds since the epoch. */
  at: number
  /** When the newest record of its segment was received. */
  receivedAt: number
  quarantine: Quarantine | undefined
  body: Uint8Array
}

/** The record that a text is. Only what is used here is checked: the digest proves the rest. */
export function parseRecord(text: string): LogRecord | null {
  try {
    const record: LogRecord = JSON.parse(text)
    const isRecord = typeof record?.event_attribution === 'object' && typeof record.event_id === 'string'
    return isRecord ? record : null
  } catch {
    // Invalid JSON is no record.
    return null
  }
}

/**
 * Null where all agrees; `record` is null for a quarantined record. That it had to be quarantined is not judged again: a
 * later release may understand what an earlier one did not. The digest of arrivals covers it.
 */
export function deviationOf(placed: PlacedRecord, record: LogRecord | null): FindingCode | null {
  const { chain, seq, at, receivedAt, quarantine, body } = placed
  if (at > receivedAt) return 'event.time_altered'
  if (quarantine !== undefined) {
    const same = quarantine.chain === chain && quarantine.seq === seq && quarantine.bytes === body.length
    return same ? null : 'event.quarantine_altered'
  }
  if (record === null) return 'event.not_valid'
  const own = Math.max(0, Date.parse(record.timestamp))
  // A worker's clock may be ahead. Then the time is that of the receipt.
  return own === at || own > at ? proofFailure(chain, record) : 'event.time_altered'
}

/** What a gateway has recorded about the proof itself. For unsigned records nothing else would show it. */
function proofFailure(chain: string, { event_type: type, reason_code: reason }: LogRecord): FindingCode | null {
  if (chain === controlPlaneChain) return null
  if (type === 'gateway.checkpoint_regressed') return 'checkpoint.seen_going_back'
  const parted = reason === 'chain_fork' || reason === 'chain_lost'
  return type === 'gateway.instance_replaced' && parted ? 'chain.parted' : null
}
