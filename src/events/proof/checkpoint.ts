/**
 * A checkpoint: the signed heads of all chains at an instant (events/proof/README.md). Besides the chain's own digest
 * it has a second one, over what the ledger adds to each body (arrivals.ts), so that every column is covered.
 */
import { z } from 'zod'
import { timestamp } from '../../lib/clock.ts'
import { cellsOf, integerCell, named, readCells, textCell } from '../../store/damage/stored-cells.ts'
import type { Database } from '../../store/open.ts'
import type { Signed } from './checkpoint-key.ts'

/** A point in a chain: the number and digest of an event, and the digest of arrivals up to it. */
export interface ChainPoint {
  seq: number
  digest: string
  arrivals: string
}

export interface Checkpoint {
  /** One more than that of the previous checkpoint. */
  number: number
  /** Milliseconds since the epoch. */
  at: number
  heads: ReadonlyMap<string, ChainPoint>
  /**
   * The series, named by its first checkpoint: checkpoints that were started anew have another. Null in those of older
   * releases.
   */
  series: string | null
  /** The former ones that the ledger keeps, ascending. */
  kept: readonly KeptCheckpoint[]
  /** How often in this series a chain was left out because retention had removed all of it. */
  removed: number
}

/** A checkpoint by its number and its time, in milliseconds since the epoch. */
export type KeptCheckpoint = readonly [number: number, at: number]

/**
 * Bytes of a checkpoint: the heads of some 70 000 chains. Gateways do not compare longer ones; doctor and the gateway's
 * log report it. Comparing takes a gateway some 2 ms a minute with 1000 chains, and 80 ms with 70 000.
 */
export const longestCheckpoint = 16 * 1024 * 1024

type HeadRow = readonly [chain: string, seq: number, digest: string, arrivals: string]

/** Checked by hand: there can be ten thousands, and a schema for each takes ten times as long as parsing them. */
const isHeadRow = (row: unknown): boolean =>
  Array.isArray(row) &&
  row.length === 4 &&
  Number.isSafeInteger(row[1]) &&
  typeof row[0] === 'string' &&
  typeof row[2] === 'string' &&
  typeof row[3] === 'string'

const bodySchema = z.object({
  number: z.number().int(),
  at: z.iso.datetime(),
  series: z.string().nullable().default(null),
  kept: z.array(z.tuple([z.number().int(), z.number().int()])).default([]),
  removed: z.number().int().default(0),
  heads: z.custom<readonly HeadRow[]>((rows) => Array.isArray(rows) && rows.every(isHeadRow)),
})

export const signedSchema = z.strictObject({
  body: z.string().max(longestCheckpoint),
  key_id: z.string().max(64),
  signature: z.string().max(128),
})

/** The text that is signed. */
export function checkpointBody({ at, heads, ...rest }: Checkpoint): string {
  const rows = [...heads].map(([chain, { seq, digest, arrivals }]) => [chain, seq, digest, arrivals])
  return JSON.stringify({ ...rest, at: timestamp(at), heads: rows })
}

const readBody = (body: string): z.infer<typeof bodySchema> | null => bodySchema.safeParse(parseJson(body)).data ?? null

/** Parses what `checkpointBody` wrote; null for anything else. */
export function parseCheckpoint(body: string): Checkpoint | null {
  const parsed = readBody(body)
  if (parsed === null) return null
  const { at, heads, ...rest } = parsed
  const points = heads.map(([chain, seq, digest, arrivals]) => [chain, { seq, digest, arrivals }] as const)
  return { ...rest, at: Date.parse(at), heads: new Map(points) }
}

/** What is wrong with a checkpoint compared with an earlier known one; null if nothing is. */
export function hasRegressed(seen: string, found: string): string | null {
  const [former, present] = [readBody(seen), readBody(found)]
  if (former === null) return null
  if (present === null) return 'not_a_checkpoint'
  if (present.number < former.number) return 'older'
  if (present.number === former.number) return seen === found ? null : 'other'
  if (former.series !== null && present.series !== former.series) return 'begun_anew'
  const reached = new Map<string, number>()
  for (const [chain, seq] of former.heads) reached.set(chain, seq)
  for (const [chain, seq] of present.heads) if (seq < (reached.get(chain) ?? 0)) return 'chain_shorter'
  for (const [chain] of present.heads) reached.delete(chain)
  const gone = reached.size
  return former.series !== null && gone > present.removed - former.removed ? 'chain_missing' : null
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    // The schema says that nothing is not a checkpoint.
    return undefined
  }
}

export interface StoredCheckpoint extends Signed {
  number: number
}

/** The newest one, as the state and so every host has it; null if there is none yet. */
export async function readStateCheckpoint(state: Database): Promise<StoredCheckpoint | null> {
  const [row] = await readStored(state, inState, '')
  if (row === undefined || row.number === 0) return null
  const { at: _notThere, ...stored } = row
  return stored
}

const inState = named(['number', 'key_id', 'signature', 'body'])
const inLedger = { ...inState, at: 'at' }

/** Bytes of the newest one's body; 0 if there is none yet. */
export async function readCheckpointLength(state: Database): Promise<number> {
  const [row] = await state.read<{ length: number }>('select octet_length(body) as length from checkpoints')
  return row?.length ?? 0
}

/** Those of the ledger that meet a condition in SQL, with what a row says of its time. */
export const readKeptCheckpoints = (ledger: Database, tail: string, args: string[] = []) =>
  readStored(ledger, inLedger, tail, args)

async function readStored(
  database: Database,
  columns: Readonly<Record<string, string>>,
  tail: string,
  args: string[] = [],
): Promise<(StoredCheckpoint & { at: number })[]> {
  const rows = await database.read(`select ${cellsOf(columns)} from checkpoints ${tail}`, args)
  return rows.map((row) => {
    const { number, at, body, key_id: keyId, signature } = readCells(columns, row.cells)
    return {
      number: integerCell(number),
      at: integerCell(at),
      ...{ body: textCell(body), key_id: textCell(keyId), signature: textCell(signature) },
    }
  })
}
