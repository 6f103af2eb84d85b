/** Whether callers could ask for a model, and whether somebody does. */
import { and, eq, inArray } from 'drizzle-orm'
import { everyTeam, noTeam } from '../../events/rollups/rollup.ts'
import type { Database } from '../../store/open.ts'
import { query } from '../../store/query.ts'
import { eventRollups } from '../../store/schema/ledger/events.ts'
import { models, providers } from '../../store/schema/state/catalog.ts'

/** The catalog has it, or a provider serves models of any name. */
export async function canBeAskedFor(state: Database, id: string): Promise<boolean> {
  return (await isListed(state, id)) || (await servingAny(state)).length > 0
}

/**
 * The catalog has it, or its prefix names a provider that serves models of any name, or one does and somebody asked for
 * the model before.
 */
export async function isKnownModel({ state, ledger }: { state: Database; ledger: Database }, id: string) {
  if (await isListed(state, id)) return true
  const serving = await servingAny(state)
  if (serving.length === 0) return false
  if (serving.some(({ name }) => id.startsWith(`${name}/`))) return true
  const { kind, step, scope, key } = eventRollups
  const asked = and(eq(kind, 'model'), eq(step, 'day'), inArray(scope, [everyTeam, noTeam]), eq(key, id))
  return (await query(ledger).select({ key }).from(eventRollups).where(asked).limit(1).get()) !== undefined
}

async function isListed(state: Database, id: string): Promise<boolean> {
  const listed = and(eq(models.id, id), eq(models.deleted, 0))
  return (await query(state).select({ id: models.id }).from(models).where(listed).get()) !== undefined
}

const servingAny = (state: Database): Promise<{ name: string }[]> =>
  query(state)
    .select({ name: providers.name })
    .from(providers)
    .where(and(eq(providers.allowUnlistedModels, 1), eq(providers.deleted, 0)))
