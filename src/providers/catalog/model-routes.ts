/** `/v1/catalog/models`: which provider answers for a model, under which name, at what price, and what is tried after. */
import type { SQL } from 'drizzle-orm'
import { and, eq, gt, ne, not, sql } from 'drizzle-orm'
import { z } from 'zod'
import { type PageQuery, recordPage } from '../../api/page.ts'
import { type RecordCall, resourceRoutes } from '../../api/resource-routes.ts'
import { Failure } from '../../failure.ts'
import { timestamp } from '../../lib/clock.ts'
import { hasRow, insert, isNamed, newStateVersion, query, remove, statement, update } from '../../store/query.ts'
import { models, providers } from '../../store/schema/state/catalog.ts'
import { providerKinds } from '../kinds/index.ts'
import { PriceBook } from '../prices/price-book.ts'
import { priceRecordSchema } from '../prices/price-record.ts'
import { serves } from '../provider.ts'
import {
  answersAt,
  atVersion,
  type CatalogDependencies,
  changeable,
  changeCatalog,
  holds,
  isThere,
  missing,
  wrong,
} from './catalog-change.ts'
import { effectivePrices, type PricedProvider } from './effective-prices.ts'
import {
  type createModelBody,
  type modelFilters,
  modelId,
  modelResource,
  modelSchema,
  type StoredTarget,
  storedTargetSchema,
  type updateModelBody,
} from './model-resource.ts'

import { targetStrategies } from './target-strategy.ts'

type ModelRow = typeof models.$inferSelect
type ModelRecord = z.infer<typeof modelSchema>
type ModelFields = z.infer<typeof updateModelBody>
/** With the ids of providers in the targets. */
type StoredFields = Omit<ModelFields, 'targets' | 'strategy'> & {
  targets?: readonly StoredTarget[] | undefined
  strategy?: string | null | undefined
}

const { id, name, kind, baseUrl, defaultPrice } = providers
const readProviders = ({ state }: Pick<CatalogDependencies, 'state'>) =>
  query(state).select({ id, name, kind, baseUrl, defaultPrice }).from(providers).where(eq(providers.deleted, 0))

/** Finds the providers that the targets name. Throws `invalid_parameter` for one that is not there. */
async function withTargets(deps: CatalogDependencies, { targets, ...rest }: ModelFields): Promise<StoredFields> {
  if (targets === undefined) return rest
  const known = await readProviders(deps)
  const stored = targets.map(({ provider, ...target }, index): StoredTarget => {
    const found = known.find(({ name }) => name === provider) ?? known.find(({ id }) => id === provider)
    if (found === undefined) throw wrong(`targets.${index}.provider`, `There is no provider "${provider}"`)
    return { provider_id: found.id, ...target }
  })
  return { ...rest, targets: stored }
}

interface ModelDependencies extends CatalogDependencies {
  prices: PriceBook
}

export function modelRoutes(catalog: CatalogDependencies) {
  const deps = { ...catalog, prices: new PriceBook() }
  return resourceRoutes(modelResource, {
    list: (query) => listModels(deps, query),
    get: (id) => shownModel(deps, id),
    create: (body, call) => createModel(deps, call, body),
    update: async (id, body, call) =>
      await updateModel(deps, call, changeable(call, await requireModel(deps, id)), body),
    remove: async (id, call) => await deleteModel(deps, call, changeable(call, await requireModel(deps, id))),
  })
}

async function createModel(deps: ModelDependencies, call: RecordCall, body: z.infer<typeof createModelBody>) {
  const { id, ...given } = { ...body, ...firstTarget(await withTargets(deps, body), null) }
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
  return await shownModel(deps, id)
}

function listModels(deps: ModelDependencies, { provider_id, name, ...page }: PageQuery & z.infer<typeof modelFilters>) {
  const ofProvider = provider_id === undefined ? undefined : answersAt(provider_id)
  return recordPage(page, {
    filters: { list: 'models', provider_id, name },
    id: modelId,
    read: (after, count) =>
      query(deps.state)
        .select()
        .from(models)
        .where(
          and(
            eq(models.deleted, 0),
            gt(models.id, after),
            ofProvider,
            isNamed(name, { id: models.id, names: [models.id] }),
          ),
        )
        .orderBy(models.id)
        .limit(count),
    show: async (rows) => {
      const shown = await showing(deps)
      return rows.map((row) => modelRecord(row, shown))
    },
  })
}

