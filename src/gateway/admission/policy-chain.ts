/**
 * Selects the policies that apply to a request and checks that its family has the stages they need (gateway/README.md).
 */

import { Failure } from '../../failure.ts'
import { type Family, families } from '../../languages/families.ts'
import type { PolicyChain, PolicySet } from '../../policies/chain.ts'
import { ModelView } from '../../policies/conditions/context.ts'
import type { ModelNames } from '../../providers/model-name.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'

/**
 * A chain with a stage that the family lacks is refused, whatever `when` and `mode` of its policies say. No stage is
 * skipped.
 */
export function selectChain(exchange: Exchange, gateway: Gateway): void {
  const { policyStages } = families[exchange.dialect.family]
  const { model } = exchange
  const chain = chainFor(exchange, gateway, model ?? { id: required(exchange.facts).model, aliases: [] })
  exchange.chain = chain
  if (chain.size === 0) return
  if (exchange.paths.length > 1) preferAllowedTarget(exchange, chain)
  for (const stage of chain.stages) {
    if (!policyStages.includes(stage)) throw new Failure('policy.incompatible_active_chain')
  }
}

/** The first target must be one that the policies allow, if there is any: they decide by it, and the others follow. */
function preferAllowedTarget(exchange: Exchange, chain: PolicyChain): void {
  const { paths, model } = exchange
  const first = paths.findIndex(
    ({ id, provider, aliases }) => id === model?.id && chain.allowsModel(new ModelView(id, provider.name, aliases)),
  )
  if (first <= 0) return
  exchange.paths = paths.slice(first)
  exchange.model = exchange.paths[0] ?? model
}

interface CachedChain {
  readonly gatewayId: string
  readonly model: string
  readonly aliases: readonly string[]
  readonly family: Family
  readonly chain: PolicyChain
}

/**
 * The last chain of each token in a policy set. Most tokens use the same model repeatedly, and a changed token is a new
 * object. A replaced set is garbage-collected with its chains.
 */
const lastChains = new WeakMap<PolicySet, WeakMap<GovernedToken, CachedChain>>()

/** The policies that apply to this caller and a model, or another requested name. */
export function chainFor(
  { token: admitted, dialect }: Exchange,
  { worker }: Gateway,
  { id: model, aliases }: ModelNames,
): PolicyChain {
  const token = required(admitted)
  const { policies: set } = worker.view
  const { gatewayId } = worker.status
  const { family } = dialect
  let ofSet = lastChains.get(set)
  if (ofSet === undefined) {
    ofSet = new WeakMap()
    lastChains.set(set, ofSet)
  }
  // A conversation has no model, so policies for any model apply to its texts.
  if (dialect.readsStored && model === '') return findChain(token, worker, { id: null, aliases }, family)
  const last = ofSet.get(token)
  const isSame = last?.model === model && last.family === family && last.gatewayId === gatewayId
  if (last !== undefined && isSame && areEqual(last.aliases, aliases)) return last.chain
  const chain = findChain(token, worker, { id: model, aliases }, family)
  ofSet.set(token, { gatewayId, model, aliases, family, chain })
  return chain
}

function areEqual(some: readonly string[], others: readonly string[]): boolean {
  if (some === others) return true
  for (const [index, name] of some.entries()) if (name !== others[index]) return false
  return some.length === others.length
}

const findChain = (
  token: GovernedToken,
  worker: Gateway['worker'],
  { id: model, aliases: modelAliases }: Omit<ModelNames, 'id'> & { id: string | null },
  family: Family,
): PolicyChain =>
  worker.view.policies.chainFor({
    organizationId: worker.status.organizationId,
    gatewayId: worker.status.gatewayId,
    tokenId: token.id,
    tokenLineage: token.accounts.map(({ id }) => id),
    teamId: token.teamId ?? token.eventTeamId,
    policyIds: token.policyIds,
    model,
    modelAliases,
    family,
  })
