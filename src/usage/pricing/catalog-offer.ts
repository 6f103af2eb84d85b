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
  targets: string | null
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
    'select id, provider_id, upstream_model, price, targets from models where deleted = 0',
  )
  await prices.load()
  const cost = (model: PricedModel): number | null => {
    const { price } = prices.terms(model, now)
    return price === null ? null : minCost(price)
  }
  const offered = new Map(providers.map((row) => [row.id, compileProvider(row)]))
  const listed = models.flatMap((row) =>
    targetsOf(row).flatMap((target): OfferedModel[] => {
      const provider = offered.get(target.providerId)
      if (provider === undefined) return []
      const own = { price: compilePriceText(target.price, 'operator'), maxOutputTokens: null }
      return [{ id: row.id, provider, cost: cost({ upstreamModel: target.upstreamModel, provider, listed: own }) }]
    }),
  )
  return {
    // The offers of one model have keys of their own beside its id.
    listed: new Map(listed.map((model, index) => [isFirst(listed, index) ? model.id : `${model.id} ${index}`, model])),
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

const isFirst = (listed: readonly OfferedModel[], index: number): boolean => listed[index - 1]?.id !== listed[index]?.id

/** Free models are ignored. */
function minOf(prices: readonly Price[]): number | null {
  const least = Math.min(...prices.map(minCost).filter((cost) => cost > 0))
  return Number.isFinite(least) ? least : null
}

const targetsSchema = z
  .array(
    z.looseObject({ provider_id: z.string(), upstream_model: z.string().optional(), price: z.unknown().optional() }),
  )
  .nullable()

/** Where a model can be answered, with the price that its record states for each. */
function targetsOf({ id, provider_id, upstream_model, price, targets }: ModelRow) {
  const several = targetsSchema.parse(JSON.parse(targets ?? 'null'))
  const all = several ?? [{ provider_id, upstream_model: upstream_model ?? undefined, price: undefined }]
  return all.map((target) => ({
    providerId: target.provider_id,
    upstreamModel: target.upstream_model ?? id,
    price: target.price === undefined ? price : JSON.stringify(target.price),
  }))
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
