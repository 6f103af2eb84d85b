/**
 * Evaluates policies on a request, and on an answer to it, without storing anything or affecting anyone. Of `targets`
 * only models and families count: the trial shows a policy's decision, not its subjects.
 */

import type { Verdict } from '../../events/event.ts'
import { Failure } from '../../failure.ts'
import type { Dialect } from '../../languages/dialect.ts'
import { RequestEcho } from '../../languages/reading/texts/request-echo.ts'
import { globMatches } from '../../tokens/governed-token.ts'
import { compilePolicy } from '../chain.ts'
import { ModelView, type PolicyContext, RequestView, ResponseView, type TokenView } from '../conditions/context.ts'
import type { PolicyTools } from '../kinds/kind.ts'
import { Placeholders } from '../redaction.ts'
import { type PolicyEvaluation, runStage, type StageOutcome, type StageSubject } from '../stages/run-stage.ts'
import type { StoredPolicy } from '../stored-policy.ts'
import { calledTools } from '../tool-names.ts'
import { stronger } from '../verdict.ts'

interface Trial {
  dialect: Dialect
  /** The parsed body, as the gateway would get it; policies change it. */
  request: Record<string, unknown>
  /** A whole answer, parsed; null if only the request is tried. */
  response: { status: number; body: Record<string, unknown> } | null
  headers: Headers
  token: TokenView
  provider: string
  now: Date
}

export interface Finding {
  policy_id: string
  stage: 'pre_request' | 'post_request' | 'pre_response'
  said: PolicyEvaluation
}

interface TrialOutcome {
  verdict: Verdict
  reasonCode: string
  findings: readonly Finding[]
}

/** Runs the policies in the order given. Throws `invalid_parameter` for `request` if the dialect cannot read it. */
export async function tryPolicies(
  policies: readonly StoredPolicy[],
  trial: Trial,
  { tools, monotonic }: { tools: PolicyTools; monotonic(): number },
): Promise<TrialOutcome> {
  const { dialect, request, response } = trial
  const facts = readFacts(dialect, request)
  const texts = () => dialect.requestText(request)
  const placeholders = new Placeholders(request)
  const view = new RequestView({
    family: dialect.family,
    model: facts.model,
    stream: facts.stream,
    sessionId: facts.sessionId,
    texts,
    body: request,
    headers: trial.headers,
  })
  const context: PolicyContext = {
    request: view,
    response: null,
    token: trial.token,
    model: new ModelView(facts.model, trial.provider),
    now: trial.now,
  }
  const findings: Finding[] = []
  let verdict: Verdict = 'allow'
  let reasonCode = 'ok'
  const run = async (stage: Finding['stage'], subject: Omit<StageSubject, 'stage' | 'facts' | 'requestBody'>) => {
    const asked = policies.filter((policy) => policy.stages.includes(stage) && appliesTo(policy, dialect, facts.model))
    const outcome: StageOutcome = await runStage({
      policies: asked.map(compilePolicy),
      subject: { ...subject, stage, facts, requestBody: request },
      tools,
      now: monotonic,
      broken: () => undefined,
    })
    findings.push(...outcome.evaluations.map((said) => ({ policy_id: said.policy.id, stage, said })))
    const strongest = stronger(verdict, outcome.verdict)
    if (strongest !== verdict) reasonCode = outcome.decisive?.decision.reasonCode ?? 'ok'
    verdict = strongest
  }
  await run('pre_request', { context, body: request, texts, placeholders })
  if (response !== null && !['block', 'deny', 'escalate'].includes(verdict)) {
    const asked = new RequestEcho(request)
    const answered = { ...context, response: responseView(dialect, response, asked) }
    const answerTexts = () => dialect.answerText(response.body, asked)
    for (const stage of ['post_request', 'pre_response'] as const) {
      await run(stage, { context: answered, body: response.body, texts: answerTexts, placeholders: null })
    }
  }
  return { verdict, reasonCode, findings }
}

function readFacts(dialect: Dialect, request: Record<string, unknown>) {
  try {
    return dialect.read(request)
  } catch (error) {
    if (!(error instanceof Failure)) throw error
    const param = error.param === null ? 'request' : `request.${error.param}`
    throw new Failure('invalid_parameter', { message: error.message, param, cause: error })
  }
}

const responseView = (
  dialect: Dialect,
  { status, body }: { status: number; body: Record<string, unknown> },
  asked: RequestEcho,
) => new ResponseView({ status, texts: () => dialect.answerText(body, asked), toolCalls: () => calledTools(body) })

const appliesTo = ({ targets: { models, families } }: StoredPolicy, { family }: Dialect, model: string): boolean =>
  (families === undefined || families.includes(family)) &&
  (models === undefined || models.some((pattern) => globMatches(pattern, model)))
