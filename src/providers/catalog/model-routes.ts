/** `/v1/catalog/models`: which provider answers for a model, under which name, at what price, and what is tried after. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { cutPage, pageQuery, startOf } from '../../api/page.ts'
import { Failure } from '../../failure.ts'
import { timestamp } from '../../lib/clock.ts'
import { fromRow, insertRow, newStateVersion, updateRow } from '../../store/rows.ts'
import { models } from '../../store/schema/state/catalog.ts'
import type { Statement } from '../../store/statement.ts'
import { providerKinds } from '../kinds/index.ts'
import { priceRecordSchema } from '../prices/price-record.ts'
import { serves } from '../provider.ts'
import { recordRoutes } from '../record-routes.ts'
import {
  all,
  atVersion,
  type CatalogCall,
  type CatalogDependencies,
  changeCatalog,
  missing,
  none,
  some,
  tombstone,
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
  const present = 'select 1 from models where id = ? and deleted = 0'
  if ((await deps.state.read(present, [id])).length > 0) {
    throw new Failure('conflict', { message: 'The catalog lists a model of this id already', param: 'id' })
  }
  const references = await checkReferences(deps, id, given)
  await changeCatalog(deps, call, {
    type: 'catalog.created',
    details: { model_id: id, ...given },
    guard: all(none(present, [id]), ...references),
    state: [
      // What an earlier model of this id left behind is overtaken by the new one's version.
      { sql: 'delete from models where id = ?', args: [id] },
      insertRow(
        models,
        { id, providerId: given.provider_id, createdAt: deps.clock.now(), ...columns(given) },
        { version: newStateVersion },
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
  const query = { list: 'models', provider_id: provider }
  const found = await state.read(
    'select * from models where deleted = 0 and id > ? and provider_id = coalesce(?, provider_id) order by id limit ?',
    [startOf(cursor, query, modelId) ?? '', provider ?? null, limit + 1],
  )
  const rows = found.map((row) => fromRow(models, row))
  const page = cutPage(rows, limit, query)
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
    guard: all(atVersion('models', before), ...references),
    state: [updateRow(models, id, { providerId: after.provider_id, ...columns(body) }, { version: newStateVersion })],
  })
  return modelRecord(await requireModel(deps, id))
}

const fallingBack =
  'select id from models where deleted = 0 and id <> ? and exists (select 1 from json_each(fallbacks) where value = ?)'

async function deleteModel(deps: CatalogDependencies, call: CatalogCall, before: ModelRow) {
  const { id, providerId } = before
  const [other] = await deps.state.read<{ id: string }>(`${fallingBack} limit 1`, [id, id])
  if (other !== undefined) throw new Failure('conflict', { message: `The model ${other.id} falls back to it` })
  await changeCatalog(deps, call, {
    type: 'catalog.deleted',
    details: { model_id: id, provider_id: providerId },
    guard: all(atVersion('models', before), none(fallingBack, [id, id])),
    state: [tombstone('models', id)],
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
): Promise<Statement[]> {
  const fallbacks = named ?? []
  const present = 'select kind from providers where id = ? and deleted = 0'
  const [provider] = await state.read<{ kind: string }>(present, [providerId])
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
  const listed = 'select 1 from models where id = ? and deleted = 0'
  for (const [index, fallback] of fallbacks.entries()) {
    if ((await state.read(listed, [fallback])).length === 0) {
      throw wrong(`fallbacks.${index}`, 'The catalog lists no such model')
    }
  }
  return [some(present, [providerId]), ...fallbacks.map((fallback) => some(listed, [fallback]))]
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
  const [row] = await state.read('select * from models where id = ? and deleted = 0', [id])
  if (row === undefined) throw missing('model')
  return fromRow(models, row)
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
