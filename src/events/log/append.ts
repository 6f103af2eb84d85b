/**
 * Appends rows to `events`: at the end of one chain, in one transaction that fails if the chain has grown meanwhile,
 * so that two writers never fork it (events/proof/README.md). Columns are read from the body only here. A time later
 * than the receipt is clamped in the column only (events/README.md).
 */
import { Failure } from '../../failure.ts'
import { asBytes, storedText } from '../../store/damage/stored-text.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import type { Event } from '../event.ts'
import { chainNext, chainStart } from './chain.ts'

/** The head of a chain: the number and digest of its last event, or 0 and its first digest. */
export interface ChainHead {
  seq: number
  digest: string
}

/** An event with the exact text it is stored as. */
interface Written {
  event: Event
  body: string
}

/** An event at its place in a chain. */
export interface Chained extends Written {
  n: number
  digest: string
}

/** Throws `data_damaged` if the digest is missing. */
export async function readChainHead(ledger: Database, chain: string): Promise<ChainHead> {
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

/** Gives events their numbers and digests after `head`. */
export function chainAfter(head: ChainHead, written: readonly Written[]): Chained[] {
  let { seq, digest } = head
  return written.map(({ event, body }) => {
    seq += 1
    digest = chainNext(digest, seq, body)
    return { event, body, n: seq, digest }
  })
}

/** Statements that append events to a chain whose head is still `head`. Otherwise their transaction fails. */
export function appendStatements(options: {
  chain: string
  head: ChainHead
  events: readonly Chained[]
  receivedAt: number
}): Statement[] {
  const { chain, head, events, receivedAt } = options
  const last = events.at(-1)
  if (last === undefined) return []
  return [
    {
      sql: 'insert into guards (holds) select 0 where coalesce((select digest from chains where chain = ?), ?) <> ?',
      args: [chain, chainStart(chain), head.digest],
    },
    ...chunks(events).map((some) => ({
      sql: insertEvents + some.map(() => placeholders).join(),
      args: [chain, receivedAt, ...some.flatMap((event) => valuesOf(receivedAt, event))],
    })),
    {
      sql: `insert into chains (chain, seq, digest, updated_at) values (?, ?, ?, ?)
        on conflict (chain) do update set seq = excluded.seq, digest = excluded.digest, updated_at = excluded.updated_at`,
      args: [chain, last.n, last.digest, receivedAt],
    },
  ]
}

/**
 * The columns of `events` that are read from an event. `verify` compares each with its body. Add new columns of the
 * table only here.
 */
export const eventColumns: Readonly<
  Record<string, (event: Event, receivedAt: number) => string | number | null | undefined>
> = {
  event_id: (event) => event.event_id,
  event_type: (event) => event.event_type,
  timestamp: (event, receivedAt) => Math.min(receivedAt, Date.parse(event.timestamp)),
  request_id: (event) => wellFormed(event.request_id),
  verdict: (event) => event.verdict,
  reason_code: (event) => wellFormed(event.reason_code),
  gateway_id: (event) => wellFormed(event.event_attribution.gateway_id),
  team_id: (event) => wellFormed(event.event_attribution.team_id),
  token_id: (event) => wellFormed(event.event_attribution.token_id),
}

/** A worker may ship half of a surrogate pair, which no database can store: its body has it as an escape. */
const wellFormed = (text: unknown): string | null => (typeof text === 'string' ? text.toWellFormed() : null)

const columnValues = Object.values(eventColumns)
const insertEvents = `insert into events (chain, received_at, seq, digest, body,
  ${Object.keys(eventColumns).join()}) values `
/** Each bound value costs as much as storing it, so the two that all rows share are bound once. */
const placeholders = `(?1,?2,${Array(3 + columnValues.length)
  .fill('?')
  .join()})`

/**
 * Rows of one statement: powers of two, so that there are few statement texts, each prepared once
 * (store/local-connection.ts), with far fewer values than allowed (32 766). One statement of plain values took 0.7 of
 * the time of one `json_each` on a local file, where this thread waits for it, and 1.2 of it on a remote primary,
 * where it does not.
 */
const maxRows = 64

function chunks(events: readonly Chained[]): (readonly Chained[])[] {
  const all: (readonly Chained[])[] = []
  let rows = maxRows
  for (let from = 0; from < events.length; from += rows) {
    while (rows > events.length - from) rows /= 2
    all.push(events.slice(from, from + rows))
  }
  return all
}

const valuesOf = (receivedAt: number, { event, body, n, digest }: Chained): (string | number | null)[] => [
  n,
  digest,
  body,
  ...columnValues.map((value) => value(event, receivedAt) ?? null),
]

/** Whether another writer of a remote primary was in the way. Then the same write succeeds a moment later. */
export const isBusy = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && String(error.code).startsWith('SQLITE_BUSY')

/**
 * Whether a number of a chain is already recorded behind the head that the ledger names. If the guard let the
 * statement through, one of the two was altered.
 */
export const isNumberTaken = (error: unknown): boolean =>
  error instanceof Error && (error.message.includes('events.chain, events.seq') || isNumberTaken(error.cause))

/** The kind of constraint of a database error; null for other errors. */
export function brokenConstraint(error: unknown): 'check' | 'unique' | 'other' | null {
  if (!(error instanceof Error)) return null
  if (!/constraint failed/i.test(error.message)) return error.cause === undefined ? null : brokenConstraint(error.cause)
  if (/CHECK constraint failed/i.test(error.message)) return 'check'
  return /UNIQUE constraint failed|PRIMARY KEY/i.test(error.message) ? 'unique' : 'other'
}
