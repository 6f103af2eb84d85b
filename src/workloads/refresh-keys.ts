/**
 * Reads the keys of all issuers again every five minutes, so that a rotation of keys needs nobody. Keys that cannot be
 * read stay as they are. Several control planes may do the same: a change holds for the version that was read.
 */
import { and, eq } from 'drizzle-orm'
import { noAttribution } from '../events/event.ts'
import { Failure } from '../failure.ts'
import { timestamp } from '../lib/clock.ts'
import type { Log } from '../lib/log/log.ts'
import { checkedUrl } from '../providers/base-url.ts'
import { condition, hasRow, newStateVersion, query, statement, update } from '../store/query.ts'
import { workloadIdentities } from '../store/schema/state/tokens.ts'
import type { WorkloadDependencies } from './dependencies.ts'
import { readKeys } from './issuer-keys.ts'
import { readStoredKeys } from './stored-identity.ts'

export const refreshMilliseconds = 300_000

type Dependencies = Omit<WorkloadDependencies, 'fleet'> & { log: Log }

/** Gives the work of a round: it reads the keys that were last read five minutes ago. */
export function keyRefresher(deps: Dependencies): () => Promise<void> {
  const readAt = new Map<string, number>()
  return async () => {
    const rows = await query(deps.state).select().from(workloadIdentities).where(eq(workloadIdentities.deleted, 0))
    const now = deps.clock.monotonic()
    const due = rows.filter(
      ({ id, enabled }) => enabled === 1 && now - (readAt.get(id) ?? Number.NEGATIVE_INFINITY) >= refreshMilliseconds,
    )
    for (const id of readAt.keys()) if (!rows.some((row) => row.id === id)) readAt.delete(id)
    const refreshed = due.filter(({ id, keys, keysChangedAt }) => {
      const isNew = !readAt.has(id) && deps.clock.now() - keysChangedAt < refreshMilliseconds
      readAt.set(id, now)
      return !isNew && !readStoredKeys(keys).given
    })
    await Promise.all(refreshed.map((row) => refresh(deps, row)))
  }
}

async function refresh(deps: Dependencies, row: typeof workloadIdentities.$inferSelect): Promise<void> {
  const { id, name, issuer, jwksUrl, version } = row
  try {
    const check = (url: string) => checkedUrl(url, deps.plainHttp, { param: 'jwks_url', instead: 'keys' })
    const { keys } = await readKeys(deps.fetch, { issuer, jwksUrl }, check)
    if (JSON.stringify(keys) === JSON.stringify(readStoredKeys(row.keys).keys)) return
    const asRead = and(eq(workloadIdentities.id, id), eq(workloadIdentities.version, version))
    await deps.recorder.change({
      event: {
        event_id: deps.newId(),
        event_type: 'workload.keys_changed',
        request_id: null,
        timestamp: timestamp(deps.clock.now()),
        verdict: 'allow',
        reason_code: 'ok',
        config_version: 0,
        event_attribution: noAttribution,
        details: { workload_identity_id: id, name, key_ids: keys.map(({ kid }) => kid ?? null) },
      },
      guard: condition(hasRow(workloadIdentities, asRead)),
      state: [
        statement(
          update(workloadIdentities)
            .set({
              keys: JSON.stringify({ keys, given: false }),
              keysChangedAt: deps.clock.now(),
              version: newStateVersion,
            })
            .where(eq(workloadIdentities.id, id)),
        ),
      ],
      ledger: [],
    })
  } catch (thrown) {
    if (thrown instanceof Failure && thrown.code === 'conflict') return
    deps.log.warn(
      { workload_identity: name, error: String(thrown) },
      'The keys of an issuer could not be read; the known ones stay in force',
    )
  }
}
