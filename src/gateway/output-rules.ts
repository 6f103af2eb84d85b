/**
 * Which policies of a chain look at a streamed answer, and how: text policies as it passes, those that need the whole of
 * it at its end.
 */
import type { PolicyStage } from '../dialects/dialect.ts'
import type { InspectionRule } from '../inspection/rule.ts'
import type { ActivePolicy, PolicyResult } from '../policies/chain.ts'
import { ResponseView } from '../policies/context.ts'
import type { TextPolicy } from '../policies/kinds/kind.ts'
import { ruleOf } from '../policies/redaction.ts'
import { type Exchange, type Gateway, given } from './exchange.ts'
import { requestContext } from './policy-subject.ts'

export const outputStages = ['post_request', 'pre_response'] as const

/** A text policy's rule with its result, which grows as it finds. */
export interface RunningRule {
  readonly rule: InspectionRule
  readonly policy: ActivePolicy
  readonly result: PolicyResult & { targets: string[] }
}

/** Which policies run while the answer streams and which at its end; those whose condition does not hold are neither. */
export function outputRules(exchange: Exchange, gateway: Gateway) {
  const chain = given(exchange.chain)
  const rules: RunningRule[] = []
  const whole = { post_request: [] as ActivePolicy[], pre_response: [] as ActivePolicy[] }
  for (const stage of outputStages) {
    for (const policy of chain.at(stage)) {
      const { compiled, when } = policy
      const atEnd =
        compiled instanceof Error || compiled.form === 'whole' || (when !== null && /\bresponse\b/.test(when))
      if (atEnd) whole[stage].push(policy)
      else if (holds(policy, exchange, gateway)) rules.push(runningRule(policy, compiled, stage))
    }
  }
  exchange.policyResults.push(...rules.map(({ result }) => result))
  return { rules: rules.filter((running) => !isGranted(exchange, running)), whole }
}

/** With a reviewer's leave a policy that would only ask for a person is not asked. */
function isGranted({ grant }: Exchange, { policy, rule, result }: RunningRule): boolean {
  if (grant === null || !policy.enforced || rule.action !== 'escalate') return false
  result.reason_code = 'escalation.granted'
  return true
}

/** A condition that fails makes its policy hold: what cannot be decided is looked at. */
function holds({ condition }: ActivePolicy, exchange: Exchange, gateway: Gateway): boolean {
  try {
    const response = new ResponseView({ status: 200, texts: () => [], toolCalls: () => [] })
    return condition === null || condition({ ...requestContext(exchange, gateway), response })
  } catch {
    // Matching a text that its condition was meant to spare is the safe side of a condition that cannot be evaluated.
    return true
  }
}

function runningRule(policy: ActivePolicy, compiled: TextPolicy, stage: PolicyStage): RunningRule {
  const { id, kind, enforced } = policy
  const result = {
    policy_id: id,
    kind,
    stage,
    mode: enforced ? ('enforce' as const) : ('monitor' as const),
    verdict: 'allow' as const,
    reason_code: 'ok',
    latency_ms: 0,
    targets: [],
  }
  return { policy, result, rule: ruleOf(policy, compiled, null) }
}
