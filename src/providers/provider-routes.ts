/** `/v1/catalog/providers`: who answers, where, and by which credential, which goes in and never comes out. */
import { and, eq, gt, inArray, isNull, not, or, sql } from 'drizzle-orm'
import type { z } from 'zod'
import { type PageQuery, recordPage } from '../api/page.ts'
import { type RecordCall, resourceRoutes } from '../api/resource-routes.ts'
import { Failure } from '../failure.ts'
import { hasRow, insert, newStateVersion, query, statement, update } from '../store/query.ts'
import { models, providers } from '../store/schema/state/catalog.ts'
import { tokens } from '../store/schema/state/tokens.ts'
import { checkedBaseUrl } from './base-url.ts'
import {
  answersAt,
  atVersion,
  type CatalogDependencies,
  changeable,
  changeCatalog,
  holds,
  madeAt,
  missing,
  nameIsFree,
  wrong,
} from './catalog/catalog-change.ts'
import {
  type Credentials,
  forgetDataKey,
  type KeyStore,
  keepDataKey,
  noCredentials,
  openCredentials,
  openDataKey,
  sealCredentials,
} from './credentials.ts'
import { providerKinds } from './kinds/index.ts'
import { priceRecordSchema } from './prices/price-record.ts'
import {
  type CreateProvider,
  keysOf,
  providerResource,
  type providerSchema,
  timeoutsSchema,
  type UpdateProvider,
  withPreset,
} from './provider-resource.ts'
import { forgetTest } from './trial/last-tests.ts'

export const providerRoutes = (deps: CatalogDependencies) =>
  resourceRoutes(providerResource, {
    list: (query) => listProviders(deps, query),
    get: async (id) => await providerRecord(deps, await requireProvider(deps, id)),
    create: (body, call) => createProvider(deps, call, body),
    update: async (id, body, call) =>
      await updateProvider(deps, call, changeable(call, await requireProvider(deps, id)), body),
    remove: async (id, call) => await deleteProvider(deps, call, changeable(call, await requireProvider(deps, id))),
  })

export type ProviderRow = typeof providers.$inferSelect

async function createProvider(deps: CatalogDependencies, call: RecordCall, body: CreateProvider) {
  const id = deps.newId()
  const { name, kind, unlisted } = withPreset(body)
  const baseUrl = body.base_url === undefined ? null : checkedBaseUrl(body.base_url, deps.plainHttp)
  requireAddress(kind, baseUrl, body.headers ?? {})
  requireKey(kind, baseUrl, body.api_key ?? null)
  await requireFreeName(deps, name, id)
  const dataKey = deps.randomBytes(32)
  const credentials = {
    apiKey: body.api_key ?? null,
    moreApiKeys: keysOf(body.more_api_keys ?? ''),
    headers: body.headers ?? {},
  }
  requireFirstKey(credentials)
  await changeCatalog(deps, call, {
    type: 'catalog.created',
    details: { provider_id: id, name, kind, base_url: baseUrl, allow_unlisted_models: unlisted, ...shown(credentials) },
    guard: nameIsFree(providers, name, id),
    state: [
      statement(
        insert(providers).values({
          id,
          name,
          kind,
          baseUrl,
          sealedCredentials: sealCredentials(dataKey, id, credentials),
          allowUnlistedModels: unlisted ? 1 : 0,
          defaultPrice: jsonOrNull(body.default_price),
          timeouts: jsonOrNull(body.timeouts),
          position: sql`(select coalesce(max(position), 0) + 1 from ${providers})`,
          version: newStateVersion,
        }),
      ),
    ],
    ledger: [keepDataKey(deps, id, dataKey, deps.clock.now())],
  })
  return await providerRecord(deps, await requireProvider(deps, id))
}

const listProviders = (deps: CatalogDependencies, page: PageQuery) =>
  recordPage(page, {
    filters: { list: 'providers' },
    read: (after, count) =>
      query(deps.state)
        .select()
        .from(providers)
        .where(and(gt(providers.id, after), eq(providers.deleted, 0)))
        .orderBy(providers.id)
        .limit(count),
    show: (rows) => Promise.all(rows.map((row) => providerRecord(deps, row))),
  })

