/**
 * The control plane's part of usage: grants to connected workers, settlement of shipped events, events about limits.
 */
import type { LogRecord } from '../../events/log/record.ts'
import { inTime } from '../../lib/in-time.ts'
import type { LimitRows } from '../../store/limit-rows.ts'
import type { Statement } from '../../store/statement.ts'
import { changedAt, sqlLimits } from '../../usage/api/sql-limits.ts'
import { heldValueAccounts, valuesByDigest } from '../../usage/attribution/value-accounts.ts'
import { BatchHolds } from '../../usage/batches/batch-holds.ts'
import { holdStatements } from '../../usage/batches/hold-statements.ts'
import { madeObjectStatements } from '../../usage/batches/made-objects.ts'
import { excessStatements } from '../../usage/excess.ts'
import { stateWaitMs } from '../../usage/known-limit-rows.ts'
import { Allocator } from '../../usage/lease/allocator/allocator.ts'
import type { BalanceLedger, WorkerConnection } from '../../usage/lease/allocator/balance-ledger.ts'
import { Compaction } from '../../usage/lease/allocator/compaction.ts'
import {
  missingChangesSince,
  reconcileAfterLoss,
  startReconciliation,
  workersPendingReconciliation,
} from '../../usage/lease/allocator/restored-ledger.ts'
import { type Losses, sqlLedger } from '../../usage/lease/allocator/sql-ledger.ts'
import { plainName } from '../../usage/lease/lease.ts'
import { isBehind, LedgerEpoch, type TransactionCount } from '../../usage/lease/ledger-epoch.ts'
import { noPeers, type RecallPeers, type RecallReceiver, type UsageSignal } from '../../usage/lease/recall-peers.ts'
import { settlementStatements, sumByAccount } from '../../usage/settlement-statements.ts'
import { totalStatements } from '../../usage/totals.ts'
import { UsageEvents } from '../../usage/usage-events.ts'
import type { FleetOptions } from './options.ts'
import type { WorkerRegistry } from './worker-registry.ts'

export interface UsageControl {
  readonly batches: BatchHolds
  readonly allocator: Allocator
  readonly limitEvents: UsageEvents
  /** The statements that book the settlements of a worker's new records, for the transaction that appends them. */
  bookingStatements(worker: string, records: readonly LogRecord[]): Statement[]
  /** Call after the commit. The consequences are recorded in the background. */
  onBooked(records: readonly LogRecord[]): void
  /** The state is at this version: recalls the limits that it changed. */
  announced(version: number): void
  /** Call before serving: an older copy of the ledger grants nothing until it knows what workers hold. */
  detectRestoredLedger(): Promise<void>
  /**
   * Call every second: remembers the ledger's transaction counts, and makes workers pending reconciliation connect
   * again.
   */
  reconcileIfRestored(): Promise<void>
  /** The transaction counts for connected workers: only those that are safe from a host crash. */
  epoch(): Promise<TransactionCount[]>
  /**
   * A worker has taken its stream over: its message may show that the ledger was restored. Call before the handshake.
   */
  connected(
    worker: string,
    message: { forgotten: boolean; acknowledged: number; epoch: readonly TransactionCount[] },
  ): Promise<void>
  /** Call regularly. */
  compact(): Promise<void>
  /** Receives signals of other control planes (usage/lease/recall-peers.ts). */
  readonly receiver: RecallReceiver
}

export interface UsageParts {
  limitRows: LimitRows
  peers?: RecallPeers
  /** The ledger was found to be an older copy. */
  onRestored?(): void
}

