/**
 * Runs the policies of one stage over a request or a whole answer (policies/README.md). For each policy in order: its
 * condition, then its decision. Redact and rewrite change the texts and members that the next policy sees; block,
 * deny and escalate end the chain. The decision of a policy in monitor mode is recorded and not applied. A policy
 * that throws follows its `when_broken` and records the error either way.
 *
 * The common path, where no policy calls outside this process, does not wait.
 */

import type { Verdict } from '../../events/event.ts'
import type { RequestFacts } from '../../languages/dialect.ts'
import type { PolicyStage } from '../../languages/families.ts'
import type { TextSlot } from '../../languages/reading/texts/text-slot.ts'
import type { ActivePolicy, PolicyResult } from '../chain.ts'
import type { PolicyContext } from '../conditions/context.ts'
import { holds } from '../conditions/long-searches.ts'
import type { Change, Decision, PolicyTools, Subject } from '../kinds/kind.ts'
import { type Placeholders, ruleOf } from '../redaction.ts'
import { endsChain, stronger } from '../verdict.ts'
import { findInTexts, mayMatchIn } from './find-in-texts.ts'

export const brokenReason = 'policy.broken'

/** What a stage works on. `texts` are read again after each change; a change of a slot shows in the body. */
export interface StageSubject {
  readonly stage: PolicyStage
  readonly context: PolicyContext
  readonly facts: RequestFacts
  readonly body: Record<string, unknown> | null
  readonly requestBody: Readonly<Record<string, unknown>> | null
  texts(): readonly TextSlot[]
  /** The subject cannot be changed any more: a policy that wants to change it is broken. */
  readonly frozen?: true
  /** Values to restore in the answer, if a policy asks for that; null if there is no answer for them. */
  readonly placeholders: Placeholders | null
}

export interface StageRun {
  readonly policies: readonly ActivePolicy[]
  readonly subject: StageSubject
  readonly tools: PolicyTools
  /** Milliseconds that only grow. */
  now(): number
  /** Called for a policy that threw. */
  broken(policy: ActivePolicy, error: unknown): void
}

/** One policy's result, with the message for the caller. */
export interface PolicyEvaluation {
  readonly policy: ActivePolicy
  readonly decision: Decision
  readonly latencyMs: number
}

export interface StageOutcome {
  /** In order, one for each policy whose condition held. */
  readonly evaluations: readonly PolicyEvaluation[]
  /** The strongest that was enforced. */
  readonly verdict: Verdict
  /** The policy with the strongest verdict; null for allow. */
  readonly decisive: PolicyEvaluation | null
  /** Outermost members that were changed. */
  readonly changed: ReadonlySet<string>
}

const emptyOutcome: StageOutcome = { evaluations: [], verdict: 'allow', decisive: null, changed: new Set() }

/**
 * Runs the stage; a promise only if a policy waits for something. Never throws because of a policy; rejects if the
 * stage was cancelled, because then the policies decided nothing.
 */
export function runStage(run: StageRun): StageOutcome | Promise<StageOutcome> {
  return run.policies.length === 0 ? emptyOutcome : new StageWalk(run).from(0)
}

const unchanged: ReadonlySet<string> = new Set()
const allowed: Decision = { verdict: 'allow', reasonCode: 'ok', targets: [] }

/** The walk through a stage's policies, and their view of the subject, which is computed on first use. */
class StageWalk implements Subject {
  readonly #run: StageRun
  readonly #evaluations: PolicyEvaluation[] = []
  #changed: Set<string> | null = null
  #verdict: Verdict = 'allow'
  #decisive: PolicyEvaluation | null = null
  #texts: readonly TextSlot[] | null = null

  constructor(run: StageRun) {
    this.#run = run
  }

  get stage(): PolicyStage {
    return this.#run.subject.stage
  }

  get context(): PolicyContext {
    return this.#run.subject.context
  }

  get facts(): RequestFacts {
    return this.#run.subject.facts
  }

  get body(): Subject['body'] {
    return this.#run.subject.body
  }

  get requestBody(): Subject['requestBody'] {
    return this.#run.subject.requestBody
  }

  get texts(): readonly TextSlot[] {
    this.#texts ??= this.#run.subject.texts()
    return this.#texts
  }

