/**
 * Evaluates the policies on the request before anything is reserved or sent (policies/README.md).
 *
 * 1. The policies of the stage run in order. Redact and rewrite change only the members they touch.
 * 2. A verdict that ends the request is thrown. For an escalation the grants are checked first: a reviewer's grant lets
 *    the same token send the same request once, past every policy that would only escalate.
 * 3. Fallbacks that a policy forbids are removed from the paths.
 * 4. When policies inspect the answer, the inspection of a stream is prepared.
 */
import { Failure } from '../../failure.ts'
import { memberCount } from '../../lib/json/json-members.ts'
import type { ActivePolicy } from '../../policies/chain.ts'
import type { PolicyContext } from '../../policies/conditions/context.ts'
import { ModelView } from '../../policies/conditions/context.ts'
import { Placeholders } from '../../policies/redaction.ts'
import { runStage, type StageOutcome, type StageSubject } from '../../policies/stages/run-stage.ts'
import { reserveGrant, withGrant } from '../admission/review-grant.ts'
import type { Gateway } from '../context.ts'
import { type Exchange, type ResolvedModel, required } from '../exchange.ts'
import { memberJson } from '../request/member-json.ts'
import { failureOf } from './decisions.ts'
import { prepareInspection } from './evaluate-response.ts'
import { addStageOutcome, ExchangeStage, requestContext } from './subject.ts'

export function evaluateRequest(exchange: Exchange, gateway: Gateway): Promise<void> | void {
  const chain = required(exchange.chain)
  if (chain.size === 0 && exchange.paths.length === 1) return
  const policies = chain.at('pre_request')
  if (policies.length === 0) return proceed(exchange, gateway)
  refuseRepeated(exchange)
  refuseTokens(exchange, gateway, policies)
  const outcome = runStage(new ExchangeStage(exchange, gateway, policies, subjectOf(exchange, gateway)))
  return outcome instanceof Promise ? concludeLater(exchange, gateway, outcome) : conclude(exchange, gateway, outcome)
}

const concludeLater = async (exchange: Exchange, gateway: Gateway, outcome: Promise<StageOutcome>): Promise<void> =>
  await conclude(exchange, gateway, await outcome)

/** Parsers differ in how they read a duplicate member, and policies must read what is sent. */
function refuseRepeated({ members, parsed }: Exchange): void {
  if (members === null || 'parts' in members || members.count === memberCount(parsed)) return
  throw new Failure('invalid_json', { message: 'An object within the request body names one of its members twice' })
}

/**
 * Refuses tokenized input when an enforced policy reads text, because no policy can read tokens. `when_broken` does not
 * apply, because the caller chose this form.
 */
function refuseTokens(exchange: Exchange, gateway: Gateway, policies: readonly ActivePolicy[]): void {
  const { dialect, parsed } = exchange
  const param = parsed === null ? null : (dialect.tokenInput?.(parsed) ?? null)
  if (param === null || !someReadText(policies, requestContext(exchange, gateway))) return
  const message = 'A policy must read this input, which is tokenized or sound: send it as text'
  throw new Failure('invalid_parameter', { param, message })
}

/** Whether an enforced policy of these reads text. */
export const someReadText = (policies: readonly ActivePolicy[], context: PolicyContext): boolean =>
  policies.some((policy) => readsText(policy, context))

function readsText({ enforced, compiled, kind, condition, when }: ActivePolicy, context: PolicyContext): boolean {
  if (!enforced || compiled instanceof Error) return false
  if (when !== null && /\b(?:text|messages)\b/.test(when)) return true
  return (compiled.form === 'text' || kind === 'webhook') && (condition === null || holdsFor(condition, context))
}

function subjectOf(exchange: Exchange, gateway: Gateway): StageSubject {
  const { parsed } = exchange
  const context = requestContext(exchange, gateway)
  exchange.placeholders ??= new Placeholders(parsed)
  return {
    stage: 'pre_request',
    context,
    facts: required(exchange.facts),
    body: parsed,
    requestBody: parsed,
    texts: () => context.request.slots(),
    placeholders: exchange.placeholders,
  }
}

