/**
 * Removes what is older than `event_retention_days`: from each chain, of live and dead workers, whole prefixes in
 * small batches, each with the signed floor in the same transaction (events/proof/README.md). It yields between
 * batches, and a slow batch is followed by a smaller one, so that no read waits long.
 *
 * What does not verify is not removed: it is evidence for an auditor.
 */
import type { Log } from '../../lib/log/log.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import { cellsOf, integerCell, named, readCells, textCell } from '../../store/damage/stored-cells.ts'
import { asBytes, storedBytes, storedText } from '../../store/damage/stored-text.ts'
import type { Database } from '../../store/open.ts'
import { brokenConstraint } from '../log/append.ts'
import { chainNext, chainStart } from '../log/chain.ts'
import { arrivalsNext, arrivalsStart, arrivalText } from '../proof/arrivals.ts'
import { readKeyRing, type SigningKey } from '../proof/checkpoint-key.ts'
import { type Floor, floorBody, floorKind, openFloor, raiseFloor, readFloor } from './retention-floor.ts'

interface RetentionOptions {
  ledger: Database
  key: SigningKey
  clock: { now(): number; monotonic(): number }
  log: Log
  settings: { event_retention_days: number }
  /** How long one round works; the next continues. Default: one second. */
  roundMs?: number
}

const dayMs = 86_400_000
const maxRows = 200
const fewestRows = 10
const batchMs = 5

/** One round. Returns how many events were removed, and whether all old enough are gone. */
export async function removeOldEvents(options: RetentionOptions): Promise<{ removed: number; finished: boolean }> {
  const { ledger, clock, settings } = options
  const before = clock.now() - settings.event_retention_days * dayMs
  const ends = clock.monotonic() + (options.roundMs ?? 1000)
  const pace = { rows: maxRows / 2 }
  let removed = 0
  for (const { chain } of await readChainNames(ledger)) {
    let count = 0
    do {
      if (clock.monotonic() >= ends) return { removed, finished: false }
      count = await removeBatch(options, { chain, before, pace })
      removed += count
      await yieldToEventLoop()
    } while (count > 0)
  }
  return { removed, finished: true }
}

/** Rows with invalid chain names stay: a truncated text would name another chain. */
async function readChainNames(ledger: Database): Promise<{ chain: string }[]> {
  const rows = await ledger.read(`select ${asBytes('chain')} as chain from chains order by chains.chain`)
  return rows.flatMap((row) => {
    const chain = storedText(row.chain)
    return chain === null ? [] : [{ chain }]
  })
}

interface Removal {
  chain: string
  before: number
  /** How many rows the next batch takes. */
  pace: { rows: number }
}

/** Removes the next events of a chain; 0 where there is nothing to remove. */
async function removeBatch(options: RetentionOptions, { chain, before, pace }: Removal): Promise<number> {
  const { ledger, key, clock, log } = options
  const stored = await readFloor(ledger, chain)
  const floor = stored === null ? firstFloor(chain) : openFloor(stored, await readKeyRing(ledger))
  if (floor === null) {
    log.error({ chain }, 'The floor of a chain differs from what was signed: nothing of the chain is removed')
    return 0
  }
  const rows = await readOldRows(ledger, chain, floor.seq, pace.rows)
  const raised = floorAfter(floor, rows, before)
  if (raised === 'altered') {
    log.error({ chain, after: floor.seq }, 'Old events of a chain do not verify: they are not removed')
    return 0
  }
  if (raised.seq === floor.seq) return 0
  const began = clock.monotonic()
  try {
    await ledger.write([
      ...raiseFloor(chain, floor.seq, raised.seq, key.sign(floorKind, floorBody(raised, clock.now()))),
      { sql: 'delete from events where chain = ? and seq <= ?', args: [chain, raised.seq] },
    ])
  } catch (error) {
    // Another control plane was first: it goes on there.
    if (brokenConstraint(error) === 'check') return 0
    throw error
  }
  const took = clock.monotonic() - began
  pace.rows = Math.max(fewestRows, Math.min(maxRows, Math.floor((pace.rows * batchMs) / Math.max(took, batchMs / 2))))
  return raised.seq - floor.seq
}

interface OldRow {
  seq: number
  digest: string
  body: Uint8Array
  received_at: number
  arrival: unknown
}

const oldColumns = named(['seq', 'digest', 'received_at'])

/** The rows after a number, unparsed: an invalid number was altered and matches nothing. */
async function readOldRows(ledger: Database, chain: string, after: number, most: number): Promise<OldRow[]> {
  const rows = await ledger.read(
    `select ${cellsOf(oldColumns)}, ${asBytes('body')} as body, ${arrivalText} as arrival from events
      where chain = ? and seq > ? order by seq limit ${most}`,
    [chain, after],
  )
  return rows.map((row) => {
    const { seq, digest, received_at: receivedAt } = readCells(oldColumns, row.cells)
    const body = storedBytes(row.body) ?? new Uint8Array()
    const numbers = { seq: integerCell(seq), received_at: integerCell(receivedAt) }
    return { ...numbers, digest: textCell(digest), body, arrival: row.arrival }
  })
}

const firstFloor = (chain: string): Floor => ({
  chain,
  seq: 0,
  digest: chainStart(chain),
  arrivals: arrivalsStart(chain),
  count: 0,
})

/** The floor after the leading rows that are old enough; `altered` if one of them does not follow. */
function floorAfter(floor: Floor, rows: readonly OldRow[], before: number): Floor | 'altered' {
  let { seq, digest, arrivals, count } = floor
  for (const row of rows) {
    if (row.received_at >= before) break
    digest = chainNext(digest, row.seq, row.body)
    if (row.seq !== seq + 1 || digest !== row.digest) return 'altered'
    arrivals = arrivalsNext(arrivals, row.seq, row.arrival)
    seq = row.seq
    count += 1
  }
  return { chain: floor.chain, seq, digest, arrivals, count }
}
