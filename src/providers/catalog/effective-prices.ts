/** What each target of a model costs now, as gateways calculate it: by the same price book, from the same sources in order. */
import type { PriceBook, PricedModel } from '../prices/price-book.ts'
import { compilePrice, compilePriceText, priceRecordOf } from '../prices/price-record.ts'
import type { EffectivePrice, StoredTarget } from './model-resource.ts'

export interface PricedProvider {
  id: string
  name: string
  kind: string
  baseUrl: string | null
  defaultPrice: string | null
}

interface TargetsOfModel {
  id: string
  /** Of the model's record: it holds at targets without a price of their own. */
  price: string | null
  targets: readonly StoredTarget[]
}

/** A provider as the price book takes it. */
export const pricedProvider = ({ id, kind, baseUrl, defaultPrice }: PricedProvider): PricedModel['provider'] => ({
  id,
  kind,
  baseUrl,
  defaultPrice: compilePriceText(defaultPrice, 'provider'),
})

/** The price book must be loaded. */
export function effectivePrices(
  book: PriceBook,
  { id, price, targets }: TargetsOfModel,
  providers: readonly PricedProvider[],
  now: number,
): EffectivePrice[] {
  return targets.map((target) => {
    const provider = providers.find((each) => each.id === target.provider_id)
    const upstreamModel = target.upstream_model ?? id
    const own =
      target.price === undefined ? compilePriceText(price, 'operator') : compilePrice(target.price, 'operator')
    const listed = { price: own, maxOutputTokens: null }
    const found =
      provider === undefined
        ? null
        : book.terms({ upstreamModel, provider: pricedProvider(provider), listed }, now).price
    return {
      provider: provider?.name ?? target.provider_id,
      upstream_model: upstreamModel,
      price: found === null ? null : priceRecordOf(found),
      source: found?.source ?? null,
      date: found?.date ?? null,
    }
  })
}
