/** Whether callers could ask for a model. */
import { and, eq, inArray } from 'drizzle-orm'
import { everyTeam, noTeam } from '../../events/rollups/rollup.ts'
import type { Database } from '../../store/open.ts'
import { query } from '../../store/query.ts'
import { eventRollups } from '../../store/schema/ledger/events.ts'
import { models, providers } from '../../store/schema/state/catalog.ts'
import { namedProviders } from '../presets/model-prefix.ts'

/**
 * The catalog has it, or its prefix names a provider that serves models which the catalog does not list, or somebody
 * asked for it before: such a provider serves any name.
 */
export async function isKnownModel({ state, ledger }: { state: Database; ledger: Database }, id: string) {
  const listed = and(eq(models.id, id), eq(models.deleted, 0))
  if ((await query(state).select({ id: models.id }).from(models).where(listed).get()) !== undefined) return true
  const open = and(eq(providers.allowUnlistedModels, 1), eq(providers.deleted, 0))
  const { name, kind, baseUrl } = providers
  const serving = await query(state).select({ name, kind, baseUrl }).from(providers).where(open)
  if (serving.length === 0) return false
  if (namedProviders(id, serving) !== null) return true
  const { kind: sum, step, scope, key } = eventRollups
  const asked = and(eq(sum, 'model'), eq(step, 'day'), inArray(scope, [everyTeam, noTeam]), eq(key, id))
  return (await query(ledger).select({ key }).from(eventRollups).where(asked).limit(1).get()) !== undefined
}
