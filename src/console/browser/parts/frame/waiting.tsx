/** What waits for a person's decision: how much of it stands beside the screen where it is decided. */
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { api, type WaitingServer } from '../../api/routes.ts'
import { hasPermission } from '../../session.ts'
import { type Loaded, useLoaded } from '../loaded.tsx'

const everyMs = 15_000

const countedTimes = signal(0)

/** Counts anew what waits: some of it has just been decided, or was taken by another person. */
export const countWaiting = (): void => {
  countedTimes.value += 1
}

/** The MCP servers whose offers wait; null until first read, or without `catalog:write`. */
export const waitingServers = signal<readonly WaitingServer[] | null>(null)

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

/** Reads the MCP servers whose offers wait; null without `catalog:write`. */
export function useWaitingServers(): Loaded<readonly WaitingServer[] | null> {
  const decides = hasPermission('catalog:write')
  return useLoaded(
    `offers ${decides} ${countedTimes.value}`,
    async (signal) => (decides ? (await api('GET /v1/catalog/waiting-mcp-offers', { signal })).mcp_servers : null),
    { everyMs },
  )
}

export function WaitingOffers() {
  const servers = useWaitingServers().value ?? null
  useEffect(() => {
    waitingServers.value = servers
  }, [servers])
  const count = servers?.reduce((sum, { changed, added }) => sum + changed + added, 0) ?? 0
  return <Count count={count} />
}
