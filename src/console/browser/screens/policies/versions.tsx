/** Who changed a policy, when and in what; any earlier version can be put into the form, and is then saved like a change. */
import type { Event, PolicyRecord } from '../../api/routes.ts'
import { api } from '../../api/routes.ts'
import { humanize } from '../../formats.ts'
import type { JsonObject } from '../../parts/forms/schema-form.tsx'
import { Show, useLoaded } from '../../parts/loaded.tsx'
import { Time } from '../../parts/small.tsx'
import { showInvisible } from '../../parts/user-text.tsx'
import { hasPermission } from '../../session.ts'
import { RecordName } from '../record-name.tsx'
import { differencesIn, type PolicyVersion, versionsOf } from './versions.ts'

/** Of the newest changes. */
const mostChanges = 100

async function readChanges(id: string, signal: AbortSignal): Promise<Event[]> {
  const query = { since: '3650d', policy: id, limit: mostChanges }
  const [updated, created] = await Promise.all([
    api('GET /v1/events', { query: { ...query, event_type: 'policy.updated' }, signal }),
    api('GET /v1/events', { query: { ...query, event_type: 'policy.created' }, signal }),
  ])
  const isWhole = updated.next_cursor === null
  return [...updated.events, ...(isWhole ? created.events : [])]
}

interface Props {
  record: PolicyRecord
  /** Puts an earlier version into the form. */
  take(body: JsonObject): void
}

export function Versions({ record, take }: Props) {
  const found = useLoaded(`changes ${record.id} ${record.version}`, (signal) => readChanges(record.id, signal))
  return (
    <section class="card stack" aria-label="Versions">
      <h2>Versions</h2>
      <Show of={found} rows={3}>
        {(events) => (
          <ol class="story">
            {versionsOf(record, events).map((version, index) => (
              <li key={version.event?.event_id ?? 'oldest'}>
                <div>
                  <Version version={version} />
                  {index > 0 && hasPermission('policies:write') && (
                    <div class="row">
                      <button type="button" onClick={() => take(version.body)}>
                        Put into the form
                      </button>
                    </div>
                  )}
                </div>
              </li>
            ))}
          </ol>
        )}
      </Show>
    </section>
  )
}

function Version({ version: { event, changes } }: { version: PolicyVersion }) {
  if (event === null) return <p class="quiet">Before that: what made this version is no longer kept.</p>
  return (
    <>
      <p>
        {event.event_type === 'policy.created' ? 'Created' : 'Changed'} <Time at={event.timestamp} /> by{' '}
        <Who event={event} />
      </p>
      <ul class="stack close small">
        {changes.flatMap(({ field, before, after }) =>
          differencesIn(before, after).map((line) => (
            <li key={`${field} ${line}`} class="wrap">
              <strong>{humanize(field)}</strong> {showInvisible(line)}
            </li>
          )),
        )}
      </ul>
    </>
  )
}

function Who({ event }: { event: Event }) {
  const { user_id, token_id } = event.event_attribution
  if (user_id !== null) return <RecordName kind="users" id={user_id} />
  if (token_id === null) return <>somebody</>
  return (
    <>
      the token <RecordName kind="tokens" id={token_id} />
    </>
  )
}
