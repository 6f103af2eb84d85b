/**
 * Ingests a gateway worker's events into the ledger, each exactly once and in the order of the worker's chain
 * (events/proof/README.md). A batch that was ingested before, in whole or in part, is accepted again: the answer is
 * always the head, after which the worker continues. A body is stored as it came. Nothing in it that the poster could
 * forge is trusted: only a valid event of a type that gateways may post, with the poster's own gateway id and a new
 * event id, is taken as such. Anything else keeps its place in the chain as quarantined (quarantine.ts).
 */
import { Failure } from '../../failure.ts'
import type { NewId } from '../../lib/ids.ts'
import type { Log } from '../../lib/log/log.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import { asBytes, shownText, storedBytes } from '../../store/damage/stored-text.ts'
import type { Database, LowPriority } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import { type Event, isGatewayEventType } from '../event.ts'
import { readEvent } from '../read-event.ts'
import { rollupStatements } from '../rollups/rollup.ts'
import {
  appendStatements,
  brokenConstraint,
  type Chained,
  type ChainHead,
  isBusy,
  isNumberTaken,
  readChainHead,
} from './append.ts'
import { ChainWalk } from './chain.ts'
import { type QuarantineReason, quarantined, quarantinedType } from './quarantine.ts'
import type { SlicePace } from './slice-pace.ts'

/** An event as a worker ships it: its number, the chain's digest after it, its exact text. */
export interface ShippedEvent {
  n: number
  digest: string
  body: string
}

interface Batch {
  /** The worker's chain: `gateway_id/instance_id/n`. */
  chain: string
  /** The gateway of the posting session. */
  gatewayId: string
  lines: readonly ShippedEvent[]
  /** Milliseconds since the epoch. */
  receivedAt: number
  /** How many events one transaction takes; shared by all batches of a process. */
  pace: SlicePace
  newId: NewId
  log: Log
  /** Further statements for the transaction that appends these events; called once for each attempt. */
  bookingStatements(events: readonly Event[]): readonly Statement[]
  /** These events were appended by this call. */
  onIngested(events: readonly Event[]): void
}

const beyondItsEnd = 'The ledger has events of this chain beyond where it says that the chain ends'
const attempts = 5
const busyWaitMs = 5
/** More than a million events back. */
const maxEarlier = 21

/** The chain's head: its last number and digest, or 0 and its first digest. */
export const chainHead = (ledger: Database, chain: string): Promise<ChainHead> => readChainHead(ledger, chain)

/** Like `chainHead`, with the points that are 1, 2, 4, … events back, as far as they are kept. */
export async function announcedHead(ledger: Database, chain: string): Promise<ChainHead & { earlier: ChainHead[] }> {
  const head = await readChainHead(ledger, chain)
  const back = Array.from({ length: maxEarlier }, (_, power) => head.seq - 2 ** power).filter((seq) => seq > 0)
  const rows = await ledger.read<{ seq: number; digest: unknown }>(
    `select seq, ${asBytes('digest')} as digest from events where chain = ? and seq in (select value from json_each(?)) order by seq`,
    [chain, JSON.stringify(back)],
  )
  await ledger.flush()
  return { ...head, earlier: rows.map(({ seq, digest }) => ({ seq, digest: shownText(digest) })) }
}

/**
 * Appends a batch and returns the chain's head. Throws `chain_gap` if earlier events are missing, and `chain_fork` if
 * a number is recorded with other content or beyond the chain's head, or a digest does not follow. Slices before that
 * are in the ledger then.
 */
export async function ingestEvents(ledger: Database, batch: Batch): Promise<ChainHead> {
  const { lines, pace } = batch
  requireConsecutive(lines)
  let at = pace.events
  let head = await ingestSlice(ledger, { ...batch, lines: lines.slice(0, at) }, null)
  while (at < lines.length) {
    // Yields to waiting grants and acknowledgements.
    await yieldToEventLoop()
    const from = at
    at += pace.events
    head = await ingestSlice(ledger, { ...batch, lines: lines.slice(from, at) }, head)
  }
  // The worker keeps the events until it gets this head.
  await ledger.flush()
  return head
}

/** `known` is the chain's recent head. The transaction checks that it is still valid. */
async function ingestSlice(ledger: Database, batch: Batch, known: ChainHead | null): Promise<ChainHead> {
  const { clock } = batch.pace
  const began = clock.monotonic()
  let chained = batch.lines.map((line) => readLine(line, batch))
  const readMs = clock.monotonic() - began
  for (let attempt = 1; ; attempt += 1) {
    const head = attempt === 1 && known !== null ? known : await readChainHead(ledger, batch.chain)
    await requireSameHistory(ledger, batch, head)
    const fresh = chained.filter(({ n }) => n > head.seq)
    const last = fresh.at(-1)
    if (last === undefined) return head
    requireChained(head, fresh)
    // Yields before the transaction too.
    await yieldToEventLoop()
    try {
      await batch.pace.write(fresh.length, readMs, (patient) => writeSlice(ledger, batch, { head, fresh, patient }))
      return { seq: last.n, digest: last.digest }
    } catch (error) {
      if (isBusy(error)) {
        if (attempt === attempts) throw new Failure('dependency_unavailable', { cause: error, retryAfter: 1 })
        await Bun.sleep(busyWaitMs * attempt)
        continue
      }
      if (isNumberTaken(error)) throw new Failure('chain_fork', { cause: error, message: beyondItsEnd })
      const broken = brokenConstraint(error)
      if ((broken !== 'check' && broken !== 'unique') || attempt === attempts) throw error
      if (broken === 'unique') chained = await quarantineRepeated(ledger, batch, fresh)
      // Otherwise the chain grew between the read of its head and the write: read again.
    }
  }
}