async function updateModel(deps: ModelDependencies, call: RecordCall, before: ModelRow, body: ModelFields) {
  const { id } = before
  const changed = { ...body, ...firstTarget(await withTargets(deps, body), before) }
  const after = {
    families: familiesOf(before),
    strategy: before.strategy,
    ...changed,
    targets: changed.targets ?? (before.targets === null ? undefined : targetsOf(before)),
    upstream_model: changed.upstream_model === undefined ? before.upstreamModel : changed.upstream_model,
    provider_id: changed.provider_id ?? before.providerId,
  }
  const references = await checkReferences(deps, id, after)
  await changeCatalog(deps, call, {
    type: 'catalog.updated',
    details: { model_id: id, ...body },
    guard: and(atVersion(models, before), ...references),
    state: [
      statement(
        update(models)
          .set({ providerId: after.provider_id, ...columns(changed), version: newStateVersion })
          .where(eq(models.id, id)),
      ),
    ],
  })
  return await shownModel(deps, id)
}

/**
 * What a change says of the first target, which is in `provider_id` and `upstream_model` too. Throws
 * `invalid_parameter` where they contradict its `targets`, or those of the record.
 */
function firstTarget(body: StoredFields, before: ModelRow | null) {
  const { targets, provider_id, upstream_model } = body
  if (targets !== undefined) {
    if (provider_id !== undefined) throw wrong('provider_id', 'The targets say it: leave one of both out')
    if (upstream_model != null) throw wrong('upstream_model', 'The targets say it: leave one of both out')
    const [first] = targets
    if (first === undefined) throw wrong('targets', 'Name a target')
    return { targets, provider_id: first.provider_id, upstream_model: first.upstream_model ?? null }
  }
  if (before !== null && before.targets !== null) {
    const field = provider_id !== undefined ? 'provider_id' : upstream_model !== undefined ? 'upstream_model' : null
    if (field !== null) throw wrong(field, 'The model has several targets: change targets instead')
  }
  const id = provider_id ?? before?.providerId
  if (id === undefined) throw wrong('provider_id', 'Name the provider that answers, or targets')
  return { targets, provider_id: id }
}

/** Throws for targets of which none can be chosen, or that are named twice. */
function checkTargets(id: string, targets: readonly StoredTarget[], strategy: unknown): void {
  const names = targets.map(({ provider_id, upstream_model }) => `${provider_id}/${upstream_model ?? id}`)
  const twice = names.findIndex((name, index) => names.indexOf(name) !== index)
  if (twice >= 0) throw wrong(`targets.${twice}`, 'Another target has the same provider and upstream_model')
  if (strategy !== 'weighted') return
  for (const { tier } of targets) {
    const sum = targets.reduce((weights, each) => weights + (each.tier === tier ? each.weight : 0), 0)
    if (sum === 0) throw wrong('targets', `The weights of tier ${tier} sum to zero: give one of its targets a weight`)
  }
}

/** Models of the catalog that fall back to this one. */
const fallingBack = (id: string): SQL | undefined =>
  and(
    eq(models.deleted, 0),
    ne(models.id, id),
    sql`exists (select 1 from json_each(${models.fallbacks}) where value = ${id})`,
  )

async function deleteModel(deps: ModelDependencies, call: RecordCall, before: ModelRow) {
  const { id, providerId } = before
  const other = await query(deps.state).select({ id: models.id }).from(models).where(fallingBack(id)).get()
  if (other !== undefined) throw new Failure('conflict', { message: `The model ${other.id} falls back to it` })
  await changeCatalog(deps, call, {
    type: 'catalog.deleted',
    details: { model_id: id, provider_id: providerId },
    guard: and(atVersion(models, before), not(hasRow(models, fallingBack(id)))),
    state: [statement(update(models).set({ deleted: 1, version: newStateVersion }).where(eq(models.id, id)))],
  })
  return modelRecord(before, await showing(deps))
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
    targets,
    strategy,
    shadow,
  }: StoredFields & { provider_id: string },
): Promise<SQL[]> {
  const fallbacks = named ?? []
  if (targets !== undefined) checkTargets(id, targets, strategy)
  const called = targets ?? [{ provider_id: providerId, upstream_model: upstream_model ?? undefined }]
  for (const [index, target] of called.entries()) {
    const at = targets === undefined ? '' : `targets.${index}.`
    const providerField = targets === undefined ? 'provider_id' : `${at}provider`
    const present = and(eq(providers.id, target.provider_id), eq(providers.deleted, 0))
    const provider = await query(state).select({ kind: providers.kind }).from(providers).where(present).get()
    if (provider === undefined) throw wrong(providerField, 'There is no such provider')
    const kind = providerKinds.get(provider.kind)
    const upstreamModel = target.upstream_model ?? id
    if (kind?.takesName?.(upstreamModel) === false) {
      const field = upstreamModel === id ? 'id' : `${at}upstream_model`
      throw wrong(field, `A provider of the kind ${provider.kind} has no model of this name`)
    }
    const unserved = wanted?.findIndex((family) => kind !== undefined && !serves(kind, family)) ?? -1
    // Of several targets, one that does not serve a family is skipped for it.
    if (unserved >= 0 && called.length === 1) {
      throw wrong(`families.${unserved}`, `A provider of the kind ${provider.kind} does not serve it`)
    }
  }
  if (fallbacks.includes(id)) throw wrong(`fallbacks.${fallbacks.indexOf(id)}`, 'A model cannot fall back to itself')
  for (const [index, fallback] of fallbacks.entries()) {
    if (await holds(state, isThere(models, fallback))) continue
    throw wrong(`fallbacks.${index}`, `The catalog lists no model "${fallback}"`)
  }
  const there = [
    ...called.map(({ provider_id }) => isThere(providers, provider_id)),
    ...fallbacks.map((fallback) => isThere(models, fallback)),
  ]
  if (!shadow) return there
  const second = isThere(providers, shadow.provider_id)
  if (!(await holds(state, second))) throw wrong('shadow.provider_id', 'There is no such provider')
  const isItself = called.some(
    (target) =>
      shadow.provider_id === target.provider_id && (shadow.upstream_model ?? id) === (target.upstream_model ?? id),
  )
  if (isItself) throw wrong('shadow', 'The shadow is the model itself: name another provider or another upstream_model')
  return [second, ...there]
}

