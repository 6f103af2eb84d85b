/** The policies that hold for one request, in order, and what they say. */
import type { Family, PolicyStage } from '../dialects/dialect.ts'
import type { Verdict } from '../events/event.ts'

/** What one policy said at one stage, as events show it (contract section 9). */
export interface PolicyResult {
  policy_id: string
  kind: string
  stage: PolicyStage
  verdict: Verdict
  reason_code: string
  latency_ms: number
  /** What was found, in words without the text itself: `messages[0].content`, `EMAIL`. */
  targets: readonly string[]
}

/** Whom a chain is for. */
export interface ChainSubject {
  organizationId: string
  gatewayId: string
  tokenId: string
  teamId: string | null
  policyIds: readonly string[]
  model: string
  family: Family
}

export interface PolicyChain {
  /** The stages that some policy of it has, whatever its `when` and `mode` say. */
  readonly stages: ReadonlySet<PolicyStage>
  readonly size: number
}

/** All policies that a gateway knows, compiled once for each change of the state. */
export interface PolicySet {
  chainFor(subject: ChainSubject): PolicyChain
}

export const emptyChain: PolicyChain = { stages: new Set(), size: 0 }
export const noPolicies: PolicySet = { chainFor: () => emptyChain }