async function writeSlice(
  ledger: Database,
  batch: Batch,
  { head, fresh, patient }: { head: ChainHead; fresh: readonly Chained[]; patient: LowPriority },
): Promise<void> {
  const { chain, receivedAt } = batch
  const events = fresh.map(({ event }) => event)
  const statements = [
    ...appendStatements({ chain, head, events: fresh, receivedAt }),
    ...rollupStatements(events, receivedAt),
    ...batch.bookingStatements(events),
  ]
  // Grants and revocations go first: a worker keeps what is not acknowledged and can send it at any time.
  await ledger.write(statements, patient)
  batch.onIngested(events)
  reportQuarantined(batch, fresh)
}

function requireConsecutive(lines: readonly ShippedEvent[]): void {
  for (const [index, { n }] of lines.entries()) {
    const expected = (lines[0]?.n ?? 1) + index
    if (!Number.isSafeInteger(n) || n < 1 || n !== expected) throw new Failure('chain_gap')
  }
}

function readLine(line: ShippedEvent, batch: Batch): Chained {
  const { n, digest, body } = line
  const event = readEvent(parseJson(body))
  const mine =
    event !== null && isGatewayEventType(event.event_type) && event.event_attribution.gateway_id === batch.gatewayId
  return mine ? { event, body, n, digest } : quarantine(line, batch, 'event.not_valid')
}

const quarantine = (line: ShippedEvent, { gatewayId, receivedAt, newId }: Batch, reason: QuarantineReason): Chained =>
  quarantined(line, { reason, gatewayId, receivedAt, newId })

function parseJson(body: string): unknown {
  try {
    return JSON.parse(body)
  } catch {
    // Invalid JSON is not an event.
    return undefined
  }
}

/** Quarantines events whose id is already recorded or appears twice in the batch. */
async function quarantineRepeated(ledger: Database, batch: Batch, events: readonly Chained[]): Promise<Chained[]> {
  const rows = await ledger.read<{ event_id: string }>(
    'select event_id from events where event_id in (select value from json_each(?))',
    [JSON.stringify(events.map(({ event }) => event.event_id))],
  )
  const taken = new Set(rows.map(({ event_id }) => event_id))
  return events.map((each) => {
    const { event_id: id } = each.event
    if (taken.has(id)) return quarantine(each, batch, 'event.repeated_id')
    taken.add(id)
    return each
  })
}

function reportQuarantined({ chain, log }: Batch, events: readonly Chained[]): void {
  for (const { n, event } of events) {
    if (event.event_type !== quarantinedType) continue
    log.error({ chain, n, reason: event.reason_code }, 'An event of a gateway was quarantined: it is not valid')
  }
}

/** Repeated events must equal the recorded ones. Rows that retention has removed can no longer be compared. */
async function requireSameHistory(ledger: Database, { chain, lines }: Batch, head: ChainHead): Promise<void> {
  const [first] = lines
  if (first === undefined || first.n > head.seq) return
  const recorded = await ledger.read<{ seq: number; digest: unknown; body: unknown }>(
    `select seq, ${asBytes('digest')} as digest, ${asBytes('body')} as body from events
      where chain = ? and seq between ? and ?`,
    [chain, first.n, first.n + lines.length - 1],
  )
  for (const { seq, digest, body } of recorded) {
    const line = lines[seq - first.n]
    if (!isSame(line?.digest, digest) || !isSame(line?.body, body)) throw new Failure('chain_fork')
  }
  const atHead = lines[head.seq - first.n]
  if (atHead !== undefined && atHead.digest !== head.digest) throw new Failure('chain_fork')
}

/** Whether a row's bytes equal a text. */
const isSame = (text: string | undefined, stored: unknown): boolean =>
  text !== undefined && Buffer.from(text).equals(storedBytes(stored) ?? new Uint8Array())

function requireChained(head: ChainHead, fresh: readonly Chained[]): void {
  const [first] = fresh
  if (first !== undefined && first.n !== head.seq + 1) throw new Failure('chain_gap')
  const walk = new ChainWalk(head.digest)
  for (const { n, body, digest } of fresh) {
    walk.step(n, body)
    if (walk.digest !== digest) throw new Failure('chain_fork')
  }
}