export function createUsage(
  options: FleetOptions,
  registry: WorkerRegistry,
  { limitRows, peers = noPeers, onRestored = () => undefined }: UsageParts,
): UsageControl {
  const { state, ledger, clock, log } = options
  const limitEvents = new UsageEvents(options)
  const failed = (error: unknown) => {
    // Retried with the next change of the account, and at the next start.
    log.error({ error: String(error) }, 'Used-up limits could not be checked')
  }
  const lost = async (worker: string, losses: Losses): Promise<void> => {
    await limitEvents.lost(worker, losses)
    await limitEvents.used(losses.map(({ account }) => account))
  }
  const epoch = new LedgerEpoch(options.newId())
  const onLost = (worker: string, losses: Losses) => void lost(worker, losses).catch(failed)
  const balances = sqlLedger({ ledger, epoch, clock, onLost, workers: () => registry.all() })
  const reconciliation = new LedgerReconciliation(options, { registry, epoch, balances, onRestored })
  const startedAt = clock.now()
  const allocator = new Allocator({
    ledger: balances,
    limits: sqlLimits(limitRows, clock, ledger),
    clock,
    log,
    peers,
    async floors(accounts) {
      const reading = limitEvents.floors(accounts).catch((error: unknown) => {
        log.warn({ error: String(error) }, 'The price of the cheapest request could not be read')
        return null
      })
      // If the price of the cheapest request is unknown, an account with anything left is not used up.
      return (await inTime(reading, stateWaitMs)) ?? new Map(accounts.map((account) => [account, 1]))
    },
    after(milliseconds, work) {
      if (milliseconds === 0) setImmediate(work)
      else setTimeout(work, milliseconds).unref()
    },
    onRestored() {
      onRestored()
      reconcile().catch(failed)
    },
    workers: {
      connected: () => registry.all().flatMap(({ worker, stream }) => (stream === null ? [] : [worker])),
      holds: ({ worker, streamId }) => registry.get(worker)?.streamId === streamId,
      recall: (worker, accounts) => registry.get(worker)?.stream?.send({ kind: 'recall', accounts: [...accounts] }),
    },
  })
  const reconcile = (opening?: string) => reconciliation.run((worker) => allocator.isRegistered(worker), opening)
  const applyLimitChanges = async (version: number): Promise<void> => {
    const { limits, narrowed, offer } = await changedAt(state, version)
    if (limits.length > 0) {
      // A new token changes nothing for any worker: limits that were never granted need no recall.
      const granted = new Set((await balances.balances(limits)).map(({ account }) => account))
      const values = await heldValueAccounts(ledger, limits)
      const known = limits.filter((account) => account.startsWith('budget/') || granted.has(account))
      allocator.changed([...known, ...values])
    }
    const used = [...new Set([...limits, ...narrowed])]
    if (used.length > 0) await limitEvents.used(used)
    if (offer) await limitEvents.offerChanged()
  }
  const batches = new BatchHolds({
    ...options,
    onReturned(accounts) {
      allocator.changed(accounts)
      limitEvents.used(accounts).catch(failed)
    },
  })
  const compaction = new Compaction(ledger, clock, epoch)
  let restoreChecked = false
  const uses = (records: readonly LogRecord[]) =>
    [...sumByAccount(settlementsOf(records)).values()].some((sum) => sum > 0)
  const settlementsOf = (records: readonly LogRecord[]) => records.flatMap(({ settlements }) => settlements ?? [])
  return {
    allocator,
    batches,
    compact: () => compaction.run(),
    reconcileIfRestored: () => reconcile(),
    async epoch() {
      const { known } = epoch
      await ledger.flush()
      return known
    },
    async connected(worker, { forgotten, acknowledged, epoch: message }) {
      const [row] = await ledger.read<{ lacks: number }>(
        `select coalesce((select seq from chains where chain = ?1), 0) < ?2 or ${isBehind('?3')} as lacks`,
        [worker, acknowledged, JSON.stringify(message)],
      )
      if (!forgotten && row?.lacks !== 1) return
      onRestored()
      await ledger.write(reconcileAfterLoss(worker, startedAt))
      await reconcile(worker)
    },
    async detectRestoredLedger() {
      if (restoreChecked) return
      const since = await missingChangesSince(state, ledger, clock.now())
      if (since !== null) {
        onRestored()
        await ledger.write([startReconciliation(since)])
        await reconcile()
      }
      restoreChecked = true
    },
    receiver: {
      receiveSignal(signal) {
        if (signal.kind === 'slots') recallSlots(registry, signal)
        else allocator.receiveSignal(signal)
      },
    },
    limitEvents,
    bookingStatements(worker, records) {
      const settlements = settlementsOf(records)
      const booked = settlementStatements({
        ...{ worker, settlements, values: valuesByDigest(records), epoch: epoch.text },
      })
      const counted = totalStatements(records)
      const held = [...holdStatements(worker, records, clock.now()), ...madeObjectStatements(records, clock.now())]
      if (booked.length === 0) return [...counted, ...held]
      return [...counted, ...booked, ...held, ...excessStatements(records, clock.now()), epoch.count()]
    },
    onBooked(records) {
      if (uses(records)) epoch.made()
      const requestOf = new Map(
        records.flatMap(({ settlements = [], request_id }) =>
          settlements.map(({ account }) => [account, request_id] as const),
        ),
      )
      if (requestOf.size > 0) limitEvents.used([...requestOf.keys()], requestOf).catch(failed)
      // The excess reduces what others may get, so unused balances of these accounts are recalled.
      const exceeded = settlementsOf(records.filter(({ details }) => details?.bound_exceeded !== undefined))
      if (exceeded.length === 0) return
      allocator.changed([...new Set(exceeded.map(({ account }) => plainName(account)))])
      limitEvents.exceeded().catch(failed)
    },
    announced(version) {
      applyLimitChanges(version).catch(failed)
    },
  }
}

