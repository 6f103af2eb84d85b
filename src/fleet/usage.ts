/** The control plane's part in usage: grants to connected lanes, settlement of what they ship, news of limits. */
import type { Event } from '../events/event.ts'
import type { Statement } from '../store/open.ts'
import { Authority } from '../usage/authority.ts'
import { plainName } from '../usage/lease.ts'
import { settlementStatements } from '../usage/settlement.ts'
import { sqlLedger } from '../usage/sql-ledger.ts'
import { limitsChangedAt, sqlLimits } from '../usage/sql-limits.ts'
import { UsageNews } from '../usage/usage-news.ts'
import type { FleetOptions } from './control.ts'
import type { LaneRegistry } from './lane-registry.ts'

export interface UsageControl {
  readonly authority: Authority
  readonly news: UsageNews
  /** What books the settlements of a lane's new events, for the transaction that appends them. */
  settle(lane: string, events: readonly Event[]): Statement[]
  /** They are booked: what follows from that is recorded behind the answer's back. */
  settled(events: readonly Event[]): void
  /** The state is at this version: whoever is concerned by limits that it changed is told. */
  announced(version: number): void
}

export function createUsage(options: FleetOptions, registry: LaneRegistry): UsageControl {
  const { state, ledger, clock, log } = options
  const news = new UsageNews(options)
  const failed = (error: unknown) => {
    // Looked at again with the next news of the account, and at the next start.
    log.error({ error: String(error) }, 'What is used of limits could not be looked at')
  }
  const authority = new Authority({
    ledger: sqlLedger(ledger, (lane, losses) => void news.lost(lane, losses).catch(failed)),
    limits: sqlLimits(state, ledger, clock),
    clock,
    log,
    after(milliseconds, work) {
      if (milliseconds === 0) setImmediate(work)
      else setTimeout(work, milliseconds).unref()
    },
    lanes: {
      connected: () => registry.all().flatMap(({ lane, stream }) => (stream === null ? [] : [lane])),
      holds: ({ lane, streamId }) => registry.get(lane)?.streamId === streamId,
      recall: (lane, accounts) => registry.get(lane)?.stream?.send({ kind: 'recall', accounts: [...accounts] }),
    },
  })
  const settlementsOf = (events: readonly Event[]) => events.flatMap(({ settlements }) => settlements ?? [])
  return {
    authority,
    news,
    settle: (lane, events) => settlementStatements({ lane, settlements: settlementsOf(events), now: clock.now() }),
    settled(events) {
      const accounts = new Set(settlementsOf(events).map(({ account }) => account))
      if (accounts.size > 0) news.used([...accounts]).catch(failed)
      // Such accounts are closed: what lanes still have of them is called back.
      const violated = settlementsOf(events.filter(({ details }) => details?.bound_violated === true))
      authority.changed([...new Set(violated.map(({ account }) => plainName(account)))])
    },
    announced(version) {
      limitsChangedAt(state, version)
        .then(async (accounts) => {
          authority.changed(accounts)
          await news.used(accounts)
        })
        .catch(failed)
    },
  }
}
