/**
 * What the cheapest request costs that a token may make: one token of input and one of output of the cheapest model
 * (usage/lease/README.md rule 18). With less left its budget is used up. Pure: catalog and token go in.
 *
 * Never more than the truth, so that nothing counts as used up that could still pay for something: gateways that may use
 * fewer providers are not looked at, and of a provider that takes any model by name the least of all that it could be
 * asked for counts, whatever globs the token has. What costs nothing is not looked at: no budget is kept for it.
 */
import { nanoOf, type Price } from '../../providers/prices/price.ts'
import { type GovernedToken, modelAllowed } from '../../tokens/governed-token.ts'
import type { AccessRule } from '../limits.ts'
import { forbiddenBy } from '../rate/rate-demands.ts'
import { audioCost } from './cost.ts'

export interface OfferedModel {
  id: string
  provider: { name: string }
  /** Nano-dollars of the cheapest request; null where nobody says what the model costs: then no budget pays for it. */
  cost: number | null
}

/** A provider that answers for models which the catalog does not list. */
export interface OpenProvider {
  name: string
  /** Nano-dollars of the cheapest request to a model of this name; null where it has no price. */
  cost(model: string): number | null
  /** Of the cheapest request to any of them that costs something; null where none does. */
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

/** A second of the thinnest audio is a hundred bytes (`bound.ts`): no upload is less than one. */
const minAudioSeconds = 0.01

/** Nano-dollars of one token of input and one of output; of what is billed by other units, of the least of these. */
export function minCost({ tiers, audioHour, character, request }: Price): number {
  if (audioHour !== null) return request + audioCost(audioHour, minAudioSeconds)
  if (character !== null) return request + nanoOf(1, character)
  const [tier] = tiers
  if (tier === undefined) return request
  return request + nanoOf(1, tier.input + tier.output)
}

/** Nano-dollars; null where the token may use nothing that costs something. */
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

/** All names of models that the token may use, where one of its filters lists them without a glob; otherwise null. */
function namedModels({ modelFilter, accessPolicies }: Spender): readonly string[] | null {
  const filters = [modelFilter, ...accessPolicies.map(({ models }) => models)]
  return filters.find((filter) => filter?.every((pattern) => !pattern.includes('*'))) ?? null
}
