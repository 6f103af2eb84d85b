/** What alerts and channels that were deleted were called, as the events of their deletion say. */
import { z } from 'zod'
import { eventsOf } from '../events/engine/log-of.ts'
import { readLogHead } from '../events/log/segment-rows.ts'
import { Failure } from '../failure.ts'
import type { Reader } from '../store/open.ts'

const types = ['alert.deleted', 'alert.channel_deleted']
const deletion = z.looseObject({
  alert_id: z.string().optional(),
  alert_channel_id: z.string().optional(),
  name: z.string(),
})

/** Names by id; nothing for an id whose event is not kept any more, or where the log cannot be read. `since`: ms. */
export async function namesOfDeleted(
  ledger: Reader,
  ids: ReadonlySet<string>,
  since: number,
): Promise<ReadonlyMap<string, string>> {
  try {
    return await findNames(ledger, ids, since)
  } catch (error) {
    if (error instanceof Failure && error.code === 'dependency_unavailable') return new Map()
    throw error
  }
}

async function findNames(
  ledger: Reader,
  ids: ReadonlySet<string>,
  since: number,
): Promise<ReadonlyMap<string, string>> {
  const names = new Map<string, string>()
  if (ids.size === 0) return names
  const { next: ceiling } = await readLogHead(ledger)
  const found = eventsOf(ledger, {
    ...{ order: 'newest', since, until: Number.MAX_SAFE_INTEGER, ceiling, after: null, ids: [] },
    facets: [{ facet: 'type', values: types }],
  })
  for await (const { event } of found) {
    const { data } = deletion.safeParse(event.details)
    const id = data?.alert_id ?? data?.alert_channel_id
    if (id === undefined || data === undefined || !ids.has(id)) continue
    names.set(id, data.name)
    if (names.size === ids.size) break
  }
  return names
}
