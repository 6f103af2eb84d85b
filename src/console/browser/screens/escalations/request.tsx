/** One request that waits for a person: who asked for what, why it was stopped, and who is looking at it. */

import { knownReason, reasonTitle } from '../../../../reason-words.ts'
import { href } from '../../address.ts'
import { api, type Escalation } from '../../api/routes.ts'
import { ago, countNoun, fullTime, humanize } from '../../formats.ts'
import { isObject } from '../../json-object.ts'
import { Icon, type IconName } from '../../parts/icon.tsx'
import { useLoaded } from '../../parts/loaded.tsx'
import { explained, Facts, Id, Time } from '../../parts/small.tsx'
import { showInvisible, UserText, userText } from '../../parts/user-text.tsx'
import { hasPermission, isCaller } from '../../session.ts'
import { findingSentence } from '../finding-words.ts'
import { conditionWords } from './condition-words.ts'
import { isOpen } from './queue.ts'

const stateLooks: Readonly<Record<string, readonly [tone: string, icon: IconName]>> = {
  queued: ['escalate', 'escalate'],
  claimed: ['pending', 'people'],
  expired: ['error', 'pending'],
  allow: ['allow', 'allow'],
  block: ['block', 'block'],
}

function stateWords({ status, resolution, claimed_by, claimed_by_name: name }: Escalation): string {
  if (status === 'deciding') return resolution === 'allow' ? 'Allowing' : 'Blocking'
  if (resolution !== null) return resolution === 'allow' ? 'Allowed' : 'Blocked'
  if (status === 'claimed') return isCaller(claimed_by) ? 'You review it' : `${name ?? 'Somebody'} reviews it`
  return status === 'queued' ? 'Waiting' : humanize(status)
}

export function State({ escalation }: { escalation: Escalation }) {
  const [tone, icon] = stateLooks[escalation.resolution ?? escalation.status] ?? ['error', 'error']
  return (
    <span class="badge" data-verdict={tone}>
      <Icon name={icon} />
      {userText(stateWords(escalation))}
    </span>
  )
}

/** What is asked for, in few words: the tools that are called, or else the model. */
export const askedFor = ({ request: { calls, model } }: Escalation): string =>
  calls.length > 0 ? calls.map(({ tool }) => tool).join(', ') : (model ?? 'No model')

const summaryLength = 90

/** What tells a request from others like it: the arguments of its tool, the last line of its text, or its id. */
export function summaryOf({ request }: Escalation): string {
  const { calls, answer_redacted, prompt_redacted, request_id } = request
  const given = calls.find((call) => call.arguments !== null && call.arguments !== '{}')?.arguments
  const text = given ?? answer_redacted ?? prompt_redacted?.split('\n').findLast((line) => line.trim() !== '')
  const words = text?.trim() ?? (request_id === null ? 'no text captured' : `request ${request_id}`)
  return words.length > summaryLength ? `${words.slice(0, summaryLength)}…` : words
}

const actor = (id: string, name: string | null) =>
  isCaller(id) ? 'You' : name === null ? <code key={id}>{id}</code> : name

export function Request({ escalation, equal }: { escalation: Escalation; equal: readonly Escalation[] }) {
  const { request, token, attempts, claimed_by, resolved_by } = escalation
  return (
    <>
      <div class="row between">
        <h2 class="wrap" tabIndex={-1}>
          {userText(escalation.policy.name ?? reasonTitle(escalation.reason_code))}
        </h2>
        <State escalation={escalation} />
      </div>
      <p class="small quiet">
        Reason code <code>{userText(escalation.reason_code)}</code>
      </p>
      <p>
        {escalation.user_name !== null && (
          <>
            <UserText>{escalation.user_name}</UserText>, with the token{' '}
          </>
        )}
        {escalation.user_name === null && 'The token '}
        <a href={href(`/tokens/${token.id}`)}>
          <UserText>{token.name ?? token.id}</UserText>
        </a>
        {escalation.team_name !== null && (
          <>
            {' '}
            of the team <UserText>{escalation.team_name}</UserText>
          </>
        )}
        {escalation.user_name === null ? '' : ','} asked for <UserText>{askedFor(escalation)}</UserText>{' '}
        {ago(escalation.queued_at)}.{attempts > 1 && ` It was sent ${attempts} times.`}
        {request.sent && ' The provider has answered already: the answer waits.'}
        {token.revoked && ' The token is revoked.'}
      </p>
      {equal.length > 1 && (
        <p class="note">
          {countNoun(equal.length, 'equal request')} wait, of{' '}
          {equal.map((one) => one.token.name ?? one.token.id).join(', ')}. You decide about all of them at once.
        </p>
      )}
      <Why escalation={escalation} />
      <Calls escalation={escalation} />
      <Facts
        facts={[
          ['Route', request.route],
          ['Model', request.model ?? 'None'],
          request.provider === null ? null : ['Provider', request.provider],
          request.request_id === null
            ? null
            : [
                'Request id',
                <span class="row tight" key="request">
                  <Id id={request.request_id} />
                  {hasPermission('events:read') && (
                    <a href={href('/traffic', { request_id: request.request_id, range: '30d' })}>Its traffic</a>
                  )}
                </span>,
              ],
          isOpen(escalation) ? ['Expires', fullTime(escalation.expires_at)] : null,
          claimed_by === null
            ? null
            : [
                isOpen(escalation) ? 'Under review by' : 'Reviewed by',
                <span key="claimed">
                  {actor(claimed_by, escalation.claimed_by_name)} <Time at={escalation.claimed_at} />
                </span>,
              ],
          resolved_by === null ? null : ['Decided by', actor(resolved_by, escalation.resolved_by_name)],
          escalation.resolved_at === null ? null : ['Decided', <Time key="at" at={escalation.resolved_at} />],
          escalation.note === null ? null : ['Note', escalation.note],
          escalation.grant === null
            ? null
            : [
                'Grant expires',
                token.revoked
                  ? `${fullTime(escalation.grant.expires_at)}, but the token is revoked: it cannot be used`
                  : fullTime(escalation.grant.expires_at),
              ],
        ]}
      />
      <Captured escalation={escalation} />
    </>
  )
}

