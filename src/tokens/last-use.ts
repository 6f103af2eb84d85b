/**
 * When each token was last used, to the minute (contract section 3). Nothing is written on a call: uses on the control
 * plane wait in memory, uses on gateways stand in the events that they ship, and `flush` writes both in one batch. What
 * waits in memory is lost with the process; it is at most what happened since the last flush.
 */
import type { Database, Statement } from '../store/open.ts'

export interface LastUse {
  used(tokenId: string, at: number): void
  /** Writes what is new; run every few seconds and at the end. */
  flush(): Promise<void>
}

const minute = 60_000
const eventsAtOnce = 5000

export function createLastUse(ledger: Database): LastUse {
  let waiting = new Map<string, number>()
  let read: number | null = null

  return {
    used(tokenId, at) {
      waiting.set(tokenId, at)
    },
    async flush() {
      const uses = JSON.stringify([...waiting].map(([id, at]) => ({ id, at: at - (at % minute) })))
      const taken = waiting
      waiting = new Map()
      const [head] = await ledger.read<{ position: number }>(
        'select coalesce(max(position), 0) as position from events',
      )
      const from: number = read ?? Math.max(0, (head?.position ?? 0) - eventsAtOnce)
      const until = Math.min(head?.position ?? 0, from + eventsAtOnce)
      try {
        await ledger.write([
          ...(taken.size > 0 ? [fromMemory(uses)] : []),
          ...(until > from ? [fromEvents(from, until)] : []),
        ])
        read = until
      } catch (error) {
        for (const [id, at] of taken) if (!waiting.has(id)) waiting.set(id, at)
        throw error
      }
    },
  }
}

const fromMemory = (uses: string): Statement => ({
  sql: `update tokens set last_used_at = max(coalesce(last_used_at, 0), used.at)
    from (select value ->> 'id' as id, value ->> 'at' as at from json_each(?)) as used where tokens.id = used.id`,
  args: [uses],
})

/** Only outcomes count: other events name tokens that were acted on. */
const fromEvents = (from: number, until: number): Statement => ({
  sql: `update tokens set last_used_at = max(coalesce(last_used_at, 0), used.at)
    from (select token_id as id, max(timestamp) - max(timestamp) % ${minute} as at from events
      where position > ? and position <= ? and event_type = 'gateway.request.outcome' and token_id is not null
      group by token_id) as used where tokens.id = used.id`,
  args: [from, until],
})
