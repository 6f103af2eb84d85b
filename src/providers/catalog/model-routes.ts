/** `/v1/catalog/models`: which provider answers for a model, under which name, at what price, and what is tried after. */
import type { SQL } from 'drizzle-orm'
import { and, eq, gt, ne, not, sql } from 'drizzle-orm'
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { cutPage, pageQuery, startOf } from '../../api/page.ts'
import { Failure } from '../../failure.ts'
import { timestamp } from '../../lib/clock.ts'
import { hasRow, insert, newStateVersion, query, remove, statement, update } from '../../store/query.ts'
import { models, providers } from '../../store/schema/state/catalog.ts'
import { providerKinds } from '../kinds/index.ts'
import { priceRecordSchema } from '../prices/price-record.ts'
import { serves } from '../provider.ts'
import { recordRoutes } from '../record-routes.ts'
import {
  atVersion,
  type CatalogCall,
  type CatalogDependencies,
  changeCatalog,
  holds,
  isThere,
  missing,
  wrong,
} from './catalog-change.ts'
import { createModelBody, modelFilters, modelId, modelParams, modelSchema, updateModelBody } from './model-resource.ts'

const path = '/v1/catalog/models'
const tag = 'Catalog'
type ModelRow = typeof models.$inferSelect
type ModelRecord = z.infer<typeof modelSchema>
type ModelFields = z.infer<typeof updateModelBody>

export const modelRoutes = (deps: CatalogDependencies) =>
  new Elysia({ name: 'model' })
    .use(conventions)
    .post(
      path,
      async ({ principal, requestId, body, status }) =>
        status(201, await createModel(deps, { principal, requestId }, body)),
      {
        versioned: true,
        access: 'catalog:write',
        body: createModelBody,
        response: { 201: modelSchema },
        detail: { tags: [tag], summary: 'Lists a model in the catalog' },
      },
    )
    .get(path, ({ query }) => listModels(deps, query), {
      access: 'catalog:read',
      query: modelFilters.extend(pageQuery),
      response: z.object({ models: z.array(modelSchema), next_cursor: z.string().nullable() }),
      detail: { tags: [tag], summary: 'Lists models, by their ids' },
    })
    .use(
      recordRoutes({
        path,
        tag,
        summaries: {
          get: 'One model; a slash in its id is written %2F',
          update: 'Changes a model; null takes a field back to what holds without it',
          remove: 'Takes a model that no other falls back to out of the catalog; gives its last record',
        },
        params: modelParams,
        body: updateModelBody,
        reply: modelSchema,
        find: (id) => requireModel(deps, id),
        show: (row) => modelRecord(row),
        update: (call, before, body) => updateModel(deps, call, before, body),
        remove: (call, before) => deleteModel(deps, call, before),
      }),
    )

async function createModel(deps: CatalogDependencies, call: CatalogCall, body: z.infer<typeof createModelBody>) {
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

interface ListQuery {
  limit: number
  cursor?: string | undefined
  provider_id?: string | undefined
}

async function listModels({ state }: CatalogDependencies, { limit, cursor, provider_id: provider }: ListQuery) {
  const filters = { list: 'models', provider_id: provider }
  const ofProvider = provider === undefined ? undefined : eq(models.providerId, provider)
  const rows = await query(state)
    .select()
    .from(models)
    .where(and(eq(models.deleted, 0), gt(models.id, startOf(cursor, filters, modelId) ?? ''), ofProvider))
    .orderBy(models.id)
    .limit(limit + 1)
  const page = cutPage(rows, limit, filters)
  return { models: page.rows.map(modelRecord), next_cursor: page.next_cursor }
}

async function updateModel(deps: CatalogDependencies, call: CatalogCall, before: ModelRow, body: ModelFields) {
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

async function deleteModel(deps: CatalogDependencies, call: CatalogCall, before: ModelRow) {
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
  return [isThere(providers, providerId), ...fallbacks.map((fallback) => isThere(models, fallback))]
}

/** The columns of the fields that are given. */
function columns(given: Omit<ModelFields, 'provider_id'>) {
  const { upstream_model, families: served, price, max_output_tokens, fallbacks } = given
  return {
    ...(upstream_model === undefined ? {} : { upstreamModel: upstream_model }),
    ...(served === undefined ? {} : { families: jsonOrNull(served) }),
    ...(price === undefined ? {} : { price: jsonOrNull(price) }),
    ...(max_output_tokens === undefined ? {} : { maxOutputTokens: max_output_tokens }),
    ...(fallbacks === undefined ? {} : { fallbacks: jsonOrNull(fallbacks) }),
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
  version: row.version,
  created_at: timestamp(row.createdAt),
})

const jsonOrNull = (value: object | null): string | null => (value === null ? null : JSON.stringify(value))
