/**
 * What the policies say of the answer (policies/README.md): post_request of what the provider sent, then pre_response
 * of what is about to go out. A whole answer is looked at here, a provider's refusal too; for a stream this makes the
 * inspection that the relay passes every frame through (`policed-stream.ts`). Where the answer is translated, both look
 * at what it became, but for what `upstream-inspection.ts` says.
 */

import { inspectSlots } from '../../inspection/slots.ts'
import type { Dialect } from '../../languages/dialect.ts'
import type { PolicyStage } from '../../languages/families.ts'
import { dropLogprobs } from '../../languages/reading/texts/logprobs.ts'
import { RequestEcho } from '../../languages/reading/texts/request-echo.ts'
import type { TextSlot } from '../../languages/reading/texts/text-slot.ts'
import type { ActivePolicy } from '../../policies/chain.ts'
import { type PolicyContext, type ResponseParts, ResponseView } from '../../policies/conditions/context.ts'
import { runStage, type Said, type StageOutcome, type StageSubject } from '../../policies/stages/run-stage.ts'
import { calledTools } from '../../policies/tool-names.ts'
import { useGrant, withGrant } from '../admission/review-grant.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, required } from '../exchange.ts'
import { failureOf } from './decisions.ts'
import type { BeginInspection } from './inspected-stream.ts'
import { isPoliced, type OutputStage, PolicedStream, stagesLeft } from './policed-stream.ts'
import { ExchangeStage, noteStage, requestContext } from './subject.ts'

/** Makes ready what a streamed answer goes through, under the chain that admits the request. */
export function prepareInspection(exchange: Exchange, gateway: Gateway): void {
  if (required(exchange.facts).stream && isPoliced(exchange)) exchange.beginInspection = inspectionOf(exchange, gateway)
}

const inspectionOf =
  (exchange: Exchange, gateway: Gateway): BeginInspection =>
  (reader) =>
    isPoliced(exchange) ? new PolicedStream(exchange, gateway, reader, stagesLeft(exchange)) : null

/** Whether a whole answer must be looked at before it may go out. */
export const isAnswerEvaluated = (exchange: Exchange): boolean => isPoliced(exchange)

/** A whole answer as it goes through the stages. */
interface WholeAnswer {
  readonly status: number
  readonly body: Record<string, unknown>
}

/** The language of an answer, and the stages that look at it in that. */
interface AnswerForm {
  readonly dialect: Dialect
  readonly stages: readonly OutputStage[]
}

type Considered = Record<string, unknown> | null

/**
 * Looks at a whole answer and gives what goes out in its place: the body, changed, or null where it goes as it came. A
 * promise only where a policy or a grant is waited for. Throws what a policy decided.
 */
export function evaluateAnswer(
  exchange: Exchange,
  gateway: Gateway,
  answer: WholeAnswer,
  { dialect, stages }: AnswerForm = { dialect: exchange.dialect, stages: stagesLeft(exchange) },
): Considered | Promise<Considered> {
  const { request, token, model, now } = requestContext(exchange, gateway)
  const response = new ResponseView(new AnswerParts(dialect, answer, new RequestEcho(exchange.parsed)))
  return new AnswerWalk(exchange, gateway, { request, response, token, model, now }, answer.body, stages).from(0)
}

class AnswerParts implements ResponseParts {
  readonly status: number
  readonly #dialect: Dialect
  readonly #body: WholeAnswer['body']
  readonly #asked: RequestEcho

  constructor(dialect: Dialect, { status, body }: WholeAnswer, asked: RequestEcho) {
    this.status = status
    this.#dialect = dialect
    this.#asked = asked
    this.#body = body
  }

  texts(): readonly TextSlot[] {
    return this.#dialect.answerText(this.#body, this.#asked)
  }

  toolCalls(): readonly string[] {
    return calledTools(this.#body)
  }
}

/** Whether a policy stops an answer for its text, or changes that: nothing may leave that spells text unread. */
const mayChangeText = ({ policy: { enforced, compiled } }: Said): boolean =>
  enforced && !(compiled instanceof Error) && compiled.form === 'text'

/** The way of a whole answer through its stages, which most often waits for nobody. */
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

  /** Goes through the stages from the one of this index on. */
  from(first: number): Considered | Promise<Considered> {
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

  /** Goes on with a stage whose outcome is waited for, or may have a reviewer's leave. */
  async #later(
    stage: OutputStage,
    policies: readonly ActivePolicy[],
    pending: StageOutcome | Promise<StageOutcome>,
  ): Promise<Considered> {
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

  /** What asked for a person and has leave: the reviewer saw the request, and may have its answer. */
  async #grantedOf({ verdict, decisive }: StageOutcome): Promise<Said | null> {
    if (this.#exchange.cut !== null) throw this.#exchange.cut.failure
    if (verdict !== 'escalate' || decisive === null) return null
    return (await useGrant(this.#exchange, this.#gateway)) ? decisive : null
  }

  /** Throws why the answer does not go out. */
  #take(stage: PolicyStage, outcome: StageOutcome, granted: Said | null): void {
    this.#changed ||= outcome.changed.size > 0
    if (outcome.said.some(mayChangeText) && dropLogprobs(this.#body)) this.#changed = true
    noteStage(this.#exchange, stage, granted === null ? outcome : withGrant(outcome, granted))
    if (granted !== null || outcome.decisive === null) return
    const failure = failureOf(this.#exchange, this.#gateway, outcome.decisive)
    if (failure !== null) throw failure
  }

  /** The body where it was changed, with what was taken out of the request put back. */
  #restored(): Considered {
    const placeholders = this.#stages.includes('pre_response') ? this.#exchange.placeholders : null
    if (placeholders !== null && placeholders.size > 0) {
      const { changed } = inspectSlots(this.#context.response.slots(), [placeholders.restoring()])
      if (changed.size > 0) this.#changed = true
    }
    return this.#changed ? this.#body : null
  }
}
