/**
 * What the policies say of the answer (contract section 7): post_request of what the provider sent, then pre_response of
 * what is about to go out. A whole answer is looked at here, a provider's refusal too; for a stream this makes the
 * inspection that the relay passes every frame through (`policed-stream.ts`).
 */

import { inspectSlots } from '../inspection/slots.ts'
import { type PolicyContext, ResponseView } from '../policies/context.ts'
import { outputStages } from '../policies/kinds/kind.ts'
import { runStage, type StageSubject } from '../policies/run-stage.ts'
import { calledTools } from '../policies/trial.ts'
import { failureOf } from './decisions.ts'
import { type Exchange, type Gateway, given } from './exchange.ts'
import type { BeginInspection } from './inspected-stream.ts'
import { isPoliced, PolicedStream } from './policed-stream.ts'
import { ExchangeStage, noteStage, requestContext } from './policy-subject.ts'
import { useGrant, withGrant } from './use-grant.ts'

/** Makes ready what a streamed answer goes through, under the chain that admits the request. */
export function prepareInspection(exchange: Exchange, gateway: Gateway): void {
  if (given(exchange.facts).stream && isPoliced(exchange)) exchange.beginInspection = inspectionOf(exchange, gateway)
}

const inspectionOf =
  (exchange: Exchange, gateway: Gateway): BeginInspection =>
  (reader) =>
    new PolicedStream(exchange, gateway, reader)

/** Whether a whole answer must be looked at before it may go out. */
export const isAnswerConsidered = (exchange: Exchange): boolean => isPoliced(exchange)

/**
 * Looks at a whole answer and gives what goes out in its place: the body, changed, or null where it goes as it came.
 * Throws what a policy decided.
 */
export async function considerAnswer(
  exchange: Exchange,
  gateway: Gateway,
  { status, body }: { status: number; body: Record<string, unknown> },
): Promise<Record<string, unknown> | null> {
  const { dialect } = exchange
  const chain = given(exchange.chain)
  let changed = false
  const toolCalls = () => calledTools(body)
  const response = new ResponseView({ status, texts: () => dialect.answerText(body), toolCalls })
  const texts = () => response.slots()
  const { request, token, model, now } = requestContext(exchange, gateway)
  const context: PolicyContext = { request, response, token, model, now }
  const facts = given(exchange.facts)
  const requestBody = exchange.parsed
  for (const stage of outputStages) {
    let policies = chain.at(stage)
    while (policies.length > 0) {
      const subject: StageSubject = { stage, context, facts, body, requestBody, texts, placeholders: null }
      const run = runStage(new ExchangeStage(exchange, gateway, policies, subject))
      const outcome = run instanceof Promise ? await run : run
      if (exchange.cut !== null) throw exchange.cut.failure
      changed ||= outcome.changed.size > 0
      const { decisive } = outcome
      // The reviewer saw the request: the leave to send it is the leave to have its answer.
      const granted = outcome.verdict === 'escalate' && decisive !== null && (await useGrant(exchange, gateway))
      noteStage(exchange, stage, granted ? withGrant(outcome, decisive) : outcome)
      const failure = granted || decisive === null ? null : failureOf(exchange, gateway, decisive)
      if (failure !== null) throw failure
      policies = granted ? policies.slice(policies.indexOf(decisive.policy) + 1) : []
    }
  }
  if (exchange.placeholders !== null && exchange.placeholders.size > 0) {
    changed = inspectSlots(texts(), [exchange.placeholders.restoring()]).changed.size > 0 || changed
  }
  return changed ? body : null
}