async function updateProvider(deps: CatalogDependencies, call: RecordCall, before: ProviderRow, body: UpdateProvider) {
  const { id } = before
  const name = body.name ?? before.name
  if (name !== before.name) await requireRenamable(deps, before, name)
  const baseUrl = newBaseUrl(deps, before, body)
  const held = await heldCredentials(deps, before)
  requireAddress(before.kind, baseUrl, body.headers === undefined ? held.credentials.headers : (body.headers ?? {}))
  requireCredentialsAnew(before, baseUrl, held.credentials, body)
  const credentials = {
    apiKey: body.api_key === undefined ? held.credentials.apiKey : body.api_key,
    moreApiKeys: body.more_api_keys === undefined ? held.credentials.moreApiKeys : keysOf(body.more_api_keys ?? ''),
    headers: body.headers === undefined ? held.credentials.headers : (body.headers ?? {}),
  }
  requireKey(before.kind, baseUrl, credentials.apiKey)
  requireFirstKey(credentials)
  const touched = body.api_key !== undefined || body.more_api_keys !== undefined || body.headers !== undefined
  const dataKey = held.dataKey ?? deps.randomBytes(32)
  await changeCatalog(deps, call, {
    type: 'catalog.updated',
    details: { provider_id: id, name, fields: Object.keys(body), base_url: baseUrl, ...shown(credentials) },
    guard: and(atVersion(providers, before), nameIsFree(providers, name, id)),
    state: [
      statement(
        update(providers)
          .set({
            name,
            baseUrl,
            ...(touched ? { sealedCredentials: sealCredentials(dataKey, id, credentials) } : {}),
            ...(body.allow_unlisted_models === undefined
              ? {}
              : { allowUnlistedModels: body.allow_unlisted_models ? 1 : 0 }),
            ...(body.default_price === undefined ? {} : { defaultPrice: jsonOrNull(body.default_price) }),
            ...(body.timeouts === undefined ? {} : { timeouts: jsonOrNull(body.timeouts) }),
            version: newStateVersion,
          })
          .where(eq(providers.id, id)),
      ),
    ],
    ledger: touched ? [keepDataKey(deps, id, dataKey, deps.clock.now())] : [],
  })
  return await providerRecord(deps, await requireProvider(deps, id))
}

async function deleteProvider(deps: CatalogDependencies, call: RecordCall, before: ProviderRow) {
  const { id, name } = before
  const isNamed = or(answersAt(id), sql`${models.shadow} ->> 'provider_id' = ${id}`)
  const listed = and(isNamed, eq(models.deleted, 0))
  const model = await query(deps.state).select({ id: models.id }).from(models).where(listed).get()
  if (model !== undefined) {
    throw new Failure('conflict', { message: `The catalog has models that use this provider, such as ${model.id}` })
  }
  const reply = await providerRecord(deps, before)
  await changeCatalog(deps, call, {
    type: 'catalog.deleted',
    details: { provider_id: id, name },
    guard: and(atVersion(providers, before), not(hasRow(models, listed))),
    state: [
      statement(
        update(providers)
          .set({ deleted: 1, sealedCredentials: null, version: newStateVersion })
          .where(eq(providers.id, id)),
      ),
    ],
    ledger: [forgetDataKey(id), forgetTest(id)],
  })
  return reply
}

/** The provider of this id. Throws `not_found`. */
export async function requireProvider({ state }: Pick<CatalogDependencies, 'state'>, id: string): Promise<ProviderRow> {
  const found = and(eq(providers.id, id), eq(providers.deleted, 0))
  const row = await query(state).select().from(providers).where(found).get()
  if (row === undefined) throw missing('provider')
  return row
}

