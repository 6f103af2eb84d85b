/** One exchange, its whole story in order; or one event that belongs to none. */
import { href } from '../../address.ts'
import type { Event } from '../../api/routes.ts'
import { countNoun, fullTime, humanize, milliseconds, money, number } from '../../formats.ts'
import { isObject } from '../../json-object.ts'
import { PageHeader } from '../../parts/frame.tsx'
import { Icon } from '../../parts/icon.tsx'
import { Show, useLoaded } from '../../parts/loaded.tsx'
import { CopyButton, copy, Facts, Id } from '../../parts/small.tsx'
import { Empty } from '../../parts/table.tsx'
import { showInvisible, userText } from '../../parts/user-text.tsx'
import { VerdictBadge } from '../../parts/verdict.tsx'
import { hasPermission } from '../../session.ts'
import { readChain } from '../policies/policies.tsx'
import { curlOf } from './curl.ts'
import { readEvents } from './event-pages.ts'
import { useNames } from './exchange-names.ts'
import { detail, eventTitle, numberDetail, type PolicyResult, policyResults, verdictSummary } from './exchange-story.ts'
import { Neighbours } from './neighbours.tsx'

const everything = '3650d'

/** The events of an exchange by its id; where there are none, the one event of that id. */
async function read(id: string, signal: AbortSignal): Promise<Event[]> {
  const query = { since: everything, limit: 100, order: 'oldest', exchange_id: id }
  const { events } = await readEvents(query, signal)
  if (events.length > 0) return events
  const at = instantOf(id)
  if (at === null) return []
  const around = { since: new Date(at - 60_000).toISOString(), until: new Date(at + 60_000).toISOString(), limit: 100 }
  const page = await readEvents(around, signal)
  return page.events.filter(({ event_id }) => event_id === id)
}

/** The instant that a version 7 id begins with (RFC 9562 section 5.7); null for another. */
function instantOf(id: string): number | null {
  const digits = id.replaceAll('-', '')
  return /^[0-9a-f]{12}7/.test(digits) ? Number.parseInt(digits.slice(0, 12), 16) : null
}

export function Exchange({ id }: { id: string }) {
  const found = useLoaded(id, (signal) => read(id, signal))
  const outcome = found.value?.find(({ event_type }) => event_type === 'gateway.request.outcome')
  const title = outcome === undefined ? 'Event' : eventTitle(outcome)
  return (
    <>
      <PageHeader title={title} back={['/traffic', 'Traffic']} />
      <Show of={found} rows={8}>
        {(events) =>
          events.length === 0 ? (
            <div class="card">
              <Empty title="Exchange not found">
                <p>It may be older than the retention period or belong to another team.</p>
              </Empty>
            </div>
          ) : (
            <Story events={events} outcome={outcome} />
          )
        }
      </Show>
    </>
  )
}

function Story({ events, outcome }: { events: readonly Event[]; outcome: Event | undefined }) {
  const nameOf = usePolicyNames()
  const command = outcome === undefined ? null : curlOf(outcome)
  return (
    <div class="stack">
      {outcome !== undefined && (
        <section class="card stack">
          <div class="row">
            <VerdictBadge verdict={outcome.verdict} />
            <span class="quiet">{fullTime(outcome.timestamp)}</span>
          </div>
          <p class="lead">{userText(verdictSummary(outcome, nameOf))}</p>
          {outcome.event_attribution.session_id !== null && <Neighbours outcome={outcome} />}
          {command !== null && (
            <div class="row">
              <button type="button" onClick={() => copy(command, 'Command')}>
                <Icon name="copy" />
                Copy as curl
              </button>
            </div>
          )}
        </section>
      )}
      <div class="sides">
        {outcome !== undefined && (
          <section class="card stack">
            <h2>What happened</h2>
            <Steps outcome={outcome} events={events} nameOf={nameOf} />
          </section>
        )}
        <section class="card stack">
          <h2>{events.length === 1 ? 'The event' : `All ${events.length} events`}</h2>
          {events.map((event) => (
            <RawEvent key={event.event_id} event={event} open={events.length === 1} />
          ))}
        </section>
      </div>
    </div>
  )
}

type NameOf = (policyId: string) => string | null

function usePolicyNames(): NameOf {
  const found = useLoaded('policy names', (signal) =>
    hasPermission('policies:read') ? readChain(signal) : Promise.resolve([]),
  )
  return (id) => found.value?.find((policy) => policy.id === id)?.name ?? null
}

