/**
 * A ledger restored from an older copy lacks grants and what they were spent on (usage/lease/README.md rule 17).
 * Reconciliation follows: nothing is granted until every worker that was active within a day before the copy was made
 * has registered with its balances, or an operator ends the wait.
 *
 * A restored ledger is detected by what others know and it does not:
 *
 *  a control plane that ran meanwhile   transactions that it or another has made (usage/lease/ledger-epoch.ts)
 *  a worker                             when it last connected, its events, the transaction counts it was sent, and
 *                                       its grants (allocator.ts)
 *  the state                            a change whose event is neither in the ledger nor pending
 *
 * A worker pending reconciliation ships the missing events again before it registers. They were within its grants, so
 * they are believed (usage/settlement-statements.ts). Its registration reports its other grants.
 */

import { logOf } from '../../../events/engine/log-of.ts'
import type { Event } from '../../../events/event.ts'
import { controlPlaneChain } from '../../../events/log/chain.ts'
import { type Database, databaseTime, type Reader } from '../../../store/open.ts'
import type { Statement } from '../../../store/statement.ts'
import { isBehind } from '../ledger-epoch.ts'

const knownForMs = 86_400_000

/**
 * Marks the workers that have not registered since `since`, in milliseconds since the epoch, as pending
 * reconciliation.
 */
export const startReconciliation = (since: number): Statement => ({
  sql: `update workers set pending_reconciliation = 1 where registered_at < ?1 and released_at is null
    and last_heartbeat_at > (select max(last_heartbeat_at) from workers where connected_at < ?1) - ${knownForMs}`,
  args: [since],
})

/** How long nothing is granted in any case, so that workers that the ledger does not know can connect. */
const pauseMs = 3000
const pauseWriter = 'restored'

const pause: Statement = {
  sql: `insert into ledger_epoch (writer, written, at) values ('${pauseWriter}', 1, ${databaseTime})
    on conflict (writer) do update set written = written + 1, at = excluded.at`,
  args: [],
}

/** An SQL expression: whether grants are suspended. */
export const isReconciling = `(exists (select 1 from workers where pending_reconciliation = 1) or exists (
  select 1 from ledger_epoch where writer = '${pauseWriter}' and at between ${databaseTime} - ${pauseMs} and ${databaseTime}))`

/** A worker that a control plane remembers. */
export interface KnownWorker {
  worker: string
  gatewayId: string
  instanceId: string
  workerNumber: number
}

/**
 * The ledger has fewer transactions than `epoch` (LedgerEpoch.text): marks all its workers, and those that the caller
 * knows, as pending reconciliation. Then raises the ledger's counts, so that this happens once. Breaks a guard if the
 * ledger is not behind.
 */
export const startFullReconciliation = (epoch: string, workers: readonly KnownWorker[]): Statement[] => [
  // The read that found it may have come from a replica that lags behind the primary.
  { sql: `insert into guards (holds) select 0 where not ${isBehind('?')}`, args: [epoch] },
  {
    sql: `insert into workers (worker, gateway_id, instance_id, worker_number, stream_id, gateway_version, acknowledged_version,
        last_heartbeat_at, connected_at)
      select value ->> 'worker', value ->> 'gatewayId', value ->> 'instanceId', value ->> 'workerNumber', '', '', 0, 0, 0
      from json_each(?) where true on conflict (worker) do nothing`,
    args: [
      JSON.stringify(
        workers.map(({ worker, gatewayId, instanceId, workerNumber }) => ({
          worker,
          gatewayId,
          instanceId,
          workerNumber,
        })),
      ),
    ],
  },
  {
    sql: `update workers set pending_reconciliation = 1 where released_at is null and (worker in (select value ->> 'worker' from json_each(?))
      or max(last_heartbeat_at, connected_at) > (select max(max(last_heartbeat_at, connected_at)) from workers) - ${knownForMs})`,
    args: [JSON.stringify(workers.map(({ worker }) => ({ worker })))],
  },
  {
    sql: `insert into ledger_epoch (writer, written, at)
      select value ->> 'writer', value ->> 'written', ${databaseTime} from json_each(?) where true
      on conflict (writer) do update set written = max(written, excluded.written)`,
    args: [epoch],
  },
  pause,
]

/** A worker's message shows that the ledger lacks something. `since` as for `startReconciliation`. */
export const reconcileAfterLoss = (worker: string, since: number): Statement[] => [
  startReconciliation(since),
  { sql: 'update workers set pending_reconciliation = 1 where worker = ? and released_at is null', args: [worker] },
  pause,
]

/**
 * An operator ends reconciliation in the workers' stead. `registered_at` is set so that a restart does not begin it
 * again.
 */
export const resume = (now: number): Statement => ({
  sql: 'update workers set pending_reconciliation = 0, registered_at = ? where pending_reconciliation = 1',
  args: [now],
})

export const workersPendingReconciliation = (
  ledger: Pick<Database, 'read'>,
): Promise<{ worker: string; registered_at: number }[]> =>
  ledger.read<{ worker: string; registered_at: number }>(
    'select worker, registered_at from workers where pending_reconciliation = 1 order by worker',
  )

const looksBackMs = knownForMs
const mostChanges = 50
/** The clocks of control planes may differ by so much. */
const clockMarginMs = 3_600_000

/**
 * When the oldest change of the last day was made that the state has and the ledger lacks, in milliseconds since the
 * epoch; null if none is missing. Checkpoints are versions of the state without an event: their ids are random UUIDs
 * (checkpoint-writer.ts), while ids of events are UUIDs of version 7. Changes whose events cannot be read are missing.
 */
export async function missingChangesSince(
  state: Pick<Database, 'read'>,
  ledger: Reader,
  now: number,
): Promise<number | null> {
  const changes = await state.read<{ event_id: string; version: number; at: number }>(
    `select event_id, version, at from change_log where applied = 1 and at > ? and substr(event_id, 15, 1) = '7'
     order by version desc limit ${mostChanges}`,
    [now - looksBackMs],
  )
  const complete = await completeFrom(ledger)
  const pending = await ledger.read<{ event_id: string }>('select event_id from pending_changes')
  const missing = new Map(changes.filter(({ version }) => version > complete).map(({ event_id, at }) => [event_id, at]))
  for (const { event_id } of pending) missing.delete(event_id)
  if (missing.size === 0) return null
  const since = Math.min(...missing.values()) - clockMarginMs
  for await (const { event_id } of controlPlaneEventsSince(ledger, since)) {
    missing.delete(event_id)
    if (missing.size === 0) return null
  }
  return Math.min(...missing.values())
}

/** The first event of the control plane that retention has kept gives the version from which none may be missing. */
async function completeFrom(ledger: Reader): Promise<number> {
  for await (const event of controlPlaneEventsSince(ledger, 0)) return event.config_version
  const [floor] = await ledger.read('select 1 from chain_floors where chain = ?', [controlPlaneChain])
  return floor === undefined ? 0 : Number.MAX_SAFE_INTEGER
}

/** The events of the control plane's own that were received since then, and some before, as far as they can be read. */
async function* controlPlaneEventsSince(ledger: Reader, since: number): AsyncGenerator<Event, void, undefined> {
  const chains = logOf(ledger).chains()
  const first = await chains.firstSince(controlPlaneChain, since)
  if (first === null) return
  const range = { after: first - 1, upTo: Number.MAX_SAFE_INTEGER, bodies: true }
  for await (const record of chains.records(controlPlaneChain, range)) {
    if (record === null) return
    const event: Event = JSON.parse(Buffer.from(record.body).toString())
    yield event
  }
}
