/**
 * A price as an operator writes it and as records hold it (providers/README.md): decimal dollars a million tokens. A
 * missing rate is that of plain input or output.
 */
import { z } from 'zod'
import { fromNano, toNano } from '../../lib/money.ts'
import { millionOfPico, type Price, type PriceTier, picoOfMillion } from './price.ts'

const dollars = z.number().min(0).max(100_000)

const rates = {
  input_per_million: dollars,
  output_per_million: dollars,
  reasoning_per_million: dollars.optional(),
  cached_input_per_million: dollars.optional(),
  cache_write_per_million: dollars.optional(),
  cache_write_hour_per_million: dollars.optional(),
  audio_input_per_million: dollars.optional(),
  audio_output_per_million: dollars.optional(),
}

const tierSchema = z.strictObject({ from_input_tokens: z.number().int().min(1).max(100_000_000), ...rates })

/** The body of a price. Money is US dollars. */
export const priceRecordSchema = z.strictObject({
  ...rates,
  tiers: z
    .array(tierSchema)
    .max(20)
    .refine(ascending, 'tiers must be in ascending order of from_input_tokens')
    .optional()
    .describe('What holds for requests whose input has at least this many tokens'),
  audio_per_hour: dollars.optional().describe('Audio that is listened to'),
  per_million_characters: dollars.optional().describe('Text that is spoken'),
  per_image: dollars.optional().describe('An image that is generated, whatever its size'),
  per_thousand_tool_uses: dollars.optional().describe('Uses of tools that the provider runs, such as web search'),
  per_thousand_requests: dollars.optional().describe('What requests cost beside their tokens'),
})

export type PriceRecord = z.infer<typeof priceRecordSchema>

function ascending(tiers: readonly { from_input_tokens: number }[]): boolean {
  return tiers.every(
    (tier, index) => index === 0 || tier.from_input_tokens > (tiers[index - 1]?.from_input_tokens ?? 0),
  )
}

/** Compiles a record that `priceRecordSchema` accepts. Throws for any other. */
export function compilePrice(record: unknown, source: string): Price {
  const read = priceRecordSchema.parse(record)
  return {
    tiers: [compileTier({ from_input_tokens: 0, ...read }), ...(read.tiers ?? []).map((tier) => compileTier(tier))],
    audioHour: read.audio_per_hour === undefined ? null : toNano(read.audio_per_hour),
    character: read.per_million_characters === undefined ? null : picoOfMillion(read.per_million_characters),
    ...(read.per_image !== undefined && { image: toNano(read.per_image) }),
    toolUse: Math.ceil(toNano(read.per_thousand_tool_uses ?? 0) / 1000),
    request: Math.ceil(toNano(read.per_thousand_requests ?? 0) / 1000),
    source,
  }
}

/** Compiles the text of a column of the state; null if it holds no price. */
export const compilePriceText = (text: string | null, source: string): Price | null =>
  text === null ? null : compilePrice(JSON.parse(text), source)

function compileTier(tier: z.infer<typeof tierSchema>): PriceTier {
  const input = picoOfMillion(tier.input_per_million)
  const output = picoOfMillion(tier.output_per_million)
  const or = (value: number | undefined, otherwise: number) => (value === undefined ? otherwise : picoOfMillion(value))
  const cacheWrite = or(tier.cache_write_per_million, input)
  return {
    fromInputTokens: tier.from_input_tokens,
    input,
    output,
    reasoning: or(tier.reasoning_per_million, output),
    cachedInput: or(tier.cached_input_per_million, input),
    cacheWrite,
    cacheWriteHour: or(tier.cache_write_hour_per_million, cacheWrite),
    audioInput: or(tier.audio_input_per_million, input),
    audioOutput: or(tier.audio_output_per_million, output),
  }
}

export const priceSource = z
  .string()
  .describe("operator: the model's record; provider: its default; else the embedded table with its version and date")

