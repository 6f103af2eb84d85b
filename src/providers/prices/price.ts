/**
 * What a model costs, as exact integers: picodollars (10⁻¹² dollars) a token or character, so that a price of up to six
 * decimals of a dollar a million tokens is carried whole, and nano-dollars where the unit is larger. Money itself is
 * counted in nano-dollars, and rounded up to the next one once for each request (`usage/pricing/cost.ts`).
 */

/** One tier, in picodollars a token: it holds for requests whose input has at least this many tokens. */
export interface PriceTier {
  fromInputTokens: number
  input: number
  output: number
  /** Reasoning among the output. */
  reasoning: number
  cachedInput: number
  /** Written to a cache for minutes, instead of `input`. */
  cacheWrite: number
  /** Written to a cache for an hour, instead of `input`. */
  cacheWriteHour: number
  /** Audio among the input and the output. */
  audioInput: number
  audioOutput: number
}

export interface ServiceTiers {
  /** Multiples of the list price by the name of the tier, in lower case. */
  readonly multiples: Readonly<Record<string, number>>
  /** Whether input that is read from a cache is cheaper too in a tier that is. */
  readonly discountCachedInput: boolean
}

export interface Price {
  /** In ascending order of `fromInputTokens`; the first is from 0. */
  tiers: readonly PriceTier[]
  /** Input audio, in nano-dollars an hour; null if it is billed by tokens. */
  audioHour: number | null
  /** Spoken text, in picodollars a character; null if it is billed by tokens. */
  character: number | null
  /** One image that is generated, in nano-dollars; absent if images are billed by tokens. */
  image?: number
  /** One use of a tool that the provider runs, a web search above all, in nano-dollars. */
  toolUse: number
  /** What each request costs beside its tokens, in nano-dollars. */
  request: number
  /** What other service tiers cost; absent where no list tells it. */
  serviceTiers?: ServiceTiers
  /** Where it comes from: `operator`, `provider`, or the embedded table, its version and its date. */
  source: string
  /** The date of the embedded table; absent for a price that an operator wrote. */
  date?: string
}

/** Picodollars a unit from dollars a million units, rounded up where that is no whole number. */
export const picoOfMillion = (dollars: number): number => Math.ceil(Number((dollars * 1_000_000).toPrecision(15)))

/** Dollars a million units from picodollars a unit. */
export const millionOfPico = (pico: number): number => pico / 1_000_000

/** Whole picodollars, rounded up; the product of two decimals is not taken for more than it is. */
const scaled = (pico: number, multiple: number): number => Math.ceil(Number((pico * multiple).toPrecision(12)))

/** A tier whose rates of input and of output are multiplied. */
export const multipliedTier = (tier: PriceTier, input: number, output = input): PriceTier => ({
  fromInputTokens: tier.fromInputTokens,
  input: scaled(tier.input, input),
  output: scaled(tier.output, output),
  reasoning: scaled(tier.reasoning, output),
  cachedInput: scaled(tier.cachedInput, input),
  cacheWrite: scaled(tier.cacheWrite, input),
  cacheWriteHour: scaled(tier.cacheWriteHour, input),
  audioInput: scaled(tier.audioInput, input),
  audioOutput: scaled(tier.audioOutput, output),
})

/** Adds up units at picodollars each to nano-dollars, exactly, rounded up once. */
export class Sum {
  #whole = 0
  #rest = 0

  add(units: number, pico: number): this {
    this.#whole += units * Math.floor(pico / 1000)
    this.#rest += units * (pico % 1000)
    return this
  }

  get nano(): number {
    return this.#whole + Math.ceil(this.#rest / 1000)
  }
}

/** Nano-dollars of units of one price. */
export const nanoOf = (units: number, pico: number): number =>
  units * Math.floor(pico / 1000) + Math.ceil((units * (pico % 1000)) / 1000)

/** The tier that a request with this much input is billed by. */
export function tierOf({ tiers }: Price, inputTokens: number): PriceTier | null {
  let found: PriceTier | null = null
  for (const tier of tiers) if (inputTokens >= tier.fromInputTokens) found = tier
  return found
}
