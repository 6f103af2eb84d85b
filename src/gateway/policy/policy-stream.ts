/**
 * A streamed answer under policies (inspection/README.md).
 *
 * - Text policies run while the answer streams, in chain order, post_request before pre_response. `StreamInspector`
 *   holds only text that may become a match. Redacted request text is restored last.
 * - Policies that need the whole answer (conditions on its text, schemas, webhooks, tool access) run at its end. If one
 *   of them may stop the answer, everything is held until then. An answer longer than `stream_hold_bytes` cannot be
 *   decided, and the policy's `when_broken` applies.
 * - If policies only monitor, every byte goes out unchanged and without delay.
 *
 * Findings are noted on the exchange at once, so that they are recorded when the client disconnects early. A stream
 * keeps the chain it was admitted under.
 */

import { Failure } from '../../failure.ts'
import { guardedMatcher } from '../../inspection/detectors/guarded-matcher.ts'
import type { InspectionRule, Stop } from '../../inspection/rule.ts'
import { type ChannelReader, StreamInspector } from '../../inspection/stream.ts'
import type { FrameFacts } from '../../languages/dialect.ts'
import type { PolicyStage } from '../../languages/families.ts'
import { isEventName } from '../../languages/reading/texts/known-labels.ts'
import type { SseFrame } from '../../lib/http/sse.ts'
import type { ActivePolicy, PolicyResult } from '../../policies/chain.ts'
import { type PolicyContext, ResponseView } from '../../policies/conditions/context.ts'
import { outputStages, type TextPolicy } from '../../policies/kinds/kind.ts'
import { ruleOf } from '../../policies/redaction.ts'
import { maxTargets } from '../../policies/stages/find-in-texts.ts'
import {
  brokenReason,
  type PolicyEvaluation,
  resultOf,
  runStage,
  type StageSubject,
} from '../../policies/stages/run-stage.ts'
import { stronger } from '../../policies/verdict.ts'
import { reserveGrant, withGrant } from '../admission/review-grant.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { CollectedAnswer } from './collected-answer.ts'
import { failureOf } from './decisions.ts'
import type { Inspected, StreamInspection } from './inspected-stream.ts'
import { addStageOutcome, calledByCallerNames, ExchangeStage, logBroken, requestContext } from './subject.ts'

export type OutputStage = (typeof outputStages)[number]

/** The stages that inspect the outgoing answer: both, or only the second when the first ran before translation. */
export const remainingStages = ({ call }: Exchange): readonly OutputStage[] =>
  call.inspectedUpstream ? ['pre_response'] : outputStages

/** Whether a policy inspects the outgoing answer. */
export function isInspected(exchange: Exchange): boolean {
  const { chain, placeholders } = exchange
  if (placeholders !== null && placeholders.size > 0) return true
  if (chain === null || chain.size === 0) return false
  return (
    chain.at('pre_response').length > 0 || (!exchange.call.inspectedUpstream && chain.at('post_request').length > 0)
  )
}

/** The rule of a text policy with its result, which grows with each finding. */
interface RunningRule {
  readonly rule: InspectionRule
  readonly policy: ActivePolicy
  readonly result: PolicyResult & { targets: string[] }
  /** The policy failed, and its `when_broken` decided. */
  broken: boolean
}

export class PolicyStream implements StreamInspection {
  readonly #exchange: Exchange
  readonly #gateway: Gateway
  readonly #inspector: StreamInspector<SseFrame>
  readonly #rules: readonly RunningRule[]
  /** Policies that see the answer at its end, by stage. */
  readonly #whole: Readonly<Record<OutputStage, readonly ActivePolicy[]>>
  readonly #answer = new CollectedAnswer()
  /** Frames that are held until the whole was inspected; null when none are. */
  #held: Uint8Array[] | null
  #heldBytes = 0

  /** `stages`: the stages that inspect here. Redacted request text is restored in the last one. */
  constructor(exchange: Exchange, gateway: Gateway, reader: ChannelReader<SseFrame>, stages: readonly OutputStage[]) {
    this.#exchange = exchange
    this.#gateway = gateway
    const { rules, whole, mayStop } = sorted(exchange, gateway, stages)
    this.#rules = rules
    this.#whole = whole
    this.#held = mayStop ? [] : null
    const placeholders = stages.includes('pre_response') ? exchange.placeholders : null
    const restoring = placeholders !== null && placeholders.size > 0 ? [placeholders.restoring()] : []
    const channels = this.#hasWhole() ? this.#answer.reading(reader) : reader
    const watching = { isWatched: mayStop, isOwnEvent: isEventName }
    this.#inspector = new StreamInspector(channels, [...rules.map(({ rule }) => rule), ...restoring], watching)
  }

