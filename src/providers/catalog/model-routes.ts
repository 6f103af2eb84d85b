/** `/v1/catalog/models`: which provider answers for a model, under which name, at what price, and what is tried after. */
import { Elysia } from 'elysia'
import { z } from 'zod'
import { conventions } from '../../api/conventions.ts'
import { cutPage, pageQuery, startOf } from '../../api/page.ts'
import { Failure } from '../../failure.ts'
import type { Family } from '../../languages/dialect.ts'
import { timestamp } from '../../lib/clock.ts'
import { fromRow, insertRow, newStateVersion, updateRow } from '../../store/rows.ts'
import { models } from '../../store/schema/state.ts'
import type { Statement } from '../../store/statement.ts'
import { providerKinds } from '../kinds/index.ts'
import { validModelName } from '../model-name.ts'
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

const path = '/v1/catalog/models'
const tag = 'Catalog'
const fallbackLimit = 8

const families = [
  'chat',
  'responses',
  'messages',
  'embeddings',
  'transcriptions',
  'speech',
  'completions',
  'moderations',
] as const satisfies readonly Family[]

/** An id is what callers ask for and globs are matched against; it may hold slashes, in a path written %2F. */
const recordedId = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._:@+/-]{0,199}$/, 'Write 1 to 200 letters, digits and . _ : @ + / -')
const modelId = recordedId.refine(...validModelName)
const idParams = z.object({ id: recordedId })

const fields = {
  provider_id: z.uuid(),
  upstream_model: z
    .string()
    .regex(/^[\x21-\x7e]{1,200}$/, 'Write 1 to 200 visible ASCII characters without spaces')
    .refine(...validModelName)
    .describe("The provider's name for it; absent: the id"),
  families: z
    .array(z.enum(families))
    .min(1)
    .refine(distinct, 'A family is named twice')
    .describe("Those it serves; absent: all that its provider's kind does"),
  price: priceRecordSchema.describe('Dollars a million tokens; absent: what the embedded table says'),
  max_output_tokens: z.number().int().min(1).max(100_000_000),
  fallbacks: z
    .array(modelId)
    .max(fallbackLimit)
    .refine(distinct, 'A model is named twice')
    .describe('Models that are tried after it, in this order'),
}

const createBody = z.strictObject({
  id: modelId,
  provider_id: fields.provider_id,
  upstream_model: fields.upstream_model.optional(),
  families: fields.families.optional(),
  price: fields.price.optional(),
  max_output_tokens: fields.max_output_tokens.optional(),
  fallbacks: fields.fallbacks.optional(),
})

const updateBody = z.strictObject({
  provider_id: fields.provider_id.optional(),
  upstream_model: fields.upstream_model.nullable().optional(),
  families: fields.families.nullable().optional(),
  price: fields.price.nullable().optional(),
  max_output_tokens: fields.max_output_tokens.nullable().optional(),
  fallbacks: fields.fallbacks.nullable().optional(),
})

const modelSchema = z.object({
  id: z.string(),
  provider_id: z.string(),
  upstream_model: z.string(),
  families: z.array(z.enum(families)).nullable(),
  price: priceRecordSchema.nullable(),
  max_output_tokens: z.number().int().nullable(),
  fallbacks: z.array(z.string()),
  version: z.number().int(),
  created_at: z.string(),
})

type ModelRow = typeof models.$inferSelect
type ModelRecord = z.infer<typeof modelSchema>
type ModelFields = z.infer<typeof updateBody>

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
        body: createBody,
        response: { 201: modelSchema },
        detail: { tags: [tag], summary: 'Lists a model in the catalog' },
      },
    )
    .get(path, ({ query }) => listModels(deps, query), {
      access: 'catalog:read',
      query: z.strictObject({ ...pageQuery, provider_id: z.uuid().optional() }),
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
        params: idParams,
        body: updateBody,
        reply: modelSchema,
        find: (id) => requireModel(deps, id),
        show: (row) => modelRecord(row),
        update: (call, before, body) => updateModel(deps, call, before, body),
        remove: (call, before) => deleteModel(deps, call, before),
      }),
    )

async function createModel(deps: CatalogDependencies, call: CatalogCall, body: z.infer<typeof createBody>) {
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
  families: row.families === null ? null : fields.families.parse(JSON.parse(row.families)),
  price: row.price === null ? null : priceRecordSchema.parse(JSON.parse(row.price)),
  max_output_tokens: row.maxOutputTokens,
  fallbacks: fields.fallbacks.parse(JSON.parse(row.fallbacks ?? '[]')),
  version: row.version,
  created_at: timestamp(row.createdAt),
})

function distinct(values: readonly string[]): boolean {
  return new Set(values).size === values.length
}

const jsonOrNull = (value: object | null): string | null => (value === null ? null : JSON.stringify(value))