/** The policy, and what of it matched: its condition in words, or where it found something. */
function Why({ escalation: { policy, reason_code, request } }: { escalation: Escalation }) {
  const found = useLoaded(`policy ${policy.id}`, async (signal) =>
    hasPermission('policies:read') ? await api('GET /v1/policies/{id}', { params: { id: policy.id }, signal }) : null,
  )
  const now = found.value ?? null
  const changed = now !== null && request.policy_version !== null && now.version !== request.policy_version
  return (
    <div class="stack close">
      <p>
        The policy <a href={href(`/policies/${policy.id}`)}>{userText(policy.name ?? policy.id)}</a> stopped it
        {knownReason(reason_code) !== undefined && <>: {knownReason(reason_code)}</>}
        {now?.when != null && <>, because {explained(conditionWords(now.when))}</>}.
        {changed && ' The policy was changed since: its condition may have been another.'}
      </p>
      {request.targets.length > 0 && (
        <ul class="stack close">
          {request.targets.map((target) => (
            <li key={target}>{userText(findingSentence([target], changed ? undefined : now?.config))}</li>
          ))}
        </ul>
      )}
    </div>
  )
}

function Calls({ escalation: { request } }: { escalation: Escalation }) {
  if (request.calls.length === 0) return null
  return (
    <div class="stack close">
      <h3>{request.calls.length === 1 ? 'The call' : 'The calls'}</h3>
      {request.calls.map(({ tool, arguments: given }, index) => (
        <div class="stack close" key={`${index} ${tool}`}>
          <code class="wrap">{userText(tool)}</code>
          {given !== null && <pre class="card">{showInvisible(indented(given))}</pre>}
        </div>
      ))}
    </div>
  )
}

/** JSON over several lines; what was cut is shown as it is. */
function indented(json: string): string {
  try {
    return JSON.stringify(JSON.parse(json), null, 2)
  } catch {
    return json
  }
}

/** An answer is kept only where it was held back whole and the policy keeps texts. */
const answerNotKept =
  'The text of the answer was not kept: a policy stopped it while it streamed, or does not keep the text of requests that wait.'

function Captured({ escalation: { policy, request } }: { escalation: Escalation }) {
  const { prompt_redacted: text, answer_redacted: answer } = request
  const found = useLoaded(`policy ${policy.id}`, async (signal) =>
    text === null && answer === null && hasPermission('policies:write')
      ? await api('GET /v1/policies/{id}', { params: { id: policy.id }, signal })
      : null,
  )
  const config = found.value?.config
  const offers = found.value != null && !(isObject(config) && config.capture_escalated === true)
  if (text !== null || answer !== null) {
    return (
      <>
        {text !== null && (
          <>
            <h3>The request</h3>
            <pre class="card">{showInvisible(text)}</pre>
          </>
        )}
        {answer !== null && (
          <>
            <h3>The answer</h3>
            <pre class="card">{showInvisible(answer)}</pre>
          </>
        )}
        {answer === null && request.sent && <p class="small quiet">{answerNotKept}</p>}
        <p class="small quiet">
          Personal data and secrets were removed before it was stored. At most 2 KiB of a request and 1 KiB of an answer
          are kept.
        </p>
      </>
    )
  }
  return (
    <p class="small quiet">
      The text of the request was not captured. {request.sent && answerNotKept}
      {offers && (
        <>
          {' '}
          To see it for further requests, set <code>capture_escalated</code> in{' '}
          <a href={href(`/policies/${policy.id}`)}>the policy</a>.
        </>
      )}
    </p>
  )
}
