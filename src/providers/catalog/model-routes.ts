/** `/v1/catalog/models`: which provider answers for a model, under which name, at what price, and what is tried after. */
import type { SQL } from 'drizzle-orm'
import { and, eq, gt, ne, not, sql } from 'drizzle-orm'
import type { z } from 'zod'
import { type PageQuery, recordPage } from '../../api/page.ts'
import { type RecordCall, resourceRoutes } from '../../api/resource-routes.ts'
import { Failure } from '../../failure.ts'
import { timestamp } from '../../lib/clock.ts'
import { hasRow, insert, newStateVersion, query, remove, statement, update } from '../../store/query.ts'
import { models, providers } from '../../store/schema/state/catalog.ts'
import { providerKinds } from '../kinds/index.ts'
import { priceRecordSchema } from '../prices/price-record.ts'
import { serves } from '../provider.ts'
import {
  atVersion,
  type CatalogDependencies,
  changeable,
  changeCatalog,
  holds,
  isThere,
  missing,
  wrong,
} from './catalog-change.ts'
import {
  type createModelBody,
  type modelFilters,
  modelId,
  modelResource,
  modelSchema,
  type updateModelBody,
} from './model-resource.ts'

type ModelRow = typeof models.$inferSelect
type ModelRecord = z.infer<typeof modelSchema>
type ModelFields = z.infer<typeof updateModelBody>

export const modelRoutes = (deps: CatalogDependencies) =>
  resourceRoutes(modelResource, {
    list: (query) => listModels(deps, query),
    get: async (id) => modelRecord(await requireModel(deps, id)),
    create: (body, call) => createModel(deps, call, body),
    update: async (id, body, call) =>
      await updateModel(deps, call, changeable(call, await requireModel(deps, id)), body),
    remove: async (id, call) => await deleteModel(deps, call, changeable(call, await requireModel(deps, id))),
  })

async function createModel(deps: CatalogDependencies, call: RecordCall, body: z.infer<typeof createModelBody>) {
  const { id, ...given } = body
  const present = isThere(models, id)
  if (await holds(deps.state, present)) {
    throw new Failure('conflict', { message: 'The catalog lists a model of this id already', param: 'id' })
  }
  const references = await checkReferences(deps, id, given)
  await changeCatalog(deps, call, {
    type: 'catalog.created',
    details: { model_id: id, ...given },
    guard: and(not(present), ...references),
    state: [
      // What an earlier model of this id left behind is overtaken by the new one's version.
      statement(remove(models).where(eq(models.id, id))),
      statement(
        insert(models).values({
          id,
          providerId: given.provider_id,
          createdAt: deps.clock.now(),
          ...columns(given),
          version: newStateVersion,
        }),
      ),
    ],
  })
  return modelRecord(await requireModel(deps, id))
}

function listModels(
  { state }: CatalogDependencies,
  { provider_id, ...page }: PageQuery & z.infer<typeof modelFilters>,
) {
  const ofProvider = provider_id === undefined ? undefined : eq(models.providerId, provider_id)
  return recordPage(page, {
    filters: { list: 'models', provider_id },
    id: modelId,
    read: (after, count) =>
      query(state)
        .select()
        .from(models)
        .where(and(eq(models.deleted, 0), gt(models.id, after), ofProvider))
        .orderBy(models.id)
        .limit(count),
    show: (rows) => rows.map(modelRecord),
  })
}

async function updateModel(deps: CatalogDependencies, call: RecordCall, before: ModelRow, body: ModelFields) {
  const { id } = before
  const after = {
    families: modelRecord(before).families,
    ...body,
    upstream_model: body.upstream_model === undefined ? before.upstreamModel : body.upstream_model,
    provider_id: body.provider_id ?? before.providerId,
  }
  const references = await checkReferences(deps, id, after)
  await changeCatalog(deps, call, {
    type: 'catalog.updated',
    details: { model_id: id, ...body },
    guard: and(atVersion(models, before), ...references),
    state: [
      statement(
        update(models)
          .set({ providerId: after.provider_id, ...columns(body), version: newStateVersion })
          .where(eq(models.id, id)),
      ),
    ],
  })
  return modelRecord(await requireModel(deps, id))
}

/** Models of the catalog that fall back to this one. */
const fallingBack = (id: string): SQL | undefined =>
  and(
    eq(models.deleted, 0),
    ne(models.id, id),
    sql`exists (select 1 from json_each(${models.fallbacks}) where value = ${id})`,
  )

