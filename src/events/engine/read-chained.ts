/**
 * Reads records of the log by position, each with its chain and its number there. Merging segments changes none of
 * these, so a header that was read before a merge holds after it.
 *
 * SQL text: the smallest key of a table.
 */
import type { Reader } from '../../store/open.ts'
import { readRecords } from '../log/read-records.ts'
import { decodeHeader } from '../log/segment-codec.ts'
import { readSegments } from '../log/segment-rows.ts'
import type { ChainedRecord, PositionRange } from './event-log.ts'

/** Consecutive records of one chain. */
interface Run {
  start: number
  records: number
  chain: string
  first: number
}

/** The records from position `from` on and below `before`; one for all of a block that cannot be read. */
export async function* readChained(
  ledger: Reader,
  range: PositionRange,
): AsyncGenerator<ChainedRecord, void, undefined> {
  let runs: Run[] = []
  let at = 0
  for await (const record of readRecords(ledger, range)) {
    const { position } = record
    let run = runs[at]
    while (run !== undefined && position >= run.start + run.records) {
      at += 1
      run = runs[at]
    }
    if (run === undefined || position < run.start) {
      runs = await runsAt(ledger, position)
      at = runs.findIndex(({ start, records }) => position < start + records)
      run = runs[at]
    }
    const chain = run?.chain ?? ''
    const seq = run === undefined ? 0 : run.first + position - run.start
    yield { ...record, chain, seq }
  }
}

/** The runs of the segment that holds a position; none where its header cannot be read. */
async function runsAt(ledger: Reader, position: number): Promise<Run[]> {
  const [row] = await readSegments(ledger, 'where first_position <= ? order by first_position desc limit 1', [position])
  const header = row === undefined ? null : decodeHeader(row.header)
  if (row === undefined || header === null) return []
  let start = row.first
  return header.runs.map(({ chain, first, records }) => {
    const run = { start, records, chain, first }
    start += records
    return run
  })
}

/** The position of the oldest record that is kept; null where the log is empty. */
export async function oldestPosition(ledger: Reader): Promise<number | null> {
  const [row] = await ledger.read<{ first: number | null }>('select min(first_position) as first from event_segments')
  return row?.first ?? null
}
