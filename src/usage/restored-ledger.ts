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
import type { Database, Statement } from '../store/open.ts'

const knownForMs = 86_400_000

/**
 * Waits for the hellos of lanes that have said none since `since`, when this control plane started; all instants are
 * milliseconds since the epoch.
 */
export const awaitLanes = (since: number): Statement => ({
  sql: `update lanes set awaited = 1 where greeted_at < ?1 and released_at is null
    and last_beat_at > (select max(last_beat_at) from lanes where connected_at < ?1) - ${knownForMs}`,
  args: [since],
})

/** An operator says that what lanes still hold need not be waited for. */
export const resume: Statement = { sql: 'update lanes set awaited = 0 where awaited = 1', args: [] }

export const awaitedLanes = (ledger: Pick<Database, 'read'>): Promise<{ lane: string }[]> =>
  ledger.read<{ lane: string }>('select lane from lanes where awaited = 1 order by lane')

/** Events of older changes may have been deleted for their age. */
const looksBackMs = knownForMs

/** Whether the ledger lacks changes of the last day that the state has. */
export async function lacksChanges(state: Pick<Database, 'read'>, ledger: Pick<Database, 'read'>, now: number) {
  const changes = await state.read<{ event_id: string }>(
    'select event_id from change_log where applied = 1 and at > ? order by version desc limit 50',
    [now - looksBackMs],
  )
  const known = await ledger.read<{ missing: number }>(
    `select count(*) as missing from json_each(?) where value not in (select event_id from pending_changes)
     and not exists (select 1 from events where event_id = value)`,
    [JSON.stringify(changes.map(({ event_id }) => event_id))],
  )
  return (known[0]?.missing ?? 0) > 0
}
