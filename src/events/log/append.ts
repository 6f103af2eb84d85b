/**
 * Appends records to the log: at the end of one chain, in one transaction that fails if the chain has grown meanwhile,
 * so that two writers never fork it (events/proof/README.md).
 */
import { Failure } from '../../failure.ts'
import { asBytes, storedText } from '../../store/damage/stored-text.ts'
import type { Reader } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import { ChainWalk, chainStart } from './chain.ts'
import { blockRecords, buildSegment, type NewRecord } from './segment.ts'
import { encodeSegment } from './segment-codec.ts'
import { appendSegment, readChainRows } from './segment-rows.ts'

/** The head of a chain: the number and digest of its last record, or 0 and its first digest. */
export interface ChainHead {
  seq: number
  digest: string
}

/** Throws `data_damaged` if the digest is missing. */
export async function readChainHead(ledger: Reader, chain: string): Promise<ChainHead> {
  const [row] = await ledger.read<{ seq: number; digest: unknown }>(
    `select seq, ${asBytes('digest')} as digest from chains where chain = ?`,
    [chain],
  )
  if (row === undefined) return { seq: 0, digest: chainStart(chain) }
  const digest = storedText(row.digest)
  if (digest !== null) return { seq: row.seq, digest }
  const message = `The table chains of the ledger holds bytes that are no text, of chain ${chain}: see gatehouse events verify`
  throw new Failure('data_damaged', { message })
}

/** The head of a chain after these records. */
export function headAfter(head: ChainHead, records: readonly Pick<NewRecord, 'bytes'>[]): ChainHead {
  const walk = new ChainWalk(head.digest)
  let { seq } = head
  for (const { bytes } of records) walk.step(++seq, bytes)
  return { seq, digest: walk.digest }
}

interface Append {
  chain: string
  head: ChainHead
  /** Their numbers follow the head. */
  records: readonly NewRecord[]
  /** The chain's digest after them. */
  digest: string
  receivedAt: number
}

/**
 * Statements that append records to a chain whose head is still `head`. Otherwise their transaction fails. `full` is the
 * size of a block, for tests.
 */
export function appendStatements(
  { chain, head, records, digest, receivedAt }: Append,
  full = blockRecords,
): Statement[] {
  if (records.length === 0) return []
  const place = { chain, first: head.seq + 1, digestBefore: head.digest, digest, receivedAt }
  return [
    {
      sql: 'insert into guards (holds) select 0 where coalesce((select digest from chains where chain = ?), ?) <> ?',
      args: [chain, chainStart(chain), head.digest],
    },
    {
      sql: `insert into guards (holds) select 0 where
        (select last_seq from segment_chains where chain = ? order by first_seq desc limit 1) > ?`,
      args: [chain, head.seq],
    },
    ...appendSegment(encodeSegment(buildSegment(records, place, full))),
    {
      sql: `insert into chains (chain, seq, digest, updated_at) values (?, ?, ?, ?)
        on conflict (chain) do update set seq = excluded.seq, digest = excluded.digest, updated_at = excluded.updated_at`,
      args: [chain, head.seq + records.length, digest, receivedAt],
    },
  ]
}

/** When a record happened: never later than it was received, whatever a worker's clock has said. */
export const timeOf = (timestamp: string, receivedAt: number): number => {
  const at = Date.parse(timestamp)
  return Number.isNaN(at) ? receivedAt : Math.min(receivedAt, Math.max(0, at))
}

/** Whether another writer of a remote primary was in the way. Then the same write succeeds a moment later. */
export const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY')

/**
 * Whether records of a chain are in the log beyond the head that the ledger names: one of the two was altered. In one
 * read, because the chain may be growing.
 */
export async function hasRecordsBeyond(ledger: Reader, chain: string): Promise<boolean> {
  const head = 'coalesce((select seq from chains where chain = segment_chains.chain), 0)'
  return (await readChainRows(ledger, chain, `and last_seq > ${head} limit 1`, [])).length > 0
}

/** The kind of constraint of a database error; null for other errors. */
export function brokenConstraint(error: unknown): 'check' | 'unique' | 'other' | null {
  if (!(error instanceof Error)) return null
  if (!/constraint failed/i.test(error.message)) return error.cause === undefined ? null : brokenConstraint(error.cause)
  if (/CHECK constraint failed/i.test(error.message)) return 'check'
  return /UNIQUE constraint failed|PRIMARY KEY/i.test(error.message) ? 'unique' : 'other'
}
