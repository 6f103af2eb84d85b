/** What policies are shown of an exchange, and what they may use of the world. */
import type { PolicyStage } from '../dialects/dialect.ts'
import type { ActivePolicy } from '../policies/chain.ts'
import { isObject, ModelView, type PolicyContext, RequestView, TokenView } from '../policies/context.ts'
import type { PolicyTools } from '../policies/kinds/kind.ts'
import { resolveHost } from '../policies/resolve-host.ts'
import { resultsOf, type StageOutcome, type StageRun, type StageSubject } from '../policies/run-stage.ts'
import { stronger } from '../policies/verdict.ts'
import { type Exchange, type Gateway, given } from './exchange.ts'

/** What conditions read of the request; made once, when the first stage has a policy. */
export function requestContext(exchange: Exchange, { clock }: Gateway): PolicyContext {
  if (exchange.policyContext !== null) return exchange.policyContext
  const { dialect, parsed, request, sessionId } = exchange
  const facts = given(exchange.facts)
  const token = given(exchange.token)
  const { model, mcp } = exchange
  exchange.policyContext = {
    request: new RequestView({
      family: dialect.family,
      model: facts.model,
      stream: facts.stream,
      sessionId: sessionId ?? facts.sessionId,
      texts: () => (parsed === null ? [] : dialect.requestText(parsed)),
      body: parsed,
      headers: request.headers,
    }),
    response: null,
    token: new TokenView({ ...token, metadata: token.metadataTrust === 'caller' ? textsOf(parsed?.metadata) : {} }),
    model: new ModelView(model?.id ?? facts.model, model?.provider.name ?? mcp?.server?.name ?? ''),
    now: new Date(clock.now()),
  }
  return exchange.policyContext
}

const textsOf = (metadata: unknown): Record<string, string> =>
  isObject(metadata)
    ? Object.fromEntries(
        Object.entries(metadata).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
      )
    : {}

export const policyTools = (exchange: Exchange, { fetch, settings }: Gateway): PolicyTools => ({
  fetch,
  resolve: resolveHost,
  privateWebhooks: settings.webhook_addresses === 'any',
  signal: exchange.abort.signal,
})

/** A stage of this exchange, to be run. */
export const stageRun = (
  exchange: Exchange,
  gateway: Gateway,
  policies: readonly ActivePolicy[],
  subject: StageSubject,
): StageRun => ({
  policies,
  subject,
  tools: policyTools(exchange, gateway),
  now: () => gateway.clock.monotonic(),
  broken(policy, error) {
    const { id, requestId } = exchange
    const line = { request_id: requestId, exchange_id: id, policy_id: policy.id, error: String(error) }
    gateway.log.error(line, 'A policy could not decide')
  },
})

/** Takes what a stage came to into the exchange. */
export function noteStage(exchange: Exchange, stage: PolicyStage, outcome: StageOutcome): void {
  exchange.policyResults.push(...resultsOf(stage, outcome.said))
  exchange.verdict = stronger(exchange.verdict, outcome.verdict)
}
