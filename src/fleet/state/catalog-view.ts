/**
 * The catalog as one gateway may use it, compiled from the state's rows, with credentials decrypted by data keys. It
 * has all models, including those of providers that this gateway may not use, so that these do not count as unlisted
 * models.
 */
import type { Database } from 'bun:sqlite'
import { z } from 'zod'
import { isModelFamily } from '../../languages/families.ts'
import { unseal } from '../../lib/seal.ts'
import { targetStrategies } from '../../providers/catalog/target-strategy.ts'
import { compilePriceText } from '../../providers/prices/price-record.ts'
import type { Provider, ProviderTimeouts } from '../../providers/provider.ts'
import type { CatalogModel, GatewayRecord, ShadowTarget } from '../protocol/worker.ts'
import { CompiledRows } from './compiled-rows.ts'

export interface Catalog {
  models: ReadonlyMap<string, CatalogModel>
  modelList: readonly CatalogModel[]
  providers: ReadonlyMap<string, Provider>
  /** In order of creation, including closed ones without credentials. */
  providerList: readonly Provider[]
  /** Providers that this gateway may use but cannot decrypt the credentials of. */
  closed: readonly string[]
  gateway: GatewayRecord
  /** The version at which kept answers were last cleared, by the model's id; `*` for all models. */
  cacheClears: ReadonlyMap<string, number>
}

export const emptyCatalog: Catalog = {
  models: new Map(),
  modelList: [],
  providers: new Map(),
  providerList: [],
  closed: [],
  gateway: { spendOwner: null, promptCaching: false },
  cacheClears: new Map(),
}

/** What is not read together with the providers. */
type OtherMember = 'models' | 'modelList' | 'cacheClears'

const gatewayQuery = 'select providers, spend_owner, prompt_caching from gateways where id = ? and deleted = 0'

interface GatewayRow {
  providers: string | null
  spend_owner: string | null
  prompt_caching: number
}

interface ProviderRow {
  id: string
  name: string
  kind: string
  base_url: string | null
  sealed_credentials: string | null
  allow_unlisted_models: number
  default_price: string | null
  timeouts: string | null
}

interface ModelRow {
  id: string
  provider_id: string
  upstream_model: string | null
  families: string | null
  price: string | null
  max_output_tokens: number | null
  fallbacks: string | null
  translation: string | null
  shadow: string | null
  created_at: number
  strategy: string | null
  targets: string | null
}

interface ClearRow {
  id: string
  version: number
}

const modelColumns = [
  'provider_id',
  'upstream_model',
  'families',
  'price',
  'max_output_tokens',
  'fallbacks',
  'translation',
  'shadow',
  'created_at',
  'strategy',
  'targets',
]

const credentialsSchema = z.object({
  api_key: z.string().nullish(),
  headers: z.record(z.string(), z.string()).nullish(),
  more_api_keys: z.array(z.string()).optional(),
})
type Credentials = z.infer<typeof credentialsSchema>
const idsSchema = z.array(z.string()).nullable()
const shadowSchema = z.object({
  provider_id: z.string(),
  upstream_model: z.string().optional(),
  share: z.number(),
})
const timeoutsSchema = z.object({
  connect_seconds: z.number().optional(),
  first_byte_seconds: z.number().optional(),
  idle_seconds: z.number().optional(),
  total_seconds: z.number().optional(),
})

/** Data keys by provider id, base64. */
export type DataKeys = Readonly<Record<string, string>>

const newestProvider = 'select max(version) as version from providers'

/** The catalog of one gateway. Reads only what has changed, since there may be thousands of models. */
export class CatalogView {
  readonly #models = new CompiledRows('models', modelColumns, compileModel)
  readonly #clears = new CompiledRows('cache_clears', [], ({ id, version }: ClearRow) => [id, version] as const)
  #catalog = emptyCatalog
  /** The keys with which the providers were read. */
  #readBy = ''
  #keys: DataKeys | null = null

  /** Call inside a read transaction. `anew`: the file or its history is another one. */
  read(database: Database, gatewayId: string, keys: DataKeys, anew: boolean): Catalog {
    const gateway = database.query<GatewayRow, [string]>(gatewayQuery).get(gatewayId)
    const readBy = JSON.stringify([gatewayId, gateway, database.query(newestProvider).get()])
    if (anew || readBy !== this.#readBy || keys !== this.#keys) {
      this.#catalog = { ...this.#catalog, ...readProviders(database, gateway, keys) }
      this.#readBy = readBy
      this.#keys = keys
    }
    if (this.#models.read(database, anew)) {
      const modelList = this.#models.values().sort((one, other) => (one.id < other.id ? -1 : 1))
      this.#catalog = { ...this.#catalog, models: new Map(modelList.map((model) => [model.id, model])), modelList }
    }
    if (this.#clears.read(database, anew)) {
      this.#catalog = { ...this.#catalog, cacheClears: new Map(this.#clears.values()) }
    }
    return this.#catalog
  }
}

