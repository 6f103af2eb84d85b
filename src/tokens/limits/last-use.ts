/**
 * When each token was last used, to the minute (handbook/tokens.md). A call writes nothing: uses on the control plane
 * wait in memory, uses on gateways are in their events, and `flush` writes both. Events are read in slices, so that
 * ingest hardly waits, and each flush reads as many as gateways can ship until the next. What waits in memory is lost
 * with the process: at most the uses since the last flush.
 *
 * SQL text: one statement for thousands of tokens at once, from a JSON list or from the events.
 */
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'

export interface LastUse {
  used(tokenId: string, at: number): void
  /** Writes what is new; run every few seconds and at the end. */
  flush(): Promise<void>
}

const minute = 60_000
const sliceEvents = 5000
/** The slice of the first flush, which a start waits for. */
const slicesAtOnce = 40
/** How many events an earlier process may have left unread. */
const leftEvents = slicesAtOnce * sliceEvents

export function createLastUse(ledger: Database): LastUse {
  let waiting = new Map<string, number>()
  /** The position up to which events were read. */
  let read: number | null = null

  async function writeWaiting(): Promise<void> {
    if (waiting.size === 0) return
    const taken = waiting
    waiting = new Map()
    try {
      await ledger.write([fromMemory([...taken].map(([id, at]) => ({ id, at: at - (at % minute) })))])
    } catch (error) {
      for (const [id, at] of taken) if (!waiting.has(id)) waiting.set(id, at)
      throw error
    }
  }

  async function readEvents(): Promise<void> {
    const sql = 'select coalesce(max(position), 0) as position from events where position < 9007199254740991'
    const [head] = await ledger.read<{ position: number }>(sql)
    const last = head?.position ?? 0
    const slices = read === null ? 1 : slicesAtOnce
    read ??= Math.max(0, last - leftEvents)
    for (let slice = 0; slice < slices && read < last; slice++) {
      const until: number = Math.min(last, read + sliceEvents)
      await ledger.write([fromEvents(read, until)])
      read = until
      await Bun.sleep(0)
    }
  }

  return {
    used(tokenId, at) {
      waiting.set(tokenId, at)
    },
    async flush() {
      await writeWaiting()
      await readEvents()
    },
  }
}

const fromMemory = (uses: readonly { id: string; at: number }[]): Statement => ({
  sql: `update tokens set last_used_at = max(coalesce(last_used_at, 0), used.at)
    from (select value ->> 'id' as id, value ->> 'at' as at from json_each(?)) as used where tokens.id = used.id`,
  args: [JSON.stringify(uses)],
})

/** Only outcomes count: other events name tokens that were acted on. */
const fromEvents = (from: number, until: number): Statement => ({
  sql: `update tokens set last_used_at = max(coalesce(last_used_at, 0), used.at)
    from (select token_id as id, max(timestamp) - max(timestamp) % ${minute} as at from events
      where position > ? and position <= ? and event_type = 'gateway.request.outcome' and token_id is not null
      group by token_id) as used where tokens.id = used.id`,
  args: [from, until],
})
