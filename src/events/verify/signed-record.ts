/** What checkpoints and floors with valid signatures say: the points that chains are compared with. */
import type { Database } from '../../store/open.ts'
import {
  type ChainPoint,
  type Checkpoint,
  parseCheckpoint,
  readKeptCheckpoints,
  readStateCheckpoint,
} from '../proof/checkpoint.ts'
import { type KeyRing, readKeyRing, type Signed } from '../proof/checkpoint-key.ts'
import { type Floor, openFloor, readStoredFloors } from '../retention/retention-floor.ts'
import { type Finding, Findings, finding } from './finding.ts'

export interface SignedSources {
  state: Database
  ledger: Database
  /** Ids of the keys to trust; empty for all in the ledger. */
  pinned: readonly string[]
  /** Checkpoints from elsewhere: a gateway's data directory, or a log. */
  witnesses: readonly Signed[]
  /** Milliseconds since the epoch. */
  now: number
}

export interface SignedRecord {
  findings: Finding[]
  keys: KeyRing
  newest: { number: number; at: number; key_id: string } | null
  /** The points of each chain in the checkpoints. */
  points: Map<string, ChainPoint[]>
  /** The points of chains in the newest checkpoint that is not younger than `since`. */
  base: ReadonlyMap<string, ChainPoint>
}

interface Held {
  checkpoint: Checkpoint
  signed: Signed
}

const maxReadings = 5
const pauseMs = 30

/**
 * How long the newest checkpoint may be in the state alone. Its signer stopped between the two databases, and another
 * control plane copies it to the ledger within seconds.
 */
const copiedWithinMs = 15_000

/** Reads what was signed of all chains; `since` in milliseconds since the epoch, null for all there is. */
export async function readSigned(sources: SignedSources, since: number | null): Promise<SignedRecord> {
  for (let reading = 1; ; reading += 1) {
    const record = await readOnce(sources, since)
    // The newest is in the state a moment before it is in the ledger, where it thins out former ones.
    const unsettled = record.findings.some(
      ({ what }) => what === 'checkpoint.missing' || what === 'checkpoint.went_back',
    )
    if (!unsettled || reading === maxReadings) return record
    await Bun.sleep(pauseMs)
  }
}

async function readOnce(sources: SignedSources, since: number | null): Promise<SignedRecord> {
  const keys = await readKeyRing(sources.ledger, sources.pinned)
  const record: SignedRecord = { findings: [], keys, newest: null, points: new Map(), base: new Map() }
  const inState = await readStateCheckpoint(sources.state)
  const state = inState === null ? null : open(record, inState, inState)
  const numbers = new Set<number>()
  const checkpoints: Checkpoint[] = []
  let last: Checkpoint | null = null
  for await (const { signed, stored } of keptCheckpoints(sources)) {
    if (stored !== null) numbers.add(stored.number)
    const held = open(record, signed, stored)
    if (held === null) continue
    const { number } = held.checkpoint
    if (number === state?.checkpoint.number && held.signed.body !== state.signed.body) {
      record.findings.push(finding('checkpoint.altered', { from: number, to: number }))
    }
    take(record, held, since)
    checkpoints.push({ ...held.checkpoint, heads: new Map() })
    if (last === null || number > last.number) last = { ...held.checkpoint, heads: new Map() }
  }
  if (state !== null) {
    take(record, state, since)
    checkpoints.push(state.checkpoint)
  }
  const begun = begunAnew(checkpoints)
  if (begun !== null) record.findings.push(finding('checkpoint.begun_anew', { from: begun, to: begun }))
  if (sources.pinned.length > 0 && record.newest === null) record.findings.push(finding('key.no_checkpoint', {}))
  const seen = last?.number ?? 0
  const inForce = state?.checkpoint.number ?? 0
  if (inForce < seen) record.findings.push(finding('checkpoint.went_back', { from: inForce + 1, to: seen }))
  const newest = state !== null && (inForce >= seen || begun !== null) ? state.checkpoint : last
  const expected = newest === null ? [] : newest.kept.map(([number]) => number)
  if (state !== null && sources.now - state.checkpoint.at >= copiedWithinMs) expected.push(inForce)
  record.findings.push(...missingOf(expected.filter((number) => !numbers.has(number))))
  if (inState === null && numbers.size === 0 && (await mustHaveSigned(sources))) {
    record.findings.push(finding('checkpoint.missing', {}))
  }
  return record
}

