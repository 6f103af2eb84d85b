/** What checkpoints and floors say, once their signatures hold: the places that rows are held against. */
import type { Database } from '../store/open.ts'
import { type ChainPoint, type Checkpoint, parseCheckpoint, readStateCheckpoint } from './checkpoint.ts'
import { type KeyRing, readKeyRing, type Signed } from './checkpoint-key.ts'
import { type Floor, openFloor, type StoredFloor } from './retention-floor.ts'
import { type Finding, finding } from './verify-finding.ts'

export interface SignedSources {
  state: Database
  ledger: Database
  /** Ids of the keys to trust; empty for all that stand in the ledger. */
  pinned: readonly string[]
  /** Checkpoints that somebody has seen: from a gateway's data directory, or from a log. */
  witnesses: readonly Signed[]
}

export interface SignedRecord {
  findings: Finding[]
  keys: KeyRing
  newest: { number: number; at: number; key_id: string } | null
  /** Where each chain was, as checkpoints say. */
  points: Map<string, ChainPoint[]>
  /** Where chains were at the newest checkpoint that is not younger than `since`. */
  base: ReadonlyMap<string, ChainPoint>
}

interface Held {
  checkpoint: Checkpoint
  signed: Signed
}

/** Reads what was signed of all chains; `since` in milliseconds since the epoch, null for all there is. */
export async function readSigned(sources: SignedSources, since: number | null): Promise<SignedRecord> {
  const keys = await readKeyRing(sources.ledger, sources.pinned)
  const record: SignedRecord = { findings: [], keys, newest: null, points: new Map(), base: new Map() }
  const inState = await readStateCheckpoint(sources.state)
  const state = inState === null ? null : open(record, inState, inState.number)
  const others: Checkpoint[] = []
  for await (const { signed, number } of keptCheckpoints(sources)) {
    const held = open(record, signed, number)
    if (held === null) continue
    if (held.checkpoint.number === state?.checkpoint.number && held.signed.body !== state.signed.body) {
      record.findings.push(finding('checkpoint.altered', { from: held.checkpoint.number, to: held.checkpoint.number }))
    }
    take(record, held, since)
    others.push({ ...held.checkpoint, heads: new Map() })
  }
  if (state !== null) take(record, state, since)
  if (sources.pinned.length > 0 && record.newest === null) record.findings.push(finding('key.no_checkpoint', {}))
  const seen = Math.max(0, ...others.map(({ number }) => number))
  const inForce = state?.checkpoint.number ?? 0
  if (inForce < seen) record.findings.push(finding('checkpoint.went_back', { from: inForce + 1, to: seen }))
  return record
}

/** Those of the ledger, one at a time, and those that were brought. */
async function* keptCheckpoints({ ledger, witnesses }: SignedSources) {
  let last = Number.MIN_SAFE_INTEGER
  for (;;) {
    const [row] = await ledger.read<Signed & { number: number }>(
      'select number, body, key_id, signature from checkpoints where number > ? order by number limit 1',
      [last],
    )
    if (row === undefined) break
    last = row.number
    yield { signed: row, number: row.number }
  }
  for (const signed of witnesses) yield { signed, number: null }
}

/** A checkpoint whose signature holds and that is the one it is kept as; otherwise null, and a finding. */
function open(record: SignedRecord, signed: Signed, number: number | null): Held | null {
  const checked = record.keys.check('checkpoint', signed)
  const checkpoint = checked === 'good' ? parseCheckpoint(signed.body) : null
  if (checkpoint !== null && (number === null || checkpoint.number === number)) return { checkpoint, signed }
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
    // Most chains stand still between two checkpoints.
    if (last?.seq === point.seq && last.digest === point.digest && last.arrivals === point.arrivals) continue
    if (points === undefined) record.points.set(chain, [point])
    else points.push(point)
  }
  if (since !== null && at <= since) record.base = heads
  if (record.newest === null || record.newest.number < number) record.newest = { number, at, key_id: signed.key_id }
}

/** The floor of a chain: null where there is none, a finding where it is not what was signed. */
export async function readSignedFloor(ledger: Database, keys: KeyRing, chain: string): Promise<Floor | Finding | null> {
  const [row] = await ledger.read<StoredFloor>('select * from chain_floors where chain = ?', [chain])
  if (row === undefined) return null
  const floor = openFloor(row, keys)
  if (floor !== null) return floor
  const known = keys.check('floor', row) !== 'unknown_key'
  return finding(known ? 'floor.altered' : 'key.unknown', { chain, to: typeof row.seq === 'number' ? row.seq : null })
}