  take(frame: SseFrame, facts: FrameFacts | null): Inspected | Promise<Inspected> {
    const last = facts !== null && (facts.terminal || facts.error !== null)
    if (this.#hasWhole()) this.#answer.noteTools(frame)
    return this.#passed(this.#inspector.take(frame, last), last)
  }

  end(): Inspected | Promise<Inspected> {
    return this.#passed(this.#inspector.end(), true)
  }

  #passed(
    { bytes, stop }: { bytes: Uint8Array | null; stop: Stop | null },
    last: boolean,
  ): Inspected | Promise<Inspected> {
    this.#note()
    if (stop !== null) return { bytes: this.#held === null ? bytes : null, stop: this.#stopped(stop) }
    if (!this.#hasWhole()) return { bytes, stop: null }
    if (last && !this.#answer.contradicts) return this.#concludeWhole(bytes)
    if (bytes !== null) this.#held?.push(bytes)
    this.#heldBytes += bytes?.length ?? 0
    if (last) return this.#undecided(bytes)
    if (this.#heldBytes > this.#gateway.settings.stream_hold_bytes) return this.#undecided(bytes)
    return { bytes: this.#held === null ? bytes : null, stop: null }
  }

  #hasWhole(): boolean {
    return this.#whole.post_request.length + this.#whole.pre_response.length > 0
  }

  /** Takes over the findings since the last call, so that they do not accumulate. */
  #note(): void {
    const { findings } = this.#inspector
    if (findings.length === 0) return
    for (const { rule, place, label, entry } of findings.splice(0)) {
      const running = this.#rules.find((each) => each.rule === rule)
      if (running === undefined || running.broken) continue
      const { result, policy } = running
      result.verdict = rule.action
      result.reason_code = rule.reasonCode
      const target = `${place}: ${label} (${entry})`
      if (result.targets.length < maxTargets && !result.targets.includes(target)) result.targets.push(target)
      if (policy.enforced) this.#exchange.verdict = stronger(this.#exchange.verdict, rule.action)
    }
  }

  #stopped({ rule, verdict }: Stop): Failure {
    const running = this.#rules.find((each) => each.rule === rule)
    if (running === undefined) return new Failure('internal', { cause: new Error('A rule without its policy stopped') })
    const { result, broken, policy } = running
    result.verdict = broken ? 'deny' : verdict
    result.reason_code = broken ? brokenReason : rule.reasonCode
    const decision = { verdict: result.verdict, reasonCode: result.reason_code, targets: result.targets }
    return this.#failure({ policy, decision, latencyMs: 0 })
  }

  #failure(said: PolicyEvaluation): Failure {
    this.#exchange.verdict = stronger(this.#exchange.verdict, said.decision.verdict)
    return failureOf(this.#exchange, this.#gateway, said) ?? new Failure('internal')
  }

  /** Runs the policies that need the whole answer, then releases the held frames or stops. */
  async #concludeWhole(last: Uint8Array | null): Promise<Inspected> {
    const exchange = this.#exchange
    for (const stage of outputStages) {
      const policies = this.#whole[stage]
      if (policies.length === 0) continue
      const slots = this.#answer.slots(stage === 'post_request' ? 'came' : 'sent')
      const texts = () => slots
      const toolCalls = () => calledByCallerNames(exchange, this.#answer.tools())
      const response = new ResponseView({ status: 200, texts, toolCalls })
      const context: PolicyContext = { ...requestContext(exchange, this.#gateway), response }
      const facts = required(exchange.facts)
      const subject = { stage, context, facts, body: null, requestBody: exchange.parsed, texts, placeholders: null }
      const failure = await this.#askWhole(stage, policies, { ...subject, frozen: true }, response)
      if (failure !== null) return { bytes: null, stop: failure }
    }
    const held = this.#held ?? []
    this.#held = null
    this.dropWhole()
    const bytes = last === null ? held : [...held, last]
    return { bytes: bytes.length === 0 ? null : Buffer.concat(bytes), stop: null }
  }

  /** Runs the policies of one stage; with a grant it continues behind an escalation. */
  async #askWhole(
    stage: PolicyStage,
    policies: readonly ActivePolicy[],
    subject: StageSubject,
    response: ResponseView,
  ): Promise<Failure | null> {
    const [exchange, gateway] = [this.#exchange, this.#gateway]
    const outcome = await runStage(new ExchangeStage(exchange, gateway, policies, subject))
    // A policy that was cancelled with its exchange decided nothing.
    if (exchange.cut !== null) return exchange.cut.failure
    const { decisive } = outcome
    const granted = outcome.verdict === 'escalate' && decisive !== null && (await reserveGrant(exchange, gateway))
    addStageOutcome(exchange, stage, granted ? withGrant(outcome, decisive) : outcome)
    if (granted) return this.#askWhole(stage, policies.slice(policies.indexOf(decisive.policy) + 1), subject, response)
    return decisive === null ? null : failureOf(exchange, gateway, decisive, response)
  }

  /** The answer is too long to hold or ambiguous, so every policy that needs the whole is broken. */
  #undecided(last: Uint8Array | null): Inspected {
    let refused: PolicyEvaluation | null = null
    for (const stage of outputStages) {
      for (const policy of this.#whole[stage]) {
        const verdict = policy.whenBroken === 'deny' ? 'deny' : 'allow'
        const said: PolicyEvaluation = {
          policy,
          decision: { verdict, reasonCode: brokenReason, targets: [] },
          latencyMs: 0,
        }
        noteOne(this.#exchange, stage, said)
        if (policy.enforced && verdict === 'deny') refused ??= said
      }
    }
    if (refused !== null) return { bytes: null, stop: this.#failure(refused) }
    const held = this.#held ?? (last === null ? [] : [last])
    this.#held = null
    this.dropWhole()
    return { bytes: Buffer.concat(held), stop: null }
  }

  dropWhole(): void {
    Object.assign(this.#whole, { post_request: [], pre_response: [] })
    this.#answer.clear()
  }
}

/**
 * Splits the policies into those that run while the answer streams and those at its end, and tells whether one of the
 * latter may stop it. Policies whose condition does not hold are left out.
 */
function sorted(exchange: Exchange, gateway: Gateway, stages: readonly OutputStage[]) {
  const chain = required(exchange.chain)
  const rules: RunningRule[] = []
  const whole = { post_request: [] as ActivePolicy[], pre_response: [] as ActivePolicy[] }
  let mayStop = false
  for (const stage of stages) {
    for (const policy of chain.at(stage)) {
      const { compiled } = policy
      const holds = holdsSoFar(policy, exchange, gateway)
      if (holds === false) continue
      const mark = compiled instanceof Error || compiled.form === 'text' ? undefined : compiled.mark
      if (holds && mark !== undefined) noteOne(exchange, stage, { policy, decision: mark, latencyMs: 0 })
      else if (holds && !(compiled instanceof Error) && compiled.form === 'text') {
        const tell = (error: unknown) => logBroken(exchange, gateway, policy, error)
        rules.push(runningRule(policy, compiled, stage, tell))
      } else {
        whole[stage].push(policy)
        const harmless = mark !== undefined || compiled instanceof Error
        mayStop ||= policy.enforced && !(harmless && policy.whenBroken === 'allow')
      }
    }
  }
  exchange.policyResults.push(...rules.map(({ result }) => result))
  return { rules: rules.filter((running) => !isGranted(exchange, running)), whole, mayStop }
}

/** Records the result of one policy that does not end the stream. */
const noteOne = ({ policyResults }: Exchange, stage: PolicyStage, said: PolicyEvaluation): void => {
  policyResults.push(resultOf(stage, said))
}

/** With a reviewer's grant a policy that would only escalate does not run. */
function isGranted({ grant }: Exchange, { policy, rule, result }: RunningRule): boolean {
  if (grant === null || !policy.enforced || rule.action !== 'escalate') return false
  result.reason_code = 'escalation.granted'
  return true
}

/** Whether the condition holds; null when it depends on the answer or fails, which is decided at the end. */
function holdsSoFar({ condition, awaitsAnswer }: ActivePolicy, exchange: Exchange, gateway: Gateway): boolean | null {
  if (condition === null) return true
  if (awaitsAnswer) return null
  try {
    return condition(requestContext(exchange, gateway))
  } catch {
    // The stage at the end evaluates it again, records it and follows `when_broken`.
    return null
  }
}

function runningRule(
  policy: ActivePolicy,
  compiled: TextPolicy,
  stage: PolicyStage,
  tell: (error: unknown) => void,
): RunningRule {
  const { id, kind, enforced, whenBroken } = policy
  const result = {
    policy_id: id,
    kind,
    stage,
    mode: enforced ? ('enforce' as const) : ('monitor' as const),
    verdict: 'allow' as PolicyResult['verdict'],
    reason_code: 'ok' as PolicyResult['reason_code'],
    latency_ms: 0,
    targets: [],
  }
  const rule = ruleOf(policy, compiled, null)
  const broken = (error: unknown) => {
    tell(error)
    running.broken = true
    result.verdict = whenBroken === 'deny' ? 'deny' : 'allow'
    result.reason_code = brokenReason
    return whenBroken !== 'deny'
  }
  const running = { policy, result, rule: { ...rule, matcher: guardedMatcher(rule.matcher, broken) }, broken: false }
  return running
}
