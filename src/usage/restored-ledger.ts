/**
 * A ledger that was restored from an older copy has forgotten grants, and what they were spent on (protocols section 2,
 * rule 17). From the moment that this is noticed nothing is granted to anybody until every lane that was there within a
 * day before the copy was made has said hello, and with it what it holds, or an operator says that it will not.
 *
 * It is noticed by what others know and the ledger does not: a lane was granted more than the ledger has of its cell
 * (authority.ts), or the state holds a change of which the ledger has neither the event nor that it is pending. A copy of
 * both databases from one moment shows only by the first. Lanes that began after the copy are known to nobody: each is
 * taken at its word when it connects.
 */
import { controlPlaneChain } from '../events/chain.ts'
import type { Database, Statement } from '../store/open.ts'

const knownForMs = 86_400_000

/** Waits for the hellos of lanes that have said none since `since`; all instants are milliseconds since the epoch. */
export const awaitLanes = (since: number): Statement => ({
  sql: `update lanes set awaited = 1 where greeted_at < ?1 and released_at is null
    and last_beat_at > (select max(last_beat_at) from lanes where connected_at < ?1) - ${knownForMs}`,
  args: [since],
})

/** An operator says that what lanes still hold need not be waited for: in their stead, so that no restart asks again. */
export const resume = (now: number): Statement => ({
  sql: 'update lanes set awaited = 0, greeted_at = ? where awaited = 1',
  args: [now],
})

export const awaitedLanes = (ledger: Pick<Database, 'read'>): Promise<{ lane: string }[]> =>
  ledger.read<{ lane: string }>('select lane from lanes where awaited = 1 order by lane')

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
export async function forgottenSince(
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