function Steps({ outcome, events, nameOf }: { outcome: Event; events: readonly Event[]; nameOf: NameOf }) {
  const attempts = events.filter(({ event_type }) => event_type === 'gateway.provider.attempt')
  const results = policyResults(outcome)
  const first = numberDetail(outcome, 'first_token_ms')
  return (
    <ol class="story">
      <Asked outcome={outcome} />
      {results.filter(isBefore).map((result) => (
        <Decision key={`${result.policy_id} ${result.stage}`} result={result} nameOf={nameOf} />
      ))}
      <Reserved outcome={outcome} />
      {attempts.map((attempt, index) => (
        <li key={attempt.event_id} data-verdict={attempt.verdict}>
          <div>
            <div class="row between">
              <span>
                Attempt {index + 1}: {detail(attempt, 'provider')} answered {detail(attempt, 'status') ?? 'nothing'}
              </span>
              <span class="small quiet number">{milliseconds(numberDetail(attempt, 'latency_ms'))}</span>
            </div>
            {attempt.reason_code !== 'ok' && <code>{attempt.reason_code}</code>}
          </div>
        </li>
      ))}
      {first !== null && (
        <li>
          <div class="row between">
            <span>First token</span>
            <span class="small quiet number">after {milliseconds(first)}</span>
          </div>
        </li>
      )}
      {results
        .filter((result) => !isBefore(result))
        .map((result) => (
          <Decision key={`${result.policy_id} ${result.stage}`} result={result} nameOf={nameOf} />
        ))}
      <Answered outcome={outcome} />
    </ol>
  )
}

const isBefore = ({ stage }: PolicyResult): boolean => stage === 'pre_request'

const Decision = ({ result, nameOf }: { result: PolicyResult; nameOf: NameOf }) => (
  <li data-verdict={result.verdict}>
    <div>
      <div class="row between">
        <a href={href(`/policies/${result.policy_id}`)}>{nameOf(result.policy_id) ?? humanize(result.kind)}</a>
        <span class="small quiet number">
          {humanize(result.stage)} · {milliseconds(result.latency_ms)}
        </span>
      </div>
      <div class="row">
        <VerdictBadge
          verdict={result.verdict}
          label={result.verdict === 'allow' ? 'Nothing found' : humanize(result.verdict)}
        />
        {result.mode === 'monitor' && <span class="tag">monitor: not applied</span>}
      </div>
      {result.targets.length > 0 && <p class="small">{result.targets.join(', ')}</p>}
    </div>
  </li>
)

/** What limits kept back for the request, or the limit that refused it. */
function Reserved({ outcome }: { outcome: Event }) {
  const { settlements = [], details } = outcome
  const limit = isObject(details?.limit) ? details.limit : null
  if (limit === null && settlements.length === 0) return null
  if (limit === null) {
    return (
      <li>
        <div>{countNoun(settlements.length, 'limit')} had enough left for it</div>
      </li>
    )
  }
  const name = typeof limit.name === 'string' ? limit.name : humanize(String(limit.kind))
  return (
    <li data-verdict={outcome.verdict}>
      <div>
        <span>Refused by a limit</span>
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
      </div>
    </li>
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
    <li>
      <div>
        <span>{userText(detail(outcome, 'route'))}</span>
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
      </div>
    </li>
  )
}

function Answered({ outcome }: { outcome: Event }) {
  const { event_cost_attribution: cost } = outcome
  const isCached = detail(outcome, 'cache') === 'hit'
  return (
    <li data-verdict={outcome.verdict}>
      <div>
        <div class="row between">
          <span>
            Answered {detail(outcome, 'status') ?? 'nothing'}
            {isCached && ' from the cache'}
          </span>
          <span class="small quiet number">{milliseconds(numberDetail(outcome, 'latency_ms'))} in all</span>
        </div>
        {cost !== undefined && (
          <Facts
            facts={[
              ['Cost', `${money(cost.cost)}${cost.estimated ? ', estimated' : ''}`],
              isCached ? ['Saved', money(numberDetail(outcome, 'cache_saved'))] : null,
              ['Tokens', `${number(cost.input_tokens)} in, ${number(cost.output_tokens)} out`],
              cost.cached_input_tokens === null ? null : ['Cached', number(cost.cached_input_tokens)],
              cost.reasoning_tokens === null ? null : ['Reasoning', number(cost.reasoning_tokens)],
              ['Provider', `${cost.provider}, ${cost.model}`],
            ]}
          />
        )}
        {outcome.prompt_redacted !== undefined && <pre class="card">{showInvisible(outcome.prompt_redacted)}</pre>}
      </div>
    </li>
  )
}

function RawEvent({ event, open }: { event: Event; open: boolean }) {
  const text = JSON.stringify(event, null, 2)
  return (
    <details open={open}>
      <summary>
        {humanize(event.event_type)} <span class="quiet small">{fullTime(event.timestamp)}</span>
      </summary>
      <div class="command">
        <pre>{showInvisible(text)}</pre>
        <CopyButton text={text} what="Event" />
      </div>
    </details>
  )
}
