/**
 * Reports whether any event was altered, removed or inserted since it was written (events/README.md;
 * events/proof/README.md): it compares every row with its chain, its columns with its body, every chain with
 * checkpoints, floors and witnesses, and if all is well the sums behind charts with the events (verify-sums.ts). It
 * reads in slices of a few milliseconds and yields in between. Its memory grows with the number of chains and the sums
 * of one day only.
 *
 * Not covered are events after the newest checkpoint, unless a gateway still has them: it ships them again, and other
 * content under their numbers is refused as a fork. The report says for each chain up to where it is covered.
 */
import { z } from 'zod'
import { timestamp } from '../../lib/clock.ts'
import { yieldToEventLoop } from '../../lib/yield-to-event-loop.ts'
import { cellsOf, named, readCells } from '../../store/damage/stored-cells.ts'
import { asBytes, shownText } from '../../store/damage/stored-text.ts'
import type { Database } from '../../store/open.ts'
import { chainStart } from '../log/chain.ts'
import { arrivalsStart } from './arrivals.ts'
import type { ChainPoint } from './checkpoint.ts'
import { ChainCheck, type NamedHead } from './verify-chain.ts'
import { type Finding, finding, findingSchema } from './verify-finding.ts'
import { type EventRow, readRow, rowColumns } from './verify-row.ts'
import { readSigned, readSignedFloor, type SignedRecord, type SignedSources } from './verify-signed.ts'
import { verifySums } from './verify-sums.ts'

const verifiedChainSchema = z.object({
  kind: z.literal('chain'),
  chain: z.string(),
  events: z.number().describe('Rows that were read'),
  from: z.number().describe('The number of the event before the first that was read'),
  to: z.number().describe('The number of the last event'),
  covered_to: z.number().describe('Up to this number the newest checkpoint vouches for what is there'),
})

const verifiedSchema = z.object({
  kind: z.literal('summary'),
  chains: z.number(),
  events: z.number(),
  findings: z.number(),
  not_covered: z.number().describe('Events younger than the newest checkpoint'),
  checkpoint: z.object({ number: z.number(), at: z.iso.datetime(), key_id: z.string() }).nullable(),
  keys: z.array(z.string()).describe('Ids of the keys that signatures were checked with'),
  sums_growing: z
    .number()
    .nullable()
    .describe('Hours and days whose sums were not compared, because too much came in; null where none were'),
})

/**
 * One line of the report, in this order: findings of signatures, then for each chain its findings and its line, the
 * sum.
 */
export const verifyLineSchema = z.discriminatedUnion('kind', [findingSchema, verifiedChainSchema, verifiedSchema])
export type VerifyLine = z.infer<typeof verifyLineSchema>

interface VerifyOptions extends SignedSources {
  /** How long events are kept, in milliseconds. */
  retention: number
  /** Milliseconds since the epoch; null for all there is. Reading begins at the checkpoint before it. */
  since: number | null
  signal: AbortSignal
}

const sliceRows = 200
/** Of one chain; more are counted, not named. */
const maxFindings = 1000
/** A chain is read again if retention has moved its floor meanwhile. */
const maxReadings = 5

export async function* verifyEvents(options: VerifyOptions): AsyncGenerator<VerifyLine> {
  const signed = await readSigned(options, options.since)
  const misplaced = [...(await rowsWithoutChain(options.ledger)), ...(await oddChains(options.ledger))]
  yield* [...signed.findings, ...misplaced]
  const sum = { chains: 0, events: 0, findings: signed.findings.length + misplaced.length, not_covered: 0 }
  for await (const chain of chainNames(options.ledger, signed)) {
    if (options.signal.aborted) return
    const { findings, count, line } = await verifyChain(options, signed, chain)
    yield* findings
    yield line
    sum.chains += 1
    sum.events += line.events
    sum.findings += count
    sum.not_covered += Math.max(0, line.to - line.covered_to)
  }
  let growing: number | null = null
  if (sum.findings === 0 && !options.signal.aborted) {
    const sums = verifySums(options)
    for (let next = await sums.next(); ; next = await sums.next()) {
      if (next.done) {
        growing = next.value
        break
      }
      yield next.value
      sum.findings += 1
    }
  }
  const { newest } = signed
  yield {
    kind: 'summary',
    ...sum,
    checkpoint: newest === null ? null : { ...newest, at: timestamp(newest.at) },
    keys: signed.keys.ids,
    sums_growing: growing,
  }
}

/** Every chain that any table names, in order. */
async function* chainNames(ledger: Database, { points }: SignedRecord): AsyncGenerator<string> {
  const signed = [...points.keys()].toSorted()
  let next = await lowestSoundChain(ledger, '>=', '')
  let fromSigned = signed.shift()
  while (next !== null || fromSigned !== undefined) {
    const name = next === null || (fromSigned !== undefined && fromSigned < next) ? fromSigned : next
    if (name === undefined) return
    yield name
    while (fromSigned !== undefined && fromSigned <= name) fromSigned = signed.shift()
    next = await lowestSoundChain(ledger, '>', name)
  }
}

/** Names are valid UTF-8 without NUL, which would truncate a text. */
const soundName = /^[\x21-\x7e]*$/

async function lowestSoundChain(ledger: Database, behind: '>' | '>=', name: string): Promise<string | null> {
  let bytes = await lowestChain(ledger, behind, Buffer.from(name))
  while (bytes !== null && !soundName.test(bytes.toString('latin1'))) bytes = await lowestChain(ledger, '>', bytes)
  return bytes?.toString() ?? null
}

