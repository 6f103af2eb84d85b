/**
 * A ledger that was restored from an older copy has forgotten grants, and what they were spent on
 * (usage/lease/README.md rule 17). From the moment that this is noticed nothing is granted to anybody until every
 * worker that was there within a day before the copy was made has said hello, and with it what it holds, or an operator
 * says that it will not.
 *
 * It is noticed by what others know and the ledger does not:
 *
 *   a control plane that ran meanwhile   transactions that it, or another, has made (usage/lease/ledger-epoch.ts)
 *   a worker                               when it last connected, its events, the transactions it was told of, and what
 *                                        it was granted (allocator.ts)
 *   the state                            a change of which the ledger has neither the event nor that it is pending
 *
 * A worker that is waited for ships its forgotten events again before its hello. They were within what it had been granted,
 * so its word is taken for that (usage/settlement.ts); its hello says what else it was granted.
 */
import { controlPlaneChain } from '../../../events/log/chain.ts'
import { type Database, databaseTime } from '../../../store/open.ts'
import type { Statement } from '../../../store/statement.ts'
import { isBehind } from '../ledger-epoch.ts'

const knownForMs = 86_400_000

/** Waits for the hellos of workers that have said none since `since`; all instants are milliseconds since the epoch. */
export const startReconciliation = (since: number): Statement => ({
  sql: `update workers set awaited = 1 where greeted_at < ?1 and released_at is null
    and last_heartbeat_at > (select max(last_heartbeat_at) from workers where connected_at < ?1) - ${knownForMs}`,
  args: [since],
})

/** For so long nothing is granted in any case: workers that only they themselves know of connect meanwhile. */
const pauseMs = 3000
const pauseWriter = 'restored'

const pause: Statement = {
  sql: `insert into ledger_marks (writer, written, at) values ('${pauseWriter}', 1, ${databaseTime})
    on conflict (writer) do update set written = written + 1, at = excluded.at`,
  args: [],
}

/** An SQL expression: whether nothing is to be granted. */
export const isReconciling = `(exists (select 1 from workers where awaited = 1) or exists (
  select 1 from ledger_marks where writer = '${pauseWriter}' and at between ${databaseTime} - ${pauseMs} and ${databaseTime}))`

/** A worker that somebody remembers. */
export interface KnownWorker {
  worker: string
  gatewayId: string
  instanceId: string
  workerNumber: number
}

/**
 * The ledger has less than these epoch (LedgerEpoch.text) say: waits for the hellos of all workers that it knows, and of
 * those that the caller does. Then it has as much, so that this is done once. Breaks a guard where it has as much already.
 */
export const startFullReconciliation = (epoch: string, workers: readonly KnownWorker[]): Statement[] => [
  // The read that found it may have been answered by a copy that lags behind the primary.
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
    sql: `update workers set awaited = 1 where released_at is null and (worker in (select value ->> 'worker' from json_each(?))
      or max(last_heartbeat_at, connected_at) > (select max(max(last_heartbeat_at, connected_at)) from workers) - ${knownForMs})`,
    args: [JSON.stringify(workers.map(({ worker }) => ({ worker })))],
  },
  {
    sql: `insert into ledger_marks (writer, written, at)
      select value ->> 'writer', value ->> 'written', ${databaseTime} from json_each(?) where true
      on conflict (writer) do update set written = max(written, excluded.written)`,
    args: [epoch],
  },
  pause,
]

/** What a worker says shows that the ledger has forgotten some of it; `since` as for `startReconciliation`. */
export const reconcileAfterLoss = (worker: string, since: number): Statement[] => [
  startReconciliation(since),
  { sql: 'update workers set awaited = 1 where worker = ? and released_at is null', args: [worker] },
  pause,
]

/** An operator says that what workers still hold need not be waited for: in their stead, so that no restart asks again. */
export const resume = (now: number): Statement => ({
  sql: 'update workers set awaited = 0, greeted_at = ? where awaited = 1',
  args: [now],
})

export const workersPendingReconciliation = (
  ledger: Pick<Database, 'read'>,
): Promise<{ worker: string; greeted_at: number }[]> =>
  ledger.read<{ worker: string; greeted_at: number }>(
    'select worker, greeted_at from workers where awaited = 1 order by worker',
  )

const looksBackMs = knownForMs

/** The first event of the control plane that retention has left says from which version on none may be missing. */
const completeFrom = `coalesce(
  (select body ->> '$.config_version' from events where chain = ?1 order by seq limit 1),
  (select ${Number.MAX_SAFE_INTEGER} from chain_floors where chain = ?1), 0)`

/**
 * When the oldest was made of the changes of the last day that the state has and the ledger lacks, milliseconds since the
 * epoch; null where it lacks none. Signed checkpoints are versions of the state too, and no events: their ids are random
 * ones (checkpoint-writer.ts), while those of events are of version 7, by time.
 */
export async function missingChangesSince(
  state: Pick<Database, 'read'>,
  ledger: Pick<Database, 'read'>,
  now: number,
): Promise<number | null> {
  const changes = await state.read<{ event_id: string; version: number; at: number }>(
    `select event_id, version, at from change_log where applied = 1 and at > ? and substr(event_id, 15, 1) = '7'
     order by version desc limit 50`,
    [now - looksBackMs],
  )
  const [oldest] = await ledger.read<{ at: number | null }>(
    `select min(value ->> 'at') as at from json_each(?2) where value ->> 'version' > ${completeFrom}
     and value ->> 'event_id' not in (select event_id from pending_changes)
     and not exists (select 1 from events where event_id = value ->> 'event_id')`,
    [controlPlaneChain, JSON.stringify(changes)],
  )
  return oldest?.at ?? null
}
