/** The requests of the same session before and after one. */
import { href } from '../../../address.ts'
import type { Event } from '../../../api/routes.ts'
import { useLoaded } from '../../../parts/loaded.tsx'
import { Time } from '../../../parts/small.tsx'
import { userText } from '../../../parts/user-text.tsx'
import { readEvents } from '../event-pages.ts'
import { eventTitle } from './exchange-story.ts'

const everything = '3650d'

export function Neighbours({ outcome }: { outcome: Event }) {
  const { timestamp, exchange_id: own, event_attribution: who } = outcome
  const found = useLoaded(`neighbours ${own}`, async (signal) => {
    const { session_id, token_id } = who
    const of = { session_id, token_id, event_type: 'gateway.request.outcome' }
    const [before, after] = await Promise.all([
      readEvents({ ...of, since: everything, until: timestamp, limit: 1 }, signal),
      // It begins with the request itself.
      readEvents({ ...of, since: timestamp, order: 'oldest', limit: 2 }, signal),
    ])
    const others = ({ exchange_id }: Event) => exchange_id !== own
    return { before: before.events.find(others), after: after.events.find(others) }
  })
  const { before, after } = found.value ?? {}
  if (before === undefined && after === undefined) return null
  return (
    <nav class="row between" aria-label="Requests of the same session">
      <span>{before !== undefined && <Neighbour event={before} word="Before" />}</span>
      <span>{after !== undefined && <Neighbour event={after} word="After" />}</span>
    </nav>
  )
}

const Neighbour = ({ event, word }: { event: Event; word: string }) => (
  <>
    {word}: <a href={href(`/traffic/${event.exchange_id ?? event.event_id}`)}>{userText(eventTitle(event))}</a>{' '}
    <span class="quiet">
      <Time at={event.timestamp} />
    </span>
  </>
)