/** The name that is next in any of the tables, by its bytes. */
async function lowestChain(ledger: Database, behind: '>' | '>=', name: Buffer): Promise<Buffer | null> {
  const lowest = ['chains', 'chain_floors', 'events'].map(
    (table) => `select min(chain) as chain from ${table} where chain ${behind} cast(unhex(?1) as text)`,
  )
  const [row] = await ledger.read<{ chain: string | null }>(
    `select iif(min(chain) is null, null, hex(min(chain))) as chain from (${lowest.join(' union all ')}) where typeof(chain) = 'text'`,
    [name.toString('hex')],
  )
  return row?.chain == null ? null : Buffer.from(row.chain, 'hex')
}

/** Rows under names that no chain can have. */
async function oddChains(ledger: Database): Promise<Finding[]> {
  const findings: Finding[] = []
  let name = await lowestChain(ledger, '>=', Buffer.alloc(0))
  while (name !== null && findings.length < maxFindings) {
    const chain = name.toString()
    if (!soundName.test(name.toString('latin1'))) {
      const events = await insertedUnder(ledger, 'chain = cast(unhex(?) as text)', [name.toString('hex')], chain)
      findings.push(...events)
      if (events.length === 0) findings.push(finding('chain.head_altered', { chain }))
    }
    name = await lowestChain(ledger, '>', name)
  }
  return findings
}

/** Rows whose chain is no text belong to none. */
async function rowsWithoutChain(ledger: Database): Promise<Finding[]> {
  return await insertedUnder(ledger, "chain >= x''", [], null)
}

async function insertedUnder(ledger: Database, where: string, args: string[], chain: string | null) {
  const rows = await ledger.read(`select ${asBytes('event_id')} as event_id from events where ${where} limit 100`, args)
  return rows.map(({ event_id: id }) => finding('event.inserted', { chain, event_id: shownText(id) }))
}

interface VerifiedChain {
  findings: Finding[]
  count: number
  line: z.infer<typeof verifiedChainSchema>
}

async function verifyChain(options: VerifyOptions, signed: SignedRecord, chain: string): Promise<VerifiedChain> {
  for (let reading = 1; ; reading += 1) {
    const floor = await readSignedFloor(options.ledger, signed.keys, chain)
    const verified = await readChain(options, signed, chain, floor)
    const after = await readSignedFloor(options.ledger, signed.keys, chain)
    const moved = JSON.stringify(floor) !== JSON.stringify(after)
    if (!moved || reading === maxReadings || options.signal.aborted) return verified
  }
}

async function readChain(
  { ledger, since, signal }: VerifyOptions,
  signed: SignedRecord,
  chain: string,
  floor: ChainPoint | Finding | null,
): Promise<VerifiedChain> {
  const start = { seq: 0, digest: chainStart(chain), arrivals: arrivalsStart(chain) }
  const lowest = floor === null || 'kind' in floor ? start : floor
  const base = since === null ? undefined : signed.base.get(chain)
  const from = base !== undefined && base.seq > lowest.seq ? base : lowest
  const points = signed.points.get(chain) ?? []
  const check = new ChainCheck({ chain, from, points })
  const findings: Finding[] = []
  let count = 0
  const take = (all: boolean) => {
    const found = check.findings.take(all)
    count += found.length
    findings.push(...found.slice(0, maxFindings - findings.length))
  }
  if (floor !== null && 'kind' in floor) check.findings.add(floor)
  // From the very first row, so that a row below the floor is found too.
  const after = from === base ? from.seq : null
  let last: EventRow | null = null
  for (;;) {
    const rows = await readSlice(ledger, chain, last, after)
    for (const row of rows) check.row(row)
    take(false)
    last = rows.at(-1) ?? last
    await yieldToEventLoop()
    if (signal.aborted) break
    if (rows.length > 0) continue
    const head = await readNamedHead(ledger, chain)
    // It has grown since the rows were read.
    if (
      typeof head?.seq === 'number' &&
      head.seq > check.seq &&
      (await readSlice(ledger, chain, last, after)).length > 0
    )
      continue
    check.end(head)
    break
  }
  take(true)
  const covered = points.reduce((most, { seq }) => Math.max(most, seq), lowest.seq)
  const line = {
    kind: 'chain',
    chain,
    events: check.events,
    from: from.seq,
    to: check.seq,
    covered_to: covered,
  } as const
  return { findings, count, line }
}

/**
 * The next rows after one that was read, or the first ones. A tampered number may equal no parameter: then the row id
 * itself says where to continue, and retention may remove that row meanwhile.
 */
async function readSlice(ledger: Database, chain: string, last: EventRow | null, from: number | null) {
  const seq = last === null ? from : last.cells.seq
  const behind =
    seq === null
      ? { sql: 'true', args: [] }
      : typeof seq === 'number' && Number.isSafeInteger(seq)
        ? { sql: 'seq > ?', args: [seq] }
        : { sql: 'seq > (select seq from events where position = ?)', args: [last?.position ?? ''] }
  const rows = await ledger.read(
    `select ${rowColumns} from events where chain = ? and ${behind.sql} order by seq limit ${sliceRows}`,
    [chain, ...behind.args],
  )
  return rows.map(readRow)
}

const headColumns = named(['seq', 'digest', 'updated_at'])

async function readNamedHead(ledger: Database, chain: string): Promise<NamedHead | null> {
  const [row] = await ledger.read(`select ${cellsOf(headColumns)} from chains where chain = ?`, [chain])
  if (row === undefined) return null
  const { seq, digest, updated_at } = readCells(headColumns, row.cells)
  return { seq, digest, updated_at }
}
