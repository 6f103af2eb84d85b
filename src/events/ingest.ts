/**
 * Takes a gateway lane's events into the ledger, each exactly once and in the order of the lane's chain (protocols
 * section 6). A batch that was taken already, in whole or in part, is accepted again: the answer is always the head, from
 * which the lane goes on. A body is stored as it came; nothing in it is trusted that the poster could forge: it must be a
 * valid event of a type that gateways may post, under the poster's own gateway id.
 */
import { Failure } from '../failure.ts'
import type { Database } from '../store/open.ts'
import { appendStatements, brokenConstraint, type Chained, type ChainHead, readChainHead } from './append.ts'
import { chainNext } from './chain.ts'
import { eventSchema, isGatewayEventType } from './event.ts'

/** One event as a lane ships it: its number, the chain's digest after it, its exact text. */
export interface ShippedEvent {
  n: number
  digest: string
  body: string
}

export interface Batch {
  /** The lane's chain: `gateway_id/instance_id/n`. */
  chain: string
  /** The gateway whose session posts this. */
  gatewayId: string
  lines: readonly ShippedEvent[]
  /** Milliseconds since the epoch. */
  receivedAt: number
}

const attempts = 5

/** Where the chain stands: its last number and digest, or 0 and the digest that it starts with. */
export const chainHead = (ledger: Database, chain: string): Promise<ChainHead> => readChainHead(ledger, chain)

/**
 * Appends a batch and gives the chain's head. Throws `chain_gap` where events before these are missing, `chain_fork`
 * where a number is recorded with another content or a digest does not follow, `invalid_parameter` for what is no event.
 */
export async function ingestEvents(ledger: Database, batch: Batch): Promise<ChainHead> {
  requireConsecutive(batch.lines)
  const chained = batch.lines.map((line) => readLine(line, batch.gatewayId))
  for (let attempt = 1; ; attempt += 1) {
    const head = await readChainHead(ledger, batch.chain)
    await requireSameHistory(ledger, batch, head)
    const fresh = chained.filter(({ n }) => n > head.seq)
    requireChained(head, fresh)
    const last = fresh.at(-1)
    if (last === undefined) return head
    try {
      await ledger.write(appendStatements({ chain: batch.chain, head, events: fresh, receivedAt: batch.receivedAt }))
      return { seq: last.n, digest: last.digest }
    } catch (error) {
      const broken = brokenConstraint(error)
      if (broken === 'unique') {
        throw new Failure('conflict', { message: 'An event id is already recorded elsewhere', cause: error })
      }
      // The chain grew between reading its head and writing: look again.
      if (broken !== 'check' || attempt === attempts) throw error
    }
  }
}

function requireConsecutive(lines: readonly ShippedEvent[]): void {
  for (const [index, { n }] of lines.entries()) {
    const expected = (lines[0]?.n ?? 1) + index
    if (!Number.isSafeInteger(n) || n < 1 || n !== expected) throw new Failure('chain_gap')
  }
}

function readLine({ n, digest, body }: ShippedEvent, gatewayId: string): Chained {
  const param = `events.${n}`
  let value: unknown
  try {
    value = JSON.parse(body)
  } catch {
    // The parser's message quotes the text; the number says enough.
    throw new Failure('invalid_parameter', { message: 'The event is not valid JSON', param })
  }
  const parsed = eventSchema.safeParse(value)
  if (!parsed.success) {
    const path = parsed.error.issues[0]?.path.map(String) ?? []
    throw new Failure('invalid_parameter', { message: 'The event lacks a form', param: [param, ...path].join('.') })
  }
  const event = parsed.data
  if (!isGatewayEventType(event.event_type)) {
    throw new Failure('invalid_parameter', {
      message: 'A gateway may not post this type',
      param: `${param}.event_type`,
    })
  }
  if (event.event_attribution.gateway_id !== gatewayId) {
    const field = `${param}.event_attribution.gateway_id`
    throw new Failure('invalid_parameter', { message: "This is another gateway's event", param: field })
  }
  return { event, body, n, digest }
}

/** What was shipped before must be what is recorded. Rows that retention has removed can no longer be compared. */
async function requireSameHistory(ledger: Database, { chain, lines }: Batch, head: ChainHead): Promise<void> {
  const [first] = lines
  if (first === undefined || first.n > head.seq) return
  const recorded = await ledger.read<{ seq: number; digest: string; body: string }>(
    'select seq, digest, body from events where chain = ? and seq between ? and ?',
    [chain, first.n, first.n + lines.length - 1],
  )
  for (const { seq, digest, body } of recorded) {
    const line = lines[seq - first.n]
    if (line?.digest !== digest || line.body !== body) throw new Failure('chain_fork')
  }
  const atHead = lines[head.seq - first.n]
  if (atHead !== undefined && atHead.digest !== head.digest) throw new Failure('chain_fork')
}

function requireChained(head: ChainHead, fresh: readonly Chained[]): void {
  const [first] = fresh
  if (first !== undefined && first.n !== head.seq + 1) throw new Failure('chain_gap')
  let { digest } = head
  for (const { n, body, digest: claimed } of fresh) {
    digest = chainNext(digest, n, body)
    if (digest !== claimed) throw new Failure('chain_fork')
  }
}
