/** The catalog as one gateway may use it, compiled from the state's rows; credentials are opened by data keys. */
import type { Database } from 'bun:sqlite'
import { z } from 'zod'
import { unseal } from '../lib/seal.ts'
import { compilePriceText } from '../providers/price-record.ts'
import type { Provider } from '../providers/provider.ts'
import type { CatalogModel } from './lane.ts'

export interface Catalog {
  models: ReadonlyMap<string, CatalogModel>
  modelList: readonly CatalogModel[]
  providers: ReadonlyMap<string, Provider>
  /** In the order they were made. */
  providerList: readonly Provider[]
  /** Providers that this gateway may use and whose credentials no key at hand opens. */
  closed: readonly string[]
}

export const emptyCatalog: Catalog = {
  models: new Map(),
  modelList: [],
  providers: new Map(),
  providerList: [],
  closed: [],
}

interface ProviderRow {
  id: string
  name: string
  kind: string
  base_url: string | null
  sealed_credentials: string | null
  allow_unlisted_models: number
  default_price: string | null
}

interface ModelRow {
  id: string
  provider_id: string
  upstream_model: string | null
  price: string | null
  max_output_tokens: number | null
  created_at: number
}

const credentialsSchema = z.object({
  api_key: z.string().nullish(),
  headers: z.record(z.string(), z.string()).nullish(),
})
const idsSchema = z.array(z.string()).nullable()

/** Data keys by provider id, base64. */
export type DataKeys = Readonly<Record<string, string>>

/** Reads the whole catalog, to be called inside a read transaction: it is small beside the tokens. */
export function readCatalog(database: Database, gatewayId: string, keys: DataKeys): Catalog {
  const gateway = database
    .query<{ providers: string | null }, [string]>('select providers from gateways where id = ? and deleted = 0')
    .get(gatewayId)
  const usable = idsSchema.parse(JSON.parse(gateway?.providers ?? 'null'))
  const rows = database
    .query<ProviderRow, []>(
      'select id, name, kind, base_url, sealed_credentials, allow_unlisted_models, default_price from providers where deleted = 0 order by position, id',
    )
    .all()
    .filter(({ id }) => usable === null || usable.includes(id))
  const providerList = rows.flatMap((row) => openProvider(row, keys) ?? [])
  const providers = new Map(providerList.map((provider) => [provider.id, provider]))
  const modelList = database
    .query<ModelRow, []>(
      'select id, provider_id, upstream_model, price, max_output_tokens, created_at from models where deleted = 0 order by id',
    )
    .all()
    .filter((row) => providers.has(row.provider_id))
    .map(compileModel)
  return {
    models: new Map(modelList.map((model) => [model.id, model])),
    modelList,
    providers,
    providerList,
    closed: rows.filter(({ id }) => !providers.has(id)).map(({ id }) => id),
  }
}

const compileModel = (row: ModelRow): CatalogModel => ({
  id: row.id,
  providerId: row.provider_id,
  upstreamModel: row.upstream_model ?? row.id,
  families: null,
  price: compilePriceText(row.price, 'operator'),
  maxOutputTokens: row.max_output_tokens,
  fallbacks: [],
  createdAt: row.created_at,
})

/** Null where the credentials do not open: the gateway was not given this provider's key, or not its newest. */
function openProvider(row: ProviderRow, keys: DataKeys): Provider | null {
  const credentials = openCredentials(row, keys)
  if (credentials === null) return null
  return {
    id: row.id,
    name: row.name,
    kind: row.kind,
    baseUrl: row.base_url,
    apiKey: credentials.api_key ?? null,
    headers: credentials.headers ?? {},
    allowUnlistedModels: row.allow_unlisted_models === 1,
    defaultPrice: compilePriceText(row.default_price, 'provider'),
  }
}

function openCredentials({ id, sealed_credentials: sealed }: ProviderRow, keys: DataKeys) {
  if (sealed === null) return credentialsSchema.parse({})
  const key = keys[id]
  if (key === undefined) return null
  try {
    return credentialsSchema.parse(JSON.parse(unseal(Buffer.from(key, 'base64'), sealed, id)))
  } catch {
    // A key that was replaced since bootstrap: the provider counts as closed until the new one is fetched.
    return null
  }
}
