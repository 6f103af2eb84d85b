/** What an installation has recorded, read as an auditor would: through the API, and from the ledger's file itself. */
import { Database } from 'bun:sqlite'
import { join } from 'node:path'
import { LRUCache } from 'lru-cache'
import type { z } from 'zod'
import { eventsOfRecord } from '../../src/events/log/record-events.ts'
import { recordBytes } from '../../src/events/log/segment.ts'
import { decodeBlock, type StoredBlock } from '../../src/events/log/segment-codec.ts'
import { type Event, event, eventPage } from './answers.ts'
import { api, expectAnswer } from './client.ts'
import { eventually } from './eventually.ts'
import type { Gatehouse } from './harness.ts'

/** All events since a time, through the API, newest first, by following the cursor. */
export async function eventsThroughApi(gatehouse: Gatehouse, query: Record<string, string> = {}): Promise<Event[]> {
  const events: Event[] = []
  let cursor: string | null = null
  do {
    const search = new URLSearchParams({ since: '1h', ...query, ...(cursor !== null && { cursor }) })
    const page: z.infer<typeof eventPage> = expectAnswer(await api(gatehouse, `/v1/events?${search}`), 200, eventPage)
    events.push(...page.events)
    cursor = page.next_cursor
  } while (cursor !== null)
  return events
}

/**
 * All events in the ledger, oldest first, read from its file: the API shows events without a team to nobody but
 * sessions, and a ledger must hold even when no process serves it.
 */
export function eventsInLedger(gatehouse: Pick<Gatehouse, 'dataDirectory'>): Event[] {
  const [file] = new Bun.Glob('**/ledger.db').scanSync({ cwd: gatehouse.dataDirectory, absolute: true })
  if (file === undefined) throw new Error(`There is no ledger.db in ${gatehouse.dataDirectory}`)
  using ledger = new Database(file, { readonly: true })
  const rows = ledger.query<StoredBlock, []>(
    'select records, bytes, first_at, last_at, places, body from event_blocks order by first_position',
  )
  return rows.all().flatMap(eventsOfBlock)
}

/** Who waits for an event reads the same blocks again and again. */
const knownBlocks = new LRUCache<string, readonly Event[]>({ max: 500 })

function eventsOfBlock(stored: StoredBlock): readonly Event[] {
  const digest = new Bun.CryptoHasher('sha256').update(stored.places).update(stored.body)
  const key = `${stored.records} ${stored.bytes} ${stored.first_at} ${stored.last_at} ${digest.digest('hex')}`
  const known = knownBlocks.get(key)
  if (known !== undefined) return known
  const block = decodeBlock(stored)
  if (block === null) throw new Error('A block of the event log is damaged')
  const events = recordBytes(block).flatMap((bytes, ordinal) => {
    const [at = 0, quarantine] = [block.times[ordinal], block.quarantined.get(ordinal)]
    return eventsOfRecord({ text: bytes.toString(), at, quarantine }).map((shown) => event.parse(shown.event))
  })
  knownBlocks.set(key, events)
  return events
}

export const outcomesOf = (events: readonly Event[], requestId: string): Event[] =>
  events.filter(({ event_type, request_id }) => event_type === 'gateway.request.outcome' && request_id === requestId)

/** Waits until the ledger has the outcome of this request and gives it with its attempts, oldest first. */
export const eventsOfRequest = (gatehouse: Gatehouse, requestId: string): Promise<Event[]> =>
  eventually(() => {
    const events = eventsInLedger(gatehouse).filter(({ request_id }) => request_id === requestId)
    if (outcomesOf(events, requestId).length > 0) return events
    throw new Error(`No outcome of ${requestId} has reached the ledger`)
  })

export interface Sums {
  settled: number
  outstanding: number
}

/** The cells of an account of a limit, summed from the ledger's file. */
export function sumsOf(gatehouse: Gatehouse, account: string): Sums {
  using ledger = new Database(join(gatehouse.dataDirectory, 'ledger.db'), { readonly: true })
  const row = ledger
    .query<Sums, [string]>(
      `select coalesce(sum(settled), 0) as settled, coalesce(sum(granted - returned - settled), 0) as outstanding
       from lease_balances where account = ?`,
    )
    .get(account)
  return row ?? { settled: 0, outstanding: 0 }
}
