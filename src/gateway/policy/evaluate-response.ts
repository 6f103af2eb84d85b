/**
 * Evaluates the policies on the answer (policies/README.md): post_request on what the provider sent, then pre_response
 * on what is about to go out. It inspects whole answers and provider errors. For a stream it prepares the inspection of
 * every frame (`policy-stream.ts`). Of a translated answer both stages see the translation, except as
 * `upstream-inspection.ts` says.
 */

import { inspectSlots } from '../../inspection/slots.ts'
import type { Dialect } from '../../languages/dialect.ts'
import type { PolicyStage } from '../../languages/families.ts'
import { dropLogprobs } from '../../languages/reading/texts/logprobs.ts'
import { RequestEcho } from '../../languages/reading/texts/request-echo.ts'
import type { TextSlot } from '../../languages/reading/texts/text-slot.ts'
import type { ActivePolicy } from '../../policies/chain.ts'
import { type PolicyContext, type ResponseParts, ResponseView } from '../../policies/conditions/context.ts'
import {
  type PolicyEvaluation,
  runStage,
  type StageOutcome,
  type StageSubject,
} from '../../policies/stages/run-stage.ts'
import { calledTools } from '../../policies/tool-names.ts'
import { reserveGrant, withGrant } from '../admission/review-grant.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { failureOf } from './decisions.ts'
import type { BeginInspection } from './inspected-stream.ts'
import { isInspected, type OutputStage, PolicyStream, remainingStages } from './policy-stream.ts'
import { addStageOutcome, calledByCallerNames, ExchangeStage, requestContext } from './subject.ts'

/** Prepares the inspection of a streamed answer under the chain that admitted the request. */
export function prepareInspection(exchange: Exchange, gateway: Gateway): void {
  if (required(exchange.facts).stream && isInspected(exchange))
    exchange.beginInspection = inspectionOf(exchange, gateway)
}

const inspectionOf =
  (exchange: Exchange, gateway: Gateway): BeginInspection =>
  (reader) =>
    isInspected(exchange) ? new PolicyStream(exchange, gateway, reader, remainingStages(exchange)) : null

/** Whether a whole answer must be inspected before it goes out. */
export const isAnswerEvaluated = (exchange: Exchange): boolean => isInspected(exchange)

/** A whole answer on its way through the stages. */
interface WholeAnswer {
  readonly status: number
  readonly body: Record<string, unknown>
}

/** The dialect of an answer and the stages that inspect it in that dialect. */
interface AnswerForm {
  readonly dialect: Dialect
  readonly stages: readonly OutputStage[]
}

type ChangedBody = Record<string, unknown> | null

/**
 * Inspects a whole answer and returns the changed body, or null when it is unchanged. Returns a promise only when a
 * policy or grant is awaited. Throws what a policy decided.
 */
export function evaluateAnswer(
  exchange: Exchange,
  gateway: Gateway,
  answer: WholeAnswer,
  { dialect, stages }: AnswerForm = { dialect: exchange.dialect, stages: remainingStages(exchange) },
): ChangedBody | Promise<ChangedBody> {
  const { request, token, model, now } = requestContext(exchange, gateway)
  const response = new ResponseView(new AnswerParts(dialect, answer, exchange))
  return new AnswerWalk(exchange, gateway, { request, response, token, model, now }, answer.body, stages).from(0)
}

class AnswerParts implements ResponseParts {
  readonly status: number
  readonly #dialect: Dialect
  readonly #body: WholeAnswer['body']
  readonly #exchange: Exchange
  readonly #asked: RequestEcho

  constructor(dialect: Dialect, { status, body }: WholeAnswer, exchange: Exchange) {
    this.status = status
    this.#dialect = dialect
    this.#exchange = exchange
    this.#asked = new RequestEcho(exchange.parsed)
    this.#body = body
  }

  texts(): readonly TextSlot[] {
    return this.#dialect.answerText(this.#body, this.#asked)
  }

