/**
 * Removes what is old from where records are kept outside of the ledger. Floors are raised in the ledger first, some
 * records at a time, and then the records are removed: a kill between the two leaves records below the floors, which the
 * next round removes. What was received before the start of a day (UTC) is removed together, so that ClickHouse rewrites
 * its parts once a day.
 */
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import type { Statement } from '../../store/statement.ts'
import type { OutsideRecords, StoredRecord } from '../engine/event-log.ts'
import { brokenConstraint } from '../log/append.ts'
import { eventsOf } from '../log/record.ts'
import { arrivalText } from '../proof/arrivals.ts'
import { readKeyRing } from '../proof/checkpoint-key.ts'
import { parseRecord } from '../verify/record-check.ts'
import { dayMs, FloorWalk, firstFloor, floorStatements, type RetentionOptions } from './floor-walk.ts'
import { openFloor, readStoredFloors } from './retention-floor.ts'

/** Records of one raise of floors, and some more. */
const recordsAtOnce = 4096

interface Round {
  removed: number
  /** Whether all that is old enough is gone. */
  finished: boolean
  /** Whether nothing is left outside, so that the oldest record is in the ledger. */
  isEmpty: boolean
}

/** `ends`: when the round ends, by the monotonic clock. */
export async function removeOutside(options: RetentionOptions, outside: OutsideRecords, ends: number): Promise<Round> {
  const { clock, log, settings } = options
  const old = clock.now() - settings.event_retention_days * dayMs
  const before = old - (old % dayMs)
  const heldBefore = before - settings.sink_hold_days * dayMs
  if (!(await outside.holdsReceivedBefore(before))) {
    return { removed: 0, finished: true, isEmpty: !(await outside.holdsReceivedBefore(Number.MAX_SAFE_INTEGER)) }
  }
  let removed = 0
  for (;;) {
    const floors = await readFloors(options)
    if (floors === null) return { removed, finished: true, isEmpty: false }
    const kept = [...floors.values()].reduce((sum, { seq }) => sum + seq, 1)
    const oldest = await outside.oldest()
    const isOver = clock.monotonic() >= ends
    let some = oldest === null || isOver ? [] : await readOld(outside, kept, before)
    const held = some.some(({ receivedAt }) => receivedAt >= heldBefore) ? await options.heldFrom() : null
    if (held !== null && (some.at(-1)?.position ?? 0) >= held) {
      log.warn({ position: held }, 'Old events are kept, because a sink has not got them')
      some = await readOld(outside, kept, heldBefore)
    }
    if (some.length === 0) {
      if (oldest !== null && oldest < kept) await outside.remove(kept)
      return { removed, finished: !isOver, isEmpty: (await outside.oldest()) === null }
    }
    const walks = walk(some, kept, floors)
    if (walks === null) {
      log.error({ first_position: kept }, 'Old events do not verify: they and later ones are not removed')
      return { removed, finished: true, isEmpty: false }
    }
    if (await raise(options, walks, some)) removed += some.reduce((sum, record) => sum + countOf(record), 0)
    await yieldToEventLoop()
  }
}

/** Null where one is not what was signed. */
async function readFloors({ ledger, log }: RetentionOptions): Promise<Map<string, FloorWalk> | null> {
  const keys = await readKeyRing(ledger)
  const walks = new Map<string, FloorWalk>()
  for (const row of await readStoredFloors(ledger)) {
    const floor = openFloor(row, keys)
    if (floor === null) {
      log.error({ chain: row.chain }, 'The record of what retention removed does not verify: nothing is removed')
      return null
    }
    walks.set(row.chain, new FloorWalk(floor))
  }
  return walks
}

/** The oldest records, as far as all of them are old enough, up to where the digest of each of their chains was named. */
async function readOld(outside: OutsideRecords, from: number, before: number): Promise<StoredRecord[]> {
  const old: StoredRecord[] = []
  const open = new Set<string>()
  let whole = 0
  for await (const record of outside.stored({ from, before: await outside.boundary() })) {
    if (record.receivedAt >= before || record.at >= before || whole >= recordsAtOnce) break
    old.push(record)
    if (record.digestAfter === null) open.add(record.chain)
    else open.delete(record.chain)
    if (open.size === 0) whole = old.length
  }
  return old.slice(0, whole)
}

/** The chains that were walked on from their floors; null where a record does not follow. */
function walk(
  records: readonly StoredRecord[],
  first: number,
  floors: ReadonlyMap<string, FloorWalk>,
): Map<string, FloorWalk> | null {
  const walks = new Map<string, FloorWalk>()
  for (const [index, { position, chain, seq, at, text, quarantine, ...named }] of records.entries()) {
    const walking = walks.get(chain) ?? floors.get(chain) ?? new FloorWalk(firstFloor(chain))
    walks.set(chain, walking)
    if (position !== first + index || seq !== walking.seq + 1) return null
    if (named.digestBefore !== null && named.digestBefore !== walking.records.digest) return null
    walking.seq = seq
    walking.records.step(seq, text)
    if (named.digestAfter !== null && named.digestAfter !== walking.records.digest) return null
    walking.arrivals.step(seq, arrivalText({ position, at, quarantine }))
  }
  return walks
}

const countOf = ({ text, quarantine }: StoredRecord): number => {
  const record = quarantine === undefined ? parseRecord(text) : null
  return record === null ? 1 : eventsOf(record)
}

/** False where another control plane was first. */
async function raise(
  options: RetentionOptions,
  walks: ReadonlyMap<string, FloorWalk>,
  records: readonly StoredRecord[],
): Promise<boolean> {
  const receivedAt = records.reduce((most, record) => Math.max(most, record.receivedAt), 0)
  const raised = [...walks.values()].map((each) => each.raised(receivedAt))
  const statements: Statement[] = [
    ...(await floorStatements(options, raised)),
    { sql: 'update event_log set removed_until = max(removed_until, ?)', args: [receivedAt] },
  ]
  try {
    await options.ledger.write(statements)
    return true
  } catch (error) {
    if (brokenConstraint(error) === 'check') return false
    throw error
  }
}
