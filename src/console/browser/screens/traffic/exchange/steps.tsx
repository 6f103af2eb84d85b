/** The steps of a request, each with when it began, how long it took, and a bar of that. */
import type { ComponentChildren } from 'preact'
import { reasonTitle } from '../../../../../reason-words.ts'
import { href } from '../../../address.ts'
import type { Event } from '../../../api/routes.ts'
import { countNoun, fullTime, humanize, milliseconds } from '../../../formats.ts'
import { Facts, Id } from '../../../parts/small.tsx'
import { userText } from '../../../parts/user-text.tsx'
import { VerdictBadge } from '../../../parts/verdict.tsx'
import { hasPermission } from '../../../session.ts'
import { BudgetScope } from '../../budgets/budget-scope.tsx'
import { dimensionTitle, valueFilter } from '../../dimensions.ts'
import { findingSentence } from '../../finding-words.ts'
import { knownName, RecordName } from '../../record-name.tsx'
import { Cost } from './cost.tsx'
import { detail, numberDetail, type PolicyResult, type RefusedLimit, refusedLimit } from './event-details.ts'
import { limitAmount } from './exchange-story.ts'
import { type Step, timelineOf } from './timeline.ts'

export function Steps({ outcome, events }: { outcome: Event; events: readonly Event[] }) {
  const whole = numberDetail(outcome, 'latency_ms') ?? 0
  return (
    <ol class="story">
      {timelineOf(outcome, events).map((step, index) => (
        <li key={`${index} ${step.kind}`} data-verdict={verdictOf(step, outcome)}>
          <div>
            <StepOf step={step} outcome={outcome} />
            {step.at !== null && step.took !== null && whole > 0 && <Bar at={step.at} took={step.took} whole={whole} />}
          </div>
        </li>
      ))}
    </ol>
  )
}

function verdictOf(step: Step, outcome: Event): Event['verdict'] | undefined {
  if (step.kind === 'policy') return step.result.verdict
  if (step.kind === 'attempt') return step.attempt.verdict
  const isLast = step.kind === 'end' || (step.kind === 'reserved' && refusedLimit(outcome) !== null)
  return isLast ? outcome.verdict : undefined
}

function StepOf({ step, outcome }: { step: Step; outcome: Event }) {
  if (step.kind === 'received') return <Asked outcome={outcome} />
  if (step.kind === 'policy') return <Decision step={step} result={step.result} />
  if (step.kind === 'reserved') return <Reserved step={step} outcome={outcome} />
  if (step.kind === 'attempt') return <Attempt step={step} attempt={step.attempt} number={step.number} />
  if (step.kind === 'first token') return <Line step={step}>First token</Line>
  return <Answered step={step} outcome={outcome} />
}

/** When a step began and how long it took: `at 12 ms, took 300 ms`. */
const Line = ({ step: { at, took }, children }: { step: Step; children: ComponentChildren }) => (
  <div class="row between">
    <span>{children}</span>
    <span class="small quiet number">
      {[at !== null && at > 0 && `at ${milliseconds(at)}`, took !== null && `took ${milliseconds(took)}`]
        .filter(Boolean)
        .join(', ')}
    </span>
  </div>
)

/** The part of the whole time that a step took; the line above says the same in words. */
const Bar = ({ at, took, whole }: { at: number; took: number; whole: number }) => (
  <span
    class="span"
    aria-hidden="true"
    style={{ '--from': `${(100 * at) / whole}%`, '--length': `${Math.min(100, (100 * took) / whole)}%` }}
  />
)

const Attempt = ({ step, attempt, number: count }: { step: Step; attempt: Event; number: number }) => {
  const firstByte = numberDetail(attempt, 'first_byte_ms')
  return (
    <>
      <Line step={step}>
        Attempt {count}: {userText(detail(attempt, 'provider'))} answered {detail(attempt, 'status') ?? 'nothing'}
        {firstByte !== null && <span class="small quiet">, headers after {milliseconds(firstByte)}</span>}
      </Line>
      {attempt.reason_code !== 'ok' && (
        <span>
          {reasonTitle(attempt.reason_code)} <code>{attempt.reason_code}</code>
        </span>
      )}
    </>
  )
}

const Decision = ({ step, result }: { step: Step; result: PolicyResult }) => (
  <>
    <Line step={step}>
      {knownName(result.policy_id) === null ? (
        humanize(result.kind)
      ) : (
        <RecordName kind="policies" id={result.policy_id} linked />
      )}{' '}
      <span class="small quiet">{stages[result.stage] ?? result.stage}</span>
    </Line>
    <div class="row">
      <VerdictBadge
        verdict={result.verdict}
        label={result.verdict === 'allow' ? 'Nothing found' : humanize(result.verdict)}
      />
      {result.mode === 'monitor' && <span class="tag">monitor: not applied</span>}
    </div>
    {result.targets.length > 0 && <p class="small">{userText(findingSentence(result.targets))}</p>}
  </>
)