  toolCalls(): readonly string[] {
    return calledByCallerNames(this.#exchange, calledTools(this.#body))
  }
}

/** Whether a policy may change or stop the text of an answer. Then no text may leave uninspected. */
const mayChangeText = ({ policy: { enforced, compiled } }: PolicyEvaluation): boolean =>
  enforced && !(compiled instanceof Error) && compiled.form === 'text'

/** Runs a whole answer through its stages; usually without waiting. */
class AnswerWalk {
  readonly #exchange: Exchange
  readonly #gateway: Gateway
  readonly #context: PolicyContext & { readonly response: ResponseView }
  readonly #body: WholeAnswer['body']
  readonly #stages: readonly OutputStage[]
  #changed = false

  constructor(
    exchange: Exchange,
    gateway: Gateway,
    context: PolicyContext & { readonly response: ResponseView },
    body: WholeAnswer['body'],
    stages: readonly OutputStage[],
  ) {
    this.#exchange = exchange
    this.#gateway = gateway
    this.#context = context
    this.#body = body
    this.#stages = stages
  }

  /** Runs the stages from this index on. */
  from(first: number): ChangedBody | Promise<ChangedBody> {
    const chain = required(this.#exchange.chain)
    for (const stage of this.#stages.slice(first)) {
      const policies = chain.at(stage)
      if (policies.length === 0) continue
      const outcome = this.#run(stage, policies)
      if (outcome instanceof Promise || outcome.verdict === 'escalate') return this.#later(stage, policies, outcome)
      if (this.#exchange.cut !== null) throw this.#exchange.cut.failure
      this.#take(stage, outcome, null)
    }
    return this.#restored()
  }

  /** Continues after a stage that is awaited or whose escalation may have a grant. */
  async #later(
    stage: OutputStage,
    policies: readonly ActivePolicy[],
    pending: StageOutcome | Promise<StageOutcome>,
  ): Promise<ChangedBody> {
    let rest = policies
    let outcome = await pending
    for (;;) {
      const granted = await this.#grantedOf(outcome)
      this.#take(stage, outcome, granted)
      rest = granted === null ? [] : rest.slice(rest.indexOf(granted.policy) + 1)
      if (rest.length === 0) return await this.from(this.#stages.indexOf(stage) + 1)
      outcome = await this.#run(stage, rest)
    }
  }

  #run(stage: PolicyStage, policies: readonly ActivePolicy[]): StageOutcome | Promise<StageOutcome> {
    const context = this.#context
    const facts = required(this.#exchange.facts)
    const requestBody = this.#exchange.parsed
    const texts = () => context.response.slots()
    const subject: StageSubject = { stage, context, facts, body: this.#body, requestBody, texts, placeholders: null }
    return runStage(new ExchangeStage(this.#exchange, this.#gateway, policies, subject))
  }

  /** A granted escalation: the reviewer saw the request, so its answer may pass. */
  async #grantedOf({ verdict, decisive }: StageOutcome): Promise<PolicyEvaluation | null> {
    if (this.#exchange.cut !== null) throw this.#exchange.cut.failure
    if (verdict !== 'escalate' || decisive === null) return null
    return (await reserveGrant(this.#exchange, this.#gateway)) ? decisive : null
  }

  /** Throws the reason why the answer does not go out. */
  #take(stage: PolicyStage, outcome: StageOutcome, granted: PolicyEvaluation | null): void {
    this.#changed ||= outcome.changed.size > 0
    if (outcome.evaluations.some(mayChangeText) && dropLogprobs(this.#body)) this.#changed = true
    addStageOutcome(this.#exchange, stage, granted === null ? outcome : withGrant(outcome, granted))
    if (granted !== null || outcome.decisive === null) return
    const failure = failureOf(this.#exchange, this.#gateway, outcome.decisive, this.#context.response)
    if (failure !== null) throw failure
  }

  /** The changed body with redacted request text restored. */
  #restored(): ChangedBody {
    const placeholders = this.#stages.includes('pre_response') ? this.#exchange.placeholders : null
    if (placeholders !== null && placeholders.size > 0) {
      const { changed } = inspectSlots(this.#context.response.slots(), [placeholders.restoring()])
      if (changed.size > 0) this.#changed = true
    }
    return this.#changed ? this.#body : null
  }
}