  from(first: number): StageOutcome | Promise<StageOutcome> {
    const { policies } = this.#run
    // Each policy's time begins where the last one's ended: reading the clock costs as much as many a policy.
    let since = this.#run.now()
    for (let index = first; index < policies.length; index += 1) {
      const policy = policies[index]
      if (policy === undefined) break
      let decision: Decision | null | undefined | Promise<Decision | null | undefined>
      try {
        decision = this.#askWhereItHolds(policy)
      } catch (error) {
        decision = this.#brokenDecision(policy, error)
      }
      if (decision === undefined) continue
      if (decision instanceof Promise) return this.#later(policy, decision, since, index)
      const now = this.#run.now()
      if (this.#take(policy, decision, now - since)) break
      since = now
    }
    const changed = this.#changed ?? unchanged
    return { evaluations: this.#evaluations, verdict: this.#verdict, decisive: this.#decisive, changed }
  }

  async #later(
    policy: ActivePolicy,
    pending: Promise<Decision | null | undefined>,
    since: number,
    index: number,
  ): Promise<StageOutcome> {
    const decision = await pending.catch((error: unknown) => {
      this.#run.tools.throwIfCut()
      return this.#brokenDecision(policy, error)
    })
    this.#run.tools.throwIfCut()
    if (decision === undefined) return this.from(index + 1)
    return this.from(this.#take(policy, decision, this.#run.now() - since) ? this.#run.policies.length : index + 1)
  }

  /** Undefined if the policy's condition does not hold. */
  #askWhereItHolds(policy: ActivePolicy): Decision | null | undefined | Promise<Decision | null | undefined> {
    if (policy.condition === null) return this.#ask(policy)
    const applies = holds(policy.condition, this.#run.subject.context, this.#run)
    if (applies instanceof Promise) return this.#askLater(policy, applies)
    return applies ? this.#ask(policy) : undefined
  }

  async #askLater(policy: ActivePolicy, applies: Promise<boolean>): Promise<Decision | null | undefined> {
    return (await applies) ? await this.#ask(policy) : undefined
  }

  #ask(policy: ActivePolicy): Decision | null | Promise<Decision | null> {
    const { compiled } = policy
    if (compiled instanceof Error) throw compiled
    if (compiled.form === 'whole') return compiled.consider(this, this.#run.tools)
    if (!mayMatchIn(compiled, this.texts)) return null
    return findInTexts(compiled, ruleOf(policy, compiled, this.#run.subject.placeholders), this.texts, this.#run)
  }

  #brokenDecision(policy: ActivePolicy, error: unknown): Decision {
    this.#run.broken(policy, error)
    const verdict = policy.whenBroken === 'deny' ? 'deny' : 'allow'
    return { verdict, reasonCode: brokenReason, message: 'A policy failed to evaluate this message', targets: [] }
  }

  /** Records a policy's result and applies it; true if that ends the chain. */
  #take(policy: ActivePolicy, given: Decision | null, milliseconds: number): boolean {
    const decision = this.#possible(policy, given ?? allowed)
    const said: PolicyEvaluation = { policy, decision, latencyMs: Math.round(milliseconds * 1000) / 1000 }
    this.#evaluations.push(said)
    if (!policy.enforced) return false
    if (decision.changes !== undefined) this.#apply(decision.changes)
    const strongest = stronger(this.#verdict, decision.verdict)
    if (strongest !== this.#verdict) {
      this.#verdict = strongest
      this.#decisive = said
    }
    return endsChain(decision.verdict)
  }

  #possible(policy: ActivePolicy, decision: Decision): Decision {
    const changes = decision.changes?.length ?? 0
    if (changes === 0 || this.#run.subject.frozen === undefined) return decision
    return this.#brokenDecision(policy, new Error('A streamed answer cannot be rewritten as a whole'))
  }

  #apply(changes: readonly Change[]): void {
    const { subject } = this.#run
    const { context } = subject
    this.#changed ??= new Set()
    for (const change of changes) {
      if ('slot' in change) {
        change.slot.replace(change.text)
        this.#changed.add(change.slot.member)
        continue
      }
      const { body } = subject
      if (body === null) continue
      if (change.value === undefined) delete body[change.member]
      else body[change.member] = change.value
      this.#changed.add(change.member)
    }
    this.#texts = null
    context.request.textsChanged()
    context.response?.textsChanged()
  }
}

/** One policy's result, as the outcome's event shows it. */
export const resultOf = (stage: PolicyStage, { policy, decision, latencyMs }: PolicyEvaluation): PolicyResult => ({
  policy_id: policy.id,
  kind: policy.kind,
  stage,
  mode: policy.enforced ? 'enforce' : 'monitor',
  verdict: decision.verdict,
  reason_code: decision.reasonCode,
  latency_ms: latencyMs,
  targets: decision.targets,
})
