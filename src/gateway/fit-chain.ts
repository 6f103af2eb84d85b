/** The policies that hold for this request, and whether its family has the stages they need (contract section 6). */
import { Failure } from '../failure.ts'
import type { PolicyChain } from '../policies/chain.ts'
import { type Exchange, type Gateway, given } from './exchange.ts'

/** A stage that the family lacks is never skipped: the chain is refused, whatever its policies' `when` and `mode` say. */
export function fitChain(exchange: Exchange, gateway: Gateway): void {
  const { policyStages } = exchange.dialect
  const chain = chainFor(exchange, gateway, exchange.model?.id ?? given(exchange.facts).model)
  exchange.chain = chain
  if (chain.size === 0) return
  for (const stage of chain.stages) {
    if (!policyStages.includes(stage)) throw new Failure('policy.incompatible_active_chain')
  }
}

/** The policies that hold for this caller and a model, or what else is asked for by name. */
export function chainFor({ token: admitted, dialect }: Exchange, { lane }: Gateway, model: string): PolicyChain {
  const token = given(admitted)
  return lane.view.policies.chainFor({
    organizationId: lane.standing.organizationId,
    gatewayId: lane.standing.gatewayId,
    tokenId: token.id,
    tokenLineage: token.accounts.map(({ id }) => id),
    teamId: token.teamId ?? token.eventTeamId,
    policyIds: token.policyIds,
    model,
    family: dialect.family,
  })
}
