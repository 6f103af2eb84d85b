/**
 * A streamed answer under policies (inspection/README.md).
 *
 * - Text policies run while it streams, in the order of the chain, post_request before pre_response: `StreamInspector`
 *   holds back only what may still become a match. What was redacted in the request is put back last.
 * - Policies that need the whole (conditions on the answer's text, schemas, webhooks, tool access) see it at its end.
 *   Where one of them may stop it, everything is held until then, so that what it stops was never sent; what is longer
 *   than `stream_hold_bytes` is more than it can decide about, and its `when_broken` decides.
 * - Where policies only watch, every byte goes out as it came, and when it came.
 *
 * What policies found is on the exchange as soon as it is found, so that a caller that leaves early leaves it on record.
 * A stream keeps the chain it was admitted under.
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
import { mostTargets } from '../../policies/stages/find-in-texts.ts'
import { brokenReason, resultOf, runStage, type Said, type StageSubject } from '../../policies/stages/run-stage.ts'
import { stronger } from '../../policies/verdict.ts'
import { useGrant, withGrant } from '../admission/review-grant.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { CollectedAnswer } from './collected-answer.ts'
import { failureOf } from './decisions.ts'
import type { Inspected, StreamInspection } from './inspected-stream.ts'
import { ExchangeStage, logBroken, noteStage, requestContext } from './subject.ts'

export type OutputStage = (typeof outputStages)[number]

/** The stages that are left of an answer on its way out: both, but where the first looked before it was translated. */
export const stagesLeft = ({ inspectedUpstream }: Exchange): readonly OutputStage[] =>
  inspectedUpstream ? ['pre_response'] : outputStages

/** Whether anything looks at the answer on its way out. */
export function isPoliced(exchange: Exchange): boolean {
  const { chain, placeholders } = exchange
  if (placeholders !== null && placeholders.size > 0) return true
  if (chain === null || chain.size === 0) return false
  return chain.at('pre_response').length > 0 || (!exchange.inspectedUpstream && chain.at('post_request').length > 0)
}

/** A text policy's rule with its result, which grows as it finds. */
interface RunningRule {
  readonly rule: InspectionRule
  readonly policy: ActivePolicy
  readonly result: PolicyResult & { targets: string[] }
  /** It failed, and its `when_broken` decided. */
  broken: boolean
}

export class PolicedStream implements StreamInspection {
  readonly #exchange: Exchange
  readonly #gateway: Gateway
  readonly #inspector: StreamInspector<SseFrame>
  readonly #rules: readonly RunningRule[]
  /** Policies that see the answer at its end, by stage. */
  readonly #whole: Readonly<Record<OutputStage, readonly ActivePolicy[]>>
  readonly #answer = new CollectedAnswer()
  /** Held until the whole has been seen; null where nothing is. */
  #held: Uint8Array[] | null
  #heldBytes = 0

  /** `stages`: those that look here, one or both; what was taken out of the request is put back in the last. */
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

  /** Takes over what the rules found since; of an answer full of findings none is kept. */
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
      if (result.targets.length < mostTargets && !result.targets.includes(target)) result.targets.push(target)
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

  #failure(said: Said): Failure {
    this.#exchange.verdict = stronger(this.#exchange.verdict, said.decision.verdict)
    return failureOf(this.#exchange, this.#gateway, said) ?? new Failure('internal')
  }

  /** Asks the policies that need the whole, then lets out what was held, or stops. */
  async #concludeWhole(last: Uint8Array | null): Promise<Inspected> {
    const exchange = this.#exchange
    for (const stage of outputStages) {
      const policies = this.#whole[stage]
      if (policies.length === 0) continue
      const slots = this.#answer.slots(stage === 'post_request' ? 'came' : 'sent')
      const texts = () => slots
      const response = new ResponseView({ status: 200, texts, toolCalls: () => this.#answer.tools() })
      const context: PolicyContext = { ...requestContext(exchange, this.#gateway), response }
      const facts = required(exchange.facts)
      const subject = { stage, context, facts, body: null, requestBody: exchange.parsed, texts, placeholders: null }
      const failure = await this.#askWhole(stage, policies, { ...subject, frozen: true })
      if (failure !== null) return { bytes: null, stop: failure }
    }
    const held = this.#held ?? []
    this.#held = null
    this.#forgetWhole()
    const bytes = last === null ? held : [...held, last]
    return { bytes: bytes.length === 0 ? null : Buffer.concat(bytes), stop: null }
  }

  /** Runs one stage's policies; those behind one that only asked for a person too, where there is leave. */
  async #askWhole(
    stage: PolicyStage,
    policies: readonly ActivePolicy[],
    subject: StageSubject,
  ): Promise<Failure | null> {
    const [exchange, gateway] = [this.#exchange, this.#gateway]
    const outcome = await runStage(new ExchangeStage(exchange, gateway, policies, subject))
    // A policy that was let go of with its exchange decided nothing.
    if (exchange.cut !== null) return exchange.cut.failure
    const { decisive } = outcome
    const granted = outcome.verdict === 'escalate' && decisive !== null && (await useGrant(exchange, gateway))
    noteStage(exchange, stage, granted ? withGrant(outcome, decisive) : outcome)
    if (granted) return this.#askWhole(stage, policies.slice(policies.indexOf(decisive.policy) + 1), subject)
    return decisive === null ? null : failureOf(exchange, gateway, decisive)
  }

  /** The answer is longer than is kept, or has no one meaning: each policy that needs the whole is broken, and says so. */
  #undecided(last: Uint8Array | null): Inspected {
    let refused: Said | null = null
    for (const stage of outputStages) {
      for (const policy of this.#whole[stage]) {
        const verdict = policy.whenBroken === 'deny' ? 'deny' : 'allow'
        const said: Said = { policy, decision: { verdict, reasonCode: brokenReason, targets: [] }, latencyMs: 0 }
        noteOne(this.#exchange, stage, said)
        if (policy.enforced && verdict === 'deny') refused ??= said
      }
    }
    if (refused !== null) return { bytes: null, stop: this.#failure(refused) }
    const held = this.#held ?? (last === null ? [] : [last])
    this.#held = null
    this.#forgetWhole()
    return { bytes: Buffer.concat(held), stop: null }
  }

  #forgetWhole(): void {
    Object.assign(this.#whole, { post_request: [], pre_response: [] })
    this.#answer.clear()
  }
}

/**
 * Which policies run while the answer streams and which at its end, and whether one of those may stop it. Those whose
 * condition does not hold are neither.
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

/** Records what one policy said that ends nothing. */
const noteOne = ({ policyResults }: Exchange, stage: PolicyStage, said: Said): void => {
  policyResults.push(resultOf(stage, said))
}

/** With a reviewer's leave a policy that would only ask for a person is not asked. */
function isGranted({ grant }: Exchange, { policy, rule, result }: RunningRule): boolean {
  if (grant === null || !policy.enforced || rule.action !== 'escalate') return false
  result.reason_code = 'escalation.granted'
  return true
}

/** Whether its condition holds; null where the answer decides that, or where it fails, which is said at the end. */
function holdsSoFar({ condition, awaitsAnswer }: ActivePolicy, exchange: Exchange, gateway: Gateway): boolean | null {
  if (condition === null) return true
  if (awaitsAnswer) return null
  try {
    return condition(requestContext(exchange, gateway))
  } catch {
    // The stage at the end comes to the same, records it and follows `when_broken`.
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