async function deleteModel(deps: CatalogDependencies, call: RecordCall, before: ModelRow) {
  const { id, providerId } = before
  const other = await query(deps.state).select({ id: models.id }).from(models).where(fallingBack(id)).get()
  if (other !== undefined) throw new Failure('conflict', { message: `The model ${other.id} falls back to it` })
  await changeCatalog(deps, call, {
    type: 'catalog.deleted',
    details: { model_id: id, provider_id: providerId },
    guard: and(atVersion(models, before), not(hasRow(models, fallingBack(id)))),
    state: [statement(update(models).set({ deleted: 1, version: newStateVersion }).where(eq(models.id, id)))],
  })
  return modelRecord(before)
}

/** Throws `invalid_parameter` for a reference to what is not there; gives what must still hold when it is written. */
async function checkReferences(
  { state }: CatalogDependencies,
  id: string,
  {
    provider_id: providerId,
    upstream_model,
    families: wanted,
    fallbacks: named,
    shadow,
  }: ModelFields & { provider_id: string },
): Promise<SQL[]> {
  const fallbacks = named ?? []
  const present = and(eq(providers.id, providerId), eq(providers.deleted, 0))
  const provider = await query(state).select({ kind: providers.kind }).from(providers).where(present).get()
  if (provider === undefined) throw wrong('provider_id', 'There is no such provider')
  const kind = providerKinds.get(provider.kind)
  const upstreamModel = upstream_model ?? id
  if (kind?.takesName?.(upstreamModel) === false) {
    const field = upstreamModel === id ? 'id' : 'upstream_model'
    throw wrong(field, `A provider of the kind ${provider.kind} has no model of this name`)
  }
  const unserved = wanted?.findIndex((family) => kind !== undefined && !serves(kind, family)) ?? -1
  if (unserved >= 0) throw wrong(`families.${unserved}`, `A provider of the kind ${provider.kind} does not serve it`)
  if (fallbacks.includes(id)) throw wrong(`fallbacks.${fallbacks.indexOf(id)}`, 'A model cannot fall back to itself')
  for (const [index, fallback] of fallbacks.entries()) {
    if (await holds(state, isThere(models, fallback))) continue
    throw wrong(`fallbacks.${index}`, 'The catalog lists no such model')
  }
  if (!shadow) return [isThere(providers, providerId), ...fallbacks.map((fallback) => isThere(models, fallback))]
  const second = isThere(providers, shadow.provider_id)
  if (!(await holds(state, second))) throw wrong('shadow.provider_id', 'There is no such provider')
  if (shadow.provider_id === providerId && (shadow.upstream_model ?? upstreamModel) === upstreamModel) {
    throw wrong('shadow', 'The shadow is the model itself: name another provider or another upstream_model')
  }
  return [second, isThere(providers, providerId), ...fallbacks.map((fallback) => isThere(models, fallback))]
}

/** The columns of the fields that are given. */
function columns(given: Omit<ModelFields, 'provider_id'>) {
  const { upstream_model, families: served, price, max_output_tokens, fallbacks, translation, shadow } = given
  return {
    ...(upstream_model === undefined ? {} : { upstreamModel: upstream_model }),
    ...(served === undefined ? {} : { families: jsonOrNull(served) }),
    ...(price === undefined ? {} : { price: jsonOrNull(price) }),
    ...(max_output_tokens === undefined ? {} : { maxOutputTokens: max_output_tokens }),
    ...(fallbacks === undefined ? {} : { fallbacks: jsonOrNull(fallbacks) }),
    ...(translation === undefined ? {} : { translation }),
    ...(shadow === undefined ? {} : { shadow: jsonOrNull(shadow) }),
  }
}

async function requireModel({ state }: Pick<CatalogDependencies, 'state'>, id: string): Promise<ModelRow> {
  const found = and(eq(models.id, id), eq(models.deleted, 0))
  const row = await query(state).select().from(models).where(found).get()
  if (row === undefined) throw missing('model')
  return row
}

const modelRecord = (row: ModelRow): ModelRecord => ({
  id: row.id,
  provider_id: row.providerId,
  upstream_model: row.upstreamModel ?? row.id,
  families: modelSchema.shape.families.parse(row.families === null ? null : JSON.parse(row.families)),
  price: row.price === null ? null : priceRecordSchema.parse(JSON.parse(row.price)),
  max_output_tokens: row.maxOutputTokens,
  fallbacks: modelSchema.shape.fallbacks.parse(JSON.parse(row.fallbacks ?? '[]')),
  translation: row.translation === 'strict' ? 'strict' : 'lenient',
  shadow: row.shadow === null ? null : modelSchema.shape.shadow.parse(JSON.parse(row.shadow)),
  version: row.version,
  created_at: timestamp(row.createdAt),
})

const jsonOrNull = (value: object | null): string | null => (value === null ? null : JSON.stringify(value))
