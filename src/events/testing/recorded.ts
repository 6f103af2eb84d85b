/** What the log holds, for tests. */
import type { Database, Reader } from '../../store/open.ts'
import type { Event } from '../event.ts'
import { readRecords, recordsOfChain } from '../log/read-records.ts'
import { eventsOfRecord } from '../log/record-events.ts'
import { decodeHeader } from '../log/segment-codec.ts'
import { readBlocks, readLogHead, readSegments } from '../log/segment-rows.ts'

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

/** A record with its place in its chain; `event_id` is that of a quarantined one's event where the record has none. */
export interface ChainedRecord {
  chain: string
  seq: number
  event_id: string
  text: string
}

/** All records as the segments hold them, by chain and number. Throws where one cannot be read. */
export async function recordedChains(ledger: Reader): Promise<ChainedRecord[]> {
  for (;;) {
    const { merges } = await readLogHead(ledger)
    try {
      return await readSegmentsByChain(ledger)
    } catch (error) {
      // A segment that was merged meanwhile is no longer there.
      if ((await readLogHead(ledger)).merges === merges) throw error
    }
  }
}

async function readSegmentsByChain(ledger: Reader): Promise<ChainedRecord[]> {
  const records: ChainedRecord[] = []
  for (const row of await readSegments(ledger, 'order by first_position', [])) {
    const header = decodeHeader(row.header)
    if (header === null) throw new Error(`The header of segment ${row.first} is damaged`)
    const blocks = await readBlocks(ledger, [row.first])
    for (const { chain } of header.chains) {
      for (const record of recordsOfChain({ row, header, blocks }, chain, { bodies: true })) {
        if (record === null) throw new Error(`A block of segment ${row.first} is damaged`)
        const text = Buffer.from(record.body).toString()
        const event_id = record.quarantine?.event_id ?? JSON.parse(text).event_id
        records.push({ chain, seq: record.seq, event_id, text })
      }
    }
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
