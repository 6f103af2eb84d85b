/**
 * Signs the heads of all chains, every minute with new events (events/proof/README.md): into one `state` row, which
 * every host copies and so witnesses, into one log line, and into the ledger, which keeps some of the former ones to
 * narrow findings down. One of several control planes signs each minute; the others find the row changed.
 *
 * A chain that no longer matches its signed head keeps that head: a checkpoint never hides what the one before it
 * shows.
 */
import { randomUUID } from 'node:crypto'
import type { Clock } from '../../lib/clock.ts'
import type { Log } from '../../lib/log/log.ts'
import { cellsOf, integerCell, named, readCells } from '../../store/damage/stored-cells.ts'
import type { Database } from '../../store/open.ts'
import type { Head } from '../../store/propagation.ts'
import type { Statement } from '../../store/statement.ts'
import { readHead } from '../change-statements.ts'
import type { ChainReader } from '../engine/event-log.ts'
import { logOf } from '../engine/log-of.ts'
import { chainStart } from '../log/chain.ts'
import { openFloor, readStoredFloors } from '../retention/retention-floor.ts'
import { arrivalsStart, arrivalsUpTo } from './arrivals.ts'
import {
  type ChainPoint,
  type Checkpoint,
  checkpointBody,
  type KeptCheckpoint,
  parseCheckpoint,
  readKeptCheckpoints,
  readStateCheckpoint,
  type StoredCheckpoint,
} from './checkpoint.ts'
import { type KeyRing, readKeyRing, type Signed, type SigningKey } from './checkpoint-key.ts'

export interface CheckpointOptions {
  state: Database
  ledger: Database
  key: SigningKey
  /** Called right after the state transaction. */
  announce(head: Head): void
  clock: Clock
  log: Log
  settings: { event_retention_days: number }
}

const everyMs = 60_000
const hourMs = 3_600_000
const dayMs = 86_400_000

const none: Checkpoint = {
  ...{ number: 0, at: Number.NEGATIVE_INFINITY, heads: new Map(), series: null, kept: [], removed: 0 },
}

/** Call every few seconds. Returns whether a checkpoint was signed. */
export async function signCheckpoint(options: CheckpointOptions): Promise<boolean> {
  const { state, ledger, key, clock, log } = options
  const keys = await readKeyRing(ledger)
  const inState = await readStateCheckpoint(state)
  const former = await newestSigned(options, keys)
  if (clock.now() - former.at < everyMs) return false
  const heads = await readHeads(options, keys, former)
  if (![...heads].some(([chain, { seq }]) => seq > (former.heads.get(chain)?.seq ?? 0))) return false
  const checkpoint = await following(options, former, heads)
  const signed = key.sign('checkpoint', checkpointBody(checkpoint))
  // Every host will compare the ledger with it.
  await ledger.flush()
  await state.write(
    replaceCheckpoint(signed, { number: checkpoint.number, former: inState?.number ?? 0, at: options.clock.now() }),
  )
  if ((await readStateCheckpoint(state))?.signature !== signed.signature) return false
  options.announce(await readHead(state))
  await ledger.write([keepCheckpoint(signed, checkpoint), thinCheckpoints(checkpoint)])
  log.info({ checkpoint: checkpoint.number, ...signed }, 'The heads of all chains were signed')
  return true
}

/** Copies to the ledger the checkpoint whose signer stopped before the ledger had it. */
export async function completeCheckpoint(options: CheckpointOptions): Promise<void> {
  await newestSigned(options, await readKeyRing(options.ledger))
}

/** The newest checkpoint with a valid signature, in the state or, if that was lost or altered, in the ledger. */
async function newestSigned({ state, ledger, clock, log }: CheckpointOptions, keys: KeyRing): Promise<Checkpoint> {
  const [kept] = await readKeptCheckpoints(ledger, 'order by number desc limit 1')
  const open = (signed: Signed | undefined | null): Checkpoint => {
    if (signed == null) return none
    if (keys.check('checkpoint', signed) === 'good') return parseCheckpoint(signed.body) ?? none
    log.error({ key_id: signed.key_id }, 'A checkpoint differs from what was signed')
    return none
  }
  const signed = await readStateCheckpoint(state)
  const [inState, inLedger] = [open(signed), open(kept)]
  if (signed !== null && inState === none) await ledger.write([keepEvidence(signed, clock.now())])
  if (inState.number <= inLedger.number) return inLedger
  // The signer died between the two databases.
  if (signed !== null) await ledger.write([keepCheckpoint(signed, inState)])
  return inState
}

/**
 * The checkpoint after `former`. The list of kept ones is taken from what was signed, and only before the first from
 * the table.
 */
async function following(
  { ledger, clock, settings }: CheckpointOptions,
  former: Checkpoint,
  heads: Checkpoint['heads'],
): Promise<Checkpoint> {
  const listed = former.series !== null || former.number === 0
  const before = listed
    ? [...former.kept, ...(former.number === 0 ? [] : [[former.number, former.at] as const])]
    : (await ledger.read<{ number: number; at: number }>('select number, at from checkpoints order by number')).map(
        ({ number, at }) => [number, at] as const,
      )
  const at = clock.now()
  return {
    number: former.number + 1,
    at,
    heads,
    series: former.series ?? randomUUID(),
    kept: thinned(before, at, settings.event_retention_days * dayMs),
    removed: former.removed + [...former.heads.keys()].filter((chain) => !heads.has(chain)).length,
  }
}

