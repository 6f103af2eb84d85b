/** What policies can read of an exchange, and the tools they may use. */
import type { PolicyStage } from '../../languages/families.ts'
import { callerNames } from '../../languages/responses/translation/tools.ts'
import type { ActivePolicy } from '../../policies/chain.ts'
import { isObject, ModelView, type PolicyContext, RequestView, TokenView } from '../../policies/conditions/context.ts'
import type { PolicyTools } from '../../policies/kinds/kind.ts'
import { resolveHost } from '../../policies/resolve-host.ts'
import { resultOf, type StageOutcome, type StageRun, type StageSubject } from '../../policies/stages/run-stage.ts'
import { stronger } from '../../policies/verdict.ts'
import type { GovernedToken } from '../../tokens/governed-token.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, requestedModel, required } from '../exchange.ts'

/** The request as conditions read it; made once, for the first stage with a policy. */
export function requestContext(exchange: Exchange, { clock }: Gateway): PolicyContext {
  if (exchange.policyContext !== null) return exchange.policyContext
  const { dialect, parsed, request, sessionId } = exchange
  const facts = required(exchange.facts)
  const token = required(exchange.token)
  const { model, mcp } = exchange
  exchange.policyContext = {
    request: new RequestView({
      family: dialect.family,
      model: requestedModel(exchange) ?? '',
      stream: facts.stream,
      sessionId: sessionId ?? facts.sessionId,
      texts: () => (parsed === null ? [] : dialect.requestText(parsed)),
      body: parsed,
      headers: request.headers,
    }),
    response: null,
    token: tokenView(token, parsed),
    model: new ModelView(model?.id ?? facts.model, model?.provider.name ?? mcp?.server?.name ?? '', model?.aliases),
    now: new Date(clock.now()),
  }
  return exchange.policyContext
}

/**
 * The tools that an answer calls, by the names that policies know. Where a provider of another language is asked, a
 * function stands for a tool of the caller (languages/responses/translation/tools.ts).
 */
export const calledByCallerNames = ({ dialect, parsed }: Exchange, names: readonly string[]): readonly string[] =>
  dialect.family === 'responses' && parsed !== null ? callerNames(parsed, names) : names

/** Views of tokens without caller-specific data. A changed token is a new object. */
const tokenViews = new WeakMap<GovernedToken, TokenView>()

function tokenView(token: GovernedToken, parsed: Exchange['parsed']): TokenView {
  if (token.metadataTrust === 'caller') return viewOf(token, textsOf(parsed?.metadata))
  let view = tokenViews.get(token)
  if (view === undefined) {
    view = viewOf(token, {})
    tokenViews.set(token, view)
  }
  return view
}

/** The team is the one in the token's events, so that a condition holds for the same requests here and in a replay. */
const viewOf = (token: GovernedToken, metadata: Readonly<Record<string, string>>): TokenView =>
  new TokenView({ ...token, teamId: token.teamId ?? token.eventTeamId, metadata })

const textsOf = (metadata: unknown): Record<string, string> =>
  isObject(metadata)
    ? Object.fromEntries(
        Object.entries(metadata).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
      )
    : {}

/** A stage of an exchange to run, with the tools for its policies. */
export class ExchangeStage implements StageRun, PolicyTools {
  readonly policies: readonly ActivePolicy[]
  readonly subject: StageSubject
  readonly #exchange: Exchange
  readonly #gateway: Gateway

  constructor(exchange: Exchange, gateway: Gateway, policies: readonly ActivePolicy[], subject: StageSubject) {
    this.policies = policies
    this.subject = subject
    this.#exchange = exchange
    this.#gateway = gateway
  }

  get tools(): PolicyTools {
    return this
  }

  get fetch(): PolicyTools['fetch'] {
    return this.#gateway.fetch
  }

  get resolve(): PolicyTools['resolve'] {
    return resolveHost
  }

  get privateWebhooks(): boolean {
    return this.#gateway.settings.webhook_addresses === 'any'
  }

  get signal(): AbortSignal {
    return this.#exchange.call.abort.signal
  }

  throwIfCut(): void {
    if (this.#exchange.cut !== null) throw this.#exchange.cut.failure
  }

  now(): number {
    return this.#gateway.clock.monotonic()
  }

  broken(policy: ActivePolicy, error: unknown): void {
    logBroken(this.#exchange, this.#gateway, policy, error)
  }
}

/** Logs that a policy threw. Failures of a cut exchange are not logged, because its policies were cancelled. */
export function logBroken(exchange: Exchange, { log }: Gateway, policy: ActivePolicy, error: unknown): void {
  if (exchange.cut !== null) return
  const { id, requestId } = exchange
  const line = { request_id: requestId, exchange_id: id, policy_id: policy.id, error: String(error) }
  log.error(line, 'A policy could not decide')
}

/** Adds the outcome of a stage to the exchange. */
export function addStageOutcome(exchange: Exchange, stage: PolicyStage, outcome: StageOutcome): void {
  for (const said of outcome.evaluations) exchange.policyResults.push(resultOf(stage, said))
  exchange.verdict = stronger(exchange.verdict, outcome.verdict)
}