async function providerRecord(deps: CatalogDependencies, row: ProviderRow): Promise<z.infer<typeof providerSchema>> {
  const { credentials } = await heldCredentials(deps, row)
  return {
    id: row.id,
    name: row.name,
    kind: row.kind,
    base_url: row.baseUrl,
    ...shown(credentials),
    allow_unlisted_models: row.allowUnlistedModels === 1,
    default_price: row.defaultPrice === null ? null : priceRecordSchema.parse(JSON.parse(row.defaultPrice)),
    timeouts: row.timeouts === null ? null : timeoutsSchema.parse(JSON.parse(row.timeouts)),
    version: row.version,
    created_at: madeAt(row.id),
  }
}

/** What may be said of credentials. */
const shown = ({ apiKey, moreApiKeys, headers }: Credentials) => ({
  has_api_key: apiKey !== null,
  api_key_count: (apiKey === null ? 0 : 1) + moreApiKeys.length,
  header_names: Object.keys(headers).toSorted(),
})

export async function heldCredentials(deps: KeyStore, { id, sealedCredentials: sealed }: ProviderRow) {
  const dataKey = await openDataKey(deps, id)
  const credentials = dataKey === null || sealed === null ? noCredentials : openCredentials(dataKey, id, sealed)
  return { dataKey, credentials }
}

function newBaseUrl({ plainHttp }: CatalogDependencies, before: ProviderRow, { base_url: given }: UpdateProvider) {
  if (given === undefined) return before.baseUrl
  return given === null ? null : checkedBaseUrl(given, plainHttp)
}

/**
 * A credential is only sent to the address it was given for: with a new address it must be given again or removed, so
 * that a person who may edit the catalog cannot have it sent to an address of their own.
 */
function requireCredentialsAnew(before: ProviderRow, baseUrl: string | null, held: Credentials, body: UpdateProvider) {
  if (baseUrl === before.baseUrl) return
  const again = 'A new base_url needs it to be given again: what is kept goes to the present address only'
  if (held.apiKey !== null && body.api_key === undefined) throw wrong('api_key', again)
  if (held.moreApiKeys.length > 0 && body.more_api_keys === undefined) throw wrong('more_api_keys', again)
  if (Object.keys(held.headers).length > 0 && body.headers === undefined) throw wrong('headers', again)
}

function requireFirstKey({ apiKey, moreApiKeys }: Credentials): void {
  if (apiKey !== null || moreApiKeys.length === 0) return
  throw wrong('more_api_keys', 'Give api_key first: these are used beside it')
}

function requireAddress(kind: string, baseUrl: string | null, headers: Credentials['headers']): void {
  const problem = providerKinds.get(kind)?.addressProblem(baseUrl, headers) ?? null
  if (problem !== null) throw wrong('base_url', problem)
}

/** Only some kinds take a key of other characters than a header may hold. */
function requireKey(kindName: string, baseUrl: string | null, apiKey: string | null): void {
  const kind = providerKinds.get(kindName)
  const isPlain = apiKey === null || /^[\x21-\x7e]+$/.test(apiKey)
  const problem = kind?.keyProblem?.(apiKey, baseUrl) ?? null
  if (problem !== null) throw wrong('api_key', problem)
  if (!isPlain && kind?.keyProblem === undefined)
    throw wrong('api_key', 'Write visible ASCII characters without spaces')
}

async function requireFreeName({ state }: CatalogDependencies, name: string, id: string): Promise<void> {
  if (await holds(state, nameIsFree(providers, name, id))) return
  throw new Failure('conflict', { message: 'There is a provider of this name already', param: 'name' })
}

/** A token is bound to a provider by its name: while one is, the name stays. */
async function requireRenamable(deps: CatalogDependencies, before: ProviderRow, name: string): Promise<void> {
  await requireFreeName(deps, name, before.id)
  const { provider, deleted, revokedAt } = tokens
  const bound = hasRow(tokens, and(inArray(provider, [before.name, name]), eq(deleted, 0), isNull(revokedAt)))
  if (!(await holds(deps.state, bound))) return
  throw new Failure('conflict', {
    message: 'Tokens are bound to the old or the new name: revoke them first',
    param: 'name',
  })
}

const jsonOrNull = (value: object | null | undefined): string | null =>
  value === null || value === undefined ? null : JSON.stringify(value)
