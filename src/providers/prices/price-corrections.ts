/**
 * Where the embedded table says less than a model costs, which would let a budget be passed. Each price and context
 * window of the table was compared with those of litellm 1.109.1 (September 2026), for the 447 models that both know:
 *
 * | difference | decision |
 * | --- | --- |
 * | 323 models agree | |
 * | audio tokens without a price (`gpt-4o-audio-preview`), or cheaper here (Azure's `gpt-4o-realtime-preview-2024-10-01`) | the dearer price |
 * | Claude on Bedrock: no price for cache writes of an hour, some without any for caches | Anthropic's multiples of the input price |
 * | Claude Sonnet 4 and 4.5 on Bedrock: no price above 200 000 tokens | Anthropic's: input twice, output one and a half times |
 * | Bedrock: models without the surcharge of their region | the surcharge |
 * | Claude on Vertex AI: no price by region | in a region 10 % more, since Sonnet 4.5 (Google's price list) |
 * | Azure: embeddings and `gpt-4-turbo` cheaper here | the dearer price |
 * | Gemini's speech models, and audio that `gemini-2.5-flash-image` reads: audio at the price of text | the dearer price |
 * | Gemini: cached input at the list price in the cheaper service tiers too | no discount (`service-tier.ts`) |
 * | batches of `ft:gpt-4o-2024-08-06` and `gpt-3.5-turbo-1106`: more than half of the list price | no discount (`service-tier.ts`) |
 * | context windows rounded down (1 000 000 for 1 048 576) | the largest that is rounded so |
 * | dearer here, above all Claude on Bedrock in one region (10 %) | kept: the region's price, and no budget is passed |
 * | models that the table does not know | none: an operator gives their price, and tokens with a budget are refused |
 */
import { multipliedTier, type Price, type PriceTier, picoOfMillion } from './price.ts'

/** Dollars a million tokens, in place of the table's price. */
type Correction = Partial<Record<'input' | 'output' | 'cachedInput' | 'audioInput' | 'audioOutput', number>>

interface CorrectedModels {
  readonly provider: string
  readonly model: RegExp
  readonly rates: Correction
}

const corrections: readonly CorrectedModels[] = [
  { provider: 'openai', model: /^gpt-4o-audio-preview/, rates: { audioInput: 40, audioOutput: 80 } },
  { provider: 'openai', model: /^gpt-4o-mini-audio-preview/, rates: { audioInput: 10, audioOutput: 20 } },
  { provider: 'azure', model: /^gpt-4o-mini-audio-preview/, rates: { audioInput: 10, audioOutput: 20 } },
  {
    provider: 'azure',
    model: /^gpt-(?:4o-audio-preview|audio(?:-2025-08-28)?$)/,
    rates: { audioInput: 40, audioOutput: 80 },
  },
  { provider: 'azure', model: /^gpt-4o-realtime-preview-2024-10-01$/, rates: { audioInput: 100, audioOutput: 200 } },
  { provider: 'azure', model: /^gpt-4-turbo(?:-2024-04-09)?$/, rates: { input: 11, output: 33 } },
  { provider: 'azure', model: /^text-embedding-3-large$/, rates: { input: 0.143 } },
  { provider: 'azure', model: /^text-embedding-3-small$/, rates: { input: 0.022 } },
  { provider: 'azure', model: /^(?:text-embedding-ada-002|ada)$/, rates: { input: 0.11 } },
  { provider: 'google', model: /^gemini-2\.5-flash-image/, rates: { audioInput: 1 } },
  {
    provider: 'google',
    model: /^gemini-3\.8-flash-tts/,
    rates: { output: 9, audioOutput: 9, cachedInput: 0.125 },
  },
  {
    provider: 'google',
    model: /^gemini-3\.8-flash-lite-tts/,
    rates: { output: 6, audioOutput: 6, cachedInput: 0.125 },
  },
]

/**
 * Bedrock's price in a region as a multiple of the table's. AWS rounds each region's prices differently: the largest
 * multiple of a model is used for all of its family.
 */
const regionalSurcharges: readonly (readonly [model: RegExp, multiple: number])[] = [
  [/^eu\.(?:amazon\.nova|meta\.llama3-2)/, 1.315],
  [/^apac\.amazon\.nova/, 1.06],
  [/^jp\.amazon\.nova/, 1.205],
  [/^us-gov\.anthropic\.claude-sonnet-(?:4-5|5)/, 12 / 11],
  [/^us-gov\.(?:nvidia|openai)\./, 1.2],
]

const longContextOnBedrock = /anthropic\.claude-sonnet-4-(?:5-)?2025|^claude-sonnet-4-5/
const longContextFrom = 200_001

/** The price of a model that the table lists for one of its providers. */
export function corrected(provider: string, model: string, price: Price): Price {
  let { tiers } = price
  if (provider === 'aws') tiers = onBedrock(model, tiers)
  for (const { provider: of, model: pattern, rates } of corrections) {
    if (of === provider && pattern.test(model)) tiers = tiers.map((tier) => ({ ...tier, ...inPico(rates) }))
  }
  return tiers === price.tiers ? price : { ...price, tiers }
}

/** Models of Anthropic that cost the same in each region. */
const oneVertexPrice = /^claude-(?:3-|(?:opus|sonnet)-4(?:-1)?(?:@|$))/

/** The price at Vertex AI, where a region is dearer than `global`. */
export const atVertex = (region: string, model: string, price: Price): Price =>
  region === 'global' || !model.startsWith('claude') || oneVertexPrice.test(model)
    ? price
    : { ...price, tiers: price.tiers.map((tier) => multipliedTier(tier, 1.1)) }

/** Windows that the table rounds down, and the largest window that such a figure may mean. */
const roundedWindows: ReadonlyMap<number, number> = new Map([
  [32_000, 32_768],
  [256_000, 262_144],
  [1_000_000, 1_050_000],
])

export const correctedWindow = (model: string, window: number): number =>
  model.includes('qwen3-coder-480b') ? Math.max(window, 262_144) : (roundedWindows.get(window) ?? window)

function inPico(rates: Correction): Partial<PriceTier> {
  return Object.fromEntries(Object.entries(rates).map(([name, dollars]) => [name, picoOfMillion(dollars)]))
}

function onBedrock(model: string, listed: readonly PriceTier[]): readonly PriceTier[] {
  const surcharge = regionalSurcharges.find(([pattern]) => pattern.test(model))?.[1] ?? 1
  let tiers = surcharge === 1 ? listed : listed.map((tier) => multipliedTier(tier, surcharge))
  if (!model.includes('claude')) return tiers
  tiers = tiers.map(withCaches)
  const [first] = tiers
  if (first === undefined || tiers.length > 1 || !longContextOnBedrock.test(model)) return tiers
  return [first, { ...multipliedTier(first, 2, 1.5), fromInputTokens: longContextFrom }]
}

/** Anthropic charges 1.25 times the input for cache writes, twice for those of an hour, and a tenth for reads. */
function withCaches(tier: PriceTier): PriceTier {
  const isUnlisted = tier.cacheWrite === tier.input && tier.cachedInput === tier.input
  const cacheWrite = isUnlisted ? Math.ceil(tier.input * 1.25) : tier.cacheWrite
  const isHourUnlisted = tier.cacheWriteHour === tier.cacheWrite
  return {
    ...tier,
    cachedInput: isUnlisted ? Math.ceil(tier.input / 10) : tier.cachedInput,
    cacheWrite,
    cacheWriteHour: isHourUnlisted ? 2 * tier.input : tier.cacheWriteHour,
  }
}
