/** Who has a change, said to whoever made it (protocols section 4, rule 5). */
import { type Clock, timestamp } from '../lib/clock.ts'
import { flushEveryMs, type LaneRegistry } from './lane-registry.ts'
import type { Propagation } from './wire.ts'

const connectedMs = 3000
const waitMs = 2000

interface Known {
  gatewayId: string
  instanceId: string
  /** Until when the lane may serve without having heard more. */
  until: number
  connected: boolean
  acknowledged: boolean
}

/**
 * Waits until every lane that beat within 3 s has acknowledged `version`, or 2 s. Lanes that may still serve and have
 * not acknowledged, connected or not, are listed as unreachable with the instant at which they stop.
 */
export async function propagate(
  registry: LaneRegistry,
  { version, staleAfterMs, clock }: { version: number; staleAfterMs: number; clock: Clock },
): Promise<Propagation> {
  const began = clock.now()
  const connected = registry.all().filter(({ lastBeatAt }) => began - lastBeatAt < connectedMs)
  const names = connected.map(({ lane }) => lane)
  const isAcknowledged = (lane: string) => (registry.get(lane)?.acknowledgedVersion ?? 0) >= version
  await registry.until(() => names.every(isAcknowledged), waitMs)
  const now = clock.now()
  const known = await lanesThatServe(registry, { version, staleAfterMs, now, names: new Set(names) })
  const missing = known.filter(({ acknowledged }) => !acknowledged)
  return {
    connected: known.filter((lane) => lane.connected).length,
    acknowledged: known.filter((lane) => lane.connected && lane.acknowledged).length,
    unreachable: missing.map(({ gatewayId, instanceId, until }) => ({
      gateway_id: gatewayId,
      instance_id: instanceId,
      until: timestamp(until),
    })),
    effective_by: timestamp(missing.reduce((latest, { until }) => Math.max(latest, until), now)),
  }
}

async function lanesThatServe(
  registry: LaneRegistry,
  at: { version: number; staleAfterMs: number; now: number; names: ReadonlySet<string> },
): Promise<Known[]> {
  // A row may be behind the lane's last beat by one flush.
  const known = new Map<string, Known>()
  for (const row of await registry.rows(at.now - at.staleAfterMs - flushEveryMs)) {
    known.set(row.lane, {
      gatewayId: row.gateway_id,
      instanceId: row.instance_id,
      until: row.last_beat_at + flushEveryMs + at.staleAfterMs,
      connected: false,
      acknowledged: row.acknowledged_version >= at.version,
    })
  }
  for (const lane of registry.all()) {
    const until = lane.lastBeatAt + at.staleAfterMs
    if (until <= at.now) known.delete(lane.lane)
    else {
      known.set(lane.lane, {
        gatewayId: lane.gatewayId,
        instanceId: lane.instanceId,
        until,
        connected: at.names.has(lane.lane),
        acknowledged: lane.acknowledgedVersion >= at.version,
      })
    }
  }
  return [...known.values()]
}