/** A single target with a price of its own is kept as a target. */
const isSpecial = ([target]: readonly StoredTarget[]): boolean => target?.price !== undefined

/** The columns of the fields that are given. */
function columns(given: Omit<StoredFields, 'provider_id'>) {
  const { upstream_model, families: served, price, max_output_tokens, fallbacks, translation, shadow } = given
  const { targets, strategy } = given
  return {
    ...(upstream_model === undefined ? {} : { upstreamModel: upstream_model }),
    ...(served === undefined ? {} : { families: jsonOrNull(served) }),
    ...(price === undefined ? {} : { price: jsonOrNull(price) }),
    ...(max_output_tokens === undefined ? {} : { maxOutputTokens: max_output_tokens }),
    ...(fallbacks === undefined ? {} : { fallbacks: jsonOrNull(fallbacks) }),
    ...(translation === undefined ? {} : { translation }),
    ...(shadow === undefined ? {} : { shadow: jsonOrNull(shadow) }),
    ...(targets === undefined
      ? {}
      : { targets: targets.length > 1 || isSpecial(targets) ? JSON.stringify(targets) : null }),
    ...(strategy === undefined ? {} : { strategy }),
  }
}

async function requireModel({ state }: Pick<CatalogDependencies, 'state'>, id: string): Promise<ModelRow> {
  const found = and(eq(models.id, id), eq(models.deleted, 0))
  const row = await query(state).select().from(models).where(found).get()
  if (row === undefined) throw missing('model')
  return row
}

const shownModel = async (deps: ModelDependencies, id: string): Promise<ModelRecord> =>
  modelRecord(await requireModel(deps, id), await showing(deps))

/** What a record is shown with: who may answer, and what that costs. */
interface Showing {
  known: readonly PricedProvider[]
  prices: PriceBook
  now: number
}

async function showing({ state, prices, clock }: ModelDependencies): Promise<Showing> {
  const [known] = await Promise.all([readProviders({ state }), prices.load()])
  return { known, prices, now: clock.now() }
}

const familiesOf = ({ families }: ModelRow): ModelRecord['families'] =>
  modelSchema.shape.families.parse(families === null ? null : JSON.parse(families))

const targetsOf = (row: ModelRow): StoredTarget[] =>
  row.targets === null
    ? [{ provider_id: row.providerId, upstream_model: row.upstreamModel ?? row.id, weight: 1, tier: 1 }]
    : z.array(storedTargetSchema).parse(JSON.parse(row.targets))

const modelRecord = (row: ModelRow, { known, prices, now }: Showing): ModelRecord => ({
  id: row.id,
  provider_id: row.providerId,
  upstream_model: row.upstreamModel ?? row.id,
  families: familiesOf(row),
  price: row.price === null ? null : priceRecordSchema.parse(JSON.parse(row.price)),
  effective_prices: effectivePrices(prices, { id: row.id, price: row.price, targets: targetsOf(row) }, known, now),
  max_output_tokens: row.maxOutputTokens,
  fallbacks: modelSchema.shape.fallbacks.parse(JSON.parse(row.fallbacks ?? '[]')),
  translation: row.translation === 'strict' ? 'strict' : 'lenient',
  shadow: row.shadow === null ? null : modelSchema.shape.shadow.parse(JSON.parse(row.shadow)),
  targets: targetsOf(row).map(({ provider_id: id, ...target }) => ({
    provider: known.find((provider) => provider.id === id)?.name ?? id,
    ...target,
  })),
  strategy: targetStrategies.find((name) => name === row.strategy) ?? 'priority',
  version: row.version,
  created_at: timestamp(row.createdAt),
})

const jsonOrNull = (value: object | null): string | null => (value === null ? null : JSON.stringify(value))
