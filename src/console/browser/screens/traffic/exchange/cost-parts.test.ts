import { expect, test } from 'bun:test'
import { costParts } from './cost-parts.ts'

const tier = {
  ...{ from_input_tokens: 0, input_per_million: 2, output_per_million: 10, reasoning_per_million: 10 },
  ...{ cached_input_per_million: 0.5, cache_write_per_million: 2, cache_write_hour_per_million: 2 },
  ...{ audio_input_per_million: 2, audio_output_per_million: 10 },
}
const price = {
  ...{
    currency: 'USD' as const,
    source: 'operator',
    date: null,
    tiers: [tier],
    audio_per_hour: null,
    per_million_characters: null,
  },
  ...{ per_image: null, per_thousand_tool_uses: 10, per_thousand_requests: 0 },
}
const cost = (whole: number | null) => ({
  ...{ currency: 'USD' as const, cost: whole, estimated: false, provider: 'p', model: 'm', price_source: null },
  ...{ input_tokens: 1000, output_tokens: 500, cached_input_tokens: 400, reasoning_tokens: 100, spend_owner: null },
})

test('splits a cost into its parts, with uses of tools as what is left', () => {
  expect(costParts(cost(0.0064), { price })?.map(({ name, tokens }) => [name, tokens])).toEqual([
    ['Input', 600],
    ['Cached input', 400],
    ['Output', 400],
    ['Reasoning', 100],
  ])
  expect(costParts(cost(0.0164), { price })?.at(-1)).toMatchObject({ name: 'Tools and other charges', tokens: null })
  expect(costParts(cost(0.0164), { price })?.at(-1)?.cost).toBeCloseTo(0.01, 9)
})

test('tells no parts where they do not add up to the cost, or there is no price', () => {
  expect(costParts(cost(0.001), { price })).toBeNull()
  expect(costParts(cost(0.0164), { price: { ...price, per_thousand_tool_uses: 0 } })).toBeNull()
  expect(costParts(cost(null), { price })).toBeNull()
  expect(costParts(cost(0.0064), { price: null })).toBeNull()
})
