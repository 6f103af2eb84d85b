/**
 * What providers charge for a service tier, as a multiple of the list price of tokens. The figures are those of the
 * price lists of September 2026, checked against the table of litellm 1.109.1.
 *
 * A tier that is not known is priced as the dearest one that is. A discount is given only by the list price of a
 * provider itself: an operator's price, or that of another provider with the same words, may hold for the cheaper
 * tier already.
 */
import { multipliedTier, type Price, type ServiceTiers } from './price.ts'

type Multiples = ServiceTiers['multiples']

/** Other names of the tier with the list price. `auto` becomes the tier that the answer reports. */
const standardNames: ReadonlySet<string> = new Set([
  'auto',
  'default',
  'standard',
  'standard_only',
  'on_demand',
  'scale',
])

const discounts: Multiples = { flex: 0.5, batch: 0.5 }
/** For prices that no list tells. */
const dearestMultiples: Multiples = { flex: 1, batch: 1, priority: 2.5, fast: 6, ultrafast: 6 }
const dearestTiers: ServiceTiers = { multiples: dearestMultiples, discountCachedInput: true }
const dearest = Math.max(...Object.values(dearestMultiples))

/** OpenAI's priority tier, by how the model's name begins; the first that fits. Newer models cost twice their price. */
const priorityOfOpenai: readonly (readonly [prefix: string, multiple: number])[] = [
  ['gpt-4o-mini', 5 / 3],
  ['gpt-4o-2024-05-13', 1.75],
  ['gpt-4o', 1.7],
  ['gpt-4.1-nano', 2],
  ['gpt-4.1', 1.75],
  ['o3', 1.75],
  ['o4-mini', 20 / 11],
  ['gpt-5-mini', 1.8],
  ['gpt-5.5', 2.5],
  ['', 2],
]

/** Models of OpenAI whose batches cost more than half of their list price, or as much. */
const dearBatches = /^(?:ft:gpt-4o-2024-08-06|gpt-3\.5-turbo-1106)/

/** Anthropic's fast mode; the models before these cost six times their price. */
const fastOfAnthropic = /^claude-opus-(?:4-8|5)/

/** The tiers of a model that the embedded table lists for one of its providers. */
export const serviceTiersOf = (provider: string, model: string): ServiceTiers => ({
  multiples: multiplesOf(provider, model),
  discountCachedInput: provider !== 'google',
})

function multiplesOf(provider: string, model: string): Multiples {
  switch (provider) {
    case 'openai':
    case 'azure': {
      const [, priority = dearest] = priorityOfOpenai.find(([prefix]) => model.startsWith(prefix)) ?? []
      return { ...dearestMultiples, ...discounts, ...(dearBatches.test(model) && { batch: 1 }), priority }
    }
    case 'anthropic':
      // Capacity that is committed to: its tokens are at the list price.
      return { ...discounts, priority: 1, fast: fastOfAnthropic.test(model) ? 2 : dearest }
    case 'google':
      return { ...discounts, priority: 1.8 }
    case 'aws':
      return { ...discounts, priority: 1.75 }
    default:
      return dearestMultiples
  }
}

/** The multiple for a tier, however its name is capitalized; null where the tier is not known. */
export function multipleOf({ serviceTiers = dearestTiers }: Price, tier: string): number | null {
  const name = tier.toLowerCase()
  if (standardNames.has(name)) return 1
  return Object.hasOwn(serviceTiers.multiples, name) ? (serviceTiers.multiples[name] ?? null) : null
}

/** The same price as it is in a tier. What is charged beside tokens is the same in each. */
export function priceInTier(price: Price, tier: string | undefined): Price {
  const multiple = tier === undefined ? 1 : (multipleOf(price, tier) ?? dearest)
  if (multiple === 1) return price
  const { discountCachedInput } = price.serviceTiers ?? dearestTiers
  const tiers = price.tiers.map((listed) => {
    const multiplied = multipliedTier(listed, multiple)
    return multiple < 1 && !discountCachedInput ? { ...multiplied, cachedInput: listed.cachedInput } : multiplied
  })
  return { ...price, tiers }
}
