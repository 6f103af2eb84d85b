/**
 * Removes what is older than `event_retention_days`: the log's oldest segments, whole, each in one transaction with the
 * signed floors of all chains in it (events/proof/README.md). Positions and numbers have the same order in a chain, so
 * the oldest segment has the first numbers of its chains. A segment holds what was received on one day
 * (log/merge-segments.ts): an event is kept at least that many days, and at most one day longer.
 *
 * What does not verify is not removed: it is evidence for an auditor. Nothing behind it is removed either, because a
 * floor says that all before it was as signed.
 */
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import { logOf } from '../engine/log-of.ts'
import { brokenConstraint } from '../log/append.ts'
import { recordBytes } from '../log/segment.ts'
import { decodeBlock, decodeHeader, type Header } from '../log/segment-codec.ts'
import { type PlacedBlock, readBlocks, readSegments, removeSegments, type SegmentRow } from '../log/segment-rows.ts'
import { arrivalText } from '../proof/arrivals.ts'
import { readKeyRing } from '../proof/checkpoint-key.ts'
import { dayMs, FloorWalk, firstFloor, floorStatements, type Raised, type RetentionOptions } from './floor-walk.ts'
import { removeOutside } from './outside-retention.ts'
import { openFloor, readStoredFloors } from './retention-floor.ts'

/** One round. Returns how many events were removed, and whether all old enough are gone. */
export async function removeOldEvents(options: RetentionOptions): Promise<{ removed: number; finished: boolean }> {
  const { ledger, clock, log, settings } = options
  const before = clock.now() - settings.event_retention_days * dayMs
  const ends = clock.monotonic() + (options.roundMs ?? 1000)
  let removed = 0
  const { outside } = logOf(ledger)
  if (outside !== null) {
    const round = await removeOutside(options, outside, ends)
    if (!round.isEmpty) return { removed: round.removed, finished: round.finished }
    removed = round.removed
  }
  for (;;) {
    const oldest = await readOldest(ledger)
    if (oldest === null || !isOlder(oldest, before)) return { removed, finished: true }
    if (clock.monotonic() >= ends) return { removed, finished: false }
    const { first, records } = oldest.row
    if (!isOlder(oldest, before - settings.sink_hold_days * dayMs)) {
      const held = await options.heldFrom()
      if (held !== null && first + records > held) {
        log.warn({ position: held }, 'Old events are kept, because a sink has not got them')
        return { removed, finished: true }
      }
    }
    const header = decodeHeader(oldest.row.header)
    const raised = header === null ? null : await raisedFloors(ledger, oldest, header)
    if (header === null || raised === null) {
      // It may have been merged or removed between two reads.
      if ((await readOldest(ledger))?.row.records !== oldest.row.records) continue
      log.error({ first_position: first }, 'Old events do not verify: they and later ones are not removed')
      return { removed, finished: true }
    }
    if (await remove(options, oldest.row, { header, raised })) removed += header.events
    await yieldToEventLoop()
  }
}

interface OldSegment {
  row: SegmentRow
  blocks: readonly PlacedBlock[]
}

async function readOldest(ledger: Database): Promise<OldSegment | null> {
  const [row] = await readSegments(ledger, 'order by first_position limit 1', [])
  return row === undefined ? null : { row, blocks: await readBlocks(ledger, [row.first]) }
}

const isOlder = ({ row, blocks }: OldSegment, before: number): boolean =>
  row.receivedAt < before && blocks.every(({ last_at }) => last_at < before)

/** The floors behind a segment; null where its records do not follow from the present ones. */
async function raisedFloors(ledger: Database, segment: OldSegment, header: Header): Promise<Raised[] | null> {
  const keys = await readKeyRing(ledger)
  const names = JSON.stringify(header.chains.map(({ chain }) => chain))
  const stored = await readStoredFloors(ledger, 'where chain in (select value from json_each(?))', [names])
  const walks = new Map<string, FloorWalk>()
  for (const { chain } of header.chains) walks.set(chain, new FloorWalk(firstFloor(chain)))
  for (const row of stored) {
    const floor = openFloor(row, keys)
    if (floor === null) return null
    walks.set(row.chain, new FloorWalk(floor))
  }
  return (await walkSegment(segment, header, walks))
    ? [...walks.values()].map((walk) => walk.raised(segment.row.receivedAt))
    : null
}

/** Whether the records of a segment follow from the floors, and lead to the digests that its runs name. */
async function walkSegment(
  { row, blocks }: OldSegment,
  { runs }: Header,
  walks: ReadonlyMap<string, FloorWalk>,
): Promise<boolean> {
  const remaining = runs.values()
  let run = { chain: '', first: 1, records: 0, digest: '' }
  let followed = 0
  let position = row.first
  for (const stored of blocks) {
    const block = stored.first_position === position ? decodeBlock(stored) : null
    if (block === null) return false
    for (const [ordinal, body] of recordBytes(block).entries()) {
      if (followed === run.records) {
        const next = remaining.next()
        if (next.done) return false
        run = next.value
        followed = 0
      }
      const walk = walks.get(run.chain)
      if (walk === undefined || walk.seq + 1 !== run.first + followed) return false
      walk.seq += 1
      walk.records.step(walk.seq, body)
      const at = block.times[ordinal] ?? 0
      walk.arrivals.step(walk.seq, arrivalText({ position, at, quarantine: block.quarantined.get(ordinal) }))
      position += 1
      followed += 1
      if (followed === run.records && walk.records.digest !== run.digest) return false
    }
    await yieldToEventLoop()
  }
  return position === row.first + row.records && followed === run.records && remaining.next().done === true
}

/** False where another control plane was first, or merged the segment: it is read again. */
async function remove(
  options: RetentionOptions,
  { first, records, receivedAt }: SegmentRow,
  { header, raised }: { header: Header; raised: readonly Raised[] },
): Promise<boolean> {
  const statements: Statement[] = [
    {
      sql: `insert into guards (holds) select 0 where not exists
        (select 1 from event_segments where first_position = ? and records = ?)`,
      args: [first, records],
    },
  ]
  statements.push(...(await floorStatements(options, raised)), ...removeSegments([{ first, facets: header.facets }]), {
    sql: 'update event_log set removed_until = max(removed_until, ?)',
    args: [receivedAt],
  })
  try {
    // If the host crashes, segments and floors are back as they were: no need to wait for the disk.
    await options.ledger.write(statements, {})
    return true
  } catch (error) {
    if (brokenConstraint(error) === 'check') return false
    throw error
  }
}
