/** Who has a change, said to whoever made it (protocols section 4, rule 5). */
import { type Clock, timestamp } from '../../lib/clock.ts'
import type { Propagation } from '../../store/propagation.ts'
import type { LaneRegistry, LaneStanding } from './worker-registry.ts'

const connectedMs = 3000
const waitMs = 2000
/** How often the rows of lanes that are connected to other control planes are read while nothing is heard of them. */
const lookMs = 50

/**
 * Waits until every lane that beat within 3 s, wherever it is connected, has acknowledged `version`, or 2 s. Lanes that
 * may still serve and have not acknowledged, connected or not, are listed as unreachable with the instant at which they
 * stop: by what each has said or was told of `max_staleness`, and by `staleAfterMs` where neither is known.
 */
export async function propagate(
  registry: LaneRegistry,
  { version, staleAfterMs, clock }: { version: number; staleAfterMs: number; clock: Clock },
): Promise<Propagation> {
  const end = clock.monotonic() + waitMs
  let lanes = await registry.standing(staleAfterMs)
  // Whoever takes its stream only now is told this version by its hello, before it serves.
  const asked = new Set(lanes.map(({ lane }) => lane))
  const connected = new Set(lanes.filter(({ age }) => age < connectedMs).map(({ lane }) => lane))
  let readAt = clock.monotonic()
  for (;;) {
    const missing = lanes.filter((lane) => connected.has(lane.lane) && lane.acknowledgedVersion < version)
    const now = clock.monotonic()
    if (missing.length === 0 || now >= end) break
    const lookAt = missing.every(({ here }) => here) ? end : Math.min(end, readAt + lookMs)
    await registry.news(Math.max(0, lookAt - now))
    lanes = lanes.map((lane) => registry.refreshed(lane))
    if (clock.monotonic() < lookAt && !missing.some((lane) => registry.hasLeft(lane))) continue
    lanes = (await registry.standing(staleAfterMs)).filter(({ lane }) => asked.has(lane))
    readAt = clock.monotonic()
  }
  return told(lanes, { version, connected, now: clock.now() })
}

function told(
  lanes: readonly LaneStanding[],
  at: { version: number; connected: ReadonlySet<string>; now: number },
): Propagation {
  const waited = lanes.filter(({ lane }) => at.connected.has(lane))
  const missing = lanes
    .filter(({ acknowledgedVersion }) => acknowledgedVersion < at.version)
    .map(({ gatewayId, instanceId, staleAfterMs, age, lag }) => ({
      gatewayId,
      instanceId,
      until: at.now + staleAfterMs - age + lag,
    }))
  return {
    connected: waited.length,
    acknowledged: waited.filter(({ acknowledgedVersion }) => acknowledgedVersion >= at.version).length,
    unreachable: missing.map(({ gatewayId, instanceId, until }) => ({
      gateway_id: gatewayId,
      instance_id: instanceId,
      until: timestamp(until),
    })),
    effective_by: timestamp(missing.reduce((latest, { until }) => Math.max(latest, until), at.now)),
  }
}
