/** Counts what has reached the ledger, from its file: the records of the event log are opened and counted. */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { eventsOf, type LogRecord } from '../../../src/events/log/record.ts'
import { recordBytes } from '../../../src/events/log/segment.ts'
import { decodeBlock, type StoredBlock } from '../../../src/events/log/segment-codec.ts'
import { until } from '../../support/eventually.ts'

export interface LedgerCount {
  outcomes: number
  exchanges: number
  events: number
}

/** Throws where a part of the log is damaged. */
export function countLedger(dataDirectory: string): LedgerCount {
  using ledger = new Database(join(dataDirectory, 'ledger.db'), { readonly: true })
  const blocks = ledger.query<StoredBlock, []>(
    'select records, bytes, first_at, last_at, places, body from event_blocks',
  )
  const count = { outcomes: 0, events: 0 }
  const exchanges = new Set<string>()
  for (const stored of blocks.iterate()) {
    const block = decodeBlock(stored)
    if (block === null) throw new Error('A block of the event log is damaged')
    for (const bytes of recordBytes(block)) {
      const record: LogRecord = JSON.parse(bytes.toString())
      count.events += eventsOf(record)
      if (record.event_type !== 'gateway.request.outcome') continue
      count.outcomes += 1
      if (record.exchange_id !== undefined) exchanges.add(record.exchange_id)
    }
  }
  return { ...count, exchanges: exchanges.size }
}

/** The position after the last record, which costs no reading of records. */
function nextPosition(dataDirectory: string): number {
  using ledger = new Database(join(dataDirectory, 'ledger.db'), { readonly: true })
  return ledger.query<{ next: number }, []>('select next_position as next from event_log').get()?.next ?? 0
}

/** Waits until nothing has arrived for a second. */
export async function settle(dataDirectory: string): Promise<void> {
  let seen = -1
  let changedAt = performance.now()
  await until(
    'the ledger has come to rest',
    () => {
      const now = nextPosition(dataDirectory)
      if (now !== seen) changedAt = performance.now()
      seen = now
      return performance.now() - changedAt > 1000
    },
    { withinMs: 300_000, everyMs: 100 },
  )
}

/** Waits in the same way, then counts. */
export async function settledCount(dataDirectory: string): Promise<LedgerCount> {
  await settle(dataDirectory)
  return countLedger(dataDirectory)
}
