/** What the log holds, for tests. */
import type { Database, Reader } from '../../store/open.ts'
import { logOf } from '../engine/log-of.ts'
import type { Event } from '../event.ts'
import { eventsOfRecord } from '../log/record-events.ts'
import { readLogHead } from '../log/segment-rows.ts'

/** All events in the order of their positions, or those of one type. */
export async function recordedEvents(ledger: Reader, type?: string): Promise<Event[]> {
  const { next } = await readLogHead(ledger)
  const events: Event[] = []
  for await (const record of logOf(ledger).records({ from: 1, before: next })) {
    for (const { event } of eventsOfRecord(record))
      if (type === undefined || event.event_type === type) events.push(event)
  }
  return events
}

/** The exact texts of all records in the order of their positions. */
export async function recordedTexts(ledger: Reader): Promise<string[]> {
  const { next } = await readLogHead(ledger)
  return (await Array.fromAsync(logOf(ledger).records({ from: 1, before: next }))).map(({ text }) => text)
}

/** A record with its place in its chain; `event_id` is that of a quarantined one's event where the record has none. */
export interface ChainedRecord {
  chain: string
  seq: number
  event_id: string
  text: string
}

/** All records by chain and number. Throws where one cannot be read. */
export async function recordedChains(ledger: Reader): Promise<ChainedRecord[]> {
  const { next } = await readLogHead(ledger)
  const records: ChainedRecord[] = []
  for await (const record of logOf(ledger).chained({ from: 1, before: next })) {
    const { chain, seq, text, quarantine, damaged, position } = record
    if (damaged !== undefined) throw new Error(`The record at position ${position} is damaged`)
    records.push({ chain, seq, event_id: quarantine?.event_id ?? JSON.parse(text).event_id, text })
  }
  return records.toSorted((one, other) => one.chain.localeCompare(other.chain) || one.seq - other.seq)
}

/** Removes segments that meet a condition on `event_segments`, as a restore or retention would. */
export async function dropSegments(ledger: Database, condition: string): Promise<void> {
  const dropped = `in (select first_position from event_segments where ${condition})`
  await ledger.write([
    ...['segment_facets', 'segment_chains', 'event_blocks'].map((table) => ({
      sql: `delete from ${table} where segment ${dropped}`,
      args: [],
    })),
    { sql: `delete from event_segments where first_position ${dropped}`, args: [] },
  ])
}
