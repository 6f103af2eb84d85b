/**
 * What each part of a request cost, at the present price of its model. The record has the whole cost and the counts, not
 * the parts: where they add up to it, the price is the one that was charged.
 */
import type { Event, ModelPrice } from '../../../api/routes.ts'

export interface CostPart {
  name: 'Input' | 'Cached input' | 'Output' | 'Reasoning' | 'Tools and other charges'
  /** Null for what is not counted in tokens. */
  tokens: number | null
  cost: number
}

type Cost = NonNullable<Event['event_cost_attribution']>

/** Nano-dollars that rounding may add. */
const rounding = 2e-9

/** Null where the price has changed since, or does not tell: then only the whole is known. */
export function costParts(cost: Cost, { price }: Pick<ModelPrice, 'price'>): CostPart[] | null {
  if (cost.cost === null || price === null) return null
  const input = cost.input_tokens ?? 0
  const tier = price.tiers.findLast(({ from_input_tokens }) => from_input_tokens <= input)
  if (tier === undefined) return null
  const cached = cost.cached_input_tokens ?? 0
  const reasoning = Math.min(cost.output_tokens ?? 0, cost.reasoning_tokens ?? 0)
  const part = (name: CostPart['name'], tokens: number, perMillion: number): CostPart => ({
    ...{ name, tokens },
    cost: (tokens * perMillion) / 1_000_000,
  })
  const parts = [
    part('Input', Math.max(0, input - cached), tier.input_per_million),
    part('Cached input', cached, tier.cached_input_per_million),
    part('Output', (cost.output_tokens ?? 0) - reasoning, tier.output_per_million),
    part('Reasoning', reasoning, tier.reasoning_per_million),
  ].filter(({ tokens }) => tokens !== 0)
  const rest = cost.cost - parts.reduce((sum, each) => sum + each.cost, 0)
  if (Math.abs(rest) <= rounding) return parts
  const [fee, use] = [price.per_thousand_requests / 1000, price.per_thousand_tool_uses / 1000]
  const uses = use === 0 ? 0 : Math.round((rest - fee) / use)
  // What is left is the fee and whole uses of tools; otherwise the price was another.
  if (uses < 0 || Math.abs(rest - fee - uses * use) > rounding) return null
  return [...parts, { name: 'Tools and other charges', tokens: null, cost: rest }]
}