async function readHeads(
  { ledger, log }: CheckpointOptions,
  keys: KeyRing,
  former: Checkpoint,
): Promise<Map<string, ChainPoint>> {
  const chains = await readChains(ledger)
  const floors = await readFloors(ledger, keys)
  const heads = new Map<string, ChainPoint>()
  const reader = logOf(ledger).chains()
  for (const { chain, seq, digest } of chains) {
    const floor = floors.get(chain)
    // Its events are all removed: the floor says so, and a worker that comes back brings the chain back.
    if (floor?.seq === seq) continue
    const known = former.heads.get(chain)
    const base = known !== undefined && known.seq > (floor?.seq ?? 0) ? known : floor
    const point = await pointAt(reader, chain, { base, removed: base === floor }, { seq, digest })
    if (point === null) log.error({ chain, seq }, 'A chain does not continue from its last signed head')
    const kept = point ?? known
    if (kept !== undefined) heads.set(chain, kept)
  }
  for (const [chain, point] of former.heads) {
    if (!heads.has(chain) && (floors.get(chain)?.seq ?? 0) < point.seq) heads.set(chain, point)
  }
  return heads
}

/**
 * The head as a point in a chain that continues from `base`, which retention may have removed; null if it does not
 * continue.
 */
async function pointAt(
  reader: ChainReader,
  chain: string,
  { base, removed }: { base: ChainPoint | undefined; removed: boolean },
  head: { seq: number; digest: string },
): Promise<ChainPoint | null> {
  const from = base ?? { seq: 0, digest: chainStart(chain), arrivals: arrivalsStart(chain) }
  if (head.seq < from.seq) return null
  if (head.seq === from.seq) return head.digest === from.digest ? from : null
  if (!removed && (await reader.digestAt(chain, from.seq)) !== from.digest) return null
  if ((await reader.digestAt(chain, head.seq)) !== head.digest) return null
  const arrivals = await arrivalsUpTo(reader, chain, from, head.seq)
  return arrivals === null ? null : { ...head, arrivals }
}

const chainColumns = named(['chain', 'seq', 'digest'])

/** The chain heads in the ledger. Invalid rows are left out, and what was signed of them stays. */
async function readChains(ledger: Database): Promise<{ chain: string; seq: number; digest: string }[]> {
  const rows = await ledger.read(`select ${cellsOf(chainColumns)} from chains order by chain`)
  return rows.flatMap((row) => {
    const { chain, seq, digest } = readCells(chainColumns, row.cells)
    const sound = typeof chain === 'string' && typeof digest === 'string' && !chain.includes('\0')
    return sound && Number.isSafeInteger(seq) ? [{ chain, seq: integerCell(seq), digest }] : []
  })
}

async function readFloors(ledger: Database, keys: KeyRing): Promise<Map<string, ChainPoint>> {
  const rows = await readStoredFloors(ledger)
  return new Map(
    rows.flatMap((row) => {
      const floor = openFloor(row, keys)
      return floor === null ? [] : [[row.chain, floor] as const]
    }),
  )
}

/**
 * Nothing happens if the row is no longer the one that was read. The new version is in `change_log` like any other, so
 * that a restored state can be detected. Its id is a random UUID, since it belongs to no event
 * (usage/lease/allocator/restored-ledger.ts).
 */
export function replaceCheckpoint(
  { body, key_id, signature }: Signed,
  { number, former, at }: { number: number; former: number; at: number },
): Statement[] {
  const id = randomUUID()
  const unchanged = '(select number from checkpoints where id = 1) = ?'
  return [
    {
      sql: `update state_head set version = version + 1, nonce = ? where id = 1 and ${unchanged}`,
      args: [id, former],
    },
    {
      sql: `insert into change_log (event_id, version, applied, at, guard)
        select ?, (select version from state_head), 1, ?, 1 where ${unchanged}`,
      args: [id, at, former],
    },
    {
      sql: `update checkpoints set number = ?, key_id = ?, signature = ?, body = ?,
        version = (select version from state_head) where id = 1 and number = ?`,
      args: [number, key_id, signature, body, former],
    },
  ]
}

const keepCheckpoint = ({ body, key_id, signature }: Signed, { number, at }: Checkpoint): Statement => ({
  sql: `insert into checkpoints (number, at, key_id, signature, body) values (?, ?, ?, ?, ?)
    on conflict (number) do nothing`,
  args: [number, at, key_id, signature, body],
})

/**
 * The next checkpoint replaces one that was altered in the state. The altered one is kept under a negative number, so
 * that it is found.
 */
const keepEvidence = ({ number, body, key_id, signature }: StoredCheckpoint, at: number): Statement => ({
  sql: `insert into checkpoints (number, at, key_id, signature, body) values (?, ?, ?, ?, ?)
    on conflict (number) do nothing`,
  args: [Number.isNaN(number) ? -1 : -Math.abs(number), at, key_id, signature, body],
})

/** Those of the last hour, then the first of each hour, and after a day the first of each day. */
function thinned(kept: readonly KeptCheckpoint[], now: number, longestMs: number): KeptCheckpoint[] {
  const seen = new Set<string>()
  return kept.filter(([, at]) => {
    const age = now - at
    if (age <= hourMs) return true
    if (age > longestMs) return false
    const span = age <= dayMs ? hourMs : dayMs
    const name = `${span} ${Math.floor(at / span)}`
    if (seen.has(name)) return false
    seen.add(name)
    return true
  })
}

const thinCheckpoints = ({ number, kept }: Checkpoint): Statement => ({
  sql: 'delete from checkpoints where number > 0 and number < ? and number not in (select value from json_each(?))',
  args: [number, JSON.stringify(kept.map(([each]) => each))],
})