interface ReconciliationParts {
  registry: WorkerRegistry
  epoch: LedgerEpoch
  balances: Pick<BalanceLedger, 'startFullReconciliation'>
  onRestored(): void
}

/**
 * The reconciliation of a restored ledger (usage/lease/allocator/restored-ledger.ts): detects it, and makes workers
 * reopen their streams, so that they ship missing events again and register.
 */
class LedgerReconciliation {
  readonly #options: FleetOptions
  readonly #registry: WorkerRegistry
  readonly #epoch: LedgerEpoch
  readonly #balances: Pick<BalanceLedger, 'startFullReconciliation'>
  readonly #onRestored: () => void
  /** Workers that were made to reconnect, with the time of their last registration. */
  #notified: ReadonlySet<string> = new Set()

  constructor(options: FleetOptions, { registry, epoch, balances, onRestored }: ReconciliationParts) {
    this.#options = options
    this.#registry = registry
    this.#epoch = epoch
    this.#balances = balances
    this.#onRestored = onRestored
  }

  /** `isRegistered` tells whether a worker has registered on its stream; the worker `opening` is just about to. */
  async run(isRegistered: (worker: WorkerConnection) => boolean, opening = ''): Promise<void> {
    const { ledger, log } = this.#options
    const isOlderCopy = !(await this.#epoch.read(ledger))
    if (isOlderCopy) this.#onRestored()
    const behind = isOlderCopy && (await this.#balances.startFullReconciliation())
    const pending = new Map(
      (await workersPendingReconciliation(ledger)).map((each) => [each.worker, `${each.worker} ${each.registered_at}`]),
    )
    const fresh = [...pending].filter(([, time]) => !this.#notified.has(time)).map(([worker]) => worker)
    if (fresh.length > 0) {
      const message = 'The ledger was restored: nothing is granted until its gateways have registered'
      log.error({ workers: fresh }, message)
    }
    const again = new Set(fresh)
    for (const worker of this.#registry.all()) {
      if (worker.worker === opening) continue
      // Some workers started after the copy was made, so the copy does not know them.
      const mustReconnect = again.has(worker.worker) || (pending.has(worker.worker) && isRegistered(worker))
      if (behind || mustReconnect) worker.stream?.end()
    }
    this.#notified = new Set(pending.values())
  }
}

/** Recalls slots from those of these workers that are connected here. */
export function recallSlots(
  registry: WorkerRegistry,
  { account, want, workers, at }: Extract<UsageSignal, { kind: 'slots' }>,
): void {
  for (const worker of workers) registry.get(worker)?.stream?.send({ kind: 'slots', account, want, at })
}
