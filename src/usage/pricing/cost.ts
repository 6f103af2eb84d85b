/**
 * What an answer cost, in whole nano-dollars: each part of the usage at its rate in the tier of the actual input,
 * times the factor of the service tier, summed exactly and rounded up once (usage/pricing/README.md).
 */
import type { Usage } from '../../languages/dialect.ts'
import { type Family, families } from '../../languages/families.ts'
import { nanoOf, type Price, Sum, tierOf } from '../../providers/prices/price.ts'
import { priceInTier } from '../../providers/prices/service-tier.ts'

/** Nano-dollars. For speech, `characters` is the length of the text. */
export function costOf(list: Price, family: Family, usage: Usage, characters = 0): number {
  const price = priceInTier(list, usage.serviceTier)
  const fees = price.request + (usage.toolUses ?? 0) * price.toolUse
  const { takes, gives } = families[family]
  if (price.audioHour !== null && takes === 'audio') {
    return fees + audioCost(price.audioHour, usage.audioSeconds ?? 0)
  }
  if (price.character !== null && gives === 'audio') return fees + nanoOf(characters, price.character)
  if (price.image !== undefined && gives === 'images') return fees + (usage.images ?? 0) * price.image
  return fees + tokenCost(price, family, usage)
}

/** Nano-dollars of this much audio at a price an hour. Uses integers beyond the exact range of numbers. */
export function audioCost(hour: number, seconds: number): number {
  const milliseconds = BigInt(Math.ceil(seconds * 1000))
  return Number((milliseconds * BigInt(hour) + 3_599_999n) / 3_600_000n)
}

function tokenCost(price: Price, family: Family, usage: Usage): number {
  const input = usage.inputTokens ?? 0
  const output = usage.outputTokens ?? 0
  const tier = tierOf(price, input)
  if (tier === null) return 0
  // If the provider does not say which tokens were audio, all of an audio route count as audio.
  const audioInput = usage.audioInputTokens ?? (families[family].takes === 'audio' ? input : 0)
  const audioOutput = usage.audioOutputTokens ?? (families[family].gives === 'audio' ? output : 0)
  const hourly = usage.cacheWriteHourTokens ?? 0
  const written = Math.max(0, (usage.cacheWriteTokens ?? 0) - hourly)
  const cached = usage.cachedInputTokens ?? 0
  const reasoning = Math.min(output - audioOutput, usage.reasoningTokens ?? 0)
  return new Sum()
    .add(Math.max(0, input - cached - written - hourly - audioInput), tier.input)
    .add(cached, tier.cachedInput)
    .add(written, tier.cacheWrite)
    .add(hourly, tier.cacheWriteHour)
    .add(audioInput, tier.audioInput)
    .add(Math.max(0, output - audioOutput - reasoning), tier.output)
    .add(Math.max(0, reasoning), tier.reasoning)
    .add(audioOutput, tier.audioOutput).nano
}
