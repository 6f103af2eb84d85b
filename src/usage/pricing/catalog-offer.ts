/**
 * What the catalog offers to tokens with a budget, and its lowest cost. Read from the state and cached until a version
 * changes it.
 */
import { z } from 'zod'
import type { Clock } from '../../lib/clock.ts'
import type { Price } from '../../providers/prices/price.ts'
import { PriceBook, type PricedModel } from '../../providers/prices/price-book.ts'
import { compilePriceText } from '../../providers/prices/price-record.ts'
import type { Database } from '../../store/open.ts'
import type { AccessRule } from '../limits.ts'
import { minCost, type Offer, type OfferedModel } from './cheapest-request.ts'

export interface CatalogOffer extends Offer {
  accessPolicies: ReadonlyMap<string, AccessRule>
}

interface ProviderRow {
  id: string
  name: string
  kind: string
  base_url: string | null
  allow_unlisted_models: number
  default_price: string | null
}

interface ModelRow {
  id: string
  provider_id: string
  upstream_model: string | null
  price: string | null
}

interface PolicyRow {
  id: string
  models: string | null
  providers: string | null
}

const names = z.array(z.string()).nullable()

/** The state version of the last change of the offer. */
const offerVersion = `select max(
    coalesce((select max(version) from providers), 0),
    coalesce((select max(version) from models), 0),
    coalesce((select max(version) from access_policies), 0)
  ) as version`

/** Reads the current offer. Prices of the embedded table are those of the build. */
export function catalogOffer(state: Pick<Database, 'read'>, clock: Pick<Clock, 'now'>): () => Promise<CatalogOffer> {
  const prices = new PriceBook()
  let kept: { version: number; offer: CatalogOffer } | null = null
  return async () => {
    const [head] = await state.read<{ version: number }>(offerVersion)
    const version = head?.version ?? 0
    if (kept?.version !== version) kept = { version, offer: await readOffer(state, prices, clock.now()) }
    return kept.offer
  }
}

async function readOffer(state: Pick<Database, 'read'>, prices: PriceBook, now: number): Promise<CatalogOffer> {
  const providers = await state.read<ProviderRow>(
    'select id, name, kind, base_url, allow_unlisted_models, default_price from providers where deleted = 0',
  )
  const models = await state.read<ModelRow>(
    'select id, provider_id, upstream_model, price from models where deleted = 0',
  )
  await prices.load()
  const cost = (model: PricedModel): number | null => {
    const { price } = prices.terms(model, now)
    return price === null ? null : minCost(price)
  }
  const offered = new Map(providers.map((row) => [row.id, compileProvider(row)]))
  const listed = models.flatMap((row): OfferedModel[] => {
    const provider = offered.get(row.provider_id)
    if (provider === undefined) return []
    const own = { price: compilePriceText(row.price, 'operator'), maxOutputTokens: null }
    return [
      { id: row.id, provider, cost: cost({ upstreamModel: row.upstream_model ?? row.id, provider, listed: own }) },
    ]
  })
  return {
    listed: new Map(listed.map((model) => [model.id, model])),
    open: [...offered.values()]
      .filter(({ open }) => open)
      .map((provider) => ({
        name: provider.name,
        cost: (upstreamModel) => cost({ upstreamModel, provider, listed: null }),
        least: minOf(prices.unlisted(provider, now)),
      })),
    accessPolicies: await readAccessPolicies(state),
  }
}

/** Free models are ignored. */
function minOf(prices: readonly Price[]): number | null {
  const least = Math.min(...prices.map(minCost).filter((cost) => cost > 0))
  return Number.isFinite(least) ? least : null
}

const compileProvider = (row: ProviderRow) => ({
  id: row.id,
  name: row.name,
  kind: row.kind,
  baseUrl: row.base_url,
  open: row.allow_unlisted_models === 1,
  defaultPrice: compilePriceText(row.default_price, 'provider'),
})

async function readAccessPolicies(state: Pick<Database, 'read'>): Promise<Map<string, AccessRule>> {
  const rows = await state.read<PolicyRow>('select id, models, providers from access_policies where deleted = 0')
  return new Map(
    rows.map(({ id, models, providers }) => [
      id,
      {
        models: names.parse(JSON.parse(models ?? 'null')),
        providers: names.parse(JSON.parse(providers ?? 'null')),
      },
    ]),
  )
}
