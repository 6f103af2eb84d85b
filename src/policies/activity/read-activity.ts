/**
 * What each policy did in a time: how often it was asked, what it said, and how long it took. There is no stored sum by
 * policy, so the outcomes of requests are read, the newest first and at most so many: beyond that the answer says that
 * it is not complete.
 */
import { eventsOf } from '../../events/engine/log-of.ts'
import type { Event } from '../../events/event.ts'
import { readLogHead } from '../../events/log/segment-rows.ts'
import { visibilityFilter } from '../../events/query/visibility-filter.ts'
import type { Visibility } from '../../events/visibility.ts'
import { objectsOf } from '../../languages/reading/json-value.ts'
import type { Database } from '../../store/open.ts'

const mostEvents = 20_000
const parts = 24

interface Asked {
  ledger: Database
  /** Milliseconds since the epoch. */
  since: number
  until: number
  visibility: Visibility
  /** Only this policy; null for all. */
  policyId: string | null
}

export interface PolicyActivity {
  policy_id: string
  asked: number
  verdicts: Record<string, number>
  stopped: number
  mean_ms: number
  /** The time in 24 parts: how often it said something other than allow, and how often it stopped a request. */
  points: { found: number; stopped: number }[]
}

export interface Activity {
  examined: number
  complete: boolean
  /** From when on every request was looked at, in milliseconds since the epoch. */
  exactSince: number
  policies: PolicyActivity[]
}

const stopping: ReadonlySet<string> = new Set(['block', 'deny', 'escalate', 'rate_limit'])
const outcome: Event['event_type'] = 'gateway.request.outcome'

export async function readActivity({ ledger, since, until, visibility, policyId }: Asked): Promise<Activity> {
  const seen = visibilityFilter(visibility)
  if (seen === 'nothing') return { examined: 0, complete: true, exactSince: since, policies: [] }
  const byId = new Map<string, PolicyActivity>()
  const { next: ceiling } = await readLogHead(ledger)
  const facets = [
    ...seen,
    { facet: 'type', values: [outcome] } as const,
    ...(policyId === null ? [] : [{ facet: 'policy', values: [policyId] } as const]),
  ]
  let examined = 0
  let oldest = until
  for await (const { event, at } of eventsOf(ledger, {
    ...{ order: 'newest', since, until, ceiling, after: null, facets, ids: [] },
  })) {
    if (event.event_type !== outcome) continue
    if (examined === mostEvents) return { examined, complete: false, exactSince: oldest, policies: of(byId, policyId) }
    examined += 1
    oldest = at
    const part = Math.min(parts - 1, Math.floor(((at - since) / (until - since)) * parts))
    for (const result of objectsOf(event.details?.policy_results)) note(byId, result, part)
  }
  return { examined, complete: true, exactSince: since, policies: of(byId, policyId) }
}

const of = (byId: ReadonlyMap<string, PolicyActivity>, policyId: string | null): PolicyActivity[] =>
  [...byId.values()].filter(({ policy_id }) => policyId === null || policy_id === policyId)

function note(byId: Map<string, PolicyActivity>, result: Record<string, unknown>, part: number): void {
  const { policy_id: id, verdict, mode, latency_ms: latency } = result
  if (typeof id !== 'string' || typeof verdict !== 'string') return
  const known = byId.get(id) ?? empty(id)
  byId.set(id, known)
  known.mean_ms += ((typeof latency === 'number' ? latency : 0) - known.mean_ms) / (known.asked + 1)
  known.asked += 1
  known.verdicts[verdict] = (known.verdicts[verdict] ?? 0) + 1
  if (verdict === 'allow') return
  const stopped = mode === 'enforce' && stopping.has(verdict) ? 1 : 0
  known.stopped += stopped
  const point = known.points[part]
  if (point === undefined) return
  point.found += 1
  point.stopped += stopped
}

const empty = (policy_id: string): PolicyActivity => ({
  ...{ policy_id, asked: 0, verdicts: {}, stopped: 0, mean_ms: 0 },
  points: Array.from({ length: parts }, () => ({ found: 0, stopped: 0 })),
})
