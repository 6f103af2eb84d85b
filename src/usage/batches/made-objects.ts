/** Which files and batches an owner has made: kept when the outcomes of their requests are ingested, listed by pages. */
import type { LogRecord } from '../../events/log/record.ts'
import type { Database } from '../../store/open.ts'
import type { Statement } from '../../store/statement.ts'
import { madeObjectSchema, type ObjectsQuery, type ObjectsReply } from './batch-protocol.ts'

/** How long an object is listed, in milliseconds. */
const keptMs = 30 * 86_400_000

/** Run in the transaction that ingests the records. Empty if no record made an object. */
export function madeObjectStatements(records: readonly LogRecord[], now: number): Statement[] {
  const rows = records.flatMap(({ event_type: type, exchange_id: id, details }) => {
    if (details?.made === undefined || type !== 'gateway.request.outcome' || id === undefined) return []
    const made = madeObjectSchema.safeParse(details.made)
    return made.success ? [{ ...made.data, id, place: JSON.stringify(made.data.place) }] : []
  })
  if (rows.length === 0) return []
  return [
    {
      sql: `insert into batch_objects (id, owner, kind, place, created_at) select value ->> 'id', value ->> 'owner',
        value ->> 'kind', value ->> 'place', ? from json_each(?) where true on conflict (id) do nothing`,
      args: [now, JSON.stringify(rows)],
    },
    { sql: 'delete from batch_objects where created_at < ?', args: [now - keptMs] },
  ]
}

/** A page of an owner's objects, the latest first. After an object that is not known there is nothing. */
export async function listMadeObjects(
  ledger: Database,
  { owner, kind, after, limit }: ObjectsQuery,
): Promise<ObjectsReply> {
  const rows = await ledger.read<{ place: string }>(
    `select place from batch_objects where owner = ?1 and kind = ?2 and (?3 is null or id < (
      select id from batch_objects where owner = ?1 and kind = ?2 and place = ?3)) order by id desc limit ?4`,
    [owner, kind, after === null ? null : JSON.stringify(after), limit + 1],
  )
  return { places: rows.slice(0, limit).map(({ place }) => JSON.parse(place)), has_more: rows.length > limit }
}