/**
 * The number of the first checkpoint of the last series, if there are several; `checkpoints` end with the present one.
 */
function begunAnew(checkpoints: readonly Checkpoint[]): number | null {
  const named = checkpoints.filter(({ series }) => series !== null)
  const last = named.at(-1)?.series
  if (named.every(({ series }) => series === last)) return null
  return Math.min(...named.flatMap(({ series, number }) => (series === last ? number : [])))
}

function missingOf(numbers: readonly number[]): Finding[] {
  const found = new Findings()
  for (const number of numbers) found.add(finding('checkpoint.missing', { from: number, to: number }))
  return found.take(true)
}

/** How long events may wait for the first checkpoint. A running control plane signs within a minute. */
const unsignedMs = 10 * 60_000

/**
 * Whether there was a checkpoint although none is left: events are old, some were removed, or the state's row shows
 * it.
 */
async function mustHaveSigned({ state, ledger, now }: SignedSources): Promise<boolean> {
  const [row] = await state.read<{ version: number }>('select version from checkpoints')
  if (row === undefined || row.version > 0) return true
  const [found] = await ledger.read(
    `select 1 from chain_floors union all
      select 1 from (select received_at from event_segments order by first_position limit 1) where received_at < ?`,
    [now - unsignedMs],
  )
  return found !== undefined
}

/** Those of the ledger, one at a time, and those from elsewhere. */
async function* keptCheckpoints({ ledger, witnesses }: SignedSources) {
  const kept = await ledger.read<{ number: string }>(
    'select cast(number as text) as number from checkpoints order by checkpoints.number',
  )
  for (const { number } of kept) {
    const [row] = await readKeptCheckpoints(ledger, 'where number = ?', [number])
    if (row !== undefined) yield { signed: row, stored: row }
  }
  for (const signed of witnesses) yield { signed, stored: null }
}

/** What a row says of its checkpoint beside what was signed. */
interface Stored {
  number: number
  /** Only in the ledger. */
  at?: number
}

/** A checkpoint with a valid signature that matches its row; otherwise null, with a finding. */
function open(record: SignedRecord, signed: Signed, stored: Stored | null): Held | null {
  const checked = record.keys.check('checkpoint', signed)
  const checkpoint = checked === 'good' ? parseCheckpoint(signed.body) : null
  const same =
    stored === null || (stored.number === checkpoint?.number && (stored.at ?? checkpoint.at) === checkpoint.at)
  if (checkpoint !== null && same) return { checkpoint, signed }
  // One that was altered in the state is kept under a negative number (checkpoint-writer.ts).
  const number = stored === null || Number.isNaN(stored.number) ? null : Math.abs(stored.number)
  record.findings.push(
    finding(checked === 'unknown_key' ? 'key.unknown' : 'checkpoint.altered', { from: number, to: number }),
  )
  return null
}

function take(record: SignedRecord, { checkpoint, signed }: Held, since: number | null): void {
  const { number, at, heads } = checkpoint
  for (const [chain, point] of heads) {
    const points = record.points.get(chain)
    const last = points?.at(-1)
    // Most chains do not move between two checkpoints.
    if (last?.seq === point.seq && last.digest === point.digest && last.arrivals === point.arrivals) continue
    if (points === undefined) record.points.set(chain, [point])
    else points.push(point)
  }
  if (since !== null && at <= since) record.base = heads
  if (record.newest === null || record.newest.number < number) record.newest = { number, at, key_id: signed.key_id }
}

/** The floors of all chains; what differs from what was signed is a finding. */
export async function readSignedFloors(ledger: Database, keys: KeyRing): Promise<(Floor | Finding)[]> {
  return (await readStoredFloors(ledger)).map((row) => {
    const { chain, seq } = row
    const what = keys.check('floor', row) === 'unknown_key' ? 'key.unknown' : 'floor.altered'
    return openFloor(row, keys) ?? finding(what, { chain, to: Number.isNaN(seq) ? null : seq })
  })
}
