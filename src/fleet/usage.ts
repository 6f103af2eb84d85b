/** The control plane's part in usage: grants to connected lanes, settlement of what they ship, news of limits. */
import type { Event } from '../events/event.ts'
import type { Statement } from '../store/open.ts'
import { Authority } from '../usage/authority.ts'
import { Compaction } from '../usage/compaction.ts'
import { plainName } from '../usage/lease.ts'
import { noPeers, type RecallReceiver, type UsageSignal } from '../usage/recall-peers.ts'
import { awaitedLanes, forgottenSince } from '../usage/restored-ledger.ts'
import { settlementStatements } from '../usage/settlement.ts'
import { type Losses, sqlLedger } from '../usage/sql-ledger.ts'
import { changedAt, sqlLimits } from '../usage/sql-limits.ts'
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
  /** To be done before anything is served: an older copy of the ledger grants nothing before it knows what lanes hold. */
  lookForRestored(): Promise<void>
  /** To be called now and then. */
  compact(): Promise<void>
  /** What the other control planes say (usage/recall-peers.ts). */
  readonly receiver: RecallReceiver
}

export function createUsage(options: FleetOptions, registry: LaneRegistry, peers = noPeers): UsageControl {
  const { state, ledger, clock, log } = options
  const news = new UsageNews(options)
  const failed = (error: unknown) => {
    // Looked at again with the next news of the account, and at the next start.
    log.error({ error: String(error) }, 'What is used of limits could not be looked at')
  }
  const lost = async (lane: string, losses: Losses): Promise<void> => {
    await news.lost(lane, losses)
    await news.used(losses.map(({ account }) => account))
  }
  const cells = sqlLedger(ledger, clock, (lane, losses) => void lost(lane, losses).catch(failed))
  const authority = new Authority({
    ledger: cells,
    limits: sqlLimits(state, ledger, clock),
    clock,
    log,
    peers,
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
  const look = async (version: number): Promise<void> => {
    const { limits, narrowed, offer } = await changedAt(state, version)
    if (limits.length > 0) {
      // A token that was just made is no news to any lane: what nobody was ever granted of needs no recall.
      const granted = new Set((await cells.cells(limits)).map(({ account }) => account))
      authority.changed(limits.filter((account) => account.startsWith('budget/') || granted.has(account)))
    }
    const used = [...new Set([...limits, ...narrowed])]
    if (used.length > 0) await news.used(used)
    if (offer) await news.offerChanged()
  }
  const compaction = new Compaction(ledger, clock)
  let lookedForRestored = false
  const settlementsOf = (events: readonly Event[]) => events.flatMap(({ settlements }) => settlements ?? [])
  return {
    authority,
    compact: () => compaction.run(),
    async lookForRestored() {
      if (lookedForRestored) return
      const since = await forgottenSince(state, ledger, clock.now())
      if (since !== null) {
        await cells.restored(since)
        const lanes = (await awaitedLanes(ledger)).map(({ lane }) => lane)
        const told = 'The ledger was restored: nothing is granted until its gateways have said what they hold'
        if (lanes.length > 0) log.error({ lanes }, told)
      }
      lookedForRestored = true
    },
    receiver: {
      hear(signal) {
        if (signal.kind === 'slots') recallSlots(registry, signal)
        else authority.hear(signal)
      },
    },
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
      look(version).catch(failed)
    },
  }
}

/** Calls for slots from the lanes among these that are connected here. */
export function recallSlots(
  registry: LaneRegistry,
  { account, want, lanes, at }: Extract<UsageSignal, { kind: 'slots' }>,
): void {
  for (const lane of lanes) registry.get(lane)?.stream?.send({ kind: 'slots', account, want, at })
}