function conclude(exchange: Exchange, gateway: Gateway, outcome: StageOutcome): Promise<void> | void {
  if (exchange.cut !== null) throw exchange.cut.failure
  if (outcome.verdict === 'escalate') return escalate(exchange, gateway, outcome)
  addStageOutcome(exchange, 'pre_request', outcome)
  const failure = outcome.decisive === null ? null : failureOf(exchange, gateway, outcome.decisive)
  if (failure !== null) throw failure
  applyChanges(exchange, outcome.changed)
  return proceed(exchange, gateway)
}

/** Stops the chain at the policy that escalates; with a grant the chain continues after it. */
async function escalate(exchange: Exchange, gateway: Gateway, outcome: StageOutcome): Promise<void> {
  const { decisive } = outcome
  if (decisive === null || !(await reserveGrant(exchange, gateway))) {
    addStageOutcome(exchange, 'pre_request', outcome)
    throw decisive === null ? new Failure('internal') : failureOf(exchange, gateway, decisive)
  }
  const granted = withGrant(outcome, decisive)
  addStageOutcome(exchange, 'pre_request', granted)
  applyChanges(exchange, granted.changed)
  const policies = required(exchange.chain).at('pre_request')
  const rest = policies.slice(policies.indexOf(decisive.policy) + 1)
  return await conclude(
    exchange,
    gateway,
    await runStage(new ExchangeStage(exchange, gateway, rest, subjectOf(exchange, gateway))),
  )
}

/**
 * Marks the changed members to be rewritten when the body is sent, and reads the fields that the gateway uses again.
 */
function applyChanges(exchange: Exchange, changed: ReadonlySet<string>): void {
  const { parsed, edits, dialect } = exchange
  if (parsed === null || changed.size === 0) return
  exchange.rewritten = true
  for (const member of changed) {
    const value = parsed[member]
    edits.set(member, value === undefined ? null : memberJson(exchange, member, value))
  }
  const { sessionId } = required(exchange.facts)
  exchange.facts = { ...dialect.read(parsed), sessionId }
}

function proceed(exchange: Exchange, gateway: Gateway): Promise<void> | void {
  if (exchange.paths.length > 1) exchange.paths = servingPaths(exchange, gateway)
  prepareInspection(exchange, gateway)
  // A stream cannot resume behind a policy that escalates, so its grant is looked up before it is sent.
  if (exchange.beginInspection === null || !required(exchange.chain).escalatesAnswers) return
  const granted = reserveGrant(exchange, gateway)
  if (granted instanceof Promise) return granted.then(() => undefined)
}

const servingPaths = (exchange: Exchange, gateway: Gateway): ResolvedModel[] =>
  exchange.paths.filter((path, index) => index === 0 || mayServe(exchange, gateway, path))

/**
 * Whether a fallback may serve the request: the chain allows its model, and no condition holds for it that did not hold
 * for the requested model.
 */
export function mayServe(exchange: Exchange, gateway: Gateway, { id, aliases, provider }: ResolvedModel): boolean {
  const chain = required(exchange.chain)
  const model = new ModelView(id, provider.name, aliases)
  if (!chain.allowsModel(model)) return false
  const context = requestContext(exchange, gateway)
  const instead: PolicyContext = { ...context, model }
  return chain.at('pre_request').every(({ enforced, condition, when, compiled }) => {
    if (!enforced || condition === null || when === null || compiled instanceof Error) return true
    const forbids = compiled.form === 'whole' && compiled.allowsModel?.(model) === false
    if (!forbids && !/\bmodel\b/.test(when)) return true
    const holds = holdsFor(condition, instead)
    return !holds || (!forbids && holdsFor(condition, context))
  })
}

/** A condition that fails counts as holding, which excludes the fallback. */
function holdsFor(condition: (context: PolicyContext) => boolean, context: PolicyContext): boolean {
  try {
    return condition(context)
  } catch {
    // The failure for the requested model was recorded when the stage ran.
    return true
  }
}