const stages: Readonly<Record<string, string>> = {
  pre_request: 'on the request',
  post_request: 'on the provider’s answer',
  pre_response: 'on the answer',
}

/** What limits kept back for the request, or the limit that refused it. */
function Reserved({ step, outcome }: { step: Step; outcome: Event }) {
  const { settlements = [] } = outcome
  const limit = refusedLimit(outcome)
  if (limit === null && settlements.length === 0) return null
  if (limit === null) {
    return <Line step={step}>Reserved: {countNoun(settlements.length, 'limit')} had enough left for it</Line>
  }
  const name = userText(limit.name ?? humanize(limit.kind))
  const opens = limit.kind === 'budget' && hasPermission('catalog:read')
  // The gateway does not know every amount, such as what is left of a rate.
  const amount = (title: string, value: number | null) =>
    value === null ? null : ([title, limitAmount(value, limit.unit)] as const)
  return (
    <>
      <Line step={step}>Refused by a limit</Line>
      <Facts
        facts={[
          ['Limit', opens ? <a href={href(`/budgets/${limit.id}`)}>{name}</a> : name],
          limit.name === null ? null : ['Kind', humanize(limit.kind)],
          ownerOf(limit),
          amount('Used', limit.used),
          amount('Allows', limit.limit),
          amount('Left', limit.left),
          limit.resets_at === null ? null : ['Resets', fullTime(limit.resets_at)],
        ]}
      />
    </>
  )
}

/** Whose limit it is; null where its name says it, as that of a group does. */
function ownerOf({ kind, id, scope }: RefusedLimit): readonly [string, ComponentChildren] | null {
  if (scope !== null) {
    const [of = '', tool = null] = scope.id?.split('/') ?? []
    return ['Of', <BudgetScope key="of" scope={{ kind: scope.kind, id: of, tool }} linked />]
  }
  if (kind === 'max_budget' || kind === 'max_requests' || kind === 'rate_limit') {
    return ['Of', <RecordName key="of" kind="tokens" id={id} linked />]
  }
  return null
}

function Asked({ outcome }: { outcome: Event }) {
  const { event_attribution: who, request_id } = outcome
  return (
    <>
      <span>Received: {userText(detail(outcome, 'route'))}</span>
      <Facts
        facts={[
          [
            'Token',
            who.token_id === null ? 'Unknown' : <RecordName key="token" kind="tokens" id={who.token_id} linked />,
          ],
          who.team_id === null ? null : ['Team', <RecordName key="team" kind="teams" id={who.team_id} linked />],
          who.user_id === null ? null : ['Person', <RecordName key="user" kind="users" id={who.user_id} linked />],
          ...Object.entries(who.dimensions ?? {}).map(([name, value]) => valueFact(name, value)),
          who.oauth_client_id === null ? null : ['Application', <code key="client">{who.oauth_client_id}</code>],
          who.client === undefined ? null : ['Client', who.client],
          who.session_id === null
            ? null
            : [
                'Session',
                <a
                  key="session"
                  href={href(`/sessions/${encodeURIComponent(who.session_id)}`, { token: who.token_id })}
                >
                  <code>{userText(who.session_id)}</code>
                </a>,
              ],
          ['Model', detail(outcome, 'model') ?? 'None'],
          request_id === null ? null : ['Request id', <Id key="request" id={request_id} />],
          outcome.exchange_id === undefined ? null : ['Exchange', <Id key="exchange" id={outcome.exchange_id} />],
        ]}
      />
    </>
  )
}

/** A value of a dimension, which leads to the other requests that have it. */
const valueFact = (name: string, value: string) =>
  [
    dimensionTitle(name),
    <a key={name} href={href('/traffic', { dimension: valueFilter(name, value) })}>
      {userText(value)}
    </a>,
  ] as const

function Answered({ step, outcome }: { step: Step; outcome: Event }) {
  const isCached = detail(outcome, 'cache') === 'hit'
  return (
    <>
      <Line step={step}>
        Answered {detail(outcome, 'status') ?? 'nothing'}
        {isCached && ' from the cache'}
      </Line>
      {outcome.event_cost_attribution !== undefined && <Cost outcome={outcome} cost={outcome.event_cost_attribution} />}
    </>
  )
}
