/**
 * Ingests a gateway worker's records into the log, each exactly once and in the order of the worker's chain
 * (events/proof/README.md). A batch that was ingested before, in whole or in part, is accepted again: the answer is
 * always the head, after which the worker continues. A record is stored as it came. What
 * is not valid keeps its place in the chain as quarantined (read-batch.ts).
 */
import { Failure } from '../../failure.ts'
import type { Log } from '../../lib/log/log.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import { logOf } from '../engine/log-of.ts'
import {
  appendStatements,
  brokenConstraint,
  type ChainHead,
  hasRecordsBeyond,
  headAfter,
  isBusy,
  readChainHead,
} from '../log/append.ts'
import type { LogRecord } from '../log/record.ts'
import { lineFeed, type NewRecord } from '../log/segment.ts'
import { pendingRollups } from '../rollups/pending-rollups.ts'
import { sessionStatements } from '../sessions/session-sums.ts'
import { type ReceivedBatch, readBatch } from './read-batch.ts'

interface Batch extends ReceivedBatch {
  log: Log
  /** Further statements for the transaction that appends these records; called once for each attempt. */
  bookingStatements(records: readonly LogRecord[]): readonly Statement[]
  /** These records were appended by this call. */
  onIngested(records: readonly LogRecord[]): void
  /** Called with how long the transaction held the database, in milliseconds. */
  onHeld?(milliseconds: number): void
}

const wrongDigest = 'The digest of the batch does not follow from its records and the head of the chain'
const beyondItsEnd = 'The ledger has records of this chain beyond where it says that the chain ends'
const oneLine = 'A record has a line feed'
const attempts = 5
const busyWaitMs = 5
/** More than a million records back. */
const maxEarlier = 21

/** The chain's head: its last number and digest, or 0 and its first digest. */
export const chainHead = (ledger: Database, chain: string): Promise<ChainHead> => readChainHead(ledger, chain)

/** Like `chainHead`, with points that are at least 1, 2, 4, … records back, as far as they are kept. */
export async function announcedHead(ledger: Database, chain: string): Promise<ChainHead & { earlier: ChainHead[] }> {
  const head = await readChainHead(ledger, chain)
  const back = Array.from({ length: maxEarlier }, (_, power) => head.seq - 2 ** power)
  const earlier = await logOf(ledger).chains().points(chain, back)
  await ledger.flush()
  return { ...head, earlier }
}

/**
 * Appends a batch and returns the chain's head. Throws `invalid_parameter` if a record is not one line, `chain_gap` if earlier records are missing, and `chain_fork` if
 * a number is recorded with other content or beyond the chain's head, or the digest does not follow.
 */
export async function ingestEvents(ledger: Database, batch: Batch): Promise<ChainHead> {
  const { chain, lines } = batch
  if (!Number.isSafeInteger(batch.first) || batch.first < 1) throw new Failure('chain_gap')
  // The log keeps one record a line.
  if (lines.some(({ bytes }) => bytes.includes(lineFeed))) throw new Failure('invalid_parameter', { message: oneLine })
  const records = await readBatch(ledger, batch)
  for (let attempt = 1; ; attempt += 1) {
    const head = await readChainHead(ledger, chain)
    await requireSameHistory(ledger, batch, head)
    const known = Math.min(lines.length, Math.max(0, head.seq + 1 - batch.first))
    const fresh = records.slice(known)
    if (fresh.length === 0) {
      // The worker keeps the records until it gets this head.
      await ledger.flush()
      return head
    }
    if (batch.first > head.seq + 1) throw new Failure('chain_gap')
    requireChained(head, fresh, batch.digest)
    try {
      await write(ledger, batch, { head, fresh })
      await ledger.flush()
      return { seq: head.seq + fresh.length, digest: batch.digest }
    } catch (error) {
      if (isBusy(error)) {
        if (attempt === attempts) throw new Failure('dependency_unavailable', { cause: error, retryAfter: 1 })
        await Bun.sleep(busyWaitMs * attempt)
        continue
      }
      const broken = brokenConstraint(error)
      if (broken !== 'check' && broken !== 'unique') throw error
      if (await hasRecordsBeyond(ledger, chain)) {
        throw new Failure('chain_fork', { cause: error, message: beyondItsEnd })
      }
      if (attempt === attempts) throw error
      // Otherwise the chain grew between the read of its head and the write: read again.
    }
  }
}

async function write(
  ledger: Database,
  batch: Batch,
  { head, fresh }: { head: ChainHead; fresh: readonly NewRecord[] },
): Promise<void> {
  const { chain, receivedAt, digest, onHeld: held } = batch
  const understood = fresh.flatMap(({ record }) => record ?? [])
  const statements = [
    ...appendStatements({ chain, head, records: fresh, digest, receivedAt }),
    ...pendingRollups(understood, receivedAt),
    ...sessionStatements(understood, receivedAt),
    ...batch.bookingStatements(understood),
  ]
  // Grants and revocations go first: a worker keeps what is not acknowledged and can send it at any time.
  await ledger.write(statements, held === undefined ? {} : { held })
  batch.onIngested(understood)
  for (const { quarantine } of fresh) {
    if (quarantine === undefined) continue
    const { seq, reason } = quarantine
    batch.log.error({ chain, n: seq, reason }, 'A record of a gateway was quarantined: it is not valid')
  }
}

/** Repeated records must equal the recorded ones. Those that retention has removed can no longer be compared. */
async function requireSameHistory(ledger: Database, batch: Batch, head: ChainHead): Promise<void> {
  const { chain, first, lines, digest } = batch
  const last = first + lines.length - 1
  if (lines.length === 0 || first > head.seq) return
  if (last === head.seq && digest !== head.digest) throw new Failure('chain_fork')
  const upTo = Math.min(last, head.seq)
  for await (const record of logOf(ledger)
    .chains()
    .records(chain, { after: first - 1, upTo, bodies: true })) {
    if (record === null) throw new Failure('chain_fork', { message: 'A recorded part of this chain is damaged' })
    if (lines[record.seq - first]?.bytes.equals(record.body) !== true) throw new Failure('chain_fork')
  }
}

function requireChained(head: ChainHead, fresh: readonly NewRecord[], digest: string): void {
  if (headAfter(head, fresh).digest !== digest) throw new Failure('chain_fork', { message: wrongDigest })
}
