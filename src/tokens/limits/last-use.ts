/**
 * When each token was last used, to the minute (tokens/README.md). A call writes nothing: uses on the control plane,
 * and those on gateways, whose events it ingests, wait in memory until `flush` writes them. What waits is lost with the
 * process: at most the uses since the last flush.
 *
 * SQL text: one statement for thousands of tokens at once, from a JSON list.
 */
import type { Event } from '../../events/event.ts'
import type { Database } from '../../store/open.ts'

export interface LastUse {
  used(tokenId: string, at: number): void
  /** Events that gateways shipped. Only outcomes count: other events name tokens that were acted on. */
  ingested(events: readonly Event[], receivedAt: number): void
  /** Writes what is new; run every few seconds and at the end. */
  flush(): Promise<void>
}

const minute = 60_000

export function createLastUse(ledger: Database): LastUse {
  let waiting = new Map<string, number>()

  function used(tokenId: string, at: number): void {
    if (at > (waiting.get(tokenId) ?? 0)) waiting.set(tokenId, at)
  }

  return {
    used,
    ingested(events, receivedAt) {
      for (const { event_type, timestamp, event_attribution: who } of events) {
        if (event_type !== 'gateway.request.outcome' || who.token_id === null) continue
        used(who.token_id, Math.min(receivedAt, Date.parse(timestamp)))
      }
    },
    async flush() {
      if (waiting.size === 0) return
      const taken = waiting
      waiting = new Map()
      const uses = [...taken].map(([id, at]) => ({ id, at: at - (at % minute) }))
      try {
        await ledger.write([
          {
            sql: `update tokens set last_used_at = max(coalesce(last_used_at, 0), used.at)
              from (select value ->> 'id' as id, value ->> 'at' as at from json_each(?)) as used where tokens.id = used.id`,
            args: [JSON.stringify(uses)],
          },
        ])
      } catch (error) {
        for (const [id, at] of taken) used(id, at)
        throw error
      }
    },
  }
}
