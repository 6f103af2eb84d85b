/**
 * What each model costs, and how much it can read and write at once: the operator's price of the model first, then the
 * embedded table's, then the default of its provider (providers/README.md). The table is loaded when it is first
 * needed, which takes a moment once for each process; from then on every answer is a look-up.
 */
import { LRUCache } from 'lru-cache'
import type { Price } from './price.ts'
import type { ListedModel } from './price-table.ts'

/** What a price is looked up by. */
export interface PricedModel {
  upstreamModel: string
  provider: { id: string; kind: string; baseUrl: string | null; defaultPrice?: Price | null }
  /** The catalog's record; null for a model that the catalog does not list. */
  listed: { price: Price | null; maxOutputTokens: number | null } | null
}

export interface ModelTerms {
  /** Null if the price is unknown. */
  price: Price | null
  /** The most tokens of input and output together; null if unknown. */
  contextWindow: number | null
  /** The most tokens of output; null if unknown. */
  maxOutputTokens: number | null
}

/** Callers choose the names of unlisted models, so this cache is bounded. */
const rememberedModels = 4000
/** The simulator answers from memory: as much as its longest answer and a body of the largest size. */
const simulatorWindow = 128_000

export class PriceBook {
  readonly #remembered = new LRUCache<string, { listed: ListedModel | null }>({ max: rememberedModels })
  #table: typeof import('./price-table.ts') | null = null
  #loading: Promise<void> | null = null

  /** Whether `terms` can answer for this model at once; otherwise `load` first. */
  knows(model: PricedModel): boolean {
    return this.#table !== null || isSimulated(model)
  }

  /** Whether the embedded table is loaded. */
  get isLoaded(): boolean {
    return this.#table !== null
  }

  /** Whether the table has the model at its provider; always false before it is loaded. */
  lists(model: Omit<PricedModel, 'listed'>, now: number): boolean {
    return this.#listed(model, now) !== null
  }

  /** Loads the embedded table, once. */
  load(): Promise<void> {
    this.#loading ??= import('./price-table.ts').then((table) => {
      this.#table = table
    })
    return this.#loading
  }

  /** What a model costs at an instant, milliseconds since the epoch. */
  terms(model: PricedModel, now: number): ModelTerms {
    const { listed: own, provider } = model
    const table = this.#listed(model, now)
    return {
      price: own?.price ?? table?.price ?? provider.defaultPrice ?? null,
      contextWindow: isSimulated(model) ? simulatorWindow : (table?.contextWindow ?? null),
      maxOutputTokens: own?.maxOutputTokens ?? null,
    }
  }

  /**
   * The prices at a provider of models that the catalog does not list: the table's prices for it, and its default.
   * Only the default for the simulator, or if the table was not loaded.
   */
  unlisted(provider: PricedModel['provider'], now: number): readonly Price[] {
    const { kind, baseUrl, defaultPrice } = provider
    const listed = isSimulated({ provider }) ? [] : (this.#table?.listedPrices(kind, baseUrl, now) ?? [])
    return defaultPrice ? [...listed, defaultPrice] : listed
  }

  #listed(model: Omit<PricedModel, 'listed'>, now: number): ListedModel | null {
    if (this.#table === null || isSimulated(model)) return null
    const { upstreamModel, provider } = model
    const key = `${provider.id} ${provider.baseUrl} ${upstreamModel}`
    const known = this.#remembered.get(key)
    if (known !== undefined && (known.listed === null || now < known.listed.until)) return known.listed
    const listed = this.#table.listedModel(provider.kind, provider.baseUrl, upstreamModel, now)
    this.#remembered.set(key, { listed })
    return listed
  }
}

const isSimulated = ({ provider }: Pick<PricedModel, 'provider'>): boolean => provider.kind === 'simulator'
