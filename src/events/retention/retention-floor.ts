/** The signed start of a chain after retention has removed earlier events (events/proof/README.md). */
import { z } from 'zod'
import { timestamp } from '../../lib/clock.ts'
import { cellsOf, integerCell, named, readCells, textCell } from '../../store/damage/stored-cells.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import type { ChainPoint } from '../proof/checkpoint.ts'
import type { KeyRing, Signed, SignedKind } from '../proof/checkpoint-key.ts'

/** The last removed record; since a chain begins with 1, its number says how many were removed. */
export interface Floor extends ChainPoint {
  chain: string
  /** Everything removed with it was received up to then, in milliseconds since the epoch. */
  until: number
}

interface StoredFloor extends Signed {
  chain: string
  seq: number
}

const bodySchema = z.strictObject({
  chain: z.string(),
  seq: z.number().int(),
  digest: z.string(),
  arrivals: z.string(),
  until: z.number().int(),
  at: z.iso.datetime(),
})

export const floorKind: SignedKind = 'floor'

/** The text that is signed. */
export const floorBody = ({ chain, seq, digest, arrivals, until }: Floor, at: number): string =>
  JSON.stringify({ chain, seq, digest, arrivals, until, at: timestamp(at) })

/** The floor in a row; null if its signature or its columns are invalid. */
export function openFloor(row: StoredFloor, keys: KeyRing): Floor | null {
  if (keys.check(floorKind, row) !== 'good') return null
  const parsed = bodySchema.safeParse(JSON.parse(row.body))
  if (!parsed.success || parsed.data.chain !== row.chain || parsed.data.seq !== row.seq) return null
  const { at: _at, ...floor } = parsed.data
  return floor
}

const columns = named(['chain', 'seq', 'key_id', 'signature', 'body'])

/** All of them, or those that meet a condition in SQL. */
export async function readStoredFloors(ledger: Database, where = '', args: string[] = []): Promise<StoredFloor[]> {
  const rows = await ledger.read(`select ${cellsOf(columns)} from chain_floors ${where}`, args)
  return rows.map((row) => {
    const { chain, seq, key_id: keyId, signature, body } = readCells(columns, row.cells)
    return {
      chain: textCell(chain),
      seq: integerCell(seq),
      ...{ key_id: textCell(keyId), signature: textCell(signature), body: textCell(body) },
    }
  })
}

/** Statements that raise a floor which is still at `from`. Otherwise their transaction fails. */
export const raiseFloor = (chain: string, from: number, seq: number, signed: Signed): Statement[] => [
  {
    sql: 'insert into guards (holds) select 0 where coalesce((select seq from chain_floors where chain = ?), 0) <> ?',
    args: [chain, from],
  },
  {
    sql: `insert into chain_floors (chain, seq, key_id, signature, body) values (?, ?, ?, ?, ?)
      on conflict (chain) do update set seq = excluded.seq, key_id = excluded.key_id, signature = excluded.signature,
        body = excluded.body`,
    args: [chain, seq, signed.key_id, signed.signature, signed.body],
  },
]
