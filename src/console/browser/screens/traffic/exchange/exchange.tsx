/** One exchange, its whole story in order; or one event that belongs to none. */
import { useState } from 'preact/hooks'
import type { Event, PolicyRecord } from '../../../api/routes.ts'
import { eventWords } from '../../../event-words.ts'
import { fullTime } from '../../../formats.ts'
import { PageHeader } from '../../../parts/frame/frame.tsx'
import { Icon } from '../../../parts/icon.tsx'
import { Show, useLoaded } from '../../../parts/loaded.tsx'
import { CopyButton, copy } from '../../../parts/small.tsx'
import { Empty } from '../../../parts/table.tsx'
import { showInvisible, userText } from '../../../parts/user-text.tsx'
import { VerdictBadge } from '../../../parts/verdict.tsx'
import { hasPermission } from '../../../session.ts'
import { readChain } from '../../policies/policies.tsx'
import { knownName } from '../../record-name.tsx'
import { readEvents } from '../event-pages.ts'
import { CapturedText } from './captured-text.tsx'
import { curlOf } from './curl.ts'
import { eventTitle, verdictSummary } from './exchange-story.ts'
import { Neighbours } from './neighbours.tsx'
import { Steps } from './steps.tsx'
import { TryPolicy } from './try-policy.tsx'

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
  const policies = usePolicies()
  const [trying, setTrying] = useState(false)
  const command = outcome === undefined ? null : curlOf(outcome)
  return (
    <div class="stack">
      {outcome !== undefined && (
        <section class="card stack">
          <div class="row">
            <VerdictBadge verdict={outcome.verdict} />
            {outcome.verdict !== 'allow' && <code>{showInvisible(outcome.reason_code)}</code>}
            <span class="quiet">{fullTime(outcome.timestamp)}</span>
          </div>
          <p class="lead">{userText(verdictSummary(outcome, knownName))}</p>
          {outcome.event_attribution.session_id !== null && <Neighbours outcome={outcome} />}
          {command !== null && (
            <div class="row">
              <button type="button" onClick={() => copy(command, 'Command')}>
                <Icon name="copy" />
                Copy as curl
              </button>
              {policies.length > 0 && (
                <button type="button" onClick={() => setTrying(true)}>
                  Try a policy on it
                </button>
              )}
            </div>
          )}
        </section>
      )}
      {trying && outcome !== undefined && (
        <TryPolicy outcome={outcome} policies={policies} close={() => setTrying(false)} />
      )}
      <div class="sides">
        {outcome !== undefined && (
          <section class="card stack">
            <h2>What happened</h2>
            <Steps outcome={outcome} events={events} />
          </section>
        )}
        <div class="stack">
          {outcome !== undefined && <CapturedText outcome={outcome} />}
          <section class="card stack">
            <h2>{events.length === 1 ? 'The event' : `All ${events.length} events`}</h2>
            {events.map((event) => (
              <RawEvent key={event.event_id} event={event} open={outcome === undefined} />
            ))}
          </section>
        </div>
      </div>
    </div>
  )
}

function usePolicies(): readonly PolicyRecord[] {
  const found = useLoaded('policies to try', (signal) =>
    hasPermission('policies:read') ? readChain(signal) : Promise.resolve([]),
  )
  return found.value ?? []
}

function RawEvent({ event, open }: { event: Event; open: boolean }) {
  const text = JSON.stringify(event, null, 2)
  return (
    <details open={open}>
      <summary>
        {eventWords(event.event_type)} <span class="quiet small">{fullTime(event.timestamp)}</span>
      </summary>
      <div class="command">
        <pre>{showInvisible(text)}</pre>
        <CopyButton text={text} what="Event" />
      </div>
    </details>
  )
}
