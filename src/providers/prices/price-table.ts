/**
 * The embedded price table: `@pydantic/genai-prices`, offline, as of its release. It is large and slow to load, so only
 * `price-book.ts` imports it, when a model is first met whose price no operator gave.
 */
import { calcPrice, findProvider, type MatchLogic, type ModelPrice } from '@pydantic/genai-prices'
import { toNano } from '../../lib/money.ts'
import { providerKinds } from '../kinds/index.ts'
import { regionOf, vertex } from '../kinds/vertex.ts'
import { type Price, type PriceTier, picoOfMillion } from './price.ts'
import { atVertex, corrected, correctedWindow } from './price-corrections.ts'
import { serviceTiersOf } from './service-tier.ts'

/** Version and release date of the table: the two change together. */
export const tableVersion = '0.1.8'
const tableDate = '2026-09-23'
const source = `genai-prices ${tableVersion} (${tableDate})`

export interface ListedModel {
  price: Price
  /** The most tokens of input and output together; null where the table does not say. */
  contextWindow: number | null
  /** Milliseconds since the epoch until which the price holds, as prices may change by the time of day. */
  until: number
}

const minute = 60_000

/**
 * Finds a model by the address that serves it, or by the provider's kind if the table does not know the address: a
 * proxy in front of a provider seldom changes its prices. Null if the table has no such model.
 */
export function listedModel(kind: string, baseUrl: string | null, model: string, now: number): ListedModel | null {
  const providerId = providerIn(kind, baseUrl)
  const listed = providerId === undefined ? null : listedAt(providerId, model, now)
  if (listed === null || kind !== vertex.kind) return listed
  return { ...listed, price: atVertex(regionOf(baseUrl), model, listed.price) }
}

/** What all models that a provider's address or kind is listed with cost at an instant. */
export function listedPrices(kind: string, baseUrl: string | null, now: number): Price[] {
  const providerId = providerIn(kind, baseUrl)
  if (providerId === undefined) return []
  const others = findProvider({ providerId })?.fallback_model_providers ?? []
  const models = [providerId, ...others].flatMap((id) => findProvider({ providerId: id })?.models ?? [])
  return models.flatMap(({ id, match }) => {
    const listed = listedAt(providerId, id, now) ?? listedAt(providerId, exactName(match) ?? id, now)
    return listed?.price ?? []
  })
}

/** A name that only this model has, where its own id is not one that its provider takes. */
const exactName = (match: MatchLogic): string | null => {
  if ('equals' in match) return match.equals
  return 'or' in match ? (match.or.map(exactName).find((name) => name !== null) ?? null) : null
}

const providerIn = (kind: string, baseUrl: string | null): string | undefined =>
  (baseUrl === null ? undefined : findProvider({ providerApiUrl: baseUrl }))?.id ??
  providerKinds.get(kind)?.priceName ??
  undefined

function listedAt(providerId: string, model: string, now: number): ListedModel | null {
  const found = calcPrice({}, model, { providerId, timestamp: new Date(now) })
  if (found === null) return null
  if (!billsWhatIsCounted(found.model_price)) return null
  const window = found.model.context_window ?? undefined
  const changes = Array.isArray(found.model.prices)
  return {
    price: {
      ...corrected(providerId, model, priceOf(found.model_price)),
      serviceTiers: serviceTiersOf(providerId, model),
    },
    contextWindow: window === undefined ? null : correctedWindow(model, window),
    until: changes ? now - (now % minute) + minute : Number.POSITIVE_INFINITY,
  }
}

type Rate = ModelPrice[string]

/** A model billed only by pages or messages has no price here: an uncounted amount cannot be bounded. */
const billsWhatIsCounted = (prices: ModelPrice): boolean =>
  Object.keys(prices).length === 0 ||
  ['input_mtok', 'output_mtok', 'audio_hours', 'input_audio_hours'].some((name) => prices[name] !== undefined)

/** A rate in dollars for input of at least `from` tokens; the table's tiers begin above their `start`. */
function rateAt(rate: Rate, from: number): number | null {
  if (rate === undefined || typeof rate === 'number') return rate ?? null
  let price = rate.base
  for (const tier of rate.tiers) if (from > tier.start) price = tier.price
  return price
}

function priceOf(prices: ModelPrice): Price {
  const starts = new Set([0])
  for (const rate of Object.values(prices)) {
    if (typeof rate === 'object') for (const { start } of rate.tiers) starts.add(start + 1)
  }
  const hour = rateAt(prices.input_audio_hours ?? prices.audio_hours, 0)
  return {
    tiers: [...starts].toSorted((one, other) => one - other).map((from) => tierAt(prices, from)),
    audioHour: hour === null ? null : toNano(hour),
    character: null,
    toolUse: Math.ceil(toNano(rateAt(prices.web_searches_kcount, 0) ?? 0) / 1000),
    request: Math.ceil(toNano(rateAt(prices.requests_kcount, 0) ?? 0) / 1000),
    source,
    date: tableDate,
  }
}

function tierAt(prices: ModelPrice, from: number): PriceTier {
  const pico = (name: string, otherwise: number): number => {
    const dollars = rateAt(prices[name], from)
    return dollars === null ? otherwise : picoOfMillion(dollars)
  }
  const input = pico('input_mtok', 0)
  const output = pico('output_mtok', 0)
  const cacheWrite = pico('cache_write_mtok', input)
  return {
    fromInputTokens: from,
    input,
    output,
    reasoning: pico('output_reasoning_mtok', output),
    cachedInput: pico('cache_read_mtok', input),
    cacheWrite,
    cacheWriteHour: pico('cache_write_1h_mtok', cacheWrite),
    audioInput: pico('input_audio_mtok', input),
    audioOutput: pico('output_audio_mtok', output),
  }
}