export const priceDate = z.string().nullable().describe('The date of the embedded table; null for any other price')

/** A price for display: every rate written out, with its source. */
export const shownPriceSchema = z.object({
  currency: z.literal('USD'),
  source: priceSource,
  date: priceDate,
  tiers: z.array(
    z.object({
      from_input_tokens: z.number().int(),
      input_per_million: z.number(),
      output_per_million: z.number(),
      reasoning_per_million: z.number(),
      cached_input_per_million: z.number(),
      cache_write_per_million: z.number(),
      cache_write_hour_per_million: z.number(),
      audio_input_per_million: z.number(),
      audio_output_per_million: z.number(),
    }),
  ),
  audio_per_hour: z.number().nullable(),
  per_million_characters: z.number().nullable(),
  per_image: z.number().nullable(),
  per_thousand_tool_uses: z.number(),
  per_thousand_requests: z.number(),
})

export const showPrice = (price: Price): z.infer<typeof shownPriceSchema> => ({
  currency: 'USD',
  source: price.source,
  date: price.date ?? null,
  tiers: price.tiers.map((tier) => ({
    from_input_tokens: tier.fromInputTokens,
    input_per_million: millionOfPico(tier.input),
    output_per_million: millionOfPico(tier.output),
    reasoning_per_million: millionOfPico(tier.reasoning),
    cached_input_per_million: millionOfPico(tier.cachedInput),
    cache_write_per_million: millionOfPico(tier.cacheWrite),
    cache_write_hour_per_million: millionOfPico(tier.cacheWriteHour),
    audio_input_per_million: millionOfPico(tier.audioInput),
    audio_output_per_million: millionOfPico(tier.audioOutput),
  })),
  audio_per_hour: price.audioHour === null ? null : fromNano(price.audioHour),
  per_million_characters: price.character === null ? null : millionOfPico(price.character),
  per_image: price.image === undefined ? null : fromNano(price.image),
  per_thousand_tool_uses: fromNano(price.toolUse * 1000),
  per_thousand_requests: fromNano(price.request * 1000),
})

/** A price in the form that an operator writes. A rate that equals the one it would default to is left out. */
export function priceRecordOf({ tiers, ...price }: Price): PriceRecord {
  const [first = freeTier, ...further] = tiers
  return {
    ...ratesOf(first),
    ...(further.length > 0 && {
      tiers: further.map((tier) => ({ from_input_tokens: tier.fromInputTokens, ...ratesOf(tier) })),
    }),
    ...(price.audioHour !== null && { audio_per_hour: fromNano(price.audioHour) }),
    ...(price.character !== null && { per_million_characters: millionOfPico(price.character) }),
    ...(price.image !== undefined && { per_image: fromNano(price.image) }),
    ...(price.toolUse > 0 && { per_thousand_tool_uses: fromNano(price.toolUse * 1000) }),
    ...(price.request > 0 && { per_thousand_requests: fromNano(price.request * 1000) }),
  }
}

const freeTier = compileTier({ from_input_tokens: 0, input_per_million: 0, output_per_million: 0 })

function ratesOf(tier: PriceTier) {
  const { input, output, reasoning, cachedInput, cacheWrite, cacheWriteHour, audioInput, audioOutput } = tier
  return {
    input_per_million: millionOfPico(input),
    output_per_million: millionOfPico(output),
    ...(reasoning !== output && { reasoning_per_million: millionOfPico(reasoning) }),
    ...(cachedInput !== input && { cached_input_per_million: millionOfPico(cachedInput) }),
    ...(cacheWrite !== input && { cache_write_per_million: millionOfPico(cacheWrite) }),
    ...(cacheWriteHour !== cacheWrite && { cache_write_hour_per_million: millionOfPico(cacheWriteHour) }),
    ...(audioInput !== input && { audio_input_per_million: millionOfPico(audioInput) }),
    ...(audioOutput !== output && { audio_output_per_million: millionOfPico(audioOutput) }),
  }
}
