/** The steps of a request, each with when it began, how long it took, and a bar of that. */
import type { ComponentChildren } from 'preact'
import { reasonTitle } from '../../../../../reason-words.ts'
import { href } from '../../../address.ts'
import type { Event } from '../../../api/routes.ts'
import { countNoun, fullTime, humanize, milliseconds, money, number } from '../../../formats.ts'
import { isObject } from '../../../json-object.ts'
import { Facts, Id } from '../../../parts/small.tsx'
import { userText } from '../../../parts/user-text.tsx'
import { VerdictBadge } from '../../../parts/verdict.tsx'
import { hasPermission } from '../../../session.ts'
import { dimensionTitle, valueFilter } from '../../dimensions.ts'
import { findingWords } from '../../finding-words.ts'
import { Cost } from './cost.tsx'
import { detail, numberDetail, type PolicyResult } from './event-details.ts'
import { useNames } from './exchange-names.ts'
import { type Step, timelineOf } from './timeline.ts'

export type NameOf = (policyId: string) => string | null

export function Steps({ outcome, events, nameOf }: { outcome: Event; events: readonly Event[]; nameOf: NameOf }) {
  const whole = numberDetail(outcome, 'latency_ms') ?? 0
  return (
    <ol class="story">
      {timelineOf(outcome, events).map((step, index) => (
        <li key={`${index} ${step.kind}`} data-verdict={verdictOf(step, outcome)}>
          <div>
            <StepOf step={step} outcome={outcome} nameOf={nameOf} />
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
  const isLast = step.kind === 'end' || (step.kind === 'reserved' && isObject(outcome.details?.limit))
  return isLast ? outcome.verdict : undefined
}

function StepOf({ step, outcome, nameOf }: { step: Step; outcome: Event; nameOf: NameOf }) {
  if (step.kind === 'received') return <Asked outcome={outcome} />
  if (step.kind === 'policy') return <Decision step={step} result={step.result} nameOf={nameOf} />
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

const Decision = ({ step, result, nameOf }: { step: Step; result: PolicyResult; nameOf: NameOf }) => (
  <>
    <Line step={step}>
      <PolicyName id={result.policy_id} name={nameOf(result.policy_id) ?? humanize(result.kind)} />{' '}
      <span class="small quiet">{stages[result.stage] ?? result.stage}</span>
    </Line>
    <div class="row">
      <VerdictBadge
        verdict={result.verdict}
        label={result.verdict === 'allow' ? 'Nothing found' : humanize(result.verdict)}
      />
      {result.mode === 'monitor' && <span class="tag">monitor: not applied</span>}
    </div>
    {result.targets.length > 0 && (
      <p class="small">Found {userText(result.targets.map((target) => findingWords(target)).join(', '))}</p>
    )}
  </>
)

const stages: Readonly<Record<string, string>> = {
  pre_request: 'on the request',
  post_request: 'on the provider’s answer',
  pre_response: 'on the answer',
}

const PolicyName = ({ id, name }: { id: string; name: string }) =>
  hasPermission('policies:read') ? (
    <a href={href(`/policies/${id}`)}>{userText(name)}</a>
  ) : (
    <span>{userText(name)}</span>
  )

/** What limits kept back for the request, or the limit that refused it. */
function Reserved({ step, outcome }: { step: Step; outcome: Event }) {
  const { settlements = [], details } = outcome
  const limit = isObject(details?.limit) ? details.limit : null
  if (limit === null && settlements.length === 0) return null
  if (limit === null) {
    return <Line step={step}>Reserved: {countNoun(settlements.length, 'limit')} had enough left for it</Line>
  }
  const name = typeof limit.name === 'string' ? limit.name : humanize(String(limit.kind))
  return (
    <>
      <Line step={step}>Refused by a limit</Line>
      <Facts
        facts={[
          [
            'Limit',
            limit.kind === 'budget' ? <a href={href(`/budgets/${String(limit.id)}`)}>{userText(name)}</a> : name,
          ],
          ['Kind', humanize(String(limit.kind))],
          ['Allows', amountOf(limit.limit, limit.unit)],
          ['Left', amountOf(limit.left, limit.unit)],
          typeof limit.resets_at === 'string' ? ['Resets', fullTime(limit.resets_at)] : null,
        ]}
      />
    </>
  )
}

function amountOf(value: unknown, unit: unknown): string {
  if (typeof value !== 'number') return '–'
  return unit === 'usd' ? money(value) : `${number(value)} ${String(unit)}`
}

function Asked({ outcome }: { outcome: Event }) {
  const { event_attribution: who, request_id } = outcome
  const names = useNames(outcome)
  return (
    <>
      <span>Received: {userText(detail(outcome, 'route'))}</span>
      <Facts
        facts={[
          who.token_id === null
            ? ['Token', 'Unknown']
            : [
                'Token',
                <a key="token" href={href(`/tokens/${who.token_id}`)}>
                  {names.token === null ? <code>{who.token_id}</code> : userText(names.token)}
                </a>,
              ],
          who.team_id === null ? null : ['Team', names.team ?? <code key="team">{who.team_id}</code>],
          who.user_id === null ? null : ['Person', names.user ?? <code key="user">{who.user_id}</code>],
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