function readProviders(database: Database, gateway: GatewayRow | null, keys: DataKeys): Omit<Catalog, OtherMember> {
  const usable = idsSchema.parse(JSON.parse(gateway?.providers ?? 'null'))
  const rows = database
    .query<ProviderRow, []>(
      `select id, name, kind, base_url, sealed_credentials, allow_unlisted_models, default_price, timeouts
        from providers where deleted = 0 order by position, id`,
    )
    .all()
    .filter(({ id }) => usable === null || usable.includes(id))
  const opened = rows.map((row) => ({ row, credentials: openCredentials(row, keys) }))
  const providerList = opened.map(({ row, credentials }) => compileProvider(row, credentials ?? {}))
  const closed = opened.filter(({ credentials }) => credentials === null).map(({ row }) => row.id)
  return {
    providers: new Map(
      providerList.filter(({ id }) => !closed.includes(id)).map((provider) => [provider.id, provider]),
    ),
    providerList,
    closed,
    gateway: { spendOwner: gateway?.spend_owner ?? null, promptCaching: gateway?.prompt_caching === 1 },
  }
}

const targetsSchema = z.array(
  z.object({
    provider_id: z.string(),
    upstream_model: z.string().optional(),
    weight: z.number().optional(),
    tier: z.number().optional(),
    price: z.unknown().optional(),
  }),
)

function compileModel(row: ModelRow): CatalogModel {
  const first = compileFirst(row)
  if (row.targets === null) return first
  const targets: CatalogModel[] = []
  for (const each of targetsSchema.parse(JSON.parse(row.targets))) {
    targets.push({
      ...first,
      providerId: each.provider_id,
      upstreamModel: each.upstream_model ?? row.id,
      price: each.price === undefined ? first.price : compilePriceText(JSON.stringify(each.price), 'operator'),
      tier: each.tier ?? 1,
      weight: each.weight ?? 1,
      targets,
    })
  }
  targets.sort((one, other) => one.tier - other.tier)
  return targets[0] ?? first
}

const compileFirst = (row: ModelRow): CatalogModel => ({
  id: row.id,
  providerId: row.provider_id,
  upstreamModel: row.upstream_model ?? row.id,
  // An unknown family is one that this version does not serve.
  families: idsSchema.parse(JSON.parse(row.families ?? 'null'))?.filter(isModelFamily) ?? null,
  price: compilePriceText(row.price, 'operator'),
  maxOutputTokens: row.max_output_tokens,
  fallbacks: idsSchema.parse(JSON.parse(row.fallbacks ?? 'null')) ?? [],
  isTranslatedStrictly: row.translation === 'strict',
  createdAt: row.created_at,
  shadow: compileShadow(row.shadow),
  // An unknown strategy is one of a later version: the order of the record is safe.
  strategy: targetStrategies.find((name) => name === row.strategy) ?? 'priority',
  targets: null,
  tier: 1,
  weight: 1,
})

function compileShadow(text: string | null): ShadowTarget | null {
  if (text === null) return null
  const { provider_id, upstream_model, share } = shadowSchema.parse(JSON.parse(text))
  return { providerId: provider_id, upstreamModel: upstream_model ?? null, share }
}

function compileProvider(row: ProviderRow, credentials: Credentials): Provider {
  const provider = compileFirstKey(row, credentials)
  const more = credentials.more_api_keys ?? []
  if (provider.apiKey === null || more.length === 0) return provider
  return { ...provider, keys: [provider.apiKey, ...more].map((apiKey) => ({ ...provider, apiKey })) }
}

const compileFirstKey = (row: ProviderRow, credentials: Credentials): Provider => ({
  id: row.id,
  name: row.name,
  kind: row.kind,
  baseUrl: row.base_url,
  apiKey: credentials.api_key ?? null,
  headers: credentials.headers ?? {},
  allowUnlistedModels: row.allow_unlisted_models === 1,
  defaultPrice: compilePriceText(row.default_price, 'provider'),
  timeouts: compileTimeouts(row.timeouts),
})

function compileTimeouts(text: string | null): ProviderTimeouts | null {
  if (text === null) return null
  const read = timeoutsSchema.parse(JSON.parse(text))
  return {
    connectSeconds: read.connect_seconds ?? null,
    firstByteSeconds: read.first_byte_seconds ?? null,
    idleSeconds: read.idle_seconds ?? null,
    totalSeconds: read.total_seconds ?? null,
  }
}

/** Null where they do not open: the gateway was not given this provider's key, or not its newest. */
function openCredentials({ id, sealed_credentials: sealed }: ProviderRow, keys: DataKeys): Credentials | null {
  if (sealed === null) return credentialsSchema.parse({})
  const key = keys[id]
  if (key === undefined) return null
  try {
    return credentialsSchema.parse(JSON.parse(unseal(Buffer.from(key, 'base64'), sealed, id)))
  } catch {
    // The key was replaced after bootstrap: the provider counts as closed until the new one is fetched.
    return null
  }
}
