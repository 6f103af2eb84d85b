/**
 * The cost of the cheapest request that a token may make: one input and one output token of the cheapest model
 * (usage/lease/README.md rule 18). A budget with less left is used up. A pure function of catalog and token.
 *
 * It is never too high, so that no budget counts as used up that could still pay: gateways with fewer providers are
 * ignored, and a provider that takes any model name counts with its lowest price, whatever globs the token has. Free
 * models are ignored, since they need no budget.
 */
import { nanoOf, type Price } from '../../providers/prices/price.ts'
import { type GovernedToken, modelAllowed } from '../../tokens/governed-token.ts'
import type { AccessRule } from '../limits.ts'
import { forbiddenBy } from '../rate/rate-demands.ts'
import { audioCost } from './cost.ts'

export interface OfferedModel {
  id: string
  provider: { name: string }
  /** The cheapest request in nano-dollars; null if the model has no known cost: then no budget pays for it. */
  cost: number | null
}

/** A provider that serves models that are not in the catalog. */
export interface OpenProvider {
  name: string
  /** The cheapest request to this model in nano-dollars; null if it has no price. */
  cost(model: string): number | null
  /** The cheapest request to any of its priced models; null if there is none. */
  least: number | null
}

export interface Offer {
  /** By id. */
  listed: ReadonlyMap<string, OfferedModel>
  open: readonly OpenProvider[]
}

export interface Spender extends Pick<GovernedToken, 'provider' | 'modelFilter'> {
  accessPolicies: readonly AccessRule[]
}

/** A second of the lowest-bitrate audio is a hundred bytes (`bound.ts`), so no upload is shorter. */
const minAudioSeconds = 0.01

/** Nano-dollars of one input and one output token; for other units, of the cheapest of them. */
export function minCost({ tiers, audioHour, character, image, request }: Price): number {
  if (audioHour !== null) return request + audioCost(audioHour, minAudioSeconds)
  if (character !== null) return request + nanoOf(1, character)
  const [tier] = tiers
  const tokens = tier === undefined ? 0 : nanoOf(1, tier.input + tier.output)
  if (image === undefined) return request + tokens
  return request + (tokens === 0 ? image : Math.min(tokens, image))
}

/** Nano-dollars; null if the token may use no priced model. */
export function cheapestRequest(spender: Spender, { listed, open }: Offer): number | null {
  let least = Number.POSITIVE_INFINITY
  for (const { id, provider, cost } of listed.values()) {
    if (cost !== null && cost > 0 && cost < least && mayUse(spender, id, provider)) least = cost
  }
  const names = namedModels(spender)
  for (const provider of open) {
    if (!providerAllowed(spender, provider.name)) continue
    if (names === null) least = Math.min(least, provider.least ?? least)
    else {
      for (const id of names) {
        if (!listed.has(id) && mayUse(spender, id, provider)) least = Math.min(least, provider.cost(id) || least)
      }
    }
  }
  return Number.isFinite(least) ? least : null
}

const providerAllowed = ({ provider, accessPolicies }: Spender, name: string): boolean =>
  (provider === null || provider === name) &&
  accessPolicies.every(({ providers }) => providers === null || providers.includes(name))

const mayUse = (spender: Spender, id: string, provider: { name: string }): boolean =>
  (spender.provider === null || spender.provider === provider.name) &&
  modelAllowed(spender.modelFilter, id) &&
  spender.accessPolicies.every((policy) => forbiddenBy(policy, { id, provider }) === null)

/** All model names that the token may use, if one of its filters lists them without a glob; otherwise null. */
function namedModels({ modelFilter, accessPolicies }: Spender): readonly string[] | null {
  const filters = [modelFilter, ...accessPolicies.map(({ models }) => models)]
  return filters.find((filter) => filter?.every((pattern) => !pattern.includes('*'))) ?? null
}
