/**
 * Replays recorded requests through a policy. An event holds the caller, the model and the family; it holds the text
 * only if capture was on, and then redacted and perhaps cut. If a policy needs a value that was not recorded, the
 * request counts as undecided, with the reason: nothing is guessed. The answer's stages are not replayed, because
 * answers are not recorded.
 *
 * Events are read newest first, up to a limit.
 */

import { eventsOf } from '../../events/engine/log-of.ts'
import type { Event, Verdict } from '../../events/event.ts'
import { readLogHead } from '../../events/log/segment-rows.ts'
import { visibilityFilter } from '../../events/query/visibility-filter.ts'
import type { Visibility } from '../../events/visibility.ts'
import type { RequestFacts } from '../../languages/dialect.ts'
import { families, type ModelFamily, modelFamilies, routeOf } from '../../languages/families.ts'
import { objectsOf } from '../../languages/reading/json-value.ts'
import type { TextSlot } from '../../languages/reading/texts/text-slot.ts'
import type { Clock } from '../../lib/clock.ts'
import type { Database } from '../../store/open.ts'
import { type ActivePolicy, compilePolicy, matches } from '../chain.ts'
import { ModelView, type PolicyContext, RequestView, TokenView } from '../conditions/context.ts'
import { compileExplanation } from '../conditions/explain.ts'
import type { PolicyTools } from '../kinds/kind.ts'
import { brokenReason, runStage, type StageOutcome, type StageRun } from '../stages/run-stage.ts'
import type { StoredPolicy } from '../stored-policy.ts'
import { type Excerpt, excerptsOf, excerptsOfParts, type HeldCondition, toldParts } from './excerpts.ts'

const outcomeType: Event['event_type'] = 'gateway.request.outcome'
const mostEvents = 20_000
const mostResults = 100

interface Replay {
  policy: StoredPolicy
  ledger: Database
  clock: Clock
  /** Milliseconds since the epoch. */
  since: number
  visibility: Visibility
  tools: PolicyTools
}

interface Replayed {
  examined: number
  matched: number
  verdicts: Record<string, number>
  undecided: number
  /** How many could not be decided, or not be replayed at all, for each reason. */
  unreplayed: Record<string, number>
  complete: boolean
  results: {
    event_id: string
    timestamp: string
    request_id: string | null
    recorded_verdict: Verdict
    verdict: Verdict
    reason_code: string
    /** Where it finds something in the recorded text. */
    excerpts: Excerpt[]
    /** The parts of its condition that held. */
    condition: HeldCondition[]
  }[]
}

/** Variables that a condition may use and an event does not hold. */
const asksUnrecorded = /\b(token\.(roles|purpose|metadata)|request\.(headers|tools))\b/

/** Why a recorded request cannot be replayed: the missing value, or the policy's failure. */
const unreplayedReasons = [
  'no_model',
  'answer_not_recorded',
  'text_not_recorded',
  'details_not_recorded',
  'broken',
] as const
type SkippedReason = (typeof unreplayedReasons)[number]

/** What they look for is taken out of a text before it is recorded. */
const findsUnrecorded: ReadonlySet<string> = new Set(['pii', 'secrets'])

/** A value was needed that the event does not hold. */
class Unrecorded extends Error {
  override readonly name = 'Unrecorded'
}

export async function replayPolicy(replay: Replay): Promise<Replayed> {
  const { ledger, since, visibility } = replay
  const active = compilePolicy(replay.policy)
  const explained = active.condition === null ? null : active.when
  const explain = explained === null ? null : compileExplanation(explained, replay.policy.stages)
  const found: Replayed = {
    examined: 0,
    matched: 0,
    verdicts: {},
    undecided: 0,
    unreplayed: {},
    complete: true,
    results: [],
  }
  const seen = visibilityFilter(visibility)
  if (seen === 'nothing') return found
  const outcomes = eventsOf(ledger, {
    ...{
      order: 'newest',
      since,
      until: Number.MAX_SAFE_INTEGER,
      ceiling: (await readLogHead(ledger)).next,
      after: null,
    },
    ...{ facets: [...seen, { facet: 'type', values: [outcomeType] }], ids: [] },
  })
  for await (const { event } of outcomes) {
    // What stands in the place of records that cannot be read cannot be replayed.
    if (event.event_type !== outcomeType) continue
    if (found.examined >= mostEvents || replay.tools.signal.aborted) return { ...found, complete: false }
    await replayEvent(replay, { active, explain }, event, found)
  }
  return found
}

interface Asked {
  active: ActivePolicy
  /** Null without a condition. */
  explain: ReturnType<typeof compileExplanation> | null
}

