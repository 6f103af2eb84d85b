/** What waits for a person's decision: how much of it stands beside the screen where it is decided. */
import { computed, signal } from '@preact/signals'
import { useLayoutEffect } from 'preact/hooks'
import { api, type WaitingServer } from '../../api/routes.ts'
import { hasPermission } from '../../session.ts'
import { type Loaded, useLoaded } from '../loaded.tsx'

const everyMs = 15_000

const countedTimes = signal(0)

/** Counts anew what waits: some of it has just been decided, or was taken by another person. */
export const countWaiting = (): void => {
  countedTimes.value += 1
}

/** How the menu reads which MCP servers have offers that wait; null before, and without `catalog:write`. */
const offers = signal<Loaded<readonly WaitingServer[]> | null>(null)

/** The MCP servers whose offers wait; null until first read, or without `catalog:write`. */
export const waitingServers = computed(() => offers.value?.value ?? null)

/** The same with its state. A screen takes it from the menu and does not ask again. Without `catalog:write` there are none. */
export const readingOfServers = (): Loaded<readonly WaitingServer[]> =>
  hasPermission('catalog:write') ? (offers.value ?? notYet) : none

const unread = { refusal: null, reload: () => undefined, retry: () => undefined, set: () => undefined }
const notYet: Loaded<readonly WaitingServer[]> = { ...unread, value: undefined, loading: true }
const none: Loaded<readonly WaitingServer[]> = { ...unread, value: [], loading: false }

function Count({ count, more = false }: { count: number; more?: boolean }) {
  if (count === 0) return null
  return (
    <span class="count">
      {count}
      {more && '+'}
      <span class="hidden"> waiting</span>
    </span>
  )
}

export function WaitingRequests() {
  const found = useLoaded(
    `waiting ${countedTimes.value}`,
    (signal) => api('GET /v1/escalations', { query: { status: 'queued', limit: 100 }, signal }),
    { everyMs },
  )
  const { escalations, next_cursor: next } = found.value ?? { escalations: [], next_cursor: null }
  return <Count count={escalations.length} more={next !== null} />
}

export const WaitingOffers = () => (hasPermission('catalog:write') ? <CountedOffers /> : null)

function CountedOffers() {
  const found = useLoaded(
    `offers ${countedTimes.value}`,
    async (signal) => (await api('GET /v1/catalog/waiting-mcp-offers', { signal })).mcp_servers,
    { everyMs },
  )
  useLayoutEffect(() => {
    offers.value = found
  }, [found.value, found.refusal, found.loading])
  useLayoutEffect(
    () => () => {
      offers.value = null
    },
    [],
  )
  const count = found.value?.reduce((sum, { changed, added }) => sum + changed + added, 0) ?? 0
  return <Count count={count} />
}
