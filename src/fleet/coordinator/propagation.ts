/** How far a change has propagated, for the caller who made it (fleet/README.md rule R5). */
import { type Clock, timestamp } from '../../lib/clock.ts'
import type { Propagation } from '../../store/propagation.ts'
import type { WorkerRegistry, WorkerStatus } from './worker-registry.ts'

const connectedMs = 3000
const waitMs = 2000
/** How often the rows of workers on other control planes are read while no acknowledgement arrives. */
const pollMs = 50

/**
 * Waits up to 2 s until every worker with a heartbeat within 3 s, on any control plane, has acknowledged `version`.
 * Workers that may still serve and have not acknowledged are listed as unreachable, with the instant at which they
 * stop: by their own reported `max_staleness`, or by `staleAfterMs` if that is unknown.
 */
export async function propagate(
  registry: WorkerRegistry,
  { version, staleAfterMs, clock }: { version: number; staleAfterMs: number; clock: Clock },
): Promise<Propagation> {
  const end = clock.monotonic() + waitMs
  let workers = await registry.statuses(staleAfterMs)
  // A worker that connects later gets this version in its handshake, before it serves.
  const asked = new Set(workers.map(({ worker }) => worker))
  const connected = new Set(workers.filter(({ age }) => age < connectedMs).map(({ worker }) => worker))
  let readAt = clock.monotonic()
  for (;;) {
    const missing = workers.filter((worker) => connected.has(worker.worker) && worker.acknowledgedVersion < version)
    const now = clock.monotonic()
    if (missing.length === 0 || now >= end) break
    const lookAt = missing.every(({ here }) => here) ? end : Math.min(end, readAt + pollMs)
    await registry.nextAcknowledgement(Math.max(0, lookAt - now))
    workers = workers.map((worker) => registry.refreshed(worker))
    if (clock.monotonic() < lookAt && !missing.some((worker) => registry.hasLeft(worker))) continue
    workers = (await registry.statuses(staleAfterMs)).filter(({ worker }) => asked.has(worker))
    readAt = clock.monotonic()
  }
  return summarize(workers, { version, connected, now: clock.now() })
}

function summarize(
  workers: readonly WorkerStatus[],
  at: { version: number; connected: ReadonlySet<string>; now: number },
): Propagation {
  const waited = workers.filter(({ worker }) => at.connected.has(worker))
  const missing = workers
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