async function replayEvent(replay: Replay, asked: Asked, event: Event, found: Replayed): Promise<void> {
  const { active } = asked
  found.examined += 1
  const unreplayed = (why: SkippedReason) => {
    found.unreplayed[why] = (found.unreplayed[why] ?? 0) + 1
  }
  const request = recordedRequest(event)
  if (request === null) return unreplayed('no_model')
  if (!replay.policy.stages.includes('pre_request')) return unreplayed('answer_not_recorded')
  const { family, model } = request
  const { token_id, team_id, gateway_id } = event.event_attribution
  const subject = { organizationId: '', gatewayId: gateway_id ?? '', tokenId: token_id ?? '', teamId: team_id }
  if (!matches(replay.policy, { ...subject, policyIds: [], model, family })) return
  const said = await ask(replay, active, event, request)
  if (typeof said === 'string') {
    found.matched += 1
    found.undecided += 1
    unreplayed(said)
  } else if (said !== null) {
    const { verdict, reasonCode: reason_code } = said
    found.matched += 1
    found.verdicts[verdict] = (found.verdicts[verdict] ?? 0) + 1
    if (verdict === 'allow' || found.results.length === mostResults) return
    const { event_id, timestamp, request_id, verdict: recorded_verdict } = event
    const held = asked.explain?.(said.context) ?? []
    const ofRule = event.prompt_redacted === undefined ? [] : excerptsOf(active, event.prompt_redacted)
    found.results.push({
      ...{ event_id, timestamp, request_id, recorded_verdict, verdict, reason_code },
      excerpts: [...ofRule, ...excerptsOfParts(held)],
      condition: toldParts(held),
    })
  }
}

type Recorded = Pick<RequestFacts, 'model' | 'stream'> & { family: ModelFamily; provider: string }

/** Null if the request failed before its model was known. */
function recordedRequest({ details }: Event): Recorded | null {
  const { route, model, provider, stream } = details ?? {}
  const family = typeof route === 'string' ? familyOf.get(route) : undefined
  if (family === undefined || typeof model !== 'string') return null
  return { family, model, stream: stream === true, provider: typeof provider === 'string' ? provider : '' }
}

/** By the routes of events: `POST /v1/chat/completions` is chat, `GET /v1/responses/ws` is responses. */
const familyOf: ReadonlyMap<string, ModelFamily> = new Map(
  modelFamilies.flatMap((family) => [
    [routeOf(family), family],
    ...(families[family].alsoAt ?? []).map((path) => [`POST ${path}`, family] as const),
    ...(families[family].webSockets ?? []).map(({ path }) => [`GET ${path}`, family] as const),
  ]),
)

interface Said {
  verdict: Verdict
  reasonCode: string
  context: PolicyContext
}

async function ask(
  { tools, clock }: Replay,
  active: ActivePolicy,
  event: Event,
  recorded: Recorded,
): Promise<Said | SkippedReason | null> {
  const { family, model, stream, provider } = recorded
  let unrecorded: SkippedReason | null =
    active.when !== null && asksUnrecorded.test(active.when) ? 'details_not_recorded' : null
  const missing = (what: SkippedReason = 'details_not_recorded'): never => {
    unrecorded ??= what
    throw new Unrecorded('The event does not hold this')
  }
  const texts = (): readonly TextSlot[] => {
    if (event.prompt_redacted === undefined || findsUnrecorded.has(active.kind)) return missing('text_not_recorded')
    return [{ member: 'prompt', kind: 'content', role: null, text: event.prompt_redacted, replace: () => undefined }]
  }
  const sessionId = event.event_attribution.session_id
  const context = {
    request: new RequestView({ family, model, stream, sessionId, texts, body: null, headers: new Headers() }),
    response: null,
    token: tokenOf(event),
    model: new ModelView(model, provider),
    now: new Date(event.timestamp),
  }
  const run: StageRun = {
    policies: [active],
    subject: {
      stage: 'pre_request',
      context,
      get facts() {
        return missing()
      },
      get body() {
        return missing()
      },
      get requestBody() {
        return missing()
      },
      texts,
      placeholders: null,
    },
    tools,
    now: () => clock.monotonic(),
    broken: () => undefined,
  }
  const outcome = await runRecorded(run)
  if (unrecorded !== null || outcome === null) return unrecorded ?? 'details_not_recorded'
  const [said] = outcome.evaluations
  if (said === undefined) return null
  if (said.decision.reasonCode === brokenReason) return 'broken'
  if (said.decision.verdict === 'allow' && wasTakenOut(active, event)) return 'text_not_recorded'
  return { ...said.decision, context }
}

/** Whether a policy of this kind found texts in the request: they were taken out before it was recorded. */
const wasTakenOut = ({ kind, compiled }: ActivePolicy, { details }: Event): boolean =>
  !(compiled instanceof Error) &&
  compiled.form === 'text' &&
  objectsOf(details?.policy_results).some(
    (result) => result.kind === kind && result.stage === 'pre_request' && result.verdict !== 'allow',
  )

/** Null where a policy would change what the event does not hold. */
async function runRecorded(run: StageRun): Promise<StageOutcome | null> {
  try {
    return await runStage(run)
  } catch (error) {
    if (error instanceof Unrecorded) return null
    throw error
  }
}

/** Events hold no roles and no metadata. */
const tokenOf = ({ event_attribution: { token_id, team_id, user_id, gateway_id } }: Event): TokenView =>
  new TokenView({
    id: token_id ?? '',
    purpose: 'general',
    roles: [],
    teamId: team_id,
    userId: user_id,
    gatewayId: gateway_id,
    metadata: {},
  })
